"""Cases by grammar: whole documents with one or a few things wrong, as Hypothesis draws them."""

import copy
import json
import tomllib
from collections.abc import Callable
from typing import Any

import bases
import numpy as np
from hypothesis import strategies as st
from judge import Case

Draw = Callable[[st.SearchStrategy[Any]], Any]

ODD_NUMBERS = (
    "0", "-0.0", "-1", "1e-300", "1e-15", "1e-9", "1e-3", "0.5", "1", "2", "3.0", "64", "1e3",
    "1e6", "1e9", "1e15", "1e16", "1e300", "1e308", "9" * 30, "9" * 5000, "0x10", "1_000", "-1e300",
)  # fmt: skip
NO_NUMBERS = ("nan", "inf", "-inf", "true", "'text'", "{}", "{a=1}", "''", "[[]]", "1979-05-27")
ODD_LISTS = (
    "[]",
    "[1]",
    "[1,2]",
    "[2,1]",
    "[1,2,3]",
    "[0,0]",
    "[nan,1]",
    "[[1,2],[3]]",
    "['a','b']",
)
ODD_TEXTS = (
    "", " ", "paper ", "poisson ", "\u202e", "\x00", "\x1b[31m", "a\nb", "../../x", "/", "@@DATA@@",
    "<!--<script>", "[/home/me]", "[" * 2000, "{" * 500, "'" * 3, "a=b=c", "=", ".", "..", "\udcff",
    "none", "é" * 300, "x" * 5000,
)  # fmt: skip
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
    ("simulate", "-m", "all-local"), ("workload", "--out", "w.csv"), ("scenario", "show", "paper"),
    ("methods",), ("study", "show", "paper"), ("study", "status", "nowhere"), ("evaluate", "none"),
    ("report", "nowhere"), ("study", "list"), ("scenario", "list"), ("train", "--out", "file"), (),
)  # fmt: skip
OPTIONS = (
    "--seed", "--seeds", "--episodes", "--episode", "--rate", "--arrivals", "--engine", "--method",
    "--scenario", "--workers", "--trace", "--tasks-out", "--nothing", "-x",
)  # fmt: skip
_SHORT = tuple(part for each in bases.SHORT for part in ("--set", each))


def _some(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


texts = st.one_of(_some(*ODD_TEXTS), st.text(max_size=12))
values = st.one_of(_some(*ODD_NUMBERS), _some(*NO_NUMBERS), _some(*ODD_LISTS), texts)


def _nearby(value: Any) -> st.SearchStrategy[str]:
    """Other values of a field that may well be allowed: a number scaled, a list of such."""
    factor = st.one_of(_some(0.0, 0.01, 0.1, 0.5, 2.0, 3.0, 10.0, 1e3), st.floats(0.2, 5.0))
    if isinstance(value, bool) or not isinstance(value, int | float | list):
        return _some("true", "false", "'deterministic'", "'bursty'", "'steps'", "'turn'", "'leave'")
    if isinstance(value, list):
        parts = [_nearby(each) for each in value]
        return st.tuples(*parts).map(lambda told: f"[{','.join(told)}]")
    scaled = factor.map(lambda by: value * by)
    return scaled.map(lambda x: str(round(x)) if isinstance(value, int) else repr(float(x)))


def _simulate(draw: Draw) -> tuple[str, ...]:
    return (
        "simulate",
        "-m",
        draw(_some("all-local", "aoi-threshold", "aov-gap", "random")),
        "--json",
    )


@st.composite
def settings(draw: Draw) -> Case:
    """`--set` of a field that is there, nearly there or not there."""
    name = draw(st.one_of(_some(*bases.fields()), texts))
    if draw(st.integers(0, 9)) == 0:
        name = draw(_some(name.replace("_", "-"), name + ".x", name.rpartition(".")[0], name[:-1]))
    value = draw(st.one_of(values, _nearby(bases.fields().get(name))))
    number = isinstance(bases.fields().get(name), int | float)
    hopeless = number and value in NO_NUMBERS and not isinstance(bases.fields()[name], bool)
    command = draw(_some(("scenario", "show", "paper"), _simulate(draw), _simulate(draw)))
    arguments = (*command, *_SHORT, "--set", f"{name}={value}")
    return Case("set", _plain(arguments), hopeless=hopeless)


def _plain(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """What can be on a command line: no NUL."""
    return tuple(part.replace("\x00", "") for part in arguments)


def _damaged(draw: Draw, content: bytes) -> bytes:
    """Bytes flipped, cut, doubled or dropped; or as they are."""
    how, place = draw(st.integers(0, 6)), draw(st.integers(0, max(len(content) - 1, 0)))
    if not content or how == 0:
        return content
    if how == 1:
        return content[:place]
    if how == 2:
        return content[:place] + content[place + draw(st.integers(1, 20)) :]
    if how == 3:
        return content[:place] + bytes(draw(st.binary(min_size=1, max_size=6))) + content[place:]
    if how == 4:
        return content + content[place:]
    flipped = bytearray(content)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(content) - 1))
        flipped[at] ^= 1 << draw(st.integers(0, 7))
    return bytes(flipped)


