"""Writes the measured parts of the docs anew: `make docs` (hours, on ns-3 and on trainings most).

`docs/data/` holds what the pages were made from: metrics and curves of the whole paper, of
`cosmo-next` and all baselines, of both engines, and the fit of the embedded channel. A
measured part of a page stands between `<!-- NAME -->` and `<!-- end -->`.

    python docs/regenerate.py                     # measure everything again, then write
    python docs/regenerate.py engines             # measure only that
    python docs/regenerate.py --pages             # write from docs/data alone
    python docs/regenerate.py --check             # whether the pages are what docs/data says
    python docs/regenerate.py --take paper DIR    # take over a study that was carried out in DIR
    python docs/regenerate.py --replay aov-gap    # play methods again that need no training
"""

import json
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import calibrate
import drawn
import many_page
import next_page
import ns3_page
import paper_page
import polars
import readings
import saturation
import thesis
import trainings

from cosmo.control import BASELINES, method, simulate_runs
from cosmo.errors import InputError
from cosmo.report import figures
from cosmo.report.leaderboard import leaderboard_text
from cosmo.scenario import load as load_scenario
from cosmo.study import LocalExecutor, Study, conduct, load_plan, load_study
from cosmo.study.checks import CURVES_FILE, METRICS_FILE, TUNED_FILE
from cosmo.study.leaderboard import board_of
from cosmo.study.plan import Plan
from cosmo.study.statistics import bounds, summarise, with_paper
from cosmo.study.store import STUDY
from cosmo.study.units import at_load
from cosmo.tables import write_table

DOCS = Path(__file__).parent
DATA = DOCS / "data"
STUDIES = {
    "paper": load_plan("paper"),
    "reward-scale-1": load_plan(
        "paper",
        [
            'compare=[{methods=["cosmo"], rates=[120.0, 220.0, 320.0]}]',
            'training.settings=["sn.reward_scale=1.0"]',
        ],
    ),
    **{plan.stem: load_plan(plan) for plan in sorted((DOCS / "plans").glob("*.toml"))},
    "benchmark": load_plan("benchmark"),
    "held-out": load_plan(DOCS / "held-out" / "plan.toml"),
}
CALIBRATION, READINGS, THESIS = "calibration", "readings", "thesis"
UNMEASURED = "Not measured yet."
THESIS_LIVE = "thesis-live"  # asks for a calm machine: only if it is named
CARD = "../src/cosmo/policy/controllers/universal/CARD.md"  # of the controller of the package
SHOWN = paper_page.SHOWN
Pages = dict[str, dict[str, str]]  # the parts of every page


