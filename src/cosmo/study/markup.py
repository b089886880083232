"""Text that others wrote, on its way into HTML, scripts, Markdown and LaTeX: it stays text."""

import base64
import gzip
import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

_PLACE = re.compile(r"@@([A-Z]+)@@")

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


def in_script(data: Any) -> str:
    """As JSON inside of `<script>`, where `<` could end it. Refuses NaN and infinities."""
    text = json.dumps(data, allow_nan=False)
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def as_json(data: Any) -> str:
    """As compact JSON. Refuses NaN and infinities."""
    return json.dumps(data, allow_nan=False, separators=(",", ":"))


def packed(text: str) -> str:
    """Compressed, in letters that no markup can be made of; the same text, the same letters."""
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


def unpacked(letters: str) -> str:
    """What was packed."""
    return gzip.decompress(base64.b64decode(letters)).decode()


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


def in_cell(text: str) -> str:
    """For a cell of a Markdown table."""
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|")


def cells(line: str) -> list[str]:
    """The cells of a line of a Markdown table (`| a | b |`), as they were before `in_cell`."""
    return [re.sub(r"\\([\\|])", r"\1", text) for text in line[2:-2].split(" | ")]


def in_tex(text: str) -> str:
    """For LaTeX."""
    return "".join(_TEX.get(sign, sign) for sign in text)
