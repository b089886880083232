"""Figures for all kinds of colour vision: what differs in colour differs in shape, too."""

import re
from importlib import resources
from itertools import combinations

import numpy as np
import pytest

from cosmo.report.style import looks

# Machado, Oliveira and Fernandes (2009): what people without one kind of cone see, on linear RGB.
VISIONS = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                   [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                     [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                   [0.004733, 0.691367, 0.303900]],
}  # fmt: skip


def _seen(colour, vision):
    """The colour as it is seen, in sRGB from 0 to 1."""
    rgb = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255.0
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    other = np.clip(np.array(VISIONS[vision]) @ linear, 0.0, 1.0)
    return np.where(other <= 0.0031308, 12.92 * other, 1.055 * other ** (1 / 2.4) - 0.055)


@pytest.mark.parametrize("vision", VISIONS)
def test_methods_of_a_figure_differ_without_colour_or_clearly_in_it(vision):
    names = [f"method-{number}" for number in range(22)]
    found = looks(names, focus="method-3", yardsticks=["method-7", "method-12"])
    for one, other in combinations(names, 2):
        a, b = found[one], found[other]
        shape = (a.mark, a.symbol, a.line, a.dash) != (b.mark, b.symbol, b.line, b.dash)
        distance = np.linalg.norm(_seen(a.colour, vision) - _seen(b.colour, vision))
        assert shape or distance > 0.25, (one, other, distance)


@pytest.mark.parametrize("vision", VISIONS)
def test_the_focus_stands_out_from_the_grey_of_the_others(vision):
    css = resources.files("cosmo.report").joinpath("page", "report.css").read_text()
    for theme in css.split("}")[:2]:
        focus, grey = (re.search(rf"--{name}: (#\w+)", theme)[1] for name in ("focus", "grey"))
        assert np.linalg.norm(_seen(focus, vision) - _seen(grey, vision)) > 0.2, theme


def test_outcomes_in_the_viewer_have_shapes_of_their_own():
    script = resources.files("cosmo.report").joinpath("page", "viewer.js").read_text()
    block = re.search(r"const shapes = \{(.*?)\};", script, re.DOTALL)[1]
    shapes = dict(re.findall(r'(\w+): "([\w-]+)"', block))
    simulated = ["TP", "FP", "TN", "FN", "undecided"]
    live = ["DONE", "LATE", "EXPIRED", "REFUSED", "FAILED", "REJECTED"]
    for group in (simulated, live):
        assert len({shapes[outcome] for outcome in group}) == len(group)
