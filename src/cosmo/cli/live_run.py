"""`cosmo live run`: a plan on daemons of this machine, against the simulator."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE
from rich.table import Table

from cosmo import toml
from cosmo.cli.console import notes, number, prepare_engine, print_json, show, show_words
from cosmo.cli.options import ArrivalsOption, JsonOption, RateOption
from cosmo.errors import InputError

if TYPE_CHECKING:
    from cosmo.live.bed.plan import BedPlan
    from cosmo.live.bed.results import Standing

_ALONE = "one"  # the plan that options alone start from
PAGE = "live.html"


def run(
    plan_name: Annotated[
        str | None, typer.Argument(metavar="PLAN", help="A preset's name or a TOML file.")
    ] = None,
    methods: Annotated[
        list[str] | None,
        typer.Option("--method", "-m", help="Instead of the plan's methods. Repeatable."),
    ] = None,
    scenario_name: Annotated[
        str | None, typer.Option("--scenario", "-s", help="A preset's name or a TOML file.")
    ] = None,
    arrivals: ArrivalsOption = None,
    rate: RateOption = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Set a field of the plan, or of the scenario. Repeatable."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the run.")] = None,
    episodes: Annotated[int | None, typer.Option(help="How many of each method.")] = None,
    scale: Annotated[
        float | None, typer.Option(help="How many times slower than real time.")
    ] = None,
    transport: Annotated[str | None, typer.Option(help="loopback or netns.")] = None,
    fifo: Annotated[
        int | None, typer.Option(help="Real-time priority of the daemons (chrt -f); 0: none.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="A folder for results and the page.")
    ] = None,
    as_json: JsonOption = False,
    trust: Annotated[
        bool, typer.Option("--trust", help="Run the policies (file.py:Class) that the plan names.")
    ] = False,
) -> None:
    """Play a plan's episodes in the simulator and on daemons of this machine, side by side.

    cosmo live run held-out --out held-out

    cosmo live run --method priced-books --rate 220 --scale 2
    """
    if plan_name is None and not methods:
        raise InputError("PLAN: must be given, or at least one --method")
    from cosmo.control import method
    from cosmo.live.bed.conduct import conducted
    from cosmo.live.bed.plan import bed_plan_names, load_bed_plan
    from cosmo.live.bed.results import sentence, standings
    from cosmo.study.method_files import beside, runs_code

    options: dict[str, Any] = {
        "methods": list(methods) if methods else None,
        "scenario": scenario_name,
        "arrivals": None if arrivals is None else [arrivals],
        "seeds": None if seed is None else [seed],
        "episodes": episodes,
        "scales": None if scale is None else [scale],
        "transport": transport,
        "fifo": fifo,
    }
    chosen = [toml.text({name: value}) for name, value in options.items() if value is not None]
    if rate is not None:
        chosen.append(f"rates=[{rate}]")
    source = plan_name or _ALONE
    plan = load_bed_plan(source, [*chosen, *(settings or [])])
    if not methods and source not in bed_plan_names():
        strange = [spec for spec in plan.methods if runs_code(spec)]
        if strange and not trust:
            raise InputError(
                f"methods: {strange[0]!r} runs code of a file; add --trust to allow it"
            )
        near = tuple(beside(spec, Path(source).parent) for spec in plan.methods)
        plan = plan.model_copy(update={"methods": near})
    for spec in plan.methods:
        method(spec)  # what cannot be made is refused before anything starts
    prepare_engine(plan.loads()[0])
    rows = conducted(plan, out, lambda line: notes.print(line, soft_wrap=True))
    found = standings(plan, rows)
    if as_json:
        print_json([asdict(row) for row in rows])
    else:
        show(side_by_side(plan, found))
        show_words(sentence(plan, found))
    if not all(each.valid for each in found):
        notes.print(
            f"no verdict where timers were late by more than {plan.most_late_ms:g} ms (p99) or"
            " calls failed: slow down (--scale), ask for priority (--fifo), or have the machine"
            " for yourself"
        )
    if out is not None:
        from cosmo.study.live_page import write_live_page

        write_live_page(plan, found, rows, out / PAGE)
        notes.print(f"results: {out / 'results.parquet'}\nopen {out / PAGE}", soft_wrap=True)


def side_by_side(plan: "BedPlan", found: "list[Standing]") -> Table:
    """Simulator and live, a row for each method and load, within 80 columns."""
    from cosmo.live.bed.results import difference_told, pace_told

    one_pace = len(plan.scales) == 1
    title = (
        f"{plan.scenario}, {plan.transport}{', ' + pace_told(plan.scales[0]) if one_pace else ''}"
    )
    title += ": share of tasks in time"
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE)
    table.add_column("method", overflow="fold")
    pace = () if one_pace else ("slower",)
    for name in ("tasks/s", *pace, "sim", "live", "live - sim", "late ms"):
        table.add_column(name, justify="right", no_wrap=True)
    processes = {each.arrivals for each in found}
    for each in found:
        table.add_row(
            each.method if len(processes) == 1 else f"{each.method}, {each.arrivals}",
            f"{each.rate:g}",
            *(() if one_pace else (f"{each.scale:g}",)),
            number(each.simulated),
            number(each.live),
            difference_told(each) if each.valid else "no verdict",
            number(each.timer_p99_ms, 2),
        )
    return table
