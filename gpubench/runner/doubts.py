"""Doubts about a result: a code that stands in its row, and one sentence with advice that stands under the table."""

from __future__ import annotations

from gpubench.experiment.plan import Unit
from gpubench.monitor.figures import Figures
from gpubench.runner.resolve import Resolved

OTHER_LOAD_PCT = 10.0
"""Points of CPU use beside the trial's own from which its times are doubtful."""


def doubts(unit: Unit, resolved: Resolved, seen: Figures) -> dict[str, str]:
    """Doubts of this first version: code -> a sentence with advice."""
    found: dict[str, str] = {}
    if seen.strangers:
        found["stranger"] = f"another process used the GPU: {seen.strangers[0]}; run again when it is gone"
    if resolved.workers > resolved.cpus:
        found["cpu-starved"] = (
            f"{resolved.workers} loader workers share {resolved.cpus} CPUs; use fewer workers or more CPUs"
        )
    whole, own = (seen.result.get(name) for name in ("cpu_util_pct", "cpu_util_trial_pct"))
    if whole is not None and own is not None and whole - own > OTHER_LOAD_PCT:
        found["other-load"] = (
            f"other work used {whole - own:.0f} % of the trial's CPUs meanwhile; run it again on a quiet host"
        )
    if unit.trial.strategy == "dp":
        found["dp"] = "DataParallel copies the model in every step, from one process; prefer ddp"
        if unit.trial.memory_format == "channels_last":
            # Seen on an H200: a step of mobilenet_v2 took seconds, all of it preparing kernels.
            found["dp-channels-last"] = (
                "DataParallel's replicas drop channels-last, and its new threads make cuDNN prepare its kernels "
                "anew in every step; use memory_format=contiguous or ddp"
            )
    if unit.trial.execution == "compile":
        found["compile-cache"] = (
            "the first steps compile the model; how long depends on whether its cache is warm"
        )
    return found
