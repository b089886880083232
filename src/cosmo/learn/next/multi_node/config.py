"""The configuration of the training of the multi-node controller, validated."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from cosmo.learn.config import Count, NotNegative, Part, Positive, Share
from cosmo.policy.rules.multi_node_parameters import Parameters
from cosmo.scenario.fields import MOST_MS
from cosmo.scenario.model import Arrivals

Between = tuple[NotNegative, NotNegative]
Window = Annotated[Positive, Field(le=MOST_MS)]
Nodes = Annotated[int, Field(strict=True, ge=1, le=1000)]


class KindsConfig(Part):
    """The kinds of training worlds; of every pair of numbers, a value in between is drawn."""

    named: tuple[str, ...]  # presets of scenarios at loads of their interest, …
    named_share: Share  # … and of how many worlds; all others are drawn:
    ens: tuple[Nodes, Nodes]
    sns: tuple[Nodes, Nodes]
    load: Between  # demand of the ENs, as a share of the capacity that other users leave
    rate: Between  # bounds of the tasks per second of an EN, whatever the load
    en_speed: Between  # in speeds of the scenario's
    sn_speed: Between
    en_slots: Annotated[tuple[Count, ...], Field(min_length=1)]
    sn_slots: Annotated[tuple[Count, ...], Field(min_length=1)]
    unlike: Share  # of worlds whose nodes differ from one another
    near: Share  # of worlds where ENs reach only some SNs, …
    reach: tuple[Nodes, Nodes]  # … so many of them
    up_mbps: Between
    hops: tuple[Nodes, Nodes]
    hop_delay_ms: Between
    background: Share  # of worlds where other users load the SNs in bursts, …
    quiet: Between  # … shares of an SN's capacity between the bursts, …
    burst: Between  # … and in them, …
    dwell_ms: Between  # … and how long either lasts
    unknown: Share  # of worlds where demands are known up to a factor (R35), …
    spread: Between  # … by so much
    undeclared: Share  # of worlds where only their mean is known
    unequal: Share  # of worlds where ENs have unequal loads (R36), …
    weight: Between  # … such weights
    waves: Share  # of worlds where loads rise and fall, …
    amplitude: Between  # … by such a share, …
    period_ms: Between  # … in such a time
    slowing: Share  # of worlds where SNs are slow at times (R37), …
    slow: Between  # … at such a share of their speed, …
    slow_ms: Between  # … for so long
    failing: Share  # of worlds where SNs fail (R38), …
    up_ms: Between  # … after so long, …
    down_ms: Between  # … for so long
    lossy: Share  # of worlds where statuses are lost, …
    loss: Between  # … such a share of them
    arrivals: Annotated[tuple[Arrivals, ...], Field(min_length=1)]
    usual_price: Share  # of worlds with the scenario's price of an update; else …
    price: Between  # … so many times that


class MultiNodeConfig(Part):
    """All settings of the training of the multi-node controller."""

    objective: Literal["success", "utility"]  # success minus the update cost, or R32
    update_cost_weight: NotNegative  # weight of the update cost in `success`
    generations: Count  # a round of training
    worlds: Count  # of a generation; all candidates play the same worlds
    tasks: Count  # approximate number in a world: small sites are played for longer, within …
    window_ms: tuple[Window, Window]  # … these bounds; the warm-up is not measured
    warmup_ms: NotNegative
    pairs: Count  # of candidates, mirrored about the centre
    deviation: Positive  # of candidates from the centre, in logarithms of the parameters
    learning_rate: Positive  # how far the centre moves, likewise
    last: Share  # of the learning rate, at the end
    averaged: Share  # of the generations at the end, whose mean is delivered
    # Where training begins: of each parameter the value in the middle and both slopes; by default
    # `START` at every site.
    start: dict[str, tuple[Positive, float, float]] = Field(default_factory=dict)
    kinds: KindsConfig

    @model_validator(mode="after")
    def _known_start(self) -> "MultiNodeConfig":
        wrong = set(self.start) ^ set(Parameters._fields)
        if self.start and wrong:
            named = ", ".join(sorted(wrong))
            raise ValueError(f"start: must have each parameter, and no other; wrong: {named}")
        return self
