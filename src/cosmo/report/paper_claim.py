"""The paper's claim beside a study of the paper's world: does it hold here, what else is stronger.

The claim is a relative gain in success over the best of the paper's six baselines.
"""

from collections.abc import Sequence

import numpy as np

from cosmo.report.gains import Gain, gains_at_loads
from cosmo.report.tables import Results
from cosmo.report.verdict import Standing, rate_text

_METRIC = "success_rate"
# In the paper's world one EN alone fills one SN: its own traffic says how busy the SN is.
_WHY = (
    "In the paper's world a single edge node fills a single service node, so it can work out the"
    " service node's queue from what it has sent itself, without any status; rules that also refuse"
    " large tasks when the nodes are full leave room for more small ones."
)


def claim_sentences(results: Results) -> list[str]:
    """What the paper claims and whether it holds here, then what else is stronger and why.

    Empty unless the study is of the paper's world and its focus is a method of the paper.
    """
    claims = results.claims
    about = [each for each in claims.averages if each["method"] == results.focus]
    if not about or results.verdict is None:
        return []
    found = gains_at_loads(results.metrics, results.focus, _METRIC, claims.competitors)
    told = []
    for process in dict.fromkeys(each.arrivals for each in found):
        here = [each for each in found if each.arrivals == process]
        claimed, where, alike = _claimed(results, process, [each.rate for each in here])
        if claimed is not None:
            told.append(_beside(results.focus, process, where, claimed, here, alike))
    if told:
        told.append(f"The paper's six baselines are {', '.join(claims.competitors)}.")
    return told + _stronger(results, claims.competitors) if told else []


def _claimed(
    results: Results, process: str, rates: Sequence[float]
) -> tuple[float | None, str, bool]:
    """The paper's gain, where, and whether the same loads were played here.

    Of the one load that was played if the paper's text gives it, else of all loads of the paper.
    """
    claims, focus = results.claims, results.focus
    if len(rates) == 1:
        point = claims.point(focus, _METRIC, process, rates[0])
        if point is not None:
            return point, f"at {rate_text(rates[0])} tasks/s", True
    mean = claims.average(focus, _METRIC, process, "all").get("mean")
    return mean, "on average over its seven loads", set(rates) == set(claims.loads["all"])


def _beside(
    focus: str, process: str, where: str, claimed: float, here: Sequence[Gain], alike: bool
) -> str:
    gain = float(np.mean([each.gain for each in here]))
    low, high = np.percentile(np.mean([each.draws for each in here], axis=0), [2.5, 97.5])
    loads = ", ".join(rate_text(each.rate) for each in here)
    best = ", ".join(dict.fromkeys(each.competitor for each in here))
    if low > 0.0 and alike:
        size = "less than" if high < claimed else "more than" if low > claimed else "about what"
        verdict = f"the claim holds, by {size} the paper says"
    elif low > 0.0:
        verdict = "it is ahead at this load, too" if len(here) == 1 else "it is ahead here, too"
    elif high < 0.0:
        verdict = "the claim does not hold here"
    else:
        verdict = "these runs are too few to say whether the claim holds"
    return (
        f"The paper claims that {focus} finishes {100 * claimed:.1f} % more tasks in time than the"
        f" best of its six baselines, with {process} arrivals {where}. Here, at {loads} tasks/s, it"
        f" is {100 * gain:+.1f} % (95 % interval {100 * low:+.1f} to {100 * high:+.1f}) against"
        f" {best}: {verdict}."
    )


def _stronger(results: Results, competitors: Sequence[str]) -> list[str]:
    """Methods that the paper did not compare with, and that the focus is clearly behind."""
    assert results.verdict is not None

    def is_stronger(each: Standing) -> bool:
        return each.ahead is not None and each.ahead.known and each.ahead.high < 0.0

    ahead = [
        each
        for each in results.verdict.rivals
        if each.method not in competitors and is_stronger(each)
    ]
    if not ahead:
        return []
    names = ", ".join(f"{each.method} {100 * each.success:.1f} %" for each in ahead[:3])
    many = "One method" if len(ahead) == 1 else f"{len(ahead)} methods"
    verb = "is" if len(ahead) == 1 else "are"
    return [
        f"{many} that the paper did not compare with {verb} stronger here ({names}"
        f"{', …' * (len(ahead) > 3)}). {_WHY}"
    ]
