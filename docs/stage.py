"""Lays out the pages of the documentation site under build/docs: the first half of `make site`.

Pages in docs/ are plain Markdown that reads well in the repository. The site needs a little more,
which is made here and never kept: the changelog and the contributors' page as pages of their own,
an empty line before lists (Python-Markdown needs one), and the pages of the API reference, one
entry for each public name of `cosmo`, whose text comes from docstrings.

    python docs/stage.py            # into build/docs
"""

from __future__ import annotations

import ast
import re
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import griffe

ROOT = Path(__file__).resolve().parents[1]
STAGED = ROOT / "build" / "docs"
# Files of the repository's root that are pages of the site.
BORROWED = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
IMAGES = (".png", ".webp", ".svg")

_LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")
_ITEM = re.compile(r"\s*(?:[-*]|\d+\.) ")

# Public names of `cosmo` that live in these packages are on the page of policy authors.
_POLICY_HOMES = ("cosmo.node",)
# What public names return, which users handle and never import.
_RETURNED = {
    "compare": ("cosmo.report.compare.Comparison", "cosmo.report.verdict.Verdict"),
    "simulate": ("cosmo.control.simulate.Simulation", "cosmo.measure.statistics.Interval"),
    "load_controller": ("cosmo.policy.controller.Controller",),
    "tune": ("cosmo.study.tuning.Tuned",),
}
API_PAGES = tuple(
    f"api/{name}.md" for name in ("index", "policies", "running", "studies", "environments")
)


def pages() -> dict[str, Path]:
    """Every page of the site that is written by hand, and the file that it comes from."""
    found = {
        path.relative_to(ROOT / "docs").as_posix(): path
        for path in sorted((ROOT / "docs").rglob("*.md"))
    }
    return found | {page: ROOT / name for name, page in BORROWED.items()}


def in_nav() -> list[str]:
    """The pages that the navigation of mkdocs.yml names, in order; comments do not count."""
    text = (ROOT / "mkdocs.yml").read_text("utf-8")
    return re.findall(r"^ *- [^#\n]*?: (\S+\.md)$", text, re.MULTILINE)


def on_site(text: str, file: Path) -> str:
    """The Markdown of a file as the site needs it: links between pages, lists after empty lines."""
    return _with_lists_apart(_LINK.sub(lambda link: _relinked(link, file), text))


def _relinked(link: re.Match[str], file: Path) -> str:
    opening, target, closing = link.groups()
    if "://" in target or target.startswith("mailto:"):
        return link[0]
    place = (file.parent / target).resolve()
    inside = ROOT / "docs"
    if place.parent == ROOT and place.name in BORROWED:
        depth = 0 if file.parent == ROOT else len(file.parent.relative_to(inside).parts)
        return f"{opening}{'../' * depth}{BORROWED[place.name]}{closing}"
    if not place.is_relative_to(inside) or not place.exists():
        where = file.relative_to(ROOT)
        sys.exit(f"{where}: a link to {target}, which is no page or picture of the site")
    if file.parent == ROOT:  # its page is at the root of docs/
        return f"{opening}{place.relative_to(inside).as_posix()}{closing}"
    return link[0]


def _with_lists_apart(text: str) -> str:
    lines: list[str] = []
    fenced = False
    for line in text.splitlines():
        fenced ^= line.startswith("```")
        before = lines[-1] if lines else ""
        starts = _ITEM.match(line) and not _ITEM.match(before) and not before.startswith(" ")
        if starts and before.strip() and not fenced:
            lines.append("")
        lines.append(line)
    return "\n".join(lines) + "\n"


