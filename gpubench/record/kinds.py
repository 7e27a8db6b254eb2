"""What becomes of a trial's events, by the kind of its work: a literal registry, as that in `schema/workload.py`."""

from __future__ import annotations

from collections.abc import Callable

from gpubench.plan.plan import Job
from gpubench.plan.resolve import Resolved
from gpubench.record.training import Training
from gpubench.record.work import WorkKind
from gpubench.schema.workload import Workload

Shared = tuple[float, float] | None
"""Of a job of a group from when to when all of its jobs measured; None of a trial alone."""

KINDS: dict[Workload, Callable[[Job, Resolved, Shared], WorkKind]] = {"training": Training.for_job}
"""Kind -> what makes it, for one job."""
