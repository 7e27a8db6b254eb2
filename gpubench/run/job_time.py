"""How long the batch job that a sweep runs in may still run, as its sweep wants to know it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping

from gpubench.node.allocation import allocation, ask_squeue, time_limit
from gpubench.plan.wall_time import WallTime, find_spare
from gpubench.schema.missing import Unmeasured


def job_time(
    say: Callable[[str], None],
    *,
    environ: Mapping[str, str] = os.environ,
    ask: Callable[[str], str] = ask_squeue,
) -> WallTime | None:
    """None where nothing ends it, or where that is not known, which it says."""
    job = allocation(environ)
    if job is None:
        return None
    try:
        limit = time_limit(environ, job.job_id, ask=ask)
    except Unmeasured as why:
        say(
            f"how long {job.called} may still run is not known ({why}): trials begin whether it ends before or not"
        )
        return None
    if limit is None:
        return None
    spare_s = find_spare(limit.whole_s)
    return WallTime(
        job=job.called,
        ends_s=time.monotonic() + limit.left_s - spare_s,
        whole_s=limit.whole_s - spare_s,
    )
