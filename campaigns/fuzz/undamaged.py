"""The bases of all kinds as they are: a campaign whose base is refused tests nothing."""

import json

import bases
import bases_nodes as own
from door_http import GOOD_REQUEST
from doors import OPENING, SAID, call, data, headers_message
from grammar_doors import ADDRESSES, chosen_document, endpoints_case
from grammar_http import http_case, request
from judge import Case

_SHORT = tuple(part for each in bases.SHORT for part in ("--set", each))
_PLAY = ("simulate", "-m", "all-local", "--json")


def undamaged(kind: str) -> list[Case]:
    """Cases of a kind with nothing wrong; all of them must be accepted, and traces played."""
    match kind:
        case "set":
            return [Case(kind, (*_PLAY, *_SHORT)), Case(kind, ("scenario", "show", "paper"))]
        case "scenario":
            files = {"mine.toml": bases.scenario().encode()}
            return [
                Case(kind, ("scenario", "check", "mine.toml"), files),
                Case(kind, (*_PLAY, "-s", "mine.toml"), files),
            ]
        case "plan":
            return [Case(kind, ("study", "show", "p.toml"), {"p.toml": bases.PLAN.encode()})]
        case "csv" | "parquet":
            return [_trace(kind)]
        case "controller":
            return [_controller(method) for method in ("cosmo", "cosmo-next")]
        case "onnx":
            arguments = ("simulate", "-m", "onnx:p.onnx", "--json", *_SHORT)
            return [Case(kind, arguments, {"p.onnx": bases.ONNX})]
        case "method":
            return [Case(kind, ("simulate", "-m", "aoi-threshold:kappa=2", "--json", *_SHORT))]
        case "command":
            return [Case(kind, ("methods",))]
        case "any-log":
            return [_log(form) for form in ("csv", "jsonl")]
    return _of_nodes(kind)


def _log(form: str) -> Case:
    columns = [f"{name}={column}" for name, column in bases.LOG_COLUMNS.items()]
    mapped = [part for each in columns for part in ("--column", each)]
    arguments = ("import", form, f"log.{form}", "--out", "t.csv", "--speed", "18000", *mapped)
    files = {f"log.{form}": bases.log(form, bases.log_rows())}
    return Case("any-log", arguments, files, outputs=("t.csv",), least_rows=12)


def _of_nodes(kind: str) -> list[Case]:
    match kind:
        case "live":
            files = {"mine.toml": own.LIVE_SCENARIO.encode(), "p.toml": own.LIVE_PLAN.encode()}
            config = ("live", "config", "--scenario", "mine.toml", "--out", "nodes")
            return [
                Case(kind, ("study", "show", "p.toml"), files),
                Case(kind, config, files, outputs=("nodes/",)),
            ]
        case "daemon":
            return [
                Case(kind, ("serve", role, "--config", "n.toml"), {"n.toml": text.encode()})
                for role in ("en", "sn", "picker", "agent")
                for text in (own.daemon(role),)
            ]
        case "picker":
            said = OPENING + call(1) + data(1, headers_message().SerializeToString(), ended=True)
            return [Case(kind, (kind,), {SAID: said}, door=kind)]
        case "page":
            content = json.dumps(chosen_document()).encode()
            return [Case(kind, (kind,), {SAID: content}, door=kind)]
        case "http":
            close = "Host: a", "Connection: close"
            posted = request("/a?b", "POST", *close, "Content-Length: 5", body=b"hello")
            return [http_case(GOOD_REQUEST), http_case(posted)]
        case "endpoints":
            return [endpoints_case(ADDRESSES.encode())]
        case "log":
            csv, parquet = own.decisions_csv().encode(), bases.parquet(own.decisions_columns())
            files = {"a.csv": csv, "b.parquet": parquet, "c.json": own.recording().encode()}
            return [
                Case(kind, ("view", name, "--out", "x.html"), {name: content}, outputs=("x.html",))
                for name, content in files.items()
            ]
        case "store":
            return [
                Case(kind, ("study", "status", own.STORE, "--json"), own.store()),
                Case(kind, ("report", own.STORE, "-o", "r"), own.store(), outputs=("r/",)),
            ]
        case "import":
            return [
                Case(
                    kind, ("import", name, "x.csv", "--out", "t.csv"), {"x.csv": text.encode()},
                    outputs=("t.csv",), least_rows=12,
                )
                for name, text in (
                    ("azure-functions-2021", own.AZURE), ("alibaba-batch-2018", own.ALIBABA),
                )
            ]  # fmt: skip
    raise ValueError(f"no base of the kind {kind}")


def _trace(kind: str) -> Case:
    columns = {name: [row[k] for row in bases.ROWS] for k, name in enumerate(bases.COLUMNS)}
    content = bases.trace_csv().encode() if kind == "csv" else bases.parquet(columns)
    name = f"trace.{kind}"
    arguments = (*_PLAY, *_SHORT, "--episodes", "1", "--trace", name, "--tasks-out", "t.csv")
    return Case(kind, arguments, {name: content}, outputs=("t.csv",), least_rows=len(bases.ROWS))


def _controller(method: str) -> Case:
    files = bases.controller(bases.described(method), bases.layers(method))
    return Case("controller", ("evaluate", "trained", "--episodes", "1", "--json"), files)
