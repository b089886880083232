"""Cases by grammar: whole documents with one or a few things wrong, as Hypothesis draws them."""

import copy
import json
from typing import Any

import bases
import numpy as np
from hypothesis import strategies as st
from judge import Case
from odd import (
    NO_NUMBERS,
    Draw,
    celled,
    columned,
    damaged,
    other,
    plain,
    rewritten,
    seldom,
    some,
    spoil,
    texts,
    values,
)

METHODS = (
    "all-local", "all-offload", "local-until-full", "random", "never", "periodic", "periodic-37",
    "aoi-threshold", "aov-gap", "aoci-online", "aoi-threshold/estimate", "prequal", "priced-books",
    "admission-control", "self-tracking", "full-information",
)  # fmt: skip
PARAMETERS = (
    "interval_ms", "kappa", "threshold", "check_ms", "timeout_ms", "cost_ms2", "pool", "seed",
    "updater", "checkpoint", "run", "file", "price", "margin", "", "self", "__class__",
)  # fmt: skip
POLICIES = (
    "1 / 0", "raise SystemExit(0)", "raise KeyboardInterrupt", "raise BaseException('x\\ny')",
    "return None", "return [0] * (len(tasks) + 1)", "return ['a'] * len(tasks)",
    "return [[0], [0, 1]]",
    "return np.full(len(tasks), np.nan)", "return np.full(len(tasks), 99)", "return object()",
    "return [True] * len(tasks)", "tasks.world[:] = 5; return [0] * len(tasks)", "return tasks",
    "return [10 ** 30] * len(tasks)", "return [0] * len(tasks)", "return self.decide(tasks)",
)  # fmt: skip
COMMANDS = (
    *[("simulate", "-m", "all-local")] * 4, *[("workload", "--out", "w.csv")] * 4,
    ("scenario", "show", "paper"),
    ("methods",), ("study", "show", "paper"), ("study", "status", "nowhere"), ("evaluate", "none"),
    ("report", "nowhere"), ("study", "list"), ("scenario", "list"), ("train", "--out", "file"), (),
)  # fmt: skip
OPTIONS = (
    "--seed", "--seeds", "--episodes", "--episode", "--rate", "--rates", "--arrivals", "--engine",
    "--method", "--scenario", "--workers", "--trace", "--tasks-out", "--nothing", "-x",
)  # fmt: skip
# Those that are right with a scenario to play, by what may follow them.
USUAL = (
    ("--seeds", "0", "3", "1,2", "7"), ("--episodes", "1", "2"), ("--episodes", "3"),
    ("--rates", "40", "10", "55.5"), ("--arrivals", "poisson", "deterministic"),
    ("--scenario", "paper"), ("--set", "sn.slots=2"),
)  # fmt: skip
_SHORT = tuple(part for each in bases.SHORT for part in ("--set", each))


def _simulate(draw: Draw) -> tuple[str, ...]:
    return (
        "simulate",
        "-m",
        draw(some("all-local", "aoi-threshold", "aov-gap", "random")),
        "--json",
    )


@st.composite
def settings(draw: Draw) -> Case:
    """`--set` of a field that is there, nearly there or not there."""
    name = draw(texts if seldom(draw, 6) else some(*bases.fields()))
    if seldom(draw, 10):
        name = draw(some(name.replace("_", "-"), name + ".x", name.rpartition(".")[0], name[:-1]))
    value = other(draw, bases.fields().get(name))
    number = isinstance(bases.fields().get(name), int | float)
    hopeless = number and value in NO_NUMBERS and not isinstance(bases.fields()[name], bool)
    command = draw(some(("scenario", "show", "paper"), _simulate(draw), _simulate(draw)))
    arguments = (*command, *_SHORT, "--set", f"{name}={value}")
    return Case("set", plain(arguments), hopeless=hopeless)


@st.composite
def scenarios(draw: Draw) -> Case:
    """Scenario files: rewritten, extended, damaged."""
    start = draw(some("", 'extends = "paper"\n'))
    if seldom(draw, 8):
        start = draw(some('extends = "mine.toml"\n', 'extends = "x.toml"\n'))
    text = start + rewritten(draw, bases.scenario())
    content = text.encode("utf-8", "surrogatepass")
    if seldom(draw, 4):
        content = damaged(draw, content)
    show = ("scenario", draw(some("show", "check")), "mine.toml")
    command = draw(some(show, (*_simulate(draw), "-s", "mine.toml")))
    return Case("scenario", command, {"mine.toml": content})


