import pytest
from hypothesis import settings

from commands import Cosmo

# The same examples in every run, and no limit of their time, which a busy machine exceeds: a red
# build must be red for everybody.
settings.register_profile("cosmo", derandomize=True, print_blob=True, deadline=None)
settings.load_profile("cosmo")


@pytest.fixture
def cosmo(monkeypatch, capsys):
    return Cosmo(monkeypatch, capsys)
