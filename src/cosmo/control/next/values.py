"""What a decision is worth: its own fate, and the room that it leaves for the tasks to come.

    advantage of route r over rejection = p_r − κ·(1 − p_r) + V(after r) − V(after rejection)

p_r is the probability that the task is in time on route r: known for the EN itself, learned for an
SN. V is the value of what the decision leaves behind (an *afterstate*): what the following tasks
will earn. V(after rejection) − V(after r) is the price of the capacity that the task takes.

Between routes V differs by little, and a learned V is not that exact: of routes whose advantages
cannot be told apart the task takes the one that is best for itself (its *fate*: what it is expected
to earn there, and a little for haste). The gate then compares that route with a rejection.

Everything is a pure function of arrays with leading axes [run, row], in NumPy for nodes and in JAX
for training (`xp`). SNs share their weights and are summed up, so that any number of them will do.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cosmo.control.networks import Array, Parameters, linear, sigmoid
from cosmo.control.next import load
from cosmo.control.next.rules import NextRules

LOCAL, REMOTE, CHANCE = 4, 11, 12  # inputs of the networks
_SLOTS = 4  # of an SN, as the networks see it
_FAR_MS = 250.0  # slots that are busy for longer, or do not exist
_LEAST_CHANCE = 0.2  # routes that are hopeless are never taken
_HASTE = 1e-3  # a ms, in tasks: of two routes that are equally sure, the faster
NEVER = -9.0

Arrays = Mapping[str, Array]


def value_shapes(hidden: int, joint: int) -> dict[str, tuple[int, ...]]:
    """Of the network V."""
    layers = {
        "local": (LOCAL, hidden),
        "remote": (REMOTE, hidden),
        "load": (load.SIZE, hidden),
        "joint": (3 * hidden, joint),
        "value": (joint, 1),
    }
    return _with_bias(layers)


def chance_shapes(hidden: int) -> dict[str, tuple[int, ...]]:
    """Of the network p."""
    return _with_bias(
        {"chance1": (CHANCE, hidden), "chance2": (hidden, hidden), "chance": (hidden, 1)}
    )


def local_inputs(free: Array, taken: Array, xp: Any) -> Array:
    """[…, LOCAL] of an EN: when its slots will be free, its room."""
    first, last = free.min(-1), xp.minimum(free.max(-1), _FAR_MS)
    total = xp.minimum(free, _FAR_MS).sum(-1)
    return xp.stack([first / 50.0, last / 50.0, taken, total / 100.0], -1)


def remote_inputs(
    free: Array, count: Array, backlog: Array, evidence: Array, places: Array, xp: Any
) -> Array:
    """[…, SN, REMOTE] of SNs: when their slots will be free, places, the link, evidence."""
    ordered = xp.sort(xp.minimum(free, _FAR_MS), -1)
    slots = ordered.shape[-1]
    pick = [round(k * (slots - 1) / (_SLOTS - 1)) for k in range(_SLOTS)]
    spread = xp.stack([ordered[..., k] for k in pick], -1) / 50.0
    own = xp.stack([ordered.sum(-1) / (50.0 * slots), count / places, backlog / 10.0], -1)
    return xp.concatenate([spread, own, _evidence(evidence, places, xp)], -1)


def chance_inputs(before: Arrays, task: Arrays, places: Array, xp: Any) -> Array:
    """[…, SN, CHANCE]: the slack that is left by the books, the room, and the evidence."""
    upload, wait = _way_there(before, task, xp)
    margin = task["slack"][..., None] - upload - wait - task["service"] - task["back"]
    room = places - before["count"] - 0.5
    parts = xp.stack(
        [
            xp.clip(margin / 2.0, -3.0, 3.0),
            xp.clip(margin / 10.0, -3.0, 3.0),
            xp.clip(margin / 50.0, -3.0, 3.0),
            xp.clip(room * 2.0, -1.0, 1.0),
            room / places,
            xp.minimum(wait, _FAR_MS) / 30.0,
            xp.minimum(before["remote"], _FAR_MS).sum(-1) / 200.0,
            xp.clip((room - before["evidence"][..., 2]) / 2.0, -2.0, 2.0),
        ],
        -1,
    )
    return xp.concatenate([parts, _evidence(before["evidence"], places, xp)], -1)


def _evidence(evidence: Array, places: Array, xp: Any) -> Array:
    age, surprise, others, others_age = (evidence[..., k] for k in range(4))
    return xp.stack(
        [
            xp.minimum(age, 400.0) / 100.0,
            xp.clip(surprise * 4.0, -3.0, 3.0),
            others / places * xp.exp(-others_age / 100.0),
            xp.minimum(others_age, 400.0) / 200.0,
        ],
        -1,
    )


def append(free: Array, arrival: Array, service: Array, xp: Any) -> Array:
    """When slots are free once a task that arrives then has been put on the earliest one."""
    ordered = xp.sort(free, -1)
    first = xp.maximum(ordered[..., :1], arrival[..., None]) + service[..., None]
    return xp.concatenate([first, ordered[..., 1:]], -1)


def inputs_before(before: Arrays, places: Array, xp: Any) -> tuple[Array, Array]:
    """Of V if the task is rejected: local and remote."""
    return (
        local_inputs(before["local"], before["local_taken"], xp),
        remote_inputs(
            before["remote"], before["count"], before["backlog"], before["evidence"], places, xp
        ),
    )


def inputs_after(before: Arrays, task: Arrays, places: Array, xp: Any) -> tuple[Array, Array]:
    """The EN's if it takes the task, and every SN's if it gets the task."""
    now = xp.zeros_like(task["local_service"])
    local = append(before["local"], now, task["local_service"], xp)
    upload = before["backlog"] + task["transfer"]
    remote = append(before["remote"], upload, task["service"], xp)
    backlog = before["backlog"] + task["sending"]
    return (
        local_inputs(local, before["local_taken"] + before["local_share"], xp),
        remote_inputs(remote, before["count"] + 1.0, backlog, before["evidence"], places, xp),
    )


def _way_there(before: Arrays, task: Arrays, xp: Any) -> tuple[Array, Array]:
    """To each SN, by the books: upload, and the wait for a slot."""
    upload = before["backlog"] + task["transfer"]
    return upload, xp.maximum(before["remote"].min(-1) - upload, 0.0)


def delays(before: Arrays, task: Arrays, xp: Any = np) -> Array:
    """Of every route from now on, by the books."""
    local = before["local"].min(-1) + task["local_service"]
    upload, wait = _way_there(before, task, xp)
    remote = upload + wait + task["service"] + task["back"]
    return xp.concatenate([local[..., None], remote], -1)


def local_chance(before: Arrays, task: Arrays) -> Array:
    """Whether the EN itself will be in time: it knows."""
    delay = before["local"].min(-1) + task["local_service"]
    return (delay <= task["slack"]) & (before["local_room"] > 0)


def _dense(p: Parameters, name: str, x: Array, xp: Any) -> Array:
    """A layer on [run, …, inputs]."""
    flat = linear(p, name, x.reshape(x.shape[0], -1, x.shape[-1]))
    return xp.maximum(flat, 0.0).reshape(*x.shape[:-1], -1)


def _joint(p: Parameters, local: Array, remote: Array, load: Array, xp: Any) -> Array:
    h = _dense(p, "joint", xp.concatenate([local, remote, load], -1), xp)
    return (h @ p["value.w"].reshape(h.shape[0], *(1,) * (h.ndim - 3), -1, 1))[..., 0] + p[
        "value.b"
    ].reshape(h.shape[0], *(1,) * (h.ndim - 2))


def value(p: Parameters, local: Array, remote: Array, load: Array, xp: Any = np) -> Array:
    """V of afterstates: local [run, row, LOCAL], remote [run, row, SN, REMOTE], load."""
    return _joint(
        p,
        _dense(p, "local", local, xp),
        _dense(p, "remote", remote, xp).sum(-2),
        _dense(p, "load", load, xp),
        xp,
    )


def chance_logits(p: Parameters, x: Array, xp: Any = np) -> Array:
    """Of p for each SN: [run, row, SN] from [run, row, SN, CHANCE]."""
    h = _dense(p, "chance2", _dense(p, "chance1", x, xp), xp)
    flat = linear(p, "chance", h.reshape(h.shape[0], -1, h.shape[-1]))
    return flat.reshape(h.shape[:-1])


def weighed(
    p: Parameters, before: Arrays, task: Arrays, places: Array, rules: NextRules, xp: Any = np
) -> tuple[Array, Array, Array]:
    """Advantages of [local, SN 1, …] over rejection, the task's own fate there, and V after a
    rejection; leading axes [run, row].
    """
    local0, remote0 = inputs_before(before, places, xp)
    local1, remote1 = inputs_after(before, task, places, xp)
    local0, local1 = _dense(p, "local", local0, xp), _dense(p, "local", local1, xp)
    remote0, remote1 = _dense(p, "remote", remote0, xp), _dense(p, "remote", remote1, xp)
    seen = _dense(p, "load", before["load"], xp)
    rest = remote0.sum(-2)
    rejected = _joint(p, local0, rest, seen, xp)
    values = [_joint(p, local1, rest, seen, xp)]
    for sn in range(remote0.shape[-2]):
        taken = rest + remote1[..., sn, :] - remote0[..., sn, :]
        values.append(_joint(p, local0, taken, seen, xp))
    logits = chance_logits(p, chance_inputs(before, task, places, xp), xp)
    own = xp.where(local_chance(before, task), 1.0, 0.0)[..., None]
    chance = xp.concatenate([own, sigmoid(logits, xp)], -1)
    earned = chance - rules.failure * (1.0 - chance)
    gained = xp.where(
        chance > _LEAST_CHANCE, earned + xp.stack(values, -1) - rejected[..., None], NEVER
    )
    return gained, earned - _HASTE * delays(before, task, xp), rejected


def best_route(advantage: Array, fate: Array, margin: float, xp: Any = np) -> tuple[Array, Array]:
    """The route, and its advantage over rejection: [row] of [row, route]."""
    near = advantage >= advantage.max(-1, keepdims=True) - margin
    route = xp.where(near, fate, -xp.inf).argmax(-1)
    return route, xp.take_along_axis(advantage, route[..., None], -1)[..., 0]


def _with_bias(layers: dict[str, tuple[int, int]]) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    for name, (inputs, outputs) in layers.items():
        found[f"{name}.w"], found[f"{name}.b"] = (inputs, outputs), (outputs,)
    return found
