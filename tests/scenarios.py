"""Random scenarios and episodes for property tests: small worlds with everything in them."""

from hypothesis import strategies as st

from cosmo.scenario import Scenario, load
from cosmo.workload import Episode, episode

# The preset `wild` on few nodes, with changes and outages often enough for a short episode.
SMALL_WILD = [
    *("en.count=3", "workload.weights=[1, 1, 2]", "sn.count=2", "workload.rate=150"),
    "sn.outage={up_ms = 150, down_ms = 60}",
    "sn.speed={factors = [1.0, 0.5], dwell_ms = [100, 60]}",
]


def _number(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high, allow_nan=False, width=32)


@st.composite
def _reach(draw: st.DrawFn, ens: int, sns: int) -> str:
    """All SNs, or of each EN some of them (R30)."""
    some = st.sets(st.integers(0, sns - 1), min_size=1).map(sorted)
    return str(draw(st.just('"all"') | st.lists(some, min_size=ens, max_size=ens)))


@st.composite
def scenarios(draw: st.DrawFn, lossy: bool) -> Scenario:
    """One to three ENs and SNs, tight or loose limits, background, fading, UEs out of range."""
    ens, sns = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    ues = draw(st.integers(1, 3))

    def each(count: int, low: int, high: int) -> list[int]:
        return [draw(st.integers(low, high)) for _ in range(count)]

    def numbers(count: int, low: float, high: float) -> list[float]:
        return [draw(_number(low, high)) for _ in range(count)]

    fading = draw(st.sampled_from([[1.0, 1.0], [0.2, 1.0], [0.9, 1.5]]))
    background = draw(st.sampled_from([[0.0, 0.0], [20.0, 300.0], [0.0, 500.0]]))
    fields = {
        "workload.arrivals": draw(st.sampled_from(["deterministic", "poisson", "bursty"])),
        "workload.rate": draw(st.sampled_from([40.0, 150.0, 400.0, 900.0])),
        "workload.input_bytes": draw(st.sampled_from([[20000, 50000], [200, 2000], [900, 60000]])),
        "episode.window_ms": 400.0,
        "episode.warmup_ms": draw(st.sampled_from([0.0, 100.0])),
        "episode.undecided_after_ms": draw(st.sampled_from([0.0, 50.0, 5000.0])),
        "background.rates": background,
        "background.dwell_ms": [50.0, 80.0],
        "fading.factors": fading,
        "fading.period_ms": draw(st.sampled_from([7.0, 40.0])),
        "en.count": ens,
        "en.slots": each(ens, 1, 3),
        "en.storage_bytes": numbers(ens, 40000.0, 400000.0),
        "en.queue_capacity": each(ens, 1, 8),
        "sn.count": sns,
        "sn.slots": each(sns, 1, 5),
        "sn.cycles_per_ms": numbers(sns, 9000.0, 60000.0),
        "sn.storage_bytes": numbers(sns, 40000.0, 900000.0),
        "sn.queue_capacity": each(sns, 1, 12),
        "backhaul.up_mbps": [numbers(sns, 20.0, 300.0) for _ in range(ens)],
        "backhaul.down_mbps": [numbers(sns, 2.0, 300.0) for _ in range(ens)],
        "backhaul.hops": draw(st.integers(1, 3)),
        "backhaul.reach": draw(_reach(ens, sns)),
        "storage.reservation_floor_bytes": draw(st.sampled_from([0.0, 50000.0])),
        "mobility.distances_m": numbers(ues, 0.0, 10.0),
        "mobility.headings_deg": numbers(ues, -180.0, 180.0),
        "mobility.speed_m_per_s": draw(st.sampled_from([0.0, 1.0, 30.0])),
    }
    if draw(st.booleans()):  # one link of its own kind
        fields["backhaul.links"] = "[{hops = 4, hop_delay_ms = 2.5, up_mbps = 33.0, sn = 0}]"
        if fields["backhaul.reach"] != '"all"':
            fields["backhaul.links"] = "[{hops = 4, hop_delay_ms = 2.5, down_mbps = 7.0, en = 0}]"
    if draw(st.booleans()):  # R36
        fields["workload.weights"] = [1.0, *draw(st.permutations([0.0, 3.0]))][:ens]
    if fields["workload.arrivals"] != "deterministic" and draw(st.booleans()):
        fields["workload.wave"] = "{amplitude = 0.9, period_ms = 130.0}"
    if draw(st.booleans()):  # R35
        fields["workload.demand.spread"] = draw(st.sampled_from([0.0, 0.5, 2.0]))
        fields["workload.demand.declared"] = draw(st.sampled_from(["true", "false"]))
    for kind in ("en", "sn"):  # R37
        if draw(st.booleans()):
            fields[f"{kind}.speed"] = "{factors = [1.3, 0.3], dwell_ms = [60.0, 25.0]}"
    if draw(st.booleans()):  # R39
        fields["background.rates"] = [[0.0, 200.0 * (sn + 1)] for sn in range(sns)]
        fields["background.dwell_ms"] = [[30.0 * (sn + 1), 50.0] for sn in range(sns)]
        fields["background.cycles"] = [5e4, 4e5]
        fields["background.together"] = draw(st.sampled_from([0.0, 0.7, 1.0]))
    if draw(st.booleans()):  # R38
        fields["sn.outage"] = draw(
            st.sampled_from(["{up_ms = 90.0, down_ms = 30.0}", "{up_ms = 200.0, down_ms = 150.0}"])
        )
    if lossy:
        fields["status.loss_probability"] = draw(st.sampled_from([0.0, 0.3, 0.9]))
        fields["status.jitter_ms"] = draw(st.sampled_from([0.0, 4.0, 60.0]))
    return load("paper", [f"{name}={value}" for name, value in fields.items()])


@st.composite
def worlds(draw: st.DrawFn, lossy: bool = False) -> tuple[Scenario, Episode]:
    """With `lossy`, status messages and ACKs may be lost and overtake one another."""
    scenario = draw(scenarios(lossy))
    return scenario, episode(scenario, draw(st.integers(0, 2**32)), draw(st.integers(0, 1000)))
