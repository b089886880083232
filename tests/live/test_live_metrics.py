"""What operators look at: metrics that are all explained, and documented."""

import json
import re
from pathlib import Path

from cosmo.live import metrics
from cosmo.live.top import parsed

ROOM = Path(metrics.__file__).parent
ROOT = Path(__file__).parents[2]
DOCS, EXAMPLES = ROOT / "docs" / "live.md", ROOT / "examples" / "live"


def test_every_metric_has_a_line_of_help_and_stands_in_the_docs():
    texts = "".join(path.read_text() for path in ROOM.glob("*.py") if path.name != "top.py")
    counted = set(re.findall(r'counters\.add\(\s*"(\w+)"', texts))
    shown = set(re.findall(r'\("(\w+)", (?:\{|sn\b|late\b|node\.|chooser\.)', texts))
    assert len(counted) > 10
    assert counted | shown == set(metrics.HELP)
    assert all(name.endswith("_total") for name in counted)
    told = set(re.findall(r"`cosmo_(\w+)", DOCS.read_text()))
    assert told == set(metrics.HELP)


def test_the_text_is_read_as_it_was_meant():
    counters = metrics.Counters()
    counters.add("tasks_total", 2.0, fate='a "quoted"\nfate\\')
    text = metrics.exposition(counters, [("guard_ms", {}, float("nan"))], "en0")
    assert text.splitlines()[:2] == [
        "# HELP cosmo_tasks_total Tasks that have been answered, by their fate.",
        "# TYPE cosmo_tasks_total counter",
    ]
    assert text.splitlines()[-2:] == [
        "# TYPE cosmo_guard_ms gauge",
        'cosmo_guard_ms{node="en0"} NaN',
    ]
    first, last = parsed(text)
    assert (first.name, first.value, first.labels["node"]) == ("tasks_total", 2.0, "en0")
    assert last.value != last.value


def test_the_dashboard_asks_for_what_there_is_and_for_all_of_it():
    dashboard = json.loads((EXAMPLES / "grafana.json").read_text())
    targets = [target for panel in dashboard["panels"] for target in panel["targets"]]
    asked = {name for each in targets for name in re.findall(r"cosmo_(\w+)", each["expr"])}
    assert asked == set(metrics.HELP)
    for each in targets:  # what is counted is shown as a rate, what is measured as it is
        for name in re.findall(r"cosmo_(\w+)", each["expr"]):
            assert (f"(cosmo_{name}{{" in each["expr"]) == name.endswith("_total"), each["expr"]
    places = [tuple(panel["gridPos"][key] for key in "xy") for panel in dashboard["panels"]]
    assert len(set(places)) == len(places)
    [_, nodes] = dashboard["templating"]["list"]
    assert set(re.findall(r"cosmo_(\w+)", nodes["query"])) <= set(metrics.HELP)
