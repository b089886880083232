"""What operators look at: metrics that are all explained, and documented."""

import ast
import json
import math
import re
from pathlib import Path

import pytest

from cosmo import InputError
from cosmo.live import metrics
from cosmo.live.samples import Histogram
from cosmo.live.top import check_addresses, parsed, quantile_ms

ROOM = Path(metrics.__file__).parent
ROOT = Path(__file__).parents[2]
DOCS, EXAMPLES = ROOT / "docs" / "live.md", ROOT / "examples" / "live"


def test_every_metric_has_a_line_of_help_and_stands_in_the_docs():
    texts = "".join(path.read_text() for path in ROOM.rglob("*.py") if path.name != "top.py")
    counted = set(re.findall(r'counters\.add\(\s*"(\w+)"', texts))
    shown = set(re.findall(r'\("(\w+)", (?:\{|sn\b)', texts))
    assert len(counted) > 10
    assert counted | shown == set(metrics.HELP)
    assert all(name.endswith("_total") for name in counted)
    told = {_family(name) for name in re.findall(r"`cosmo_(\w+)", DOCS.read_text())}
    assert told == set(metrics.HELP)


def test_samples_of_one_counter_have_the_same_labels():
    """Else one page has two series where there is one."""
    labels = {}
    for path in ROOM.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("counters.add"):
                name = ast.literal_eval(call.args[0])
                labels.setdefault(name, set()).add(tuple(sorted(k.arg for k in call.keywords)))
    # Of an EN's and a picker's peers, and of an SN's: no node is both.
    assert labels.pop("implausible_messages_total") == {("sn",), ("en",)}
    assert {name: each for name, each in labels.items() if len(each) > 1} == {}


def _family(name):
    """Of a sample's name: a histogram has three kinds of samples."""
    return re.sub(r"_seconds_(bucket|sum|count)$", "_seconds", name)


def test_the_text_is_read_as_it_was_meant():
    counters, delays = metrics.Counters(), Histogram()
    counters.add("tasks_total", 2.0, fate='a "quoted"\nfate\\')
    for delay_ms in (3.0, 4.0, 9000.0):
        delays.add(delay_ms)
    measured = [("guard_seconds", {}, float("nan")), ("delay_seconds", {}, delays)]
    text = metrics.exposition([*counters.samples(), *measured], "en0")
    assert text.splitlines()[:2] == [
        "# HELP cosmo_tasks_total Tasks that have been answered, by their fate.",
        "# TYPE cosmo_tasks_total counter",
    ]
    assert "# TYPE cosmo_guard_seconds gauge" in text
    assert "# TYPE cosmo_delay_seconds histogram" in text
    samples = parsed(text)
    assert samples[0].name == "cosmo_tasks_total"
    assert samples[0].labels == {"node": "en0", "fate": 'a "quoted"\nfate\\'}
    assert samples[0].value == 2.0
    assert math.isnan(samples[1].value)
    found = {(each.name, each.labels.get("le")): each.value for each in samples[2:]}
    assert found["cosmo_delay_seconds_bucket", "0.0025"] == 0.0
    assert found["cosmo_delay_seconds_bucket", "0.005"] == 2.0
    assert found["cosmo_delay_seconds_bucket", "2.5"] == 2.0
    assert found["cosmo_delay_seconds_bucket", "+Inf"] == 3.0
    assert found["cosmo_delay_seconds_count", None] == 3.0
    assert found["cosmo_delay_seconds_sum", None] == pytest.approx(9.007)


def test_quantiles_of_histograms_are_those_of_prometheus():
    delays = Histogram()
    for delay_ms in (3.0, 3.0, 3.0, 6.0):
        delays.add(delay_ms)

    def told():
        return parsed(metrics.exposition([("delay_seconds", {}, delays)], "en0"))

    first = told()
    assert quantile_ms(first, "cosmo_delay_seconds", 0.5) == pytest.approx(2.5 + 2.5 * 2 / 3)
    assert quantile_ms(first, "cosmo_delay_seconds", 1.0) == pytest.approx(10.0)
    assert math.isnan(quantile_ms(first, "cosmo_delay_seconds", 0.5, before=first))
    delays.add(1e6)  # beyond the last bound
    assert quantile_ms(told(), "cosmo_delay_seconds", 0.5, before=first) == 2500.0


def test_the_dashboard_asks_for_what_there_is_and_for_all_of_it():
    dashboard = json.loads((EXAMPLES / "grafana.json").read_text())
    targets = [target for panel in dashboard["panels"] for target in panel["targets"]]
    asked = {_family(name) for each in targets for name in re.findall(r"cosmo_(\w+)", each["expr"])}
    assert asked == set(metrics.HELP)
    for each in targets:  # what only grows is shown as a rate, what is measured as it is
        for name in re.findall(r"cosmo_(\w+)", each["expr"]):
            grows = name.endswith(("_total", "_bucket", "_sum", "_count"))
            assert (f"(cosmo_{name}{{" in each["expr"]) == grows, each["expr"]
    places = [tuple(panel["gridPos"][key] for key in "xy") for panel in dashboard["panels"]]
    assert len(set(places)) == len(places)
    [_, nodes] = dashboard["templating"]["list"]
    assert set(re.findall(r"cosmo_(\w+)", nodes["query"])) <= set(metrics.HELP)


@pytest.mark.parametrize(
    "address",
    ["", ":::", "7300", "127.0.0.1:99999", "127.0.0.1:0", "127.0.0.1:-1", "http://[::1", "a b:7300",
     ":7300", "x:١", "http://node:7300", "node\n:7300", "[]:7300", "::1:7300", "x:" + "9" * 5000],
)  # fmt: skip
def test_an_address_that_no_node_can_have_is_refused(address):
    with pytest.raises(InputError, match=r"^address = .*: must be host:port"):
        check_addresses(["127.0.0.1:7300", address])


def test_addresses_of_nodes_that_are_not_there_yet_are_taken():
    check_addresses(["127.0.0.1:7300", "[::1]:7300", "en-0.edge.example:7300", "localhost:65535"])