def _rewritten(draw: Draw, text: str) -> str:
    """Lines of a TOML file changed, dropped, doubled or moved."""
    lines = text.split("\n")
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(lines) - 1))
        how = draw(st.integers(0, 4))
        if how == 0:
            del lines[at]
        elif how == 1:
            lines.insert(draw(st.integers(0, len(lines))), lines[at])
        elif how == 2:
            lines.insert(at, draw(texts))
        elif "=" in lines[at]:
            name, _, text = lines[at].partition("=")
            try:
                known = tomllib.loads(f"value = {text}")["value"]
            except tomllib.TOMLDecodeError:
                known = None
            lines[at] = f"{name}= {draw(st.one_of(values, _nearby(known)))}"
        lines = lines or [""]
    return "\n".join(lines)


@st.composite
def scenarios(draw: Draw) -> Case:
    """Scenario files: rewritten, extended, damaged."""
    start = draw(
        _some("", 'extends = "paper"\n', 'extends = "mine.toml"\n', 'extends = "x.toml"\n')
    )
    text = start + _rewritten(draw, bases.scenario())
    content = text.encode("utf-8", "surrogatepass")
    if draw(st.booleans()):
        content = _damaged(draw, content)
    show = ("scenario", draw(_some("show", "check")), "mine.toml")
    command = draw(_some(show, (*_simulate(draw), "-s", "mine.toml")))
    return Case("scenario", command, {"mine.toml": content})


@st.composite
def plans(draw: Draw) -> Case:
    """Plans, shown, or run into a folder that is a file: all but the work itself."""
    text = _rewritten(draw, bases.PLAN)
    content = text.encode("utf-8", "surrogatepass")
    if draw(st.integers(0, 2)) == 0:
        content = _damaged(draw, content)
    run = ("study", "run", "plan.toml", "--out", "taken")
    trust = ("--trust",) if draw(st.booleans()) else ()
    extra: tuple[str, ...] = ()
    if draw(st.integers(0, 2)) == 0:
        field = draw(_some("episodes", "seeds", "rates", "methods", "training.engine", "compare"))
        extra = ("--set", f"{field}={draw(values)}")
    command = draw(_some(("study", "show", "plan.toml"), (*run, *trust, *extra)))
    return Case("plan", _plain(command), {"plan.toml": content, "taken": b"a file"})


@st.composite
def csv_traces(draw: Draw) -> Case:
    """Traces with odd cells, rows and headers."""
    lines = bases.trace_csv().split("\n")
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(lines) - 2))
        cells = lines[at].split(",")
        cells[draw(st.integers(0, len(cells) - 1))] = draw(values)
        lines[at] = draw(_some(",".join(cells), ",".join(cells[:-1]), ",".join([*cells, "1"])))
    content = "\n".join(lines).encode("utf-8", "surrogatepass")
    if draw(st.booleans()):
        content = _damaged(draw, content)
    return _traced(draw, "csv", content)


