"""`cosmo compare`: any methods on equal workloads, trained first where necessary."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cosmo.cli import options
from cosmo.cli.comparison import print_results
from cosmo.cli.console import note, notes, print_json
from cosmo.cli.documents import comparison_document
from cosmo.cli.study import WorkersOption, chosen_executor, conducted
from cosmo.cli.train import TRAINING
from cosmo.errors import InputError

SomeSeedsOption = Annotated[
    str | None, typer.Option("--seeds", "--seed", help="Seeds of the runs, one or several (0,1,2).")
]
ProcessesOption = Annotated[
    str | None, typer.Option(help="Arrival processes, e.g. deterministic,poisson.")
]
RunEpisodesOption = Annotated[int, typer.Option(help="Evaluation episodes of each run.")]
_RUNS, _MOST_RUNS = 3, 10_000


def compare(
    methods: Annotated[
        list[str],
        typer.Argument(
            metavar="METHOD", help="Methods by name (cosmo methods), file.py:Class, onnx:…, sb3:…"
        ),
    ],
    scenario_name: options.ScenarioOption = "paper",
    rates: options.RatesOption = None,
    arrivals: ProcessesOption = None,
    trace: options.TraceOption = None,
    events: options.EventsOption = None,
    engines: options.EnginesOption = None,
    settings: options.SetOption = None,
    seeds: SomeSeedsOption = None,
    runs: Annotated[
        int | None, typer.Option(help="Number of runs, with seeds 0, 1, … (3).")
    ] = None,
    episodes: RunEpisodesOption = 5,
    sweep: Annotated[
        str | None,
        typer.Option(
            help="Vary a field of the scenario, or method.PARAMETER, e.g. sn.slots=2,4,8."
        ),
    ] = None,
    focus: Annotated[
        str | None, typer.Option(help="The method that the verdict is about (the first).")
    ] = None,
    bound: Annotated[
        bool,
        typer.Option("--bound", help="Also compute what no method can exceed; takes a while."),
    ] = False,
    workers: WorkersOption = None,
    device: options.DeviceOption = None,
    out: options.OutOption = Path("cosmo-compare"),
    as_json: options.JsonOption = False,
) -> None:
    """Compare methods on equal workloads: a table, a verdict, and a report to share.

    Methods that learn are trained first, unless a checkpoint is named. The
    verdict is about the first method.

    cosmo compare my_policies.py:LeastWork prequal self-tracking full-information

    cosmo compare self-tracking aov-gap/estimate --rates 220,280,320 --runs 5 --out mine

    cosmo compare cosmo-next:checkpoint=trained self-tracking --scenario shared-sn

    cosmo compare self-tracking prequal --sweep sn.slots=2,4,8

    cosmo compare priced-books --engine embedded,live --set live.slower=5
    """
    from cosmo.scenario import load

    settings = options.chosen_settings(settings, None, None, None, None, events)
    chosen = fields_of(settings, engines)
    scenario = load(scenario_name, chosen["settings"])  # so that mistakes are named first
    if trace is not None or scenario.workload.trace:
        for option, given in (("--rates", rates), ("--arrivals", arrivals)):
            if given is not None:
                raise InputError(f"{option}: not with a trace, which settles when tasks come")
    plan = {
        "name": "compare",
        "description": f"{', '.join(methods)} on {scenario.name}",
        "arrivals": options.words_of(arrivals) or [scenario.workload.arrivals],
        "rates": options.numbers_of(rates) or [scenario.workload.rate],
        "traces": [] if trace is None else [str(trace)],
        "seeds": _seeds(seeds, runs),
        "episodes": episodes,
        "focus": focus or methods[0],
        "bound": bound,
        "compare": [{"methods": list(dict.fromkeys(methods))}],
    }
    if sweep is not None:
        plan["compare"] = [{"methods": list(dict.fromkeys(methods)), "sweep": _swept(sweep)}]
        if sweep.startswith("method."):
            plan["focus"] = focus  # every value is a method by another name
    compared({**plan, "scenarios": [scenario_name], **chosen}, workers, out, as_json)


def compared(plan: dict[str, Any], workers: int | None, out: Path, as_json: bool) -> None:
    """Run a plan made from the options, write its report, print tables and verdict or JSON."""
    from cosmo.report.write import write_report
    from cosmo.study import load_study, plan_checked

    right = conducted(plan_checked(plan), out, chosen_executor("local", workers, None))
    study = load_study(out)
    with notes.status("writing the report: figures, tables, episodes for the viewer"):
        written = write_report(study, out / "report", trust=True)
    if as_json:
        print_json(comparison_document(study, written))
    else:
        print_results(study)
    figures = [path for path in written.figures if path.name.startswith("sweep-")]
    for path in figures:
        if path.suffix == ".png":
            note(f"figure: {path}")
    note(f"metrics: {out / 'metrics.parquet'}\nopen {written.page}")
    if not right:
        raise typer.Exit(1)


def fields_of(settings: list[str] | None, engines: str | None) -> dict[str, Any]:
    """Settings of the scenario, of training, and the engines, as fields of a plan."""
    chosen = settings or []
    training = [item.removeprefix(TRAINING) for item in chosen if item.startswith(TRAINING)]
    fields: dict[str, Any] = {
        "settings": [item for item in chosen if not item.startswith(TRAINING)],
        "training": {"settings": training},
    }
    return fields if engines is None else fields | {"engines": options.words_of(engines)}


def _swept(text: str) -> dict[str, Any]:
    """Parse `FIELD=VALUE,VALUE` as a sweep of a plan; values are TOML values or words."""
    field, equals, values = text.partition("=")
    if not equals or not field.strip() or not values.strip():
        raise InputError(f"--sweep = {text!r}: must look like sn.slots=2,4,8")
    return {"field": field.strip(), "values": [_value(word) for word in options.words_of(values)]}


def _value(word: str) -> bool | int | float | str:
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(word, word)


def _seeds(seeds: str | None, runs: int | None) -> list[int]:
    if seeds is not None and runs is not None:
        raise InputError("--runs: not with --seeds, which names the runs already")
    if seeds is not None:
        return options.seeds_from(seeds)
    if runs is not None and not 1 <= runs <= _MOST_RUNS:
        raise InputError(f"--runs = {runs}: must be from 1 to {_MOST_RUNS}")
    return list(range(runs or _RUNS))
