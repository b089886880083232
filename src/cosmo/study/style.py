"""How methods look, the same in every figure and on the page."""

# The paper's methods first, in its order.
_COLOURS = {
    "cosmo": "#d1495b",
    "cosmo-flat": "#e98a97",
    "all-local": "#9aa0a6",
    "all-offload": "#5f6368",
    "local-until-full": "#b08968",
    "aoi-threshold": "#1f77b4",
    "aov-gap": "#2a9d8f",
    "aoci-online": "#8e6bbf",
    "aoi-threshold/estimate": "#7fb5dd",
    "aov-gap/estimate": "#7fcfc4",
    "aoci-online/estimate": "#c6b0e3",
    "cosmo-next": "#b5179e",
    "prequal": "#e3a008",
    "admission-control": "#f4722b",
    "self-tracking": "#4f9d3a",
    "priced-books": "#00796b",
    "full-information": "#202124",
    "back-off": "#8fbf4d",
    "adaptive-prices": "#004d40",
}
_OTHERS = ("#17becf", "#bcbd22", "#7f7f7f", "#c49c94", "#9edae5", "#aec7e8", "#98df8a", "#c5b0d5")
_MARKS = ("o", "s", "^", "v", "D", "P", "X", "<", ">", "p", "h", "*")

METRIC_TITLES = {
    "success_rate": "success rate",
    "decision_accuracy": "decision accuracy",
    "update_cost_rate": "update cost (units/s)",
    "net_utility_per_task": "net utility per task",
    "decision_regret": "decision regret",
}


def colour(method: str) -> str:
    """The method's own, or one that its name decides."""
    known = _COLOURS.get(method)
    return known or _OTHERS[sum(map(ord, method)) % len(_OTHERS)]


def mark(method: str) -> str:
    """For matplotlib."""
    names = list(_COLOURS)
    place = names.index(method) if method in names else sum(map(ord, method))
    return _MARKS[place % len(_MARKS)]