@st.composite
def plans(draw: Draw) -> Case:
    """Plans, shown, or run into a folder that is a file: all but the work itself."""
    text = rewritten(draw, bases.PLAN)
    content = text.encode("utf-8", "surrogatepass")
    if seldom(draw, 3):
        content = damaged(draw, content)
    run = ("study", "run", "plan.toml", "--out", "taken")
    trust = ("--trust",) if draw(st.booleans()) else ()
    extra: tuple[str, ...] = ()
    if seldom(draw, 3):
        field = draw(some("episodes", "seeds", "rates", "methods", "training.engine", "compare"))
        extra = ("--set", f"{field}={draw(values)}")
    show = ("study", "show", "plan.toml")
    command = draw(some(show, show, show, (*run, *trust, *extra)))
    return Case("plan", plain(command), {"plan.toml": content, "taken": b"a file"})


@st.composite
def csv_traces(draw: Draw) -> Case:
    """Traces with odd cells, rows and headers."""
    return _traced(draw, "csv", celled(draw, bases.trace_csv()))


@st.composite
def parquet_traces(draw: Draw) -> Case:
    """Traces with columns of other types, missing or empty, and damaged files."""
    columns: dict[str, Any] = {
        name: [row[place] for row in bases.ROWS] for place, name in enumerate(bases.COLUMNS)
    }
    content = bases.parquet(columned(draw, columns))
    if seldom(draw, 4):
        content = damaged(draw, content)
    return _traced(draw, "parquet", content)


@st.composite
def logs(draw: Draw) -> Case:
    """Logs of others with odd cells, rows and mappings, for `cosmo import`."""
    kind = draw(some("csv", "jsonl"))
    rows = bases.log_rows()
    for _ in range(draw(some(0, 0, 1, 3))):
        rows[draw(st.integers(0, 11))][draw(some(*rows[0], "more"))] = draw(values)
    content = bases.log(kind, rows)
    if kind == "jsonl" and seldom(draw, 6):
        content += json.dumps(draw(some([], None, 7, "x", {"a": {"b": 1}}))).encode()
    if seldom(draw, 6):
        content = damaged(draw, content)
    mapped = dict(bases.LOG_COLUMNS)
    for _ in range(draw(some(0, 0, 0, 1, 2))):
        field = draw(some(*mapped, "en", "odd"))
        unit = draw(some("", ":s", ":epoch_ns", ":iso", ":kB", ":MiB", ":cpu_ms", ":us", ":", ":x"))
        mapped[field] = draw(some("size", "work", "limit", "who", "nowhere", "at", "")) + unit
    columns = [part for item in mapped.items() for part in ("--column", "=".join(item))]
    more = draw(
        some((), (), ("--bad-rows", "skip"), ("--bad-rows", "skip"), ("--duplicates", "drop"),
             ("--speed", "nan"), ("--time-zone", "Europe/Berlin"), ("--time-zone", "../etc"))
    )  # fmt: skip
    out = ("--out", "trace.csv", "--speed", "18000")
    arguments = plain(("import", kind, f"log.{kind}", *out, *columns, *more))
    return Case("any-log", arguments, {f"log.{kind}": content}, outputs=("trace.csv",))


def _traced(draw: Draw, suffix: str, content: bytes) -> Case:
    out = draw(some((), ("--tasks-out", "tasks.csv"), ("--tasks-out", "tasks.parquet")))
    arguments = (*_simulate(draw), *_SHORT, "--trace", f"trace.{suffix}", *out)
    files = {f"trace.{suffix}": content}
    return Case(suffix, arguments, files, outputs=out[1:], least_rows=1)


