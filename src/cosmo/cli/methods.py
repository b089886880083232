"""`cosmo methods`: list all methods."""

from rich.table import Table

from cosmo.cli.console import print_json, show
from cosmo.cli.options import JsonOption
from cosmo.control import METHODS
from cosmo.policy.registry import parameters_of
from cosmo.policy.trained import Trained


def methods(as_json: JsonOption = False) -> None:
    """List all methods with their parameters.

    cosmo methods --json
    """
    rows = [
        {
            "method": name,
            "summary": kind.summary(),
            "update_dimensions": kind.carries,
            "deployable": not kind.privileged,
            "trained": issubclass(kind, Trained),
            "parameters": {
                parameter.name: None if parameter.default is parameter.empty else parameter.default
                for parameter in parameters_of(kind).values()
            },
        }
        for name, kind in METHODS.items()
    ]
    if as_json:
        print_json(rows)
        return
    table = Table("method", "what it does", "parameters", box=None, pad_edge=False)
    for row in rows:
        parameters = row["parameters"]
        assert isinstance(parameters, dict)
        shown = ", ".join(
            name if value is None else f"{name}={value}" for name, value in parameters.items()
        )
        table.add_row(str(row["method"]), str(row["summary"]), shown)
    show(table)
