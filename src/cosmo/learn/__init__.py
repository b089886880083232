"""How the agents learn: the encoder, the two agents, replay, the trainer."""

from cosmo.learn.device import one_thread

one_thread()  # before anything here imports JAX
