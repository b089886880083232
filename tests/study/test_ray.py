"""The same plan on a Ray cluster of two nodes on this machine; one is killed in the middle."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal
from small import Odd, do_odd, small_plan

from cosmo import InputError
from cosmo.study import LocalExecutor, conduct, load_study
from cosmo.study.checks import DONE
from cosmo.study.executor import Failed, Finished
from slow import alive

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install '.[ray]'")
pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own


@pytest.fixture
def cluster():
    """A head without work for itself, and two nodes with one core each."""
    from ray.cluster_utils import Cluster

    made = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": 0,
            "include_dashboard": False,
            "object_store_memory": 10**8,
            # A node that is gone refuses the question at once, and is given up after 2.5 s instead
            # of 15; one that is only slow to answer still has Ray's own patience.
            "_system_config": {"health_check_period_ms": 500},
        },
    )
    nodes = [made.add_node(num_cpus=1, object_store_memory=10**8) for _ in range(2)]
    ray.init(
        address=made.address,
        log_to_driver=False,
        logging_level="ERROR",
        runtime_env={"env_vars": {"PYTHONPATH": ":".join(path for path in sys.path if path)}},
    )
    made.wait_for_nodes()
    yield made, nodes
    ray.shutdown()
    made.shutdown()


def test_ray_and_local_give_the_same_numbers_even_when_a_node_is_killed(cluster, tmp_path):
    from cosmo.study.ray_cluster import RayExecutor

    made, nodes = cluster
    plan = small_plan(("cosmo", "all-local", "random"), rates=[320.0])
    killed = []

    def kill_a_node(progress):
        if not killed and progress.done >= 1:
            killed.append(nodes[1])
            made.remove_node(nodes[1], allow_graceful=False)

    progress = conduct(plan, tmp_path / "ray", RayExecutor(), kill_a_node)
    assert killed
    assert not progress.failed
    assert progress.done == len(progress.units)
    conduct(plan, tmp_path / "local", LocalExecutor())
    one, other = load_study(tmp_path / "ray"), load_study(tmp_path / "local")
    assert_frame_equal(one.metrics, other.metrics, check_exact=True)
    assert_frame_equal(one.curves, other.curves, check_exact=True)
    assert one.checkpoint("cosmo", 320.0, "poisson", "paper").is_dir()

    units = [Odd(1, error="no luck"), Odd(2)]
    events = list(RayExecutor().run(units, tmp_path / "odd", do_odd))
    [failed] = [event for event in events if isinstance(event, Failed)]
    assert failed.cause.startswith("RuntimeError: no luck (at small.py:")
    assert [event.unit.number for event in events if isinstance(event, Finished)] == [2]


def test_a_plan_that_tunes_on_tracks_gives_the_same_numbers_on_ray(cluster, tmp_path):
    from cosmo.study.ray_cluster import RayExecutor

    tracks = [
        {"name": "few", "scenario": "paper", "rate": 220.0},
        {"name": "others", "scenario": "shared-sn", "rate": 120.0},
    ]
    tune = {"settings": 2, "seeds": [5], "curve": 2}
    plan = small_plan(("periodic", "back-off"), tracks=tracks, tune=tune, episodes=1)
    for name, executor in (("local", LocalExecutor(1)), ("ray", RayExecutor())):
        progress = conduct(plan, tmp_path / name, executor)
        assert not progress.failed
    one, other = load_study(tmp_path / "local"), load_study(tmp_path / "ray")
    assert_frame_equal(one.metrics, other.metrics, check_exact=True)
    assert_frame_equal(one.tuned, other.tuned, check_exact=True)
    tuned = one.tuned.select("scenario", "method").unique().rows()
    assert sorted(tuned) == [
        (scenario, name) for scenario in ("paper", "shared-sn") for name in ("back-off", "periodic")
    ]


def test_an_address_where_nobody_is_is_refused_in_one_line(tmp_path):
    from cosmo.study.ray_cluster import RayExecutor

    with pytest.raises(InputError, match="no Ray cluster answers") as error:
        list(RayExecutor("127.0.0.1:1").run([Odd(1)], tmp_path, do_odd))
    assert "\n" not in str(error.value)


_ALONE = """
import os, sys
sys.path[:0] = {paths!r}
from pathlib import Path
from cosmo.study.executor import Finished
from cosmo.study.ray_cluster import RayExecutor
from small import Odd
from test_ray import listening, note_listeners

if __name__ == "__main__":
    units = [Odd(1)]
    events = list(RayExecutor(workers=1).run(units, Path({folder!r}), note_listeners))
    assert [type(event) for event in events][-1] is Finished, events
    assert not os.environ.get("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER")
"""


def listening(session):
    """(process, address in hexadecimal) of all sockets where a session's processes listen."""
    owners = {}
    for pid in alive(session):
        for handle in Path(f"/proc/{pid}/fd").glob("*"):
            try:
                owners[os.readlink(handle)] = pid
            except OSError:
                continue
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            inode = f"socket:[{words[9]}]"
            if words[3] == "0A" and inode in owners:
                found.add((owners[inode], words[1].split(":")[0]))
    return found


def note_listeners(unit, folder, report):
    """A unit, carried out by a worker of Ray: where do we all listen?"""
    found = sorted(address for _, address in listening(os.getsid(0)))
    (folder / "listeners").write_text("\n".join(found))
    (folder / DONE).write_text("{}")


def test_a_cluster_that_is_started_here_is_open_to_nobody_else(tmp_path):
    here, script = Path(__file__).parent, tmp_path / "script.py"
    paths = [str(here), str(here.parent)]
    script.write_text(_ALONE.format(paths=paths, folder=str(tmp_path)))
    env = {**os.environ, "PYTHONPATH": ":".join(path for path in [*paths, *sys.path] if path)}
    subprocess.run(
        [sys.executable, "-W", "ignore", str(script)], check=True, start_new_session=True, env=env
    )
    found = set((tmp_path / "odd-1" / "listeners").read_text().split())
    loopback = {"0100007F", "0000000000000000FFFF00000100007F", "0" * 24 + "01000000"}
    assert found
    assert found <= loopback
