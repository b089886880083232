"""`cosmo-next` at work: ENs that estimate backlogs, SNs that weigh what an update is worth."""