@st.composite
def parquet_traces(draw: Draw) -> Case:
    """Traces with columns of other types, missing or empty, and damaged files."""
    columns: dict[str, Any] = {
        name: [row[place] for row in bases.ROWS] for place, name in enumerate(bases.COLUMNS)
    }
    for _ in range(draw(st.integers(0, 2))):
        name = draw(_some(*bases.COLUMNS))
        odd = draw(
            _some(None, "a", True, float("nan"), float("inf"), -1.0, 1.7e12, [1], 2**62, 1e300)
        )
        columns[name] = draw(_some([odd] * 12, [*columns.get(name, [0] * 12)[:11], odd]))
        if draw(st.integers(0, 5)) == 0:
            del columns[name]
    content = bases.parquet(columns)
    if draw(st.booleans()):
        content = _damaged(draw, content)
    return _traced(draw, "parquet", content)


@st.composite
def logs(draw: Draw) -> Case:
    """Logs of others with odd cells, rows and mappings, for `cosmo import`."""
    kind = draw(_some("csv", "jsonl"))
    rows: list[Any] = [
        {"at": 1.7e9 + k, "who": f"cam-{k % 3}", "size": 30 + k, "work": 10.0, "limit": 0.1}
        for k in range(12)
    ]
    for _ in range(draw(st.integers(0, 4))):
        row = rows[draw(st.integers(0, 11))]
        if isinstance(row, dict):
            row[draw(_some("at", "who", "size", "work", "limit", "more"))] = draw(values)
            if draw(st.integers(0, 4)) == 0:
                rows[draw(st.integers(0, 11))] = draw(_some([], None, 7, "x", {"a": {"b": row}}))
    if kind == "csv":
        told = [row for row in rows if isinstance(row, dict)]
        lines = [",".join(str(value) for value in row.values()) for row in told]
        text = "\n".join(["at,who,size,work,limit", *lines])
    else:
        text = "\n".join(json.dumps(row) for row in rows)
    content = text.encode("utf-8", "surrogatepass")
    if draw(st.integers(0, 3)) == 0:
        content = _damaged(draw, content)
    unit = _some(
        "", ":s", ":epoch_s", ":iso", ":kB", ":MiB", ":cpu_ms", ":Mcycles", ":us", ":", ":x"
    )
    mapped: list[str] = [
        "--column",
        f"time_ms=at{draw(_some(':epoch_s', ':epoch_ns', ':iso', ''))}",
    ]
    for field in draw(st.lists(_some("input_bytes", "cycles", "deadline_ms", "ue", "en", "odd"))):
        column = draw(_some("size", "work", "limit", "who", "nowhere", "at", ""))
        mapped += ["--column", f"{field}={column}{draw(unit)}"]
    more = draw(
        _some((), ("--bad-rows", "skip"), ("--duplicates", "drop"), ("--speed", "18000"),
              ("--speed", "nan"), ("--time-zone", "Europe/Berlin"), ("--time-zone", "../etc"))
    )  # fmt: skip
    arguments = ("import", kind, f"log.{kind}", "--out", "trace.csv", *mapped, *more)
    return Case("log", _plain(arguments), {f"log.{kind}": content}, outputs=("trace.csv",))


def _traced(draw: Draw, suffix: str, content: bytes) -> Case:
    out = draw(_some((), ("--tasks-out", "tasks.csv"), ("--tasks-out", "tasks.parquet")))
    arguments = (*_simulate(draw), *_SHORT, "--trace", f"trace.{suffix}", *out)
    return Case(suffix, arguments, {f"trace.{suffix}": content}, outputs=out[1:])


@st.composite
def controllers(draw: Draw) -> Case:
    """Trained controllers: fields and arrays of others, sealed or not; damaged files."""
    method = draw(_some("cosmo", "cosmo-next"))
    told, arrays = copy.deepcopy(bases.described(method)), bases.layers(method)
    for _ in range(draw(st.integers(0, 2))):
        _spoil(draw, told)
    if draw(st.booleans()):
        name = draw(_some(*arrays))
        arrays[name] = draw(_some(
            arrays[name].astype(complex), arrays[name][0], arrays[name][..., :0], np.array(1.0),
            arrays[name] * np.nan, arrays[name].astype("U3"), arrays[name] * 1e30, np.zeros((2, 3)),
        ))  # fmt: skip
    files = bases.controller(told, arrays, seal=draw(st.booleans()))
    if draw(st.booleans()):
        name = draw(_some(*files))
        files[name] = _damaged(draw, files[name])
    named = ("simulate", "-m", f"{method}:checkpoint=trained", "--json", *_SHORT)
    command = draw(_some(("evaluate", "trained", "--episodes", "1", "--json"), named))
    return Case("controller", command, files)


