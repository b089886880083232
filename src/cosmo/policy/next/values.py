"""The value of a decision: the result of its own task, and the capacity left for later tasks.

    advantage of route r over rejection = p_r − κ·(1 − p_r) + V(after r) − V(after rejection)

p_r is the probability that the task is in time on route r: known for the EN itself, learned for an
SN. V is the value of the state after the decision (an *afterstate*): what the following tasks will
earn. V(after rejection) − V(after r) is the price of the capacity that the task takes.

V differs little between routes, by less than the error of a learned V. Of routes whose advantages
differ by less than a margin, the task takes the one that is best for itself (its *fate*: what it is
expected to earn there, minus a small cost of delay). The gate then compares that route with a
rejection.

Everything is a pure function of arrays with leading axes [run, row], in NumPy for nodes and in JAX
for training (`xp`). SNs share their weights and are summed up, so that their number is arbitrary.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosmo.policy.networks import Array, Parameters, linear, sigmoid, times, with_bias
from cosmo.policy.next import arrival_rates
from cosmo.policy.next.settings import SiteSettings

LOCAL, REMOTE, CHANCE = 4, 11, 12  # inputs of the networks
_SLOTS = 4  # of an SN, as the networks see it
_MOST = 3.0  # ratios are cut off here
NEVER = -9.0  # the advantage of a hopeless route

Arrays = Mapping[str, Array]


def value_shapes(hidden: int, joint: int) -> dict[str, tuple[int, ...]]:
    """Shapes of the layers of the network V."""
    layers = {
        "local": (LOCAL, hidden),
        "remote": (REMOTE, hidden),
        "load": (arrival_rates.SIZE, hidden),
        "joint": (3 * hidden, joint),
        "value": (joint, 1),
    }
    return with_bias(layers)


def chance_shapes(hidden: int) -> dict[str, tuple[int, ...]]:
    """Shapes of the layers of the network p."""
    return with_bias(
        {"chance1": (CHANCE, hidden), "chance2": (hidden, hidden), "chance": (hidden, 1)}
    )


def _columns(parts: Sequence[Array], xp: Any) -> Array:
    """Numbers side by side on a new last axis, the first as wide as any (on a few numbers
    `np.stack` takes twice as long).
    """
    if xp is not np:
        return xp.stack(parts, -1)
    found = np.empty((*parts[0].shape, len(parts)))
    for place, part in enumerate(parts):
        found[..., place] = part
    return found


def _least(x: Array, xp: Any) -> Array:
    """The least along the last axis (methods of NumPy's arrays take twice as long to begin)."""
    return np.minimum.reduce(x, -1) if xp is np else x.min(-1)


def _most(x: Array, xp: Any) -> Array:
    """The largest along the last axis."""
    return np.maximum.reduce(x, -1) if xp is np else x.max(-1)


def _sum(x: Array, xp: Any) -> Array:
    """The sum along the last axis."""
    return np.add.reduce(x, -1) if xp is np else x.sum(-1)


def local_inputs(free: Array, taken: Array, m: SiteSettings, xp: Any) -> Array:
    """[…, LOCAL] of an EN: when its first and last slot will be free, its room, its work."""
    near = xp.minimum(free, m.far_ms) / m.slots_ms
    slots = free.shape[-1]
    ends = _least(near, xp), _most(near, xp)
    return _columns([*ends, taken, _sum(near, xp) / slots], xp)


def remote_inputs(
    free: Array,
    count: Array,
    backlog: Array,
    evidence: Array,
    places: Array,
    m: SiteSettings,
    xp: Any,
) -> Array:
    """[…, SN, REMOTE] of SNs: when their slots will be free, places, the link, evidence."""
    ordered = xp.sort(xp.minimum(free, m.far_ms) / m.slots_ms, -1)
    slots = ordered.shape[-1]
    spread = ordered if slots == _SLOTS else ordered[..., _spread_over(slots)]
    own = _columns([_sum(ordered, xp) / slots, count / places, backlog / m.backlog_ms], xp)
    return xp.concatenate([spread, own, evidence], -1)


@cache
def _spread_over(slots: int) -> NDArray[np.int64]:
    """Which of so many slots the networks see."""
    return np.array([round(k * (slots - 1) / (_SLOTS - 1)) for k in range(_SLOTS)])


@cache
def _single(numbers: tuple[float, ...]) -> NDArray[np.float32]:
    """Numbers in single precision, made once."""
    return np.array(numbers, np.float32)


def chance_inputs(
    before: Arrays,
    task: Arrays,
    path: tuple[Array, Array],
    evidence: Array,
    places: Array,
    m: SiteSettings,
    xp: Any,
) -> Array:
    """[…, SN, CHANCE]: the slack that is left as estimated, the room, and the evidence as
    `evidence_inputs` shows it; `path` is what `path_times` says.
    """
    upload, wait = path
    margin = task["slack"][..., None] - upload - wait - task["service"] - task["back"]
    slack = _clip(margin[..., None] / _single(m.slack_ms), _MOST, xp)
    room = places - before["count"] - 0.5
    near = xp.minimum(before["remote"], m.far_ms)
    parts = [
        _clip(room * 2.0, 1.0, xp),
        room / places,
        xp.minimum(wait, m.far_ms) / m.wait_ms,
        _sum(near, xp) / (near.shape[-1] * m.slots_ms),
        _clip((room - before["evidence"][..., 2]) / 2.0, 2.0, xp),
    ]
    return xp.concatenate([slack, _columns(parts, xp), evidence], -1)


def evidence_inputs(evidence: Array, places: Array, m: SiteSettings, xp: Any) -> Array:
    """[…, SN, 4]: its age, the surprise in it, how many places others take, and how old that is."""
    age, surprise, others, others_age = (evidence[..., k] for k in range(4))
    parts = [
        xp.minimum(age, m.oldest_ms) / m.evidence_ms,
        _clip(surprise * 4.0, _MOST, xp),
        others / places * xp.exp(-others_age / m.evidence_ms),
        xp.minimum(others_age, m.oldest_ms) / m.evidence_ms,
    ]
    return _columns(parts, xp)


def _clip(x: Array, most: float, xp: Any) -> Array:
    """Cut off on both sides (`np.clip` takes several times as long on a few numbers)."""
    return xp.minimum(xp.maximum(x, -most), most)


def append(free: Array, arrival: Array, service: Array, xp: Any) -> Array:
    """When slots are free once a task that arrives then has been put on the earliest one."""
    ordered = xp.sort(free, -1)
    first = xp.maximum(ordered[..., :1], arrival[..., None]) + service[..., None]
    return xp.concatenate([first, ordered[..., 1:]], -1)


def states_after(
    before: Arrays, task: Arrays, evidence: Array, places: Array, m: SiteSettings, xp: Any
) -> tuple[Array, Array]:
    """Inputs of V: local […, 2, LOCAL] and remote […, 2, SN, REMOTE], first as things are, then
    with the task at the EN, and at each SN.
    """
    now = xp.zeros_like(task["local_service"])
    local = append(before["local"], now, task["local_service"], xp)
    upload = before["backlog"] + task["transfer"]
    remote = append(before["remote"], upload, task["service"], xp)
    taken = before["local_taken"]
    count, backlog = before["count"], before["backlog"]
    return (
        local_inputs(
            _two(before["local"], local, 1, xp),
            _two(taken, taken + before["local_share"], 0, xp),
            m,
            xp,
        ),
        remote_inputs(
            _two(before["remote"], remote, 2, xp),
            _two(count, count + 1.0, 1, xp),
            _two(backlog, backlog + task["sending"], 1, xp),
            _two(evidence, evidence, 2, xp),
            places[..., None, :],
            m,
            xp,
        ),
    )


def _two(first: Array, second: Array, behind: int, xp: Any) -> Array:
    """Both on a new axis, with so many axes behind it."""
    new = (..., None, *(slice(None),) * behind)
    return xp.concatenate([first[new], second[new]], -1 - behind)


def path_times(before: Arrays, task: Arrays, xp: Any = np) -> tuple[Array, Array]:
    """To each SN, by the backlog estimate: upload, and the wait for a slot."""
    upload = before["backlog"] + task["transfer"]
    return upload, xp.maximum(_least(before["remote"], xp) - upload, 0.0)


def delays(before: Arrays, task: Arrays, path: tuple[Array, Array], xp: Any = np) -> Array:
    """Of every route from now on, by the backlog estimate; `path` is what `path_times` says."""
    local = _least(before["local"], xp) + task["local_service"]
    upload, wait = path
    remote = upload + wait + task["service"] + task["back"]
    return xp.concatenate([local[..., None], remote], -1)


def _dense(p: Parameters, name: str, x: Array, xp: Any) -> Array:
    """A layer on [run, …, inputs], in single precision."""
    flat = linear(p, name, x.reshape(x.shape[0], -1, x.shape[-1]).astype(np.float32))
    return xp.maximum(flat, 0.0).reshape(*x.shape[:-1], -1)


def _choices(local: Array, as_is: Array, taken: Array, asked: Array, xp: Any) -> Array:
    """[…, choice, inputs of the joint layer]: rejected, local, SN 1, …"""
    here, there = local[..., :1, :], local[..., 1:, :]  # without the task, and with it
    sns, size = taken.shape[-2], here.shape[-1]
    if xp is not np:
        locals_ = xp.concatenate([here, there, xp.repeat(here, sns, -2)], -2)
        remotes = xp.concatenate([as_is, as_is, taken], -2)
        return xp.concatenate([locals_, remotes, xp.repeat(asked, 2 + sns, -2)], -1)
    # The same, put together in place: on a few numbers that takes half the time.
    found = np.empty((*taken.shape[:-2], 2 + sns, 3 * size), np.float32)
    found[..., :size] = here
    found[..., 1:2, :size] = there
    found[..., :2, size : 2 * size] = as_is
    found[..., 2:, size : 2 * size] = taken
    found[..., 2 * size :] = asked
    return found


def _joint(p: Parameters, inputs: Array, xp: Any) -> Array:
    h = _dense(p, "joint", inputs, xp)
    runs, between = h.shape[0], h.ndim - 3
    values = times(h, p["value.w"].reshape(runs, *(1,) * between, -1, 1))[..., 0]
    return values + p["value.b"].reshape(runs, *(1,) * (between + 1))


def value(p: Parameters, local: Array, remote: Array, asked: Array, xp: Any = np) -> Array:
    """V of afterstates: local [run, row, LOCAL], remote [run, row, SN, REMOTE], and how much the EN
    is asked to do, [run, row, arrival_rates.SIZE].
    """
    parts = (
        _dense(p, "local", local, xp),
        _dense(p, "remote", remote, xp).sum(-2),
        _dense(p, "load", asked, xp),
    )
    return _joint(p, xp.concatenate(parts, -1), xp)


def chance_logits(p: Parameters, x: Array, xp: Any = np) -> Array:
    """Of p for each SN: [run, row, SN] from [run, row, SN, CHANCE]."""
    h = _dense(p, "chance2", _dense(p, "chance1", x, xp), xp)
    flat = linear(p, "chance", h.reshape(h.shape[0], -1, h.shape[-1]))
    return flat.reshape(h.shape[:-1])


def weighed(
    p: Parameters, before: Arrays, task: Arrays, places: Array, m: SiteSettings, xp: Any = np
) -> tuple[Array, Array, Array]:
    """Advantages of [local, SN 1, …] over rejection, the task's own fate there, and V after a
    rejection; leading axes [run, row], of `places` [SN] or [run, row, SN].
    """
    evidence = evidence_inputs(before["evidence"], places, m, xp)
    local_in, remote_in = states_after(before, task, evidence, places, m, xp)
    local, remote = _dense(p, "local", local_in, xp), _dense(p, "remote", remote_in, xp)
    if "there" in before:  # columns without an SN (R30) are worth nothing
        remote = remote * before["there"][..., None, :, None]
    as_is = remote[..., 0, :, :].sum(-2)[..., None, :]
    taken = as_is + remote[..., 1, :, :] - remote[..., 0, :, :]
    seen = _dense(p, "load", before["load"], xp)[..., None, :]
    values = _joint(p, _choices(local, as_is, taken, seen, xp), xp)
    rejected = values[..., 0]
    path = path_times(before, task, xp)
    logits = chance_logits(p, chance_inputs(before, task, path, evidence, places, m, xp), xp)
    delay = delays(before, task, path, xp)
    # The EN knows whether the task would be in time at itself.
    in_time = (delay[..., 0] <= task["slack"]) & (before["local_room"] > 0)
    own = xp.where(in_time, 1.0, 0.0)[..., None]
    chance = xp.concatenate([own, sigmoid(logits, xp)], -1)
    earned = chance - m.failure * (1.0 - chance)
    gained = xp.where(
        chance > m.least_chance, earned + values[..., 1:] - rejected[..., None], NEVER
    )
    return gained, earned - m.delay_cost_per_ms * delay, rejected


def best_route(advantage: Array, fate: Array, margin: float, xp: Any = np) -> tuple[Array, Array]:
    """The route, and its advantage over rejection: [row] of [row, route]."""
    near = advantage >= advantage.max(-1, keepdims=True) - margin
    route = xp.where(near, fate, -xp.inf).argmax(-1)
    chosen = route[..., None] == np.arange(advantage.shape[-1])
    return route, xp.where(chosen, advantage, 0.0).sum(-1)
