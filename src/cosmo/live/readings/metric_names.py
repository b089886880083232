"""Which metrics of a service mean what: presets for servers of others, or a file of one's own."""

from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from cosmo.documents import Documents
from cosmo.scenario.fields import Positive

_Name = Annotated[str, Field(pattern=r"^[A-Za-z_:][A-Za-z0-9_:.]{0,199}$")]
_Names = Annotated[tuple[_Name, ...], Field(max_length=8)]


class MetricNames(BaseModel):
    """Of each quantity the names of its samples; the first of them that a page has counts.

    Samples of one name that differ in labels are added up.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    description: str = ""
    path: Annotated[str, Field(pattern=r"^/\S*$")] = "/metrics"
    running: _Names = ()  # gauge: requests that are worked on
    waiting: _Names = ()  # gauge: requests that wait
    storage_share: _Names = ()  # gauge: share of the storage that is taken, from 0 to 1
    # Counters: time that finished requests have spent being worked on, and how many finished.
    busy_sum: _Names = ()
    busy_count: _Names = ()
    # The same for their time from arrival to end.
    latency_sum: _Names = ()
    latency_count: _Names = ()
    time_unit_ms: Positive = 1000.0  # of these sums
    # Named metrics of load reports (ORCA) on answers.
    report_running: _Names = ()
    report_waiting: _Names = ()
    report_storage_share: _Names = ()

    @model_validator(mode="after")
    def _complete(self) -> "MetricNames":
        if not self.running and not (self.waiting and self.busy_sum):
            raise ValueError("running: must name a metric unless waiting and busy_sum do")
        for sums, counts in (("busy_sum", "busy_count"), ("latency_sum", "latency_count")):
            if bool(getattr(self, sums)) != bool(getattr(self, counts)):
                raise ValueError(f"{sums}: must come with {counts}")
        return self


DOCUMENTS = Documents("metrics", MetricNames, "cosmo.live.readings", "vllm", "path=/metrics")


@cache
def load_names(source: str) -> MetricNames:
    """A preset by name, or a TOML file; InputError for anything else."""
    return DOCUMENTS.load(source if source in DOCUMENTS.preset_names() else Path(source))
