"""How `cosmo-next` learns: one policy for all loads, by values of what decisions leave behind."""