def api_pages() -> dict[str, str]:
    """The pages of the API reference by name, from the public names in the source.

    Nothing of `cosmo` is imported: Griffe reads the source, so that the site needs none of its
    dependencies.
    """
    import griffe  # here, so that the tests of the navigation need no tools

    package = griffe.load("cosmo", search_paths=[str(ROOT / "src")], resolve_aliases=True)
    homes = ast.literal_eval(str(package["_HOMES"].value))
    exported = sorted((name for some in homes.values() for name in some), key=str.lower)
    found = {name: package[name] for name in exported}
    public = {name: each.final_target if each.is_alias else each for name, each in found.items()}
    policies: list[str] = []
    running: list[str] = []
    rooms: list[str] = []
    for name, thing in public.items():
        if thing.is_module:
            rooms.append(name)
        elif thing.canonical_path.startswith(tuple(f"{home}." for home in _POLICY_HOMES)):
            policies.append(name)
        else:
            running.append(name)
    if rooms != ["study"]:
        sys.exit(f"docs/stage.py: no page for the public modules {', '.join(rooms)}")

    def listed(names: Iterable[str], page: str) -> list[str]:
        return [
            f"| [`cosmo.{name}`]({page}.md#cosmo.{name}) | {_first_sentence(public[name])} |"
            for name in names
        ]

    overview = [
        "# Python interface",
        "",
        "Every name below can be imported from `cosmo`. The text comes from the docstrings of the",
        "source. [Studies in Python](studies.md) and [Environments in Python](environments.md)",
        "document the packages `cosmo.study` and `cosmo.envs`.",
        "",
        "| name | what it is |",
        "|---|---|",
        *listed(policies, "policies"),
        *listed(running, "running"),
    ]
    made = {
        "index": "\n".join(overview) + "\n",
        "policies": _entries(
            "For policy authors",
            "A method is a dispatcher, which decides at an edge node (EN), and an updater, which"
            " decides at a service node (SN). [The guide](../guide.md#your-own-method) shows both.",
            (
                *(f"cosmo.{name}" for name in policies),
                *(f"cosmo.node.{name}" for name in _parts(package["node"]) if name not in public),
            ),
        ),
        "running": _entries(
            "Running and training",
            "Scenarios, worlds, methods by name, simulation, training and evaluation. What a"
            " function returns, if it is an object of this package, follows it.",
            (entry for name in running for entry in (f"cosmo.{name}", *_RETURNED.get(name, ()))),
        ),
    }
    for page, room, title in (
        ("studies", "study", "Studies in Python"),
        ("environments", "envs", "Environments in Python"),
    ):
        names = (f"cosmo.{room}.{name}" for name in _exported(package[room]))
        made[page] = _entries(title, package[room].docstring.value, names)
    return {f"api/{name}.md": text for name, text in made.items()}


def _exported(module: griffe.Module) -> list[str]:
    return sorted((str(name) for name in module.exports or ()), key=str.lower)


def _parts(room: griffe.Module) -> list[str]:
    """Public classes of a package; its constants are explained where they are used."""
    known = [name for name in _exported(room) if room[name].is_alias and room[name].resolved]
    return [name for name in known if room[name].is_class]


def _first_sentence(thing: griffe.Object) -> str:
    text = thing.docstring.value if thing.docstring else ""
    return " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|")


def _entries(title: str, text: str, names: Iterable[str]) -> str:
    return "\n\n".join([f"# {title}", text, *(f"::: {name}" for name in names)]) + "\n"


def stage() -> None:
    """Write all pages and pictures under build/docs, anew; ends if the navigation is not theirs."""
    strays = set(in_nav()) ^ {*pages(), *API_PAGES}
    if strays:  # Zensical passes over both kinds in silence
        sys.exit(f"mkdocs.yml: not both a page and in nav: {', '.join(sorted(strays))}")
    shutil.rmtree(STAGED, ignore_errors=True)
    texts = {page: on_site(file.read_text("utf-8"), file) for page, file in pages().items()}
    for page, text in (texts | api_pages()).items():
        (STAGED / page).parent.mkdir(parents=True, exist_ok=True)
        (STAGED / page).write_text(text, encoding="utf-8")
    for path in (ROOT / "docs" / "images").iterdir():
        if path.suffix in IMAGES:
            (STAGED / "images").mkdir(exist_ok=True)
            shutil.copy(path, STAGED / "images" / path.name)


if __name__ == "__main__":
    stage()