def measure(name: str, plan: Plan) -> None:
    """Carry a study out and keep its small data."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / name
        print(f"{name} …", flush=True)
        progress = conduct(plan, folder, LocalExecutor())
        if progress.failed:
            sys.exit(f"{name}: {progress.failed}")
        take(name, folder)


def take(name: str, folder: Path) -> None:
    """Keep the small data of a study that was carried out in `folder`."""
    (DATA / name).mkdir(parents=True, exist_ok=True)
    for file in (STUDY, METRICS_FILE, CURVES_FILE, TUNED_FILE):
        if (folder / file).exists():
            shutil.copy(folder / file, DATA / name / file)


def replay(names: list[str]) -> None:
    """Play methods that need no training again wherever docs/data has them on this engine."""
    for study in filter(None, map(known, STUDIES)):
        metrics = study.metrics
        for scenario, process, rate, name in study.plan.points():
            if name.partition(":")[0] not in names or scenario.engine != "embedded":
                continue
            here = at_load(scenario, process, rate)
            found = simulate_runs(here, method(name), study.plan.seeds, study.plan.episodes)
            point = {"scenario": scenario.name, "arrivals": process, "rate": rate, "method": name}
            rows = polars.DataFrame(
                [
                    {**point, "seed": seed, "episode": number, **each}
                    for seed, run in zip(study.plan.seeds, found, strict=True)
                    for number, each in enumerate(run.episodes)
                ]
            ).fill_nan(None)
            told = [column for column in rows.columns if column in metrics.columns]
            keys = [*point, "seed", "episode"]
            metrics = metrics.update(rows.select(told).cast(metrics.select(told).schema), keys)
            print(f"{study.folder.name}: {name}, {process}, {rate:g}", flush=True)
        if not metrics.equals(study.metrics):
            write_table(study.folder / METRICS_FILE, metrics)


def known(name: str) -> Study | None:
    """A study in docs/data; None, and a word about it, if there is none or it is too old."""
    try:
        return load_study(DATA / name)
    except InputError as error:
        print(f"{name}: {error}; what is made of it stays as it is")
        return None


def measure_channel() -> None:
    """Fit the embedded channel to ns-3."""
    _write_told(CALIBRATION, calibrate.described(load_scenario()))


def _write_told(name: str, told: Any) -> None:
    text = json.dumps(told, indent=1)
    (DATA / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def _read_told(name: str) -> Any:
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))


def _read_if_measured(name: str) -> Any:
    return _read_told(name) if (DATA / f"{name}.json").exists() else None


def pages(simulated: bool = True) -> Pages:
    """Every measured part of every page; without `simulated`, those that docs/data alone gives."""
    studies = {name: known(name) for name in STUDIES}
    paper, past = studies["paper"], studies["next"]
    found: Pages = {"ns3.md": {"calibration": ns3_page.calibration(_read_told(CALIBRATION))}}
    told = _read_told(READINGS)
    found["reproduction.md"] = {
        "readings": readings.table(told["capacity"]),
        "thresholds": readings.thresholds_table(told["thresholds"]),
    }
    if paper is not None:
        found["reproduction.md"] |= paper_page.reproduction(paper)
        found["../README.md"] = {"headline": paper_page.headline(paper)}
        found["results/paper.md"] = {
            name: found["reproduction.md"].pop(name) for name in ("all-loads", "first-three")
        }
        found["reproduction.md"]["readings-gains"] = readings.average_gains(
            told["whole"], paper_page.summary_of(paper)
        )
        scale = studies["reward-scale-1"]
        if scale is not None:
            both = paper_page.summary_of(paper), paper_page.summary_of(scale)
            found["reproduction.md"]["reward-scale"] = paper_page.reward_scale(*both)
        variants, bootstrapped = studies["ablation"], studies["bootstrapped"]
        if variants is not None:
            found["ablation.md"] = paper_page.ablation(paper, variants, bootstrapped)
    if studies["intervals"] is not None:
        found["intervals.md"] = paper_page.intervals(studies["intervals"])
        found["intervals.md"]["saturation"] = saturation.table()
    own = (studies[k] for k in ("many-nodes-rivals", "universal", "universal-pair"))
    many_rivals, universal, pair = own
    if many_rivals is not None:
        found["many.md"] = many_page.page(many_rivals, universal, pair, past)
        if (played := studies["universal-parts"]) is not None:
            found["many.md"]["parts"] = many_page.parts(played)
            found["many.md"]["parts-worth"] = many_page.parts_worth(played)
        for part, name in (("held-out", "held-out"), ("city", "universal-city")):
            if (more := studies[name]) is not None:
                found["many.md"][part] = many_page.standings(more.metrics)
        found["results/many.md"] = found.pop("many.md")
        found["many.md"] = {
            "standings": found["results/many.md"].pop("standings"),
            "thesis": thesis.table(_read_told(THESIS)),
        }
        live = _read_if_measured(THESIS_LIVE)
        found["many.md"]["thesis-live"] = thesis.live_table(live) if live else UNMEASURED
        if (objectives := studies["objectives"]) is not None:
            found["many.md"]["objectives"] = many_page.objectives(objectives.metrics)
    if (surprises := studies["surprises"]) is not None:
        found["results/surprises.md"] = {"surprises": many_page.standings(surprises.metrics)}
    if (benchmark := studies["benchmark"]) is not None:
        found["results/benchmark.md"] = {"leaderboard": leaderboard_text(board_of(benchmark))}
        others = _read_if_measured(trainings.DATA.stem)
        spread = trainings.tables(others, benchmark) if others else UNMEASURED
        found["results/benchmark.md"]["trainings"] = spread
    if (further := studies["further-tracks"]) is not None:
        found["results/benchmark.md"]["further"] = leaderboard_text(board_of(further))
    if universal is not None and pair is not None:
        found[CARD] = many_page.card(universal, pair)
    if past is not None and paper is not None:
        # The same methods, with ten runs, are part of the study of cosmo-next.
        rivals = _rivals(past)
        found["results/baselines.md"] = {
            "paper": paper_page.all_metrics(rivals.filter(_usual(), scenario="paper")),
            "shared-sn": paper_page.all_metrics(rivals.filter(scenario="shared-sn")),
        }
        found |= next_page.pages(past, paper_page.summary_of(paper))
    engines = studies["engines"]
    if engines is not None:
        both_engines = summarise(engines.metrics)
        shown = (
            f"#### {each}\n\n{ns3_page.engines(both_engines, each)}" for each in paper_page.BOTH
        )
        found["ns3.md"] |= {
            "engines": "\n\n".join(shown),
            "transfer": ns3_page.transfer(both_engines),
        }
        if simulated:
            found["ns3.md"]["explained"] = ns3_page.explained(engines.metrics)
    many = studies["engines-many"]
    if many is not None:
        found["ns3.md"]["engines-many"] = ns3_page.many_nodes(summarise(many.metrics))
    return found


def _rivals(past: Study) -> polars.DataFrame:
    plain = past.metrics.filter(
        polars.col("sweep").is_null(), polars.col("method").is_in(BASELINES)
    )
    return with_paper(summarise(plain), past.plan)


def _usual() -> polars.Expr:
    rates = load_scenario().workload.rates_of_interest
    return polars.col("rate").is_in(rates) & polars.col("arrivals").is_in(paper_page.BOTH)


def images() -> None:
    """Every figure of the docs."""
    folder, paper, past = DOCS / "images", known("paper"), known("next")
    if paper is not None:
        summary, limits = paper_page.summary_of(paper), bounds(paper.plan)
        for stem, metric in (("success", "success_rate"), ("update-cost", "update_cost_rate")):
            figures.metric_figure(summary, limits, metric, folder / stem, formats=("png",))
        figures.pareto_figure(summary, folder / "pareto", formats=("png",))
        figures.reward_figure(paper.curves, ["cosmo"], folder / "reward", formats=("png",))
    if past is not None:
        points = next_page.trade_points(past.metrics)
        drawn.trade(points, folder / "next-trade.png", columns=3, logarithmic=True)
    pair = known("universal-pair")
    if paper is not None and pair is not None:
        story(paper, pair, folder / "story")
    many_rivals, universal = known("many-nodes-rivals"), known("universal")
    if many_rivals is not None and universal is not None:
        points = many_page.trade_points(many_page.together(many_rivals, universal))
        drawn.trade(points, folder / "many-nodes-trade.png", columns=2)
    thesis.figure(_read_told(THESIS), folder / "thesis.png")
    if past is not None:
        shared = bounds(past.plan).filter(scenario="shared-sn")
        own, path = _rivals(past).filter(scenario="shared-sn"), folder / "shared-sn"
        figures.metric_figure(own, shared, "success_rate", path, formats=("png",))


# The first picture: the paper's method, its strongest and its simplest baseline, a rule without any
# status, and the package's own controller.
STORY = ("cosmo", "cosmo-next", "self-tracking", "aoci-online", "all-local")


def story(paper: Study, pair: Study, path: Path) -> None:
    """Success over the load of the five methods of `STORY`, on the paper's world."""
    own = pair.metrics.filter(scenario="paper", method="cosmo-next")
    other = paper.metrics.filter(polars.col("method").is_in(STORY))
    metrics = polars.concat([other, own], how="diagonal").filter(_usual())
    table = with_paper(summarise(metrics), paper.plan)
    figures.metric_figure(
        table, bounds(paper.plan), "success_rate", path, STORY, formats=("png",), focus="cosmo"
    )


