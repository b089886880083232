"""The numbers that a crowd acts by: what each of them means, where it starts, how far it may go.

They are the same at every node of a site, and bend with its shape (`fit`); what else differs from
site to site is worked out from what nodes are told (`ground`).
"""

from typing import NamedTuple


class Numbers(NamedTuple):
    """All of them. Times are in ms, chances and worths in successful tasks."""

    # Whom an EN keeps to.
    keep: float  # so many SNs where many ENs share them, …
    keep_more: float  # … and so many more for each SN that there is for an EN
    # What it expects of an SN.
    drain: float  # ms of work that an SN does in a ms, by the books
    rivals: float  # share of its own sends that it takes each rival to send
    settle_ms: float  # after about so long, more time makes no more difference
    flow_ms: float  # over which its own sends are smoothed
    ease: float  # share of a mean service that is on the slots and not in the way
    hold_ms: float  # for how long an SN that was full is likely to be so
    # How sure it is.
    doubt_ms: float  # of an expected wait, just told, …
    doubt_age: float  # … more with each ms since then, …
    doubt_rivals: float  # … and with each ms of work that rivals may have sent
    blame: float  # how much a late result counts against an SN, …
    blame_ms: float  # … for how long
    # What it is worth.
    failure: float  # what a failed task costs
    haste: float  # what the longest deadline's delay costs
    noise: float  # differences below this are left to chance, so that ENs do not herd
    home: float  # by how much the EN itself is preferred
    price: float  # of a mean task's capacity at an SN, for each unit of load beyond …
    price_home: float  # … or at the EN itself
    price_from: float  # … this share of the capacity
    load_ms: float  # over which arrivals are smoothed
    # What an SN tells.
    worth: float  # of being told, for a task that it concerns
    press: float  # by how much more where the SN is full all the time, …
    press_ms: float  # … as over this time
    worse: float  # by how much more bad news is worth than good
    firm: float  # by how much more it is worth if there is room again, or no more
    insist: float  # by how much it grows while the EN is not told
    confirm: float  # of being told what one expects, after long
    center_ms: float  # work from which on an SN is hardly of use, …
    width_ms: float  # … and how gradually
    usage_ms: float  # for how long a status makes a difference
    stagger: float  # by how much ENs differ in what they are told
    patience_ms: float  # after which a status that is not acknowledged is taken for lost
    look_ms: float  # an SN looks again: soon if telling was nearly worth it, …
    rest_ms: float  # … else later


START = Numbers(
    keep=2.6,
    keep_more=0.96,
    drain=0.44,
    rivals=0.49,
    settle_ms=48.0,
    flow_ms=180.0,
    ease=0.44,
    hold_ms=57.0,
    doubt_ms=6.7,
    doubt_age=0.11,
    doubt_rivals=0.14,
    blame=0.76,
    blame_ms=84.0,
    failure=0.22,
    haste=0.25,
    noise=0.018,
    home=0.049,
    price=0.6,
    price_home=0.25,
    price_from=0.54,
    load_ms=340.0,
    worth=0.04,
    press=1.0,
    press_ms=300.0,
    worse=1.5,
    firm=1.3,
    insist=0.67,
    confirm=0.00088,
    center_ms=28.0,
    width_ms=16.0,
    usage_ms=36.0,
    stagger=0.15,
    patience_ms=25.0,
    look_ms=6.4,
    rest_ms=10.0,
)

# Where training may not go: SNs that looked more often would never end, and so on.
LEAST = Numbers(
    *(
        {"look_ms": 1.0, "rest_ms": 1.0, "keep": 1.0, "doubt_ms": 0.1, "width_ms": 1.0}.get(
            name, 1e-4
        )
        for name in Numbers._fields
    )
)
MOST = Numbers(
    *(
        {"stagger": 1.0, "look_ms": 50.0, "rest_ms": 100.0, "keep": 12.0, "keep_more": 20.0}.get(
            name, 1e4
        )
        for name in Numbers._fields
    )
)
