"""Five topologies that no training has seen, drawn by fixed seeds: `python docs/held_out.py`.

They are of the kinds that the controller of the package is trained on (`training.multi_node.kinds`
of the preset `universal`), but none of the presets. The plan that compares methods on them is
written beside them.
"""

from pathlib import Path

import numpy as np

from cosmo.learn.next.config import load_next_config
from cosmo.learn.next.multi_node.kinds import some_kind
from cosmo.scenario import Scenario, changed, dump, load

FOLDER = Path(__file__).parent / "held-out"
SEEDS = (9001, 9002, 9003, 9004, 9005)
# Without what training draws since they were drawn: they stay as they are.
_NO_SURPRISES = ("unknown", "undeclared", "unequal", "waves", "slowing", "failing")
_KINDS = {
    **{"named_share": 0.0, "usual_price": 1.0, "rate": (20.0, 300.0), "dwell_ms": (60.0, 500.0)},
    **dict.fromkeys(_NO_SURPRISES, 0.0),
}
METHODS = (
    *("cosmo-next", "power-of-d", "piggyback", "aov-gap/estimate", "prequal", "self-tracking"),
    *("back-off", "all-offload", "full-information"),
)


def drawn(seed: int) -> Scenario:
    """The topology of a seed, with its load."""
    fitted = load_next_config("universal").multi_node
    assert fitted is not None
    kinds = fitted.kinds.model_copy(update=_KINDS)
    found = some_kind(load("paper"), kinds, np.random.default_rng(seed))
    rate = round(found.workload.rate, 1)
    fields = {
        "name": f"held-out-{seed}",
        "description": f"{found.en.count} ENs and {found.sn.count} SNs, drawn by seed {seed}",
        "episode.window_ms": 2500.0,
        "episode.warmup_ms": 500.0,
        "workload.rate": rate,
        "workload.rates_of_interest": [rate],
    }
    return changed(found, fields)


def plan() -> str:
    """The plan as TOML."""
    methods = ", ".join(f'"{name}"' for name in METHODS)
    lines = [
        'name = "held-out"',
        'description = "five topologies that no training has seen"',
        f"scenarios = [{', '.join(f'{chr(34)}{seed}.toml{chr(34)}' for seed in SEEDS)}]",
        "seeds = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]",
        "episodes = 1",
    ]
    for seed in SEEDS:
        lines += ["", "[[compare]]", f'scenarios = ["{seed}.toml"]', f"methods = [{methods}]"]
        lines += [f'arrivals = ["{drawn(seed).workload.arrivals}"]']
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write all of it."""
    FOLDER.mkdir(exist_ok=True)
    for seed in SEEDS:
        (FOLDER / f"{seed}.toml").write_text(dump(drawn(seed)), encoding="utf-8")
    (FOLDER / "plan.toml").write_text(plan(), encoding="utf-8")


if __name__ == "__main__":
    main()
