"""Checks the built site, the end of `make site`: links lead somewhere, nothing is fetched.

python docs/check_site.py       # after a build into site/
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

SITE = Path(__file__).resolve().parents[1] / "site"
# Attributes whose targets a browser fetches without being asked.
_FETCHED = {
    "script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src",
    "audio": "src", "embed": "src", "object": "data", "link": "href",
}  # fmt: skip
# Texts that make the theme load a library from elsewhere.
_LOADERS = ("mermaid", "arithmatex")


class _Page(HTMLParser):
    """Collects the anchors of a page, what it links to, and what it fetches."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors = {""}
        self.linked: list[str] = []
        self.fetched: list[str] = []
        self.classes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note one element."""
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        self.classes |= set(found.get("class", "").split())
        if tag == "a" and "href" in found:
            self.linked.append(found["href"])
        if target := found.get(_FETCHED.get(tag, "")):
            self.fetched.append(target)


def faults(site: Path) -> list[str]:
    """What is wrong with the pages under `site`, one line each."""
    pages = {path: _Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site)
        found += [f"{name}: fetches {target}" for target in page.fetched if _elsewhere(target)]
        found += [f"{name}: {each} is fetched" for each in _LOADERS if each in page.classes]
        for target in {*page.linked, *page.fetched}:
            parts = urlsplit(target)
            if _elsewhere(target) or parts.scheme:
                continue
            base = site if name.name == "404.html" else path.parent
            place = (base / unquote(parts.path)).resolve() if parts.path else path
            place = site / parts.path.lstrip("/") if parts.path.startswith("/") else place
            place = place / "index.html" if place.is_dir() else place
            if not place.exists():
                found.append(f"{name}: no {target}")
            elif place in pages and unquote(parts.fragment) not in pages[place].anchors:
                found.append(f"{name}: no anchor {target}")
    for path in sorted(site.rglob("*.css")):
        style = re.sub(r"/\*.*?\*/", "", path.read_text("utf-8"), flags=re.DOTALL)
        for target in re.findall(r"(?:url\(|@import )['\"]?([^'\")]+)", style):
            if _elsewhere(target):
                found.append(f"{path.relative_to(site)}: fetches {target}")
    return found


def _elsewhere(target: str) -> bool:
    return target.startswith(("http:", "https:", "//"))


def main() -> None:
    """Check site/; one line a fault, exit code 1 if there is any."""
    count = len(list(SITE.rglob("*.html")))
    if not count:
        sys.exit("site/: no pages; build them with: make site")
    found = faults(SITE)
    for line in found:
        print(line, file=sys.stderr)
    if found:
        sys.exit(1)
    print(f"site/: {count} pages, every link leads somewhere, nothing is fetched from elsewhere")


if __name__ == "__main__":
    main()