def _spoil(draw: Draw, told: Any) -> None:
    """Change or drop something, somewhere inside."""
    while isinstance(told, dict | list) and told:
        key = draw(_some(*told)) if isinstance(told, dict) else draw(st.integers(0, len(told) - 1))
        if not isinstance(told[key], dict | list) or draw(st.integers(0, 3)) == 0:
            odd = draw(
                _some(None, "a", -1, 0, 10**400, float("nan"), float("inf"), [], {}, [1], True)
            )
            if isinstance(told, dict) and draw(st.booleans()):
                del told[key]
            else:
                told[key] = odd
            return
        told = told[key]


@st.composite
def onnx_files(draw: Draw) -> Case:
    """ONNX files, damaged; one line where onnxruntime is not installed."""
    content = _damaged(draw, bases.ONNX) if draw(st.booleans()) else draw(st.binary(max_size=60))
    other = draw(_some("", ",updater=aov-gap", ",updater=p.onnx", ",intervals_ms=1e-9", ",x=1"))
    arguments = ("simulate", "-m", f"onnx:p.onnx{other}", "--json", *_SHORT)
    return Case("onnx", arguments, {"p.onnx": content})


@st.composite
def methods(draw: Draw) -> Case:
    """Names of methods with parameters, and policies of one's own."""
    files: dict[str, bytes] = {}
    if draw(st.integers(0, 3)) == 0:
        body = draw(_some(*POLICIES))
        head = draw(
            _some("", "raise SystemExit\n", "import nowhere\n", "def f(:\n", "carries = 10**12\n")
        )
        files["own.py"] = (
            f"import numpy as np\nfrom cosmo import Dispatcher, Method\n{head}"
            "class Mine(Method, Dispatcher):\n    '''Mine.'''\n"
            "    dispatcher = lambda self, site: self\n"
            f"    def decide(self, tasks):\n        {body}\n"
        ).encode()
        name = draw(_some("own.py:Mine", "own.py:Mine:x=1", "own.py:Other", "own.py", "own.py:"))
    else:
        name = draw(st.one_of(_some(*METHODS), _some(*METHODS), texts))
        if draw(st.booleans()):
            name += f":{draw(_some(*PARAMETERS))}={draw(values)}"
    return Case("method", _plain(("simulate", "-m", name, "--json", *_SHORT)), files)


@st.composite
def command_lines(draw: Draw) -> Case:
    """Commands and options in any combination."""
    command = draw(_some(*COMMANDS))
    options = [_SHORT] if command[:1] in (("simulate",), ("workload",)) else []
    options += [(draw(_some(*OPTIONS)), draw(values)) for _ in range(draw(st.integers(0, 3)))]
    if draw(st.booleans()):
        options.append((draw(_some("--json", "--resume", "--version", "-m", "--")),))
    arguments = tuple(part for option in options for part in option)
    return Case("command", _plain((*command, *arguments)), {"file": b"taken"}, outputs=("w.csv",))


KINDS: dict[str, st.SearchStrategy[Case]] = {
    "set": settings(), "scenario": scenarios(), "plan": plans(), "csv": csv_traces(),
    "parquet": parquet_traces(), "controller": controllers(), "onnx": onnx_files(),
    "method": methods(), "command": command_lines(), "log": logs(),
}  # fmt: skip


def as_json(case: Case) -> str:
    """A case as a file of the corpus."""
    files = {name: content.decode("latin-1") for name, content in case.files.items()}
    told = {"kind": case.kind, "arguments": case.arguments, "files": files, "code": 2}
    return json.dumps(told, indent=1)
