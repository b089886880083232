"""Text that others wrote, on its way into HTML, Markdown and LaTeX: it stays text."""

import base64
import gzip
import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

_PLACE = re.compile(r"@@([A-Z]+)@@")

# What begins something in Markdown: entities, tags, cells, code, emphasis, links and images.
_MARKDOWN = re.compile(r"[&<>\\|`*]|(?<![^\W_])_|_(?![^\W_])|\](?=[(\[:])")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}

_TEX = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "{}#$%&_"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "–": "--",
    "µ": r"$\mu$",
}


def filled(template: str, values: Mapping[str, str]) -> str:
    """The template with every `@@NAME@@` replaced, in one pass: what is put in is not looked at."""
    return _PLACE.sub(lambda place: values[place[1]], template)


def in_html(text: str) -> str:
    """For the content or a quoted attribute of an element."""
    return html.escape(text, quote=True)


def as_json(data: Any) -> str:
    """As compact JSON. Refuses NaN and infinities."""
    return json.dumps(data, allow_nan=False, separators=(",", ":"))


def packed(text: str) -> str:
    """Compressed, in letters that no markup can be made of; the same text, the same letters."""
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


def one_newline(source: str) -> str:
    """A script as browsers read it, so that its digest is theirs."""
    return source.replace("\r\n", "\n").replace("\r", "\n")


def policy(scripts: Sequence[str]) -> str:
    """A content security policy: these scripts and no others, no handlers, no network at all."""
    digests = (base64.b64encode(hashlib.sha256(each.encode()).digest()) for each in scripts)
    allowed = " ".join(f"'sha256-{digest.decode()}'" for digest in digests)
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {allowed}",
            "style-src 'unsafe-inline'",  # charts set styles of their elements
            "img-src data: blob:",  # a chart that is saved as a picture
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def in_markdown(text: str) -> str:
    """For a paragraph or a cell of a table: nothing in it is markup, HTML or a link."""
    return _MARKDOWN.sub(lambda sign: _ENTITIES.get(sign[0]) or rf"\{sign[0]}", _one_line(text))


def in_code(text: str) -> str:
    """The same for a name: between backquotes, unless it has signs that end code or a cell."""
    line = _one_line(text)
    return in_markdown(line) if not line or set("`|\\") & set(line) else f"`{line}`"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def in_tex(text: str) -> str:
    """Return `text` with the special characters of LaTeX escaped."""
    return "".join(_TEX.get(sign, sign) for sign in text)
