"""The trained `cosmo-next`: ENs estimate backlogs, SNs weigh the value of updates."""
