"""What a policy raises is its failure, whatever it is: only the user's Ctrl-C is an interrupt."""

import signal
import sys
from collections import deque
from unittest.mock import Mock

import pytest
from small import Odd, do_odd

from cosmo import InputError, interrupts
from cosmo.envs import UpdateEnv
from cosmo.node.guard import ask
from cosmo.policy.registry import method
from cosmo.study.ray_cluster import _carried_out

POLICY = """
from cosmo import Dispatcher, Method

def gone(here):
    if here == {where!r}:
        raise {error}

gone("import")

class Rude(Method, Dispatcher):
    '''Ends the program.'''
    def __init__(self):
        gone("constructor")
    def dispatcher(self, site):
        gone("dispatcher")
        return self
    def decide(self, tasks):
        gone("decide")
        return [0] * len(tasks)
"""
ERRORS = ("SystemExit(0)", "SystemExit('bye')", "KeyboardInterrupt", "GeneratorExit")


def _rude(folder, where, error):
    path = folder / "rude.py"
    path.write_text(POLICY.format(where=where, error=error))
    return f"{path}:Rude"


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("where", ["import", "constructor", "dispatcher", "decide"])
def test_a_policy_cannot_end_the_command(cosmo, tmp_path, where, error):
    code, out, err = cosmo("simulate", "-m", _rude(tmp_path, where, error))
    assert (code, out) == (2, "")
    *before, line = err.splitlines()
    assert before in ([], ["compiling the engine, once on this machine …"])
    assert line.startswith("cosmo: method ")
    assert error.partition("(")[0] in line


@pytest.mark.parametrize("error", ERRORS)
def test_nor_a_study(cosmo, tmp_path, error):
    code, _, err = cosmo(
        "study", "run", "baselines", "--out", tmp_path / "out",
        "--set", f'compare=[{{methods=["{_rude(tmp_path, "import", error)}"]}}]',
    )  # fmt: skip
    assert code == 2
    assert "fails on import" in err
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_nor_a_node_of_a_cluster(kind):
    """Workers on this machine are in `test_execution`."""
    wrong, files = _carried_out(Odd(0, error="bye", kind=kind), do_odd, Mock())
    assert wrong.startswith(f"{kind.__name__}: bye (at small.py:")
    assert files == {}


@pytest.mark.parametrize("error", ["SystemExit(0)", "GeneratorExit"])
def test_nor_who_steps_an_environment(tmp_path, error):
    env = UpdateEnv("paper", dispatcher=_rude(tmp_path, "decide", error))
    env.reset(seed=0)
    with pytest.raises(InputError, match=r"method Rude failed at rude\.py"):
        deque((env.step(0) for _ in range(1000)), 0)


def test_the_users_interrupt_goes_through_a_policy(request):
    # A shell starts what runs in the background with interrupts ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    with interrupts.marked(), pytest.raises(interrupts.Interrupted):
        ask(None, signal.raise_signal, signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    # Without the mark nobody knows who it was: better the user.
    with pytest.raises(KeyboardInterrupt):
        ask(None, signal.raise_signal, signal.SIGINT)


def test_an_ignored_interrupt_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interrupts.marked():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        assert not interrupts.of_user(KeyboardInterrupt())  # then it is a policy's
    finally:
        signal.signal(signal.SIGINT, before)


ODD_CLASSES = {
    "its parameters cannot be read": "    def __init__(self, x: 'Nowhere' = 1): pass\n",
    "carries = 'four': must be a whole number": "    carries = 'four'\n",
    "carries = 1000000000000: must be": "    carries = 10**12\n",
    "ZeroDivisionError": "    carries = property(lambda self: 1 / 0)\n",
}


@pytest.mark.parametrize(("line", "body"), ODD_CLASSES.items())
def test_a_class_that_cannot_be_understood_is_one_line(tmp_path, line, body):
    path = tmp_path / "odd.py"
    path.write_text(f"from cosmo import Method\nclass Mine(Method):\n    '''Mine.'''\n{body}")
    with pytest.raises(InputError, match=line) as caught:
        method(f"{path}:Mine")
    assert "\n" not in str(caught.value)
    sys.modules.pop("cosmo_user_odd", None)
