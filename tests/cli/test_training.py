"""`cosmo train` and `cosmo evaluate` as a user types them."""

import json

import pytest

from columns import METRIC_NAMES
from cosmo.files import only_run

SHORT = [
    "--set", "episode.window_ms=1500", "--set", "episode.warmup_ms=0",
    "--set", "training.episodes=2", "--set", "training.validate_every=1",
    "--set", "training.encoder.collection_episodes=2", "--set", "training.encoder.epochs=2",
]  # fmt: skip
LOAD = ["--method", "cosmo-flat", "--arrivals", "poisson", "--rate", "220", "--seeds", "3,5"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return tmp_path_factory.mktemp("cli") / "trained"


def test_train_then_evaluate(cosmo, trained):
    code, out, err = cosmo("train", *LOAD, *SHORT, "--out", trained)
    assert (code, out) == (0, ""), err
    assert f"wrote {trained}" in err
    code, out, err = cosmo("evaluate", trained, "--episodes", "2", "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert (document["method"], document["episodes"]) == ("cosmo-flat", 2)
    assert document["device"] == "cpu"
    assert [run["seed"] for run in document["runs"]] == [3, 5]
    [overall] = document["overall"]  # a list, whatever the number of loads
    assert (overall["load"], overall["runs"]) == ("poisson, 220 tasks/s", 2)
    assert set(METRIC_NAMES) <= set(overall["metrics"])
    means = [run["metrics"]["success_rate"]["mean"] for run in document["runs"]]
    assert overall["metrics"]["success_rate"]["mean"] == pytest.approx(sum(means) / 2)
    assert document["runs"][0]["rate"] == 220

    # The same workloads as `simulate` plays, so a run's numbers are the method's there.
    code, out, _ = cosmo(
        "simulate", "--method", f"cosmo-flat:checkpoint={trained}", "--rate", "220", *SHORT[:4],
        "--seed", "5", "--episodes", "2", "--json",
    )  # fmt: skip
    assert code == 0
    assert json.loads(out)["metrics"] == document["runs"][1]["metrics"]

    code, out, _ = cosmo("evaluate", trained, "--episodes", "1", "--rate", "90")
    assert code == 0
    assert "90 tasks/s" in out
    assert "trained on CPU" in out
    code, out, _ = cosmo("evaluate", trained, "--episodes", "1", "--scenario", "shared-sn")
    assert code == 0
    assert "shared-sn" in out
    trace = trained.parent / "trace.csv"
    assert cosmo("workload", "--rate", "50", *SHORT[:4], "--out", trace)[0] == 0
    code, out, _ = cosmo("evaluate", trained, "--episodes", "1", "--trace", trace, "--json")
    assert code == 0
    assert json.loads(out)["runs"][0]["trace"] == str(trace)

    code, _, err = cosmo("train", *LOAD, *SHORT, "--out", trained)
    assert code == 2
    assert "resume it, or choose another folder" in err
    assert "--out = " in err
    code, _, err = cosmo("train", *LOAD, *SHORT, "--out", trained, "--resume")
    assert code == 0
    assert "resumed after episode 2" in err
    code, out, _ = cosmo("evaluate", trained, "--episodes", "1", "--scenario", "campus")
    assert code == 0
    assert "campus" in out


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--method", "aoi-threshold"], "cannot be trained; must be one of cosmo, cosmo-flat"),
        (["--seeds", "0,0"], "--seeds = '0,0': must be different whole numbers"),
        (["--seeds", "x"], "must be different whole numbers"),
        (["--set", "training.en.batch=0"], "en.batch = 0: must be greater than or equal to 1"),
        (["--set", "training.en.bacth=3"], "en.bacth: unknown field, did you mean batch?"),
        (["--training", "nothing"], "training = 'nothing': no such preset or file"),
        (["--rate", "0"], "workload.rate = 0"),
    ],
)
def test_bad_input_is_one_line(cosmo, tmp_path, arguments, line):
    code, out, err = cosmo("train", "--out", tmp_path / "out", *arguments)
    assert (code, out) == (2, "")
    assert line in err
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_evaluating_nothing_is_one_line(cosmo, tmp_path):
    code, out, err = cosmo("evaluate", tmp_path)
    assert (code, out) == (2, "")
    assert "there is no trained controller" in err


def test_an_untrained_method_says_how_to_train_it(cosmo):
    code, _, err = cosmo("simulate", "--method", "cosmo")
    assert code == 2
    assert "checkpoint is missing; train one: cosmo train --method cosmo --out DIR" in err


def test_two_trainings_in_one_folder_are_refused(cosmo, tmp_path):
    with only_run(tmp_path):
        code, out, err = cosmo("train", "--out", tmp_path, *LOAD, *SHORT)
    assert (code, out) == (2, "")
    assert "another run is at work in it" in err
    assert list(tmp_path.iterdir()) == []
