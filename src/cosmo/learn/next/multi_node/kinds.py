"""Random training worlds: topologies, speeds, links, loads, arrivals, and other users."""

from typing import Any

import numpy as np

from cosmo.learn.next.multi_node.config import Between, KindsConfig
from cosmo.scenario import Scenario, changed, load

Random = np.random.Generator


def some_kind(scenario: Scenario, kinds: KindsConfig, random: Random) -> Scenario:
    """A scenario drawn at random; never one EN with one SN, for which the networks are trained."""
    if kinds.named and random.random() < kinds.named_share:
        return _named(scenario, kinds, random)
    ens, sns = _count(random, kinds.ens), _count(random, kinds.sns)
    if ens == sns == 1:
        ens = min(2, kinds.ens[1])
    unlike = random.random() < kinds.unlike
    fields: dict[str, Any] = {"name": "drawn", "en.count": ens, "sn.count": sns}
    fields |= _nodes(random, "en", ens, scenario.en, kinds.en_speed, kinds.en_slots, unlike)
    fields |= _nodes(random, "sn", sns, scenario.sn, kinds.sn_speed, kinds.sn_slots, unlike)
    reached = sns
    if sns > kinds.reach[0] and random.random() < kinds.near:
        reached = int(random.integers(kinds.reach[0], min(kinds.reach[1], sns) + 1))
        fields["backhaul.reach"] = {"nearest": reached}
    up = _between(random, kinds.up_mbps)
    fields |= {"backhaul.up_mbps": up, "backhaul.down_mbps": 2.0 * up}
    fields["backhaul.hops"] = int(random.integers(kinds.hops[0], kinds.hops[1] + 1))
    fields["backhaul.hop_delay_ms"] = _between(random, kinds.hop_delay_ms)
    if random.random() < kinds.lossy:
        fields["status.loss_probability"] = _between(random, kinds.loss)
    taken = 0.0
    if random.random() < kinds.background:
        more, taken = _background(random, kinds, fields, scenario)
        fields |= more
    fields |= _load(random, kinds, fields, scenario, taken)
    fields |= _surprises(random, kinds, fields)
    if random.random() >= kinds.usual_price:
        low, high = np.log(kinds.price)
        times = float(np.exp(random.uniform(low, high)))
        fields["utility.update_weight"] = times * scenario.utility.update_weight
    return changed(scenario, fields)


def _named(scenario: Scenario, kinds: KindsConfig, random: Random) -> Scenario:
    """A preset with the scenario's window, at one of the preset's rates of interest."""
    found = load(kinds.named[random.integers(len(kinds.named))])
    interest = found.workload.rates_of_interest
    fields: dict[str, Any] = {"workload.rate": float(random.choice(interest))}
    arrivals = kinds.arrivals[random.integers(len(kinds.arrivals))]
    if not (arrivals == "deterministic" and found.workload.wave is not None):
        fields["workload.arrivals"] = arrivals
    return changed(found.model_copy(update={"episode": scenario.episode}), fields)


def _between(random: Random, ends: Between) -> float:
    return float(random.uniform(*ends))


def _count(random: Random, ends: tuple[int, int]) -> int:
    """A count drawn uniformly in its logarithm."""
    low, high = np.log(ends[0]), np.log(ends[1] + 1.0)
    return min(int(np.exp(random.uniform(low, high))), ends[1])


def _nodes(
    random: Random,
    kind: str,
    count: int,
    usual: Any,
    speed: Between,
    slots: tuple[int, ...],
    unlike: bool,
) -> dict[str, Any]:
    """Speeds and slots of nodes, with storage in proportion to their slots."""
    many = count if unlike else 1
    speeds = (usual.cycles_per_ms * random.uniform(*speed, many)).tolist()
    own = random.choice(slots, many).tolist()
    room = [usual.storage_bytes * each / usual.slots for each in own]
    if not unlike:
        speeds, own, room = speeds * count, own * count, room * count
    return {
        f"{kind}.cycles_per_ms": speeds,
        f"{kind}.slots": own,
        f"{kind}.storage_bytes": [max(each, 100_000.0) for each in room],
    }


def _surprises(random: Random, kinds: KindsConfig, fields: dict[str, Any]) -> dict[str, Any]:
    """Unknown demand, unequal and changing loads, SNs that slow down and fail (R35 to R38)."""
    found: dict[str, Any] = {}
    if random.random() < kinds.unknown:
        found["workload.demand.spread"] = _between(random, kinds.spread)
    if random.random() < kinds.undeclared:
        found["workload.demand.declared"] = False
    if random.random() < kinds.unequal:
        weights = random.uniform(*kinds.weight, fields["en.count"])
        found["workload.weights"] = weights.tolist()
    if random.random() < kinds.waves and fields["workload.arrivals"] == "poisson":
        found["workload.wave.amplitude"] = _between(random, kinds.amplitude)
        found["workload.wave.period_ms"] = _between(random, kinds.period_ms)
    if random.random() < kinds.slowing:
        found["sn.speed.factors"] = [1.0, _between(random, kinds.slow)]
        fast_ms, slow_ms = 2.0 * _between(random, kinds.slow_ms), _between(random, kinds.slow_ms)
        found["sn.speed.dwell_ms"] = [fast_ms, slow_ms]
    if random.random() < kinds.failing:
        found["sn.outage.up_ms"] = _between(random, kinds.up_ms)
        found["sn.outage.down_ms"] = _between(random, kinds.down_ms)
    return found


def _capacity(fields: dict[str, Any], kind: str) -> float:
    """Cycles per ms of all nodes of a kind."""
    return float(np.dot(fields[f"{kind}.cycles_per_ms"], fields[f"{kind}.slots"]))


def _mean_cycles(scenario: Scenario) -> float:
    return 0.5 * sum(scenario.workload.cycles)


def _background(
    random: Random, kinds: KindsConfig, fields: dict[str, Any], scenario: Scenario
) -> tuple[dict[str, Any], float]:
    """Load of other users at each SN, and its mean share of the SNs' capacity."""
    tasks = 1000.0 * _capacity(fields, "sn") / fields["sn.count"] / _mean_cycles(scenario)
    quiet, burst = _between(random, kinds.quiet), _between(random, kinds.burst)
    dwell = [_between(random, kinds.dwell_ms), _between(random, kinds.dwell_ms)]
    taken = float(np.dot([min(quiet, 1.0), min(burst, 1.0)], dwell) / sum(dwell))
    rates = [quiet * tasks, burst * tasks]
    return {"background.rates": rates, "background.dwell_ms": dwell}, taken


def _load(
    random: Random, kinds: KindsConfig, fields: dict[str, Any], scenario: Scenario, taken: float
) -> dict[str, Any]:
    left = _capacity(fields, "en") + (1.0 - taken) * _capacity(fields, "sn")
    asked = _between(random, kinds.load) * left / _mean_cycles(scenario)
    rate = float(np.clip(1000.0 * asked / fields["en.count"], *kinds.rate))
    arrivals = kinds.arrivals[random.integers(len(kinds.arrivals))]
    return {"workload.rate": rate, "workload.arrivals": arrivals}
