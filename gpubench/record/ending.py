"""What the child told and what was seen from outside, put together: ending, columns, reasons for empty ones. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpubench.record import energy_figures, gpu_figures, host_figures
from gpubench.record.figures import WatchedFigures
from gpubench.record.outcome import Outcome
from gpubench.schema.codes import REASONS, SOURCES, format_ending
from gpubench.schema.columns import MEASURED, OF_GROUPS
from gpubench.schema.gpu_look import PERIOD_S, IdlePower

ALONE = dict.fromkeys(OF_GROUPS, REASONS["alone"])
"""Columns of groups, and why a trial by itself has none."""
RESERVED = "torch-reserved"
"""The source of memory where torch's own count stands in for the driver's."""


def decide_ending(ended: Outcome, seen: WatchedFigures, cap_mib: int | None) -> tuple[Any, str]:
    """The ending, once what was seen from outside is known too."""
    memory = seen.result.get("gpu_mem_mib")
    if ended.status == "ok" and cap_mib is not None and memory is not None and memory > cap_mib:
        return "oom", f"{memory:,.0f} MiB by the driver, over the cap of {cap_mib:,} MiB"
    if ended.status == "oom" and seen.strangers and cap_mib is None:
        return "failed", f"GPU memory ran out while others held some: {seen.strangers[0]}"
    return ended.status, ended.reason


def merge_measured_columns(
    ended: Outcome,
    seen: WatchedFigures,
    status: str,
    reason: str,
    gpu_uuids: Sequence[str],
    idle_power: IdlePower,
    *,
    alone: bool = True,
) -> tuple[dict[str, Any], dict[str, str]]:
    """One value or one reason for every measured column. `alone`: no job of a group, whose columns come later."""
    result = {k: v for k, v in (ended.result | seen.result).items() if v is not None}
    missing = {**(ALONE if alone else {}), **seen.missing, **ended.missing}
    if "gpu_util_pct" in result and "epoch_time_s" in result:
        result["gpu_busy_s_per_epoch"] = (
            result["gpu_util_pct"] / 100 * result["epoch_time_s"] * len(gpu_uuids)
        )
    elif "gpu_util_pct" in missing:
        missing["gpu_busy_s_per_epoch"] = missing["gpu_util_pct"]
    reserved = result.get("gpu_mem_reserved_mib")
    if reserved is not None and _is_driver_memory_unusable(result, reserved):
        result["gpu_mem_mib"], result["gpu_mem_source"] = reserved, RESERVED
    if gpu_uuids and all(uuid in idle_power.watts for uuid in gpu_uuids):
        result["idle_power_w"] = sum(idle_power.watts[uuid] for uuid in gpu_uuids)
    else:
        why_not = [idle_power.missing[uuid] for uuid in gpu_uuids if uuid in idle_power.missing]
        missing["idle_power_w"] = "; ".join(why_not) or REASONS["no-idle-power"]
    if "epochs_to_top1" in result:
        joules = [seen.energy_j_by_epoch.get(e.epoch) for e in ended.epochs[: result["epochs_to_top1"]]]
        known = [j for j in joules if j is not None]
        if joules and len(known) == len(joules):
            result["energy_to_top1_j"] = sum(known)
        else:
            missing["energy_to_top1_j"] = missing.get("energy_j", REASONS["energy-on-the-way"])
    if status != "ok":
        # What an unfinished trial showed on the way is no figure of the configuration.
        kept = {k: v for k, v in result.items() if k in ("params_m", "gmacs_per_image")}
        return kept, {name: format_ending(status, reason) for name in EXPLAINED_COLUMNS if name not in kept}
    names = [name for name in EXPLAINED_COLUMNS if alone or name not in OF_GROUPS]
    why = {**missing, **(dict.fromkeys(OF_GPUS, REASONS["no-gpu"]) if not gpu_uuids else {})}
    return result, {n: why.get(n, REASONS["not-reported"]) for n in names if result.get(n) is None}


def _is_driver_memory_unusable(result: Mapping[str, Any], reserved_mib: float) -> bool:
    """Whether the driver told nothing, or a growth that can't be: somebody else gave memory back meanwhile."""
    if result.get("gpu_mem_source") == "nvml-device-delta":
        return bool(result["gpu_mem_mib"] < reserved_mib)
    return result.get("gpu_mem_mib") is None


def collect_provenance(
    seen: Mapping[str, Mapping[str, Any]],
    result: Mapping[str, Any],
    why: str | None,
    idle_readings: Sequence[tuple[int, int]] = (),
) -> dict[str, Mapping[str, Any]]:
    """Where the figures come from: `seen`, the look before the sweep, and memory that torch's allocator stands in for.

    `why`: the reason that the driver's figure is missing; None where there was one that could not be.
    `idle_readings`: of each GPU, taken and failed.
    """
    if result.get("idle_power_w") is not None:
        look = {
            "source": SOURCES["power-before"],
            "period_s": PERIOD_S,
            "samples": sum(taken for taken, _ in idle_readings),
            "gaps": sum(failed for _, failed in idle_readings),
        }
        seen = {**seen, "idle_power_w": look}
    if result.get("gpu_mem_source") != RESERVED:
        return dict(seen)
    reason = why or "the device's memory grew by less than that: somebody else gave some back"
    facts = {
        "source": f"torch's allocator, reserved at its peak ({reason})",
        "period_s": None,
        "samples": 1,
        "gaps": 0,
    }
    return {**seen, "gpu_mem_mib": facts, "gpu_mem_source": facts}


EXPLAINED_COLUMNS = tuple(
    dict.fromkeys(
        (
            *(column.name for column in MEASURED if column.name != "doubts"),
            *gpu_figures.COLUMNS,
            *energy_figures.COLUMNS,
            *host_figures.COLUMNS,
        )
    )
)
"""Columns of which a record tells why they are empty: what watching fills is among them wherever trials.csv has it."""
OF_GPUS = frozenset({
    *(c.name for c in MEASURED if c.name.startswith("gpu_")), *gpu_figures.COLUMNS, *energy_figures.COLUMNS,
    "idle_power_w", "energy_to_top1_j",
})  # fmt: skip
"""Columns that only a trial on GPUs can fill."""
