"""Studies: plans, their execution, their results, and what is made of them."""

from cosmo.study.conduct import Progress, conduct, progress_of
from cosmo.study.paper_results import reported, reported_gains
from cosmo.study.plan import Plan
from cosmo.study.plan_files import load_plan, plan_checked, plan_names
from cosmo.study.pool import LocalExecutor
from cosmo.study.store import Study, load_study

__all__ = [
    "LocalExecutor",
    "Plan",
    "Progress",
    "Study",
    "conduct",
    "load_plan",
    "load_study",
    "plan_checked",
    "plan_names",
    "progress_of",
    "reported",
    "reported_gains",
]
