"""`python -m cosmo` is `cosmo`."""

from cosmo.cli.main import main

main()
