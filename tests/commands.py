"""The command line, called in this process."""

import sys

import pytest

from cosmo.cli.main import main


class Cosmo:
    """Runs `cosmo …`; returns (exit code, standard output, standard error)."""

    def __init__(self, monkeypatch, capsys):
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, *arguments):
        self._monkeypatch.setattr(sys, "argv", ["cosmo", *map(str, arguments)])
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = self._capsys.readouterr()
        return stop.value.code, out, err
