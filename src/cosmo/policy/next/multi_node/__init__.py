"""The multi-node controller of `cosmo-next`, for sites with several ENs or SNs: its parameters."""
