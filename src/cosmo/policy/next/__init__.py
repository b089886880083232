"""`cosmo-next` at work: an EN with books, prices and evidence; an SN that weighs its news."""
