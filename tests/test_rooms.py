"""The rooms of the house: who may import whom, and how little a node needs."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from short import short_config, short_runs

import cosmo
from cosmo import load
from cosmo.learn import session
from cosmo.learn.next.config import load_next_config
from cosmo.learn.run import Run

SOURCE = Path(cosmo.__file__).parent.parent

# Each may import what is above it, and nothing below.
ROOMS = (
    "errors", "interrupts", "checksums", "files", "arrays", "seeds", "device", "node", "policy",
    "documents", "scenario", "tables", "workload", "world", "ns3", "live", "integrations", "engine",
    "measure", "control", "learn", "study", "report", "envs", "web", "cli", "__main__",
)  # fmt: skip


def _modules():
    """{name: file} of everything in the package."""
    found = {}
    for path in (SOURCE / "cosmo").rglob("*.py"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = _modules()


def _for_types_only(tree):
    """All nodes below `if TYPE_CHECKING`."""
    tests = [node for node in ast.walk(tree) if isinstance(node, ast.If)]
    guarded = [node for node in tests if ast.unparse(node.test).endswith("TYPE_CHECKING")]
    return {id(inner) for node in guarded for each in node.body for inner in ast.walk(each)}


def imported_by(text, modules, whole=True):
    """The modules of the package that a file imports; without `whole`, not inside functions."""
    tree, found = ast.parse(text), set()
    skipped = _for_types_only(tree)
    if not whole:
        calls = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
        skipped |= {id(inner) for node in calls for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names if each.name in modules}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            for each in node.names:  # a module of a package, or a name in a module
                full = f"{node.module}.{each.name}"
                found |= {full if full in modules else node.module} & modules.keys()
    return found


def _graph(whole=True):
    """{module: modules}; the root is lazy, and has a test of its own."""
    texts = {name: path.read_text() for name, path in MODULES.items() if name != "cosmo"}
    return {
        name: imported_by(text, MODULES, whole) - {"cosmo", name} for name, text in texts.items()
    }


def room_of(module):
    return module.split(".")[1]


def upwards(graph):
    """Imports from a room into one below it."""
    rank = {room: place for place, room in enumerate(ROOMS)}
    return [
        (module, other)
        for module, others in sorted(graph.items())
        for other in sorted(others)
        if rank[room_of(other)] > rank[room_of(module)]
    ]


def cycles(graph):
    """Sets of modules that import one another, by whatever detour."""
    reached = {}
    for module in graph:
        seen, left = set(), [module]
        while left:
            for other in graph.get(left.pop(), ()):
                if other not in seen:
                    seen.add(other)
                    left.append(other)
        reached[module] = seen
    return {
        frozenset(other for other in seen if module in reached.get(other, ()))
        for module, seen in reached.items()
        if module in seen
    }


def test_every_room_is_in_the_plan():
    assert {room_of(module) for module in MODULES if module != "cosmo"} == set(ROOMS)
    assert len(MODULES) > 100


def test_rooms_depend_one_way():
    assert upwards(_graph()) == []


def test_modules_do_not_import_one_another_in_circles():
    assert cycles(_graph(whole=False)) == set()
    # Within functions there is one: a policy from elsewhere names the updater of another method.
    known = frozenset({"cosmo.policy.outside", "cosmo.policy.registry"})
    assert cycles(_graph()) <= {known}


def test_wrong_ways_and_circles_would_be_found():
    text = (
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from cosmo.study import plan\n"
        "import cosmo.world.kernel\n"
        "def late():\n    from cosmo.learn import session\n"
    )
    found = imported_by(text, MODULES)
    assert found == {"cosmo.world.kernel", "cosmo.learn.session"}
    assert imported_by(text, MODULES, whole=False) == {"cosmo.world.kernel"}
    assert upwards({"cosmo.node.site": found}) == [
        ("cosmo.node.site", "cosmo.learn.session"),
        ("cosmo.node.site", "cosmo.world.kernel"),
    ]
    assert upwards({"cosmo.learn.session": {"cosmo.node.site"}}) == []
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == {frozenset("abc")}


def test_the_house_uses_nothing_of_its_lazy_root_but_the_version():
    used = set()
    for name, path in MODULES.items():
        if name == "cosmo":
            continue
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module == "cosmo":
                used |= {each.name for each in node.names if f"cosmo.{each.name}" not in MODULES}
            is_root = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
            if is_root and node.value.id == "cosmo" and f"cosmo.{node.attr}" not in MODULES:
                used.add(node.attr)
    assert used == {"__version__"}


def test_every_public_name_is_where_the_root_says_and_nothing_else_is_there():
    for name in cosmo.__all__:
        assert getattr(cosmo, name) is not None
    assert set(cosmo.__all__) <= set(dir(cosmo))
    with pytest.raises(AttributeError, match="module 'cosmo' has no attribute 'nothing'"):
        _ = cosmo.nothing


# What a node does, from the start to a few decisions. It is told of its site, not of a scenario.
NODE = '''
import sys
before = set(sys.modules)
import json
import numpy as np
from cosmo.node import *
from cosmo.policy.registry import method


def site():
    two = lambda slots, speed, room, queue: Nodes(
        np.array([slots]), np.array([speed]), np.array([room]), np.array([queue])
    )
    return Site(
        en=two(2, 18000.0, 240000.0, 12),
        sn=two(4, 27000.0, 480000.0, 24),
        links=Links(
            np.array([[0]]), np.array([[96.0]]), np.array([[192.0]]), np.array([[2]]),
            np.array([[1.0]]), 1500.0, 1000.0,
        ),
        reservation_floor_bytes=50000.0,
        tasks=Tasks((2e4, 5e4), (1e5, 1.2e6), (60.0, 220.0), 300.0, 1.0),
        scales=Scales(100.0, 100.0, 100.0, 15000.0, 200.0, 10.0),
        prices=Prices(96.0, 2.0),
    )


def task(number, now, status, made_ms):
    one = lambda value, kind=float: np.array([value], kind)
    return DispatchObservation(
        world=one(0, int), en=one(0, int), ue=one(0, int), task=one(number, int),
        time_ms=one(now), generated_ms=one(now - 3.0), input_bytes=one(36000.0),
        cycles=one(3e5 + 5e4 * number), deadline_ms=one(90.0), throughput_mbps=one(100.0),
        throughput_trend_mbps=one(0.0), residual_ms=one(9000.0),
        en_state=np.array([[2.0, 0.0, 0.0, 240000.0, 0.0, 0.0]]), local_wait_ms=one(0.0),
        local_room=one(True, bool), sn=np.array([[0]]), status=status[:, None],
        status_ms=np.array([[made_ms]]),
        up_link_mbps=np.array([[[96.0, 0.0, 0.0]]]), up_backlog_ms=np.array([[0.0]]),
    )


def look(now, held, made_ms):
    one = lambda value, kind=float: np.array([value], kind)
    return UpdateObservation(
        world=one(0, int), sn=one(0, int), time_ms=one(now),
        sn_state=np.array([[1.0, 0.0, 2e6, 330000.0, 3.0, 40.0]]), en=np.array([[0]]),
        acknowledged=held[:, None],
        acknowledged_ms=np.array([[made_ms]]), recent_delay_ms=one(70.0), recent_success=one(0.9),
        recent_failure=one(0.1), down_link_mbps=np.array([[[192.0, 0.0, 0.0]]]),
    )


def lived(spec):
    """What a node decides on the first tasks and looks of its life."""
    chosen, here = method(spec), site()
    en = chosen.dispatcher(here)
    sn = chosen.updater(here) if chosen.carries else None
    held, made_ms, done = np.zeros((1, chosen.carries)), np.nan, []
    for number in range(12):
        now = 20.0 * (number + 1)
        if sn is not None:
            send, again = sn.decide(look(now, held, made_ms))
            done.append([bool(send[0]), float(again[0])])
            held, made_ms = np.asarray(sn.encode(look(now, held, made_ms).states)), now
        [action] = np.asarray(en.decide(task(number, now + 5.0, held, made_ms))).tolist()
        done.append(action)
        column = lambda value, kind=int: np.array([value], kind)
        en.observe(
            Feedback(
                column(0), column(0), column(number), column(action),
                column(GIVEN_UP if action == 2 else DONE), column(action < 2, bool),
                column(now + 15.0, float),
            )
        )
    return done
'''  # fmt: skip

TOLD = """
lives = {spec: lived(spec) for spec in sys.argv[1:]}
new = {name.partition(".")[0] for name in sys.modules if name not in before}
print(json.dumps([lives, sorted(new - set(sys.stdlib_module_names))]))
"""


@pytest.fixture(scope="module")
def specs(tmp_path_factory):
    """Trained controllers of both kinds, and methods that need no training."""
    folder = tmp_path_factory.mktemp("trained")
    session.train(folder / "paper", "cosmo", short_runs(0), short_config(1))
    small = ["episodes=2", "worlds=2", "window_ms=600.0", "en.steps=4", "en.batch=32"]
    config = load_next_config("next", [*small, "en.kept_rounds=1", "sn.from_share=0.3"])
    session.train(folder / "next", "cosmo-next", [Run(load("shared-sn"), 0)], config)
    trained = f"cosmo:checkpoint={folder / 'paper'}", f"cosmo-next:checkpoint={folder / 'next'}"
    rules = "self-tracking", "back-off", "priced-books", "adaptive-prices", "aov-gap", "prequal"
    return [*trained, *rules, "admission-control"]


def test_a_node_needs_numpy_alone_and_decides_as_in_the_laboratory(specs):
    code = [sys.executable, "-c", NODE + TOLD, *specs]
    done = subprocess.run(code, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lives, loaded = json.loads(done.stdout)
    # Compiled parts of NumPy leave notes of their own among the modules.
    loaded = {name for name in loaded if "cython" not in name}
    assert loaded == {"cosmo", "numpy"}
    here = {}
    exec(NODE, here)  # the same, where everything is loaded
    for spec in specs:
        assert lives[spec] == json.loads(json.dumps(here["lived"](spec)))
        actions = [each for each in lives[spec] if not isinstance(each, list)]
        assert len(actions) == 12
        assert set(actions) <= {0, 1, 2}


@pytest.mark.parametrize(
    "lines", ["import cosmo.node", "import cosmo; cosmo.Method; cosmo.load_controller"]
)
def test_importing_a_node_s_room_loads_no_laboratory(lines):
    code = f"import sys\n{lines}\nprint(*sorted(name for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"numba", "polars", "scipy", "pydantic", "jax", "rich", "typer", "matplotlib"}
    heavy |= {"gymnasium", "pettingzoo", "plotly", "optax", "ray", "onnxruntime"}
    loaded = set(done.stdout.split())
    assert "numpy" in loaded
    assert not heavy & loaded
    ours = {name.split(".")[1] for name in loaded if name.startswith("cosmo.")}
    assert ours <= set(ROOMS[: ROOMS.index("policy") + 1])
