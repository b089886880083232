"""The documentation site: its navigation, its pages, and the check of what was built."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))

import check_site  # noqa: E402
import stage  # noqa: E402


def test_every_page_is_in_the_navigation_once_and_nothing_else_is():
    assert sorted(stage.in_nav()) == sorted([*stage.pages(), *stage.API_PAGES])


@pytest.mark.parametrize(
    ("file", "text", "staged"),
    [
        ("docs/guide.md", "[a](../CHANGELOG.md)", "[a](changelog.md)"),
        ("docs/tutorials/sb3.md", "[a](../../CHANGELOG.md#x)", "[a](../changelog.md#x)"),
        ("docs/guide.md", "[a](studies.md#results)", "[a](studies.md#results)"),
        ("CHANGELOG.md", "[a](docs/next.md)", "[a](next.md)"),
        ("CHANGELOG.md", "[a](https://example.org/)", "[a](https://example.org/)"),
        ("docs/guide.md", "So:\n- one\n  more\n- two", "So:\n\n- one\n  more\n- two"),
        ("docs/guide.md", "```sh\na\n- b\n```", "```sh\na\n- b\n```"),
    ],
)
def test_pages_of_the_repository_become_pages_of_the_site(file, text, staged):
    assert stage.on_site(text, ROOT / file) == staged + "\n"


@pytest.mark.parametrize("target", ["nowhere.md", "../pyproject.toml", "images/none.png"])
def test_a_link_that_the_site_cannot_follow_ends_the_build(target):
    with pytest.raises(SystemExit, match=re.escape(target)):
        stage.on_site(f"[a]({target})", ROOT / "docs" / "guide.md")


def test_every_page_can_be_staged():
    for page, file in stage.pages().items():
        assert stage.on_site(file.read_text(), file), page


@pytest.mark.parametrize(
    ("markup", "fault"),
    [
        ('<a href="b.html#x">', None),
        ('<a href="https://example.org/">', None),
        ('<a href="c.html">', "a.html: no c.html"),
        ('<a href="b.html#y">', "a.html: no anchor b.html#y"),
        ('<img src="none.png">', "a.html: no none.png"),
        (
            '<script src="https://example.org/x.js">',
            "a.html: fetches https://example.org/x.js",
        ),
        ('<div class="mermaid">', "a.html: mermaid is fetched"),
    ],
)
def test_the_check_of_built_pages_finds_dead_links_and_requests(tmp_path, markup, fault):
    (tmp_path / "a.html").write_text(markup)
    (tmp_path / "b.html").write_text('<p id="x">')
    assert check_site.faults(tmp_path) == ([fault] if fault else [])


def test_the_check_of_built_pages_reads_style_sheets(tmp_path):
    (tmp_path / "a.css").write_text("a{} @import 'https://example.org/a.css'; b{background:url(b)}")
    assert check_site.faults(tmp_path) == ["a.css: fetches https://example.org/a.css"]


def test_pictures_of_the_gallery_are_small_and_there():
    text = (ROOT / "docs" / "gallery.md").read_text()
    pictures = re.findall(r"!\[[^]]+\]\((images/[^)]+)\)", text)
    assert pictures
    for name in pictures:
        limit = 600 if name.endswith(".webp") else 150
        assert (ROOT / "docs" / name).stat().st_size <= 1000 * limit, name
