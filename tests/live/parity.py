"""Live nodes under the virtual clock, held against the simulator task by task."""

import numpy as np

from cosmo.control import play
from cosmo.learn.config import load_config
from cosmo.learn.next.config import load_next_config
from cosmo.live.items import Fate
from cosmo.live.virtual import VirtualWorld
from cosmo.policy.described import Fields
from cosmo.policy.learned import paper_agents
from cosmo.policy.networks import encoder_shapes, shapes, sn_shapes
from cosmo.policy.next.agents import next_agents
from cosmo.policy.next.sn import NEWS
from cosmo.policy.next.values import chance_shapes, value_shapes
from cosmo.world.records import FN, FP, TN, TP

FATES = {
    TP: (Fate.DONE,),
    FP: (Fate.LATE, Fate.REFUSED),
    TN: (Fate.REJECTED,),
    FN: (Fate.REJECTED,),
}


def differences(scenario, make_method, episode, seed=0, number=0):
    """Tasks that live nodes treated otherwise than the simulator, and (updates, decisions) of each.

    Times are compared bit by bit. Of a task that an SN refused, the simulator knows at once; the
    EN hears later, so that its time is not compared.
    """
    [simulated] = play(scenario, make_method(), [episode], seed, [number])
    live = VirtualWorld(scenario, make_method, episode, seed, number).play()
    decided = simulated.action >= 0
    same = live.action == simulated.action
    same &= np.array_equal(live.decided_ms, simulated.decided_ms, equal_nan=True)
    away = simulated.refused & (simulated.action > 0)
    same &= (live.finished_ms == simulated.finished_ms) | away | ~decided
    for task in np.flatnonzero(decided):
        same[task] &= live.fate[task] in FATES[int(simulated.outcome[task])]
    counts = (live.updates, live.update_decisions)
    return np.flatnonzero(~same), counts, (simulated.updates, simulated.update_decisions)


def _random_layers(found, random, scale):
    return {name: scale * random.standard_normal((1, *shape)) for name, shape in found.items()}


def untrained(name, sns=1):
    """A method that learns, with networks that were drawn: it acts, if not well."""
    random = np.random.default_rng(7)
    if name == "cosmo":
        config = load_config("paper")
        en, sn, encoder = config.en, config.sn, config.encoder
        inputs = 10, sns * (encoder.dimensions + 3)
        layers = {
            "en": shapes(*inputs, 1 + sns, en.hierarchical, en.branch, en.fusion),
            "sn": sn_shapes(config.sn_inputs, sn.projection, sn.hidden, sn.actions),
            "encoder": encoder_shapes(encoder.hidden, encoder.dimensions),
        }
        drawn = {
            part: {
                key: value.astype(np.float32)
                for key, value in _random_layers(found, random, 0.3).items()
            }
            for part, found in layers.items()
        }
        return paper_agents(drawn, Fields(config.model_dump())).at_work()
    config = load_next_config()
    en = config.en
    layers = value_shapes(en.hidden, en.joint) | chance_shapes(en.chance_hidden)
    worth = {"worth": 0.05 * random.standard_normal((1, NEWS)), "doubt": np.zeros((1, NEWS, NEWS))}
    drawn = {"en": _random_layers(layers, random, 0.3), "sn": worth}
    return next_agents(drawn, Fields(config.model_dump())).at_work()
