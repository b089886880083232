"""Units for systemd are content with systemd's own check."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

UNITS = sorted((Path(__file__).parents[2] / "examples" / "live").glob("*.service"))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
def test_systemd_finds_nothing_wrong(tmp_path):
    assert len(UNITS) >= 3
    for unit in UNITS:
        text = unit.read_text()
        assert "ExecStart=/opt/cosmo/bin/cosmo serve " in text
        # The check wants a program that is there.
        (tmp_path / unit.name).write_text(text.replace("/opt/cosmo/bin/cosmo", sys.executable))
    files = [str(tmp_path / unit.name) for unit in UNITS]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *files], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
