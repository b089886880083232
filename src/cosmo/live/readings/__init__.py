"""The load of services of others, as their own metrics and load reports tell it.

`metric_names` says which metrics mean what, `pages` fetches them, `metering` makes a reading of
them and `scraper` repeats that; `load_reports` reads what rides on answers (ORCA), and `states`
makes of a reading what a service node would know of itself.
"""
