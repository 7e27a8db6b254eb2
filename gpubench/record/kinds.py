"""What becomes of a trial's events, by the kind of its work: a literal registry, as that in `schema/workload.py`."""

from __future__ import annotations

from collections.abc import Callable

from gpubench.plan.plan import Job
from gpubench.plan.resolve import Resolved
from gpubench.record.training import Training
from gpubench.record.work import WorkKind
from gpubench.schema.workload import Workload

KINDS: dict[Workload, Callable[[Job, Resolved, int | None], WorkKind]] = {"training": Training.of}
"""Kind -> what makes it, for one job. The number: how many steps were measured in place of what its trial asks for."""
