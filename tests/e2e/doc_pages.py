"""The pages of the documentation as programs: files, Python and commands, in reading order."""

import importlib
import re
import runpy
import shlex
import sys
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def docs_module(name):
    """A script of docs/ as a module."""
    sys.path.insert(0, str(DOCS))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(DOCS))


def quoted(text):
    """The file that a block says it is a piece of, and the piece."""
    first, _, piece = text.partition("\n")
    return (first.removeprefix("# of "), piece) if first.startswith("# of ") else (None, text)


@contextmanager
def _importable(folder):
    """Files of a folder can be imported, as from a script that lies there; nothing of it stays."""
    before = list(sys.path)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:] = before
        for name, module in list(sys.modules.items()):
            if Path(getattr(module, "__file__", None) or "/").parent == folder:
                del sys.modules[name]


def follow(page, cosmo, changed=lambda arguments: arguments):
    """Do what a page says in the working folder; `changed` may alter arguments of `cosmo`.

    Returns what each command printed, by its line.
    """
    printed = {}
    for language, text in FENCE.findall(page.read_text()):
        name = re.match(r"# (\w+\.(py|toml))\n", text)
        if quoted(text)[0]:
            continue
        if name:
            Path(name[1]).write_text(text)
        elif language == "python":
            with _importable(Path.cwd()):
                exec(compile(text, str(page), "exec"), {"__name__": "example"})
        elif language == "sh":
            for line in re.sub(r" *\\\n *", " ", text).splitlines():
                if line.startswith("cosmo "):
                    words = shlex.split(line, comments=True)[1:]
                    words = [
                        str(ROOT / word) if word.startswith("docs/") else word for word in words
                    ]
                    code, out, err = cosmo(*changed(words))
                    assert code == 0, f"{line}: {err}"
                    printed[line] = out
                elif line.startswith("python "):
                    _, script = line.split()
                    runpy.run_path(str(ROOT / script), run_name="__main__")
                else:
                    assert line.startswith(("make ", "pip ")), f"untested line: {line}"
    return printed
