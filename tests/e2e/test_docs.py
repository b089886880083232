"""Every example in README and docs runs as it stands there, page by page, in an empty folder."""

import re
import shlex
from pathlib import Path

import pytest

from cosmo.scenario import Scenario

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _cheaper(arguments):
    """The same command with fewer episodes, and a comparison at fewer loads."""
    if "--episodes" in arguments:
        place = arguments.index("--episodes") + 1
        arguments[place] = str(min(2, int(arguments[place])))
    if arguments[0] == "run":
        arguments += ["--episodes", "1", "--set", "workload.rates_of_interest=[100]"]
    return arguments


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_run(page, cosmo, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for language, text in FENCE.findall(page.read_text()):
        name = re.match(r"# (\w+\.(py|toml))\n", text)
        if name:
            Path(name[1]).write_text(text)
        elif language == "python":
            exec(compile(text, str(page), "exec"), {"__name__": "example"})
        elif language == "sh":
            for line in text.splitlines():
                if line.startswith("cosmo "):
                    arguments = _cheaper(shlex.split(line, comments=True)[1:])
                    code, _, err = cosmo(*arguments)
                    assert code == 0, f"{line}: {err}"
                else:
                    assert line.startswith(("make ", "pip ")), f"untested line: {line}"


def test_the_reference_names_every_field_of_a_scenario():
    text = (ROOT / "docs" / "reference.md").read_text()

    def fields(model, prefix=""):
        for name, field in model.model_fields.items():
            if hasattr(field.annotation, "model_fields"):
                yield from fields(field.annotation, f"{prefix}{name}.")
            else:
                yield f"{prefix}{name}"

    missing = [name for name in fields(Scenario) if f"`{name}`" not in text]
    assert missing == []


def test_links_between_pages_lead_somewhere():
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_map_of_the_house_names_every_package_and_module():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    words = set(re.findall(r"[a-z_]+", text))
    for path in (ROOT / "src" / "cosmo").rglob("*.py"):
        if not path.name.startswith("__") and path.parent.name not in ("cli", "study"):
            assert path.stem in words, f"{path} is not on the map"
