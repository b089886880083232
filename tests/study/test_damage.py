"""Results that are not what was written are never taken for results."""

import json
import math
import shutil

import polars
import pytest
from polars.testing import assert_frame_equal
from small import small_plan

from cosmo import InputError
from cosmo.checksums import SEAL
from cosmo.files import digest_of, write_record
from cosmo.study import LocalExecutor, conduct, load_study, progress_of
from cosmo.study.checks import DONE, damage, finished
from cosmo.study.store import CHECKSUMS

PLAN = small_plan(("cosmo", "all-local"), rates=[320.0])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A finished study."""
    folder = tmp_path_factory.mktemp("study") / "whole"
    assert not conduct(PLAN, folder, LocalExecutor()).failed
    return folder


@pytest.fixture
def copy(whole, tmp_path):
    """Of it, to be damaged."""
    return shutil.copytree(whole, tmp_path / "copy")


def _unit(folder, method):
    [unit] = folder.glob(f"units/{method}-*")
    return unit


def _flip(path, place=0.5):
    content = bytearray(path.read_bytes())
    content[int(len(content) * place)] ^= 4
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("method", "name", "harm"),
    [
        ("all-local", "metrics.parquet", "flip"),
        ("all-local", "metrics.parquet", "delete"),
        ("all-local", DONE, "flip"),
        ("all-local", DONE, "empty"),
        ("cosmo", "curves.parquet", "flip"),
        ("cosmo", "checkpoint/agents.npz", "flip"),
        ("cosmo", "checkpoint/training.json", "delete"),
    ],
)
def test_a_damaged_unit_is_done_again_and_named(whole, copy, method, name, harm):
    unit = _unit(copy, method)
    path = unit / name
    {"flip": _flip, "delete": lambda p: p.unlink(), "empty": lambda p: p.write_text("")}[harm](path)
    assert list(progress_of(copy, PLAN).damaged) == [unit.name]
    progress = conduct(PLAN, copy, LocalExecutor())
    assert list(progress.damaged) == [unit.name]
    assert str(unit) in progress.damaged[unit.name]
    assert not progress.failed
    assert progress.done == len(progress.units)
    assert not progress_of(copy, PLAN).damaged
    one, other = load_study(whole), load_study(copy)
    assert_frame_equal(one.metrics, other.metrics, check_exact=True)
    assert_frame_equal(one.curves, other.curves, check_exact=True)


def test_only_what_is_damaged_is_done_again(copy):
    unit, other = _unit(copy, "cosmo"), _unit(copy, "all-local")
    before = (other / DONE).stat().st_mtime_ns
    (unit / "metrics.parquet").unlink()
    told = []
    conduct(PLAN, copy, LocalExecutor(), lambda progress: told.append(dict(progress.share)))
    shares = {share[unit.name] for share in told}
    assert (other / DONE).stat().st_mtime_ns == before
    assert not {share for share in shares if 0 < share < 0.9}  # the checkpoint was kept


def test_a_flipped_state_does_not_spoil_what_is_done_again(whole, copy):
    unit = _unit(copy, "cosmo")
    _flip(unit / "checkpoint" / "state.npz")
    assert finished(unit)  # of no use any more
    (unit / "metrics.parquet").unlink()
    assert not conduct(PLAN, copy, LocalExecutor()).failed
    assert_frame_equal(load_study(whole).metrics, load_study(copy).metrics, check_exact=True)


def test_a_training_state_may_be_gone(copy):
    unit = _unit(copy, "cosmo")
    (unit / "checkpoint" / "state.npz").unlink()
    assert finished(unit)
    assert damage(unit) == ""


@pytest.mark.parametrize("place", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_a_flipped_table_is_refused_and_gathered_again(whole, copy, place):
    _flip(copy / "metrics.parquet", place)
    with pytest.raises(InputError, match=r"not what was written.* gather it again with: cosmo"):
        load_study(copy)
    conduct(PLAN, copy, LocalExecutor())
    assert_frame_equal(load_study(whole).metrics, load_study(copy).metrics, check_exact=True)


def test_a_flipped_plan_is_refused(copy):
    path = copy / "study.json"
    told = path.read_text()
    path.write_text(told.replace('"episodes": 2', '"episodes": 3', 1))
    assert json.loads(path.read_text()) != json.loads(told)
    with pytest.raises(InputError, match="not what was written"):
        load_study(copy)


@pytest.mark.parametrize(
    ("file", "change", "field"),
    [
        ("study.json", lambda told: told.pop("plan"), "plan"),
        ("study.json", lambda told: told.update(plan=3), "plan"),
        ("study.json", lambda told: told.update(versions=None), "versions"),
        ("study.json", lambda told: told.update(yardsticks=True), "yardsticks"),
        ("study.json", lambda told: told["resolved"].pop("training"), "resolved.training"),
        ("study.json", lambda told: told["resolved"].update(scenarios=[]), "resolved.scenarios"),
        (
            "study.json",
            lambda told: told["resolved"]["scenarios"].update(paper=None),
            "resolved.scenarios.paper",
        ),
        (
            "study.json",
            lambda told: told["resolved"]["training"].update(nobody={}),
            "resolved.training.nobody",
        ),
        (
            "study.json",
            lambda told: told["resolved"].update(traces={"paper": {"rate": -1.0, "sha256": ""}}),
            "resolved.traces.paper.rate",
        ),
        ("checksums.json", lambda told: told.pop("written"), "has no checksums"),
        ("checksums.json", lambda told: told.update(written=[1]), "has no checksums"),
    ],
)
def test_a_record_that_somebody_else_has_sealed_is_refused_in_one_line(copy, file, change, field):
    told = json.loads((copy / file).read_text())
    del told[SEAL]
    change(told)
    write_record(copy / file, told)
    with pytest.raises(InputError) as refused:
        load_study(copy)
    assert field in str(refused.value)
    assert "\n" not in str(refused.value)


_METRICS = "metrics.parquet"


@pytest.fixture(scope="module")
def untrained(tmp_path_factory):
    """A study of two methods that learn nothing."""
    folder = tmp_path_factory.mktemp("study") / "untrained"
    plan = small_plan(("periodic", "all-local"), rates=[320.0], episodes=1)
    assert not conduct(plan, folder, LocalExecutor(1)).failed
    return folder


@pytest.fixture
def results(untrained, tmp_path):
    """Of it, to be damaged."""
    return shutil.copytree(untrained, tmp_path / "results")


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda t: t.with_columns(polars.col("success_rate").cast(polars.String)), "has the type"),
        (lambda t: t.with_columns(polars.col("rate").cast(polars.String)), "has the type String"),
        (lambda t: t.with_columns(method=polars.struct("seed", "rate")), "has the type Struct"),
        (lambda t: t.with_columns(net_utility_per_task=polars.lit(math.inf)), "= inf: must be"),
        (lambda t: t.with_columns(update_cost_rate=polars.lit(1e300)), "must be a finite number"),
        (
            lambda t: t.rename(
                {"success_rate": "update_cost_rate", "update_cost_rate": "success_rate"}
            ),
            "must be from 0 to 1",
        ),
        (lambda t: t.rename({"method": "scenario", "scenario": "method"}), "is not in the plan"),
        (lambda t: t.with_columns(method=polars.lit("other")), "method = 'other' is not in the"),
        (lambda t: t.with_columns(rate=polars.lit(7.0)), "rate = 7.0"),
        (lambda t: t.with_columns(method=polars.lit(None)), "column method has the type Null"),
        (lambda t: t.drop("success_rate"), "column success_rate is missing"),
        (lambda t: t.drop("method"), "column method is missing"),
        (lambda t: t.head(0), "has no rows"),
    ],
)
@pytest.mark.parametrize("sealed", [True, False])
def test_a_table_that_no_study_has_written_is_refused_in_one_line(results, change, line, sealed):
    table = polars.read_parquet(results / _METRICS)
    change(table).write_parquet(results / _METRICS)
    written = {_METRICS: digest_of(results / _METRICS)}
    (results / CHECKSUMS).unlink()
    if sealed:
        write_record(results / CHECKSUMS, {"format": 1, "written": written})
    with pytest.raises(InputError) as raised:
        load_study(results)
    text = str(raised.value)
    assert line in text
    assert "\n" not in text
    assert text.startswith(f"'{results / _METRICS}': ")


def test_tables_with_other_whole_numbers_and_nothing_measured_are_read(results):
    table = polars.read_parquet(results / _METRICS)
    changed = table.with_columns(
        polars.col("seed").cast(polars.Int32),
        delay_ms_p50=polars.lit(None),
        decision_regret=polars.lit(math.nan),
    )
    changed.write_parquet(results / _METRICS)
    (results / CHECKSUMS).unlink()
    assert len(load_study(results).metrics) == len(table)
