"""Rates and seeds: one or several, in every command."""

import json

SHORT = ["--set", "episode.window_ms=600", "--set", "episode.warmup_ms=0"]


def test_a_method_is_simulated_at_every_rate_with_every_seed(cosmo):
    several = [
        "simulate",
        "-m",
        "all-local",
        *SHORT,
        "--rates",
        "40,90",
        "--seeds",
        "1,2",
        "--json",
    ]
    code, out, err = cosmo(*several)
    assert code == 0, err
    runs = json.loads(out)["runs"]
    assert [(run["rate"], run["seed"]) for run in runs] == [(40, 1), (40, 2), (90, 1), (90, 2)]
    code, out, _ = cosmo(*several[:5], *SHORT, "--rate", "90", "--seed", "2", "--json")
    assert code == 0
    assert json.loads(out) == runs[-1]  # one is a list of one, under either name
    code, out, _ = cosmo("bound", *SHORT, "--rates", "40,90", "--json")
    assert code == 0
    assert [run["rate"] for run in json.loads(out)["runs"]] == [40, 90]


def test_what_is_one_file_takes_one_rate_and_one_seed(cosmo, tmp_path):
    trace = tmp_path / "trace.csv"
    for more, line in (
        (["--rates", "40,90"], "--rates = '40,90': must be one value here"),
        (["--seeds", "1,2"], "--seeds = '1,2': must be one value here"),
    ):
        code, _, err = cosmo("workload", *SHORT, *more, "--out", trace)
        assert (code, trace.exists()) == (2, False)
        assert line in err
    code, _, err = cosmo(
        "simulate", "-m", "all-local", *SHORT, "--seeds", "1,2", "--tasks-out", trace
    )
    assert (code, trace.exists()) == (2, False)
    assert "must be with one rate and one seed" in err
    code, _, err = cosmo("simulate", "-m", "all-local", *SHORT, "--rates", "40,fast")
    assert code == 2
    assert "fast" in err
    assert err.count("\n") == 1