@st.composite
def controllers(draw: Draw) -> Case:
    """Trained controllers: fields and arrays of others, sealed or not; damaged files."""
    method = draw(some("cosmo", "cosmo-next"))
    told, arrays = copy.deepcopy(bases.described(method)), bases.layers(method)
    for _ in range(draw(some(0, 0, 1, 2))):
        spoil(draw, told)
    if seldom(draw, 4):
        name = draw(some(*arrays))
        arrays[name] = draw(some(
            arrays[name].astype(complex), arrays[name][0], arrays[name][..., :0], np.array(1.0),
            arrays[name] * np.nan, arrays[name].astype("U3"), arrays[name] * 1e30, np.zeros((2, 3)),
        ))  # fmt: skip
    files = bases.controller(told, arrays, seal=draw(st.booleans()))
    if seldom(draw, 3):
        name = draw(some(*files))
        files[name] = damaged(draw, files[name])
    named = ("simulate", "-m", f"{method}:checkpoint=trained", "--json", *_SHORT)
    command = draw(some(("evaluate", "trained", "--episodes", "1", "--json"), named))
    return Case("controller", command, files)


@st.composite
def onnx_files(draw: Draw) -> Case:
    """ONNX files, damaged; one line where onnxruntime is not installed."""
    content = draw(st.binary(max_size=60)) if seldom(draw, 4) else bases.ONNX
    if draw(st.booleans()):
        content = damaged(draw, content)
    odd = draw(some(",updater=p.onnx", ",intervals_ms=1e-9", ",x=1"))
    more = odd if seldom(draw, 4) else draw(some("", ",updater=aov-gap"))
    arguments = ("simulate", "-m", f"onnx:p.onnx{more}", "--json", *_SHORT)
    return Case("onnx", arguments, {"p.onnx": content})


@st.composite
def methods(draw: Draw) -> Case:
    """Names of methods with parameters, and policies of one's own."""
    files: dict[str, bytes] = {}
    if seldom(draw, 4):
        body = draw(some(*POLICIES))
        odd = draw(
            some("raise SystemExit\n", "import nowhere\n", "def f(:\n", "carries = 10**12\n")
        )
        head = odd if seldom(draw, 4) else ""
        files["own.py"] = (
            f"import numpy as np\nfrom cosmo import Dispatcher, Method\n{head}"
            "class Mine(Method, Dispatcher):\n    '''Mine.'''\n"
            "    dispatcher = lambda self, site: self\n"
            f"    def decide(self, tasks):\n        {body}\n"
        ).encode()
        names = ("own.py:Mine:x=1", "own.py:Other", "own.py", "own.py:")
        name = draw(some(*names)) if seldom(draw, 4) else "own.py:Mine"
    else:
        name = draw(texts if seldom(draw, 6) else some(*METHODS))
        if draw(st.booleans()):
            name += f":{draw(some(*PARAMETERS))}={draw(values)}"
    return Case("method", plain(("simulate", "-m", name, "--json", *_SHORT)), files)


@st.composite
def command_lines(draw: Draw) -> Case:
    """Commands and options in any combination."""
    command = draw(some(*COMMANDS))
    options = [_SHORT] if command[:1] in (("simulate",), ("workload",)) else []
    for _ in range(draw(st.integers(0, 2))):
        name, *usual = draw(some(*USUAL))
        odd = (draw(some(*OPTIONS)), draw(values))
        options.append(odd if seldom(draw, 3) else (name, draw(some(*usual))))
    if seldom(draw, 4):
        options.append((draw(some("--json", "--resume", "--version", "-m", "--")),))
    arguments = tuple(part for option in options for part in option)
    return Case("command", plain((*command, *arguments)), {"file": b"taken"}, outputs=("w.csv",))


KINDS: dict[str, st.SearchStrategy[Case]] = {
    "set": settings(), "scenario": scenarios(), "plan": plans(), "csv": csv_traces(),
    "parquet": parquet_traces(), "controller": controllers(), "onnx": onnx_files(),
    "method": methods(), "command": command_lines(), "any-log": logs(),
}  # fmt: skip


def as_json(case: Case) -> str:
    """A case as a file of the corpus."""
    files = {name: content.decode("latin-1") for name, content in case.files.items()}
    told = {
        "kind": case.kind, "arguments": case.arguments, "files": files, "code": 2,
        "door": case.door,
    }  # fmt: skip
    return json.dumps(told, indent=1)
