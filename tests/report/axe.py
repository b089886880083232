"""axe-core, which finds what keeps people from using a page, fetched once by npm."""

import base64
import hashlib
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from slow import LIMIT_S

_VERSION = "4.14.0"
_DIGEST = "9WTZxEjsZ7b13TH8JPmbV2z8CHbl80/2hm3XPEG4JgNdQLK81IBRXmSxHfMAOkSqQeRxT/0dwNDz2GOm3zzpcQ=="
_KEPT = Path(__file__).parents[2] / ".cache" / "axe-core"

_RUN = """
const done = arguments[0];
axe.run(document, {resultTypes: ["violations"]}).then((found) => done(found.violations.map((each) =>
  [each.impact, each.id, each.nodes.map((node) => node.html.slice(0, 120))])));
"""


def axe_script():
    """The script's text; the test is skipped where npm is not, or cannot fetch it."""
    package = _KEPT / f"axe-core-{_VERSION}.tgz"
    if not package.exists():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("no npm on this machine, which fetches axe-core")
        _KEPT.mkdir(parents=True, exist_ok=True)
        fetch = [npm, "pack", f"axe-core@{_VERSION}", "--ignore-scripts", "--silent"]
        done = subprocess.run(fetch, cwd=_KEPT, capture_output=True, timeout=LIMIT_S, check=False)
        if done.returncode:
            pytest.skip(f"npm cannot fetch axe-core {_VERSION}")
    assert base64.b64encode(hashlib.sha512(package.read_bytes()).digest()).decode() == _DIGEST
    with tarfile.open(package) as files:
        return files.extractfile("package/axe.min.js").read().decode()


def findings(browser):
    """What a page that has the script is reproached with: (impact, rule, elements)."""
    return browser.execute_async_script(_RUN)
