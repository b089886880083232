"""Cases of live nodes and stored results: plans, daemons' files, logs, stores, public traces."""

import copy
import json
from typing import Any

import bases
import bases_nodes as own
from hypothesis import strategies as st
from judge import Case
from odd import Draw, celled, columned, damaged, plain, rewritten, seldom, some, spoil, values

_LIVE_FIELDS = ("slower", "transport", "fifo", "most_late_ms", "nothing")
# No port of the machine is taken that somebody else may want, and nobody is looked up by name.
_ADDRESSES = ("listen", "admin", "address", "admin_hosts", "url", "endpoints")
_ODD_ADDRESSES = ("127.0.0.1:0", "127.0.0.1:99999", "nowhere", "127.0.0.1:", "127.0.0.1:x", "", ":")
_PAGE = "page.html"


@st.composite
def live_plans(draw: Draw) -> Case:
    """Plans and scenarios for the engine `live`: shown, checked, and made daemons' files of."""
    scenario = rewritten(draw, own.LIVE_SCENARIO) if draw(st.booleans()) else own.LIVE_SCENARIO
    plan = rewritten(draw, own.LIVE_PLAN) if draw(st.booleans()) else own.LIVE_PLAN
    extra: tuple[str, ...] = ()
    if seldom(draw, 3):
        extra = ("--set", f"live.{draw(some(*_LIVE_FIELDS))}={draw(values)}")
    command = draw(
        some(
            ("study", "show", "plan.toml"),
            ("study", "show", "plan.toml"),
            ("study", "run", "plan.toml", "--out", "taken"),
            ("scenario", "check", "mine.toml"),
            ("live", "config", "--scenario", "mine.toml", "--out", "nodes", *extra),
            ("live", "config", "--scenario", "mine.toml", "--out", "nodes"),
        )
    )
    files = {
        "mine.toml": scenario.encode("utf-8", "surrogatepass"),
        "plan.toml": plan.encode("utf-8", "surrogatepass"),
        "taken": b"a file",
    }
    return Case("live", plain(command), files, outputs=("nodes/",))


@st.composite
def daemon_files(draw: Draw) -> Case:
    """Files of daemons, which are started by them, and told to stop once they serve."""
    role = draw(some("en", "sn", "picker", "agent"))
    text = rewritten(draw, own.daemon(role), keep=_ADDRESSES)
    if seldom(draw, 10):
        text = text.replace('"127.0.0.1:0"', f'"{draw(some(*_ODD_ADDRESSES))}"', 1)
    content = text.encode("utf-8", "surrogatepass")
    if seldom(draw, 5):
        content = damaged(draw, content)
    called = draw(some(*[role] * 6, "en", "sn", "picker", "agent"))
    return Case("daemon", ("serve", called, "--config", "node.toml"), {"node.toml": content})


@st.composite
def logs(draw: Draw) -> Case:
    """Decision logs of nodes and recorded episodes, made a page of."""
    how = draw(some("csv", "csv", "parquet", "json"))
    if how == "csv":
        content = celled(draw, own.decisions_csv())
    elif how == "parquet":
        content = bases.parquet(columned(draw, own.decisions_columns()))
    else:
        told = json.loads(own.recording())
        for _ in range(draw(st.integers(0, 2))):
            spoil(draw, told)
        content = json.dumps(told).encode()
    if how != "csv" and seldom(draw, 4):
        content = damaged(draw, content)
    name = f"log.{how}"
    return Case("log", ("view", name, "--out", _PAGE), {name: content}, outputs=(_PAGE,))


@st.composite
def stores(draw: Draw) -> Case:
    """Folders of studies: records with other fields, sealed again or not; damaged tables."""
    files = dict(own.store())
    for _ in range(draw(st.integers(0, 2))):
        name = draw(some(*files))
        files[name] = _changed(draw, name, files[name])
    if seldom(draw, 10):
        del files[draw(some(*files))]
    status = ("study", "status", own.STORE, "--json")
    report = ("report", own.STORE, "--out", "report")  # takes two seconds if all is well
    command = draw(some(*[status] * 9, report)) if files != own.store() else status
    return Case("store", command, files, outputs=("report/",))


def _changed(draw: Draw, name: str, content: bytes) -> bytes:
    if not name.endswith(".json") or seldom(draw, 4):
        return damaged(draw, content)
    try:
        told: Any = json.loads(content)
    except ValueError:  # damaged before
        return content
    told = copy.deepcopy(told)
    spoil(draw, told)
    return own.sealed(told) if draw(st.booleans()) else json.dumps(told).encode()


@st.composite
def public_traces(draw: Draw) -> Case:
    """Public traces of others, converted to tasks."""
    kind, text = draw(
        some(("azure-functions-2021", own.AZURE), ("alibaba-batch-2018", own.ALIBABA))
    )
    content = celled(draw, text)
    out = draw(some("tasks.csv", "tasks.parquet"))
    extra: tuple[str, ...] = ()
    if seldom(draw, 4):
        extra = (draw(some("--rate", "--most", "--seeds")), draw(values))
    arguments = plain(("import", kind, "public.csv", "--out", out, *extra))
    return Case("import", arguments, {"public.csv": content}, outputs=(out,), least_rows=1)


NODE_KINDS: dict[str, st.SearchStrategy[Case]] = {
    "live": live_plans(), "daemon": daemon_files(), "log": logs(), "store": stores(),
    "import": public_traces(),
}  # fmt: skip
