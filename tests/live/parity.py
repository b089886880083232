"""Methods that learn, with networks that nobody has trained."""

import numpy as np

from cosmo.learn.config import load_config
from cosmo.learn.next.config import load_next_config
from cosmo.policy.controller_fields import Fields
from cosmo.policy.learned import paper_agents
from cosmo.policy.networks import encoder_shapes, shapes, sn_shapes
from cosmo.policy.next.agents import next_agents
from cosmo.policy.next.sn import CHANGE_SIZE
from cosmo.policy.next.values import chance_shapes, value_shapes


def _random_layers(found, random, scale):
    return {name: scale * random.standard_normal((1, *shape)) for name, shape in found.items()}


def untrained(name):
    """A method that learns, with networks that were drawn: it acts, if not well."""
    random = np.random.default_rng(7)
    if name == "cosmo":
        config = load_config("paper")
        en, sn, encoder = config.en, config.sn, config.encoder
        inputs = 10, encoder.dimensions + 3
        layers = {
            "en": shapes(*inputs, en.hierarchical, en.branch, en.fusion),
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
    worth = {
        "worth": 0.05 * random.standard_normal((1, CHANGE_SIZE)),
        "doubt": np.zeros((1, CHANGE_SIZE, CHANGE_SIZE)),
    }
    drawn = {"en": _random_layers(layers, random, 0.3), "sn": worth}
    return next_agents(drawn, Fields(config.model_dump())).at_work()
