"""How the agents learn: the encoder, the two agents, replay, the trainer."""
