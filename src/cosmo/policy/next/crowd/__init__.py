"""`cosmo-next` where several ENs or SNs meet: few numbers, fitted over many kinds of worlds."""
