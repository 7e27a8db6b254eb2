"""What the child told and what was seen from outside, put together: ending, columns, reasons for empty ones. Pure."""

from __future__ import annotations

from typing import Any

from gpubench.launch.outcome import EXTRAPOLATED, Outcome
from gpubench.monitor.figures import Figures
from gpubench.result import MEASURED

LATER = {
    **dict.fromkeys(("energy_j", "energy_source"), "this version does not read the energy counter"),
    **dict.fromkeys(("sm_clock_mhz", "throttled_pct", "temperature_c"), "this version does not sample it"),
    **dict.fromkeys(
        ("solo_epoch_time_s", "slowdown", "overlap_gain", "predicted_slowdown"), "the trial ran alone"
    ),
}
"""Columns that this version never fills, and why."""


def judge(ended: Outcome, seen: Figures, cap_mib: int | None) -> tuple[Any, str]:
    """The ending, once what was seen from outside is known too."""
    memory = seen.result.get("gpu_mem_mib")
    if ended.status == "ok" and cap_mib is not None and memory is not None and memory > cap_mib:
        return "oom", f"{memory:.0f} MiB by the driver, over the cap of {cap_mib} MiB"
    if ended.status == "oom" and seen.strangers and cap_mib is None:
        return "failed", f"GPU memory ran out while others held some: {seen.strangers[0]}"
    return ended.status, ended.reason


def merge(
    ended: Outcome, seen: Figures, status: str, reason: str, gpus: int
) -> tuple[dict[str, Any], dict[str, str]]:
    """One value or one reason for every measured column."""
    result = {k: v for k, v in (ended.result | seen.result).items() if v is not None}
    measured = [e for e in ended.epochs if not e["warmup"]]
    if result.get("epoch_time_source") == EXTRAPOLATED and "cpu_s_per_epoch" in result:
        # Watched over the measured steps; an epoch has more of them.
        result["cpu_s_per_epoch"] *= result["epoch_time_s"] / measured[0]["epoch_time_s"]
    if "gpu_util_pct" in result and "epoch_time_s" in result:
        result["gpu_busy_s_per_epoch"] = result["gpu_util_pct"] / 100 * result["epoch_time_s"] * gpus
    if result.get("gpu_mem_mib") is None and result.get("gpu_mem_reserved_mib") is not None:
        result["gpu_mem_mib"] = result["gpu_mem_reserved_mib"]
        result["gpu_mem_source"] = "torch-reserved"
    missing = {**LATER, **seen.missing, **ended.missing}
    if status != "ok":
        # What an unfinished trial showed on the way is no figure of the configuration.
        kept = {k: v for k, v in result.items() if k in ("params_m", "gmacs_per_image")}
        return kept, {
            c.name: f"{status}: {reason}"[:200] for c in MEASURED if c.name not in ("doubts", *kept)
        }
    names = [c.name for c in MEASURED if c.name != "doubts"]
    no_gpu = {n: "the trial uses no GPU" for n in names if n.startswith("gpu_")} if gpus == 0 else {}
    why = {**no_gpu, **missing}
    return result, {n: why.get(n, "not reported") for n in names if result.get(n) is None}
