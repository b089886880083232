"""Training of `cosmo-next`: one policy for all loads, by values of the states after decisions."""