def written(text: str, parts: dict[str, str]) -> tuple[str, list[str]]:
    """A page with its parts between their marks, and the names of those without a place."""
    missing = []
    for name, part in parts.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        if not pattern.search(text):
            missing.append(name)
        text = pattern.sub(lambda found: f"{found[1]}\n{part}\n\n{found[2]}", text)  # noqa: B023
    return text, missing


def differing() -> list[str]:
    """What is on a page and is not what docs/data says, or has no place there: page and part."""
    found = []
    for page, parts in pages(simulated=False).items():
        text = (DOCS / page).read_text(encoding="utf-8")
        for name, part in parts.items():
            new, missing = written(text, {name: part})
            found += [f"{page}: {name}"] if missing or new != text else []
    return found


def main() -> None:
    """Measure, then write the pages; or check them."""
    arguments = sys.argv[1:]
    if "--check" in arguments:
        wrong = differing()
        sys.exit("not what docs/data says: " + "; ".join(wrong) if wrong else 0)
    chosen = arguments or [*STUDIES, CALIBRATION, READINGS, THESIS]
    match chosen:
        case ["--pages"]:
            pass
        case ["--take", name, folder] if name in STUDIES:
            take(name, Path(folder))
        case ["--replay", *names] if names:
            replay(names)
        case _:
            _measure_all(chosen)
    for page, parts in pages().items():
        text, missing = written((DOCS / page).read_text(encoding="utf-8"), parts)
        if missing:
            sys.exit(f"{page}: no place for {', '.join(missing)}")
        (DOCS / page).write_text(text, encoding="utf-8")
    images()


def _measure_all(chosen: list[str]) -> None:
    for name in chosen:
        if name in STUDIES:
            measure(name, STUDIES[name])
        elif name == CALIBRATION:
            print(f"{name} …", flush=True)
            measure_channel()
        elif name == READINGS:
            print(f"{name} …", flush=True)
            measured = {
                "capacity": (capacity := readings.measured()),
                "whole": readings.measured_whole(capacity),
                "thresholds": readings.measured_thresholds(),
            }
            _write_told(READINGS, measured)
        elif name == THESIS:
            print(f"{name} …", flush=True)
            _write_told(THESIS, thesis.measured())
        elif name == THESIS_LIVE:
            print(f"{name} …", flush=True)
            _write_told(THESIS_LIVE, thesis.measured_live(_read_told(THESIS)))
        else:
            known_names = [*STUDIES, CALIBRATION, READINGS, THESIS, THESIS_LIVE]
            sys.exit(f"{name}: must be one of {', '.join(known_names)}")


if __name__ == "__main__":
    main()
