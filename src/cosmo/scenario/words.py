"""What nodes know and what surprises them in a scenario, in words: for reports and listings."""

from cosmo.scenario.model import Scenario
from cosmo.scenario.topology import Nodes


def knowledge(scenario: Scenario) -> list[str]:
    """A sentence each on demand, loads, speeds, outages and tenants; never empty.

    Where nothing surprises nodes, that is what the sentences say.
    """
    return [
        _demand(scenario),
        _loads(scenario),
        *_faults(scenario),
        *_tenants(scenario),
    ]


def _demand(scenario: Scenario) -> str:
    demand = scenario.workload.demand
    if demand.spread > 0.0:
        true = f"true demands differ by a lognormal factor (sigma {demand.spread:g})"
    else:
        true = "demands are exact" if demand.declared else "demands vary as the workload says"
    if scenario.workload.trace:
        true += " unless the trace has true_cycles"
    if not demand.declared:
        return f"Nodes know only the mean demand of a task; {true}."
    if demand.spread > 0.0:
        return f"Nodes know the declared demand of a task; {true}."
    return f"Nodes know the demand of each task; {true}."


def _loads(scenario: Scenario) -> str:
    load = scenario.workload
    # Without its number: a study plays the scenario at rates of its own, and tells nodes these.
    told = "Nodes know the planned mean rate of tasks of an EN"
    uneven = load.weights and len(set(load.weights)) > 1
    if load.trace:
        return f"{told}; loads are those of the trace."
    parts = []
    if uneven:
        mean = sum(load.weights) / len(load.weights)
        low, high = min(load.weights) / mean, max(load.weights) / mean
        parts.append(f"ENs have {low:.3g} to {high:.3g} times as many")
    if load.wave is not None and load.wave.amplitude > 0.0:
        percent = 100.0 * load.wave.amplitude
        period_s = load.wave.period_ms / 1000.0
        parts.append(f"rates swing by {percent:.3g} % in waves of {period_s:g} s")
    return f"{told}; {', and '.join(parts) if parts else 'all ENs are loaded equally'}."


def _faults(scenario: Scenario) -> list[str]:
    if scenario.workload.events:
        return ["Changes of speed, outages and tenants' tasks are those of the file of events."]
    found = [
        *_speed(scenario.en, "ENs"),
        *_speed(scenario.sn, "SNs"),
    ]
    outage = scenario.sn.outage
    if outage is not None:
        found.append(
            f"Each SN fails after {outage.up_ms / 1000.0:g} s on average, loses what it has, and is"
            f" back after {outage.down_ms / 1000.0:g} s on average."
        )
    return found or ["Nodes keep their speed and never fail."]


def _speed(nodes: Nodes, name: str) -> list[str]:
    if nodes.speed is None:
        return []
    (fast, slow), (first, second) = nodes.speed.factors, nodes.speed.dwell_ms
    return [
        f"{name} change by themselves between {fast:g} and {slow:g} times their speed, for"
        f" {first / 1000.0:g} s and {second / 1000.0:g} s on average."
    ]


def _tenants(scenario: Scenario) -> list[str]:
    if scenario.workload.events:
        return []
    load, sns = scenario.background, scenario.sn.count
    rates = [rate for both in load.each("rates", sns) for rate in both]
    if not any(rates):
        return ["No other users load the SNs."]
    dwell = [time for both in load.each("dwell_ms", sns) for time in both]
    phases = f"{min(dwell) / 1000.0:g} s"
    if max(dwell) > min(dwell):
        phases = f"{min(dwell) / 1000.0:g} to {max(dwell) / 1000.0:g} s"
    return [
        f"Tenants that no EN sees send {min(rates):g} to {max(rates):g} tasks/s to an SN, in phases"
        f" of {phases} on average."
    ]
