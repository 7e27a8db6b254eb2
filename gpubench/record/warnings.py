"""Whether a result is doubtful, and the sentence with advice that then stands under the table: one function a doubt.

All else about a doubt is its entry in `schema/doubts.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gpubench.basics.words import format_count
from gpubench.plan.plan import Job
from gpubench.plan.resolve import ResolvedTrial
from gpubench.record import meter_figures
from gpubench.record.epochs import EpochRow
from gpubench.record.figures import WatchedFigures
from gpubench.record.outcome import Outcome
from gpubench.schema.doubts import (
    BEYOND_TURNS,
    BUSY_PCT,
    FEWEST_GAPS,
    FULL_PCT,
    GAPS_PCT,
    LOW_CLOCK_PCT,
    OTHER_LOAD_PCT,
    READING_PCT,
    SPREAD_PCT,
    THROTTLED_PCT,
    TIMED_S,
    describe_speedup_doubt,
    find_doubt,
)
from gpubench.schema.trial_fields import CARD_LIMITS


@dataclass(frozen=True, kw_only=True, slots=True)
class WarningEvidence:
    """A result and what its doubts rest on."""

    job: Job
    resolved: ResolvedTrial
    ended: Outcome
    seen: WatchedFigures
    result: dict[str, Any]
    """The columns, as stored."""
    gpu_mib: int | None
    """Memory of the smallest of its GPUs; None: it uses none."""
    shared_gpus: int = 0
    """GPUs of this job that other jobs of its group used, too."""
    others_cpu_pct: float | None = 0.0
    """Per cent of this job's CPUs that these used in its measured windows; None: not known."""
    images: int = 0
    """How many images its folder has, those for validation and those left out among them."""
    skipped_images: int = 0
    """How many of them were left out because they can't be decoded."""
    could_run_on: int | None = None
    """How many CPUs it could run on, where SLURM gave fewer and holds it to none in particular."""
    stale_solo: bool = False
    """Whether the same trial alone was measured under other versions."""

    def find_number(self, column: str) -> float | None:
        """A column's value, where it is a number."""
        value = self.result.get(column)
        return float(value) if isinstance(value, (int, float)) else None


def _warn_throttled(case: WarningEvidence) -> str | None:
    share = case.find_number("throttled_pct")
    if share is None or share <= THROTTLED_PCT:
        return None
    if case.job.trial.power_limit_w is not None and case.result.get("throttle_reasons") == "power cap":
        return None  # which is what was asked for
    return (
        f"the GPU's clocks were lowered for {share:.0f} % of the time by {case.result.get('throttle_reasons')}; "
        "compare only with rows that say the same, or look at cooling and power limit "
        "(nvidia-smi -q -d PERFORMANCE,POWER)"
    )


def _warn_low_clock(case: WarningEvidence) -> str | None:
    clock, busy = case.find_number("sm_clock_mhz"), case.find_number("gpu_util_pct")
    highest = case.seen.max_sm_clock_mhz
    if clock is None or highest is None or busy is None or busy < BUSY_PCT:
        return None
    if clock >= LOW_CLOCK_PCT / 100 * highest or any(
        getattr(case.job.trial, name) is not None for name in CARD_LIMITS
    ):
        return None
    return (
        f"the GPU ran at {clock:.0f} of {highest:.0f} MHz; the reason may be heat, the power limit or locked clocks "
        "(nvidia-smi -q -d CLOCK)"
    )


def _warn_slow_reading(case: WarningEvidence) -> str | None:
    phases = case.ended.phases
    whole_s = phases.get("command", 0.0)
    if whole_s < TIMED_S:  # opening and closing a terminal is much of it
        return None
    share = 100 * phases.get("reading", 0.0) / whole_s
    if share <= READING_PCT:
        return None
    return (
        f"gpubench read its output for {share:.0f} % of its time, and a command waits while its terminal is full; have "
        "it print less, or leave out --metric and --epoch-pattern"
    )


def _warn_epoch_time_spread(case: WarningEvidence) -> str | None:
    spread, middle = case.find_number("epoch_time_iqr_s"), case.find_number("epoch_time_s")
    if not spread or not middle or 100 * spread / middle <= SPREAD_PCT:
        return None
    return f"epoch times spread by {100 * spread / middle:.0f} % of their median; measure more epochs on a quieter host"


def _warn_memory_near_limit(case: WarningEvidence) -> str | None:
    used, cap = case.find_number("gpu_mem_mib"), case.job.trial.gpu_mem_cap_mib
    limit = cap or case.gpu_mib
    if used is None or not limit or used < FULL_PCT / 100 * limit:
        return None
    return (
        f"{used:,.0f} of {limit:,} MiB were used: cuDNN may have had to take slower algorithms that need less; "
        "compare with a smaller batch"
    )


def _warn_other_load(case: WarningEvidence) -> str | None:
    whole, trial_pct = case.find_number("cpu_util_pct"), case.find_number("cpu_util_trial_pct")
    theirs, crowding = case.others_cpu_pct, case.seen.crowding_pct
    if trial_pct is None or theirs is None:
        return None
    if whole is not None and (used := whole - trial_pct - theirs) > OTHER_LOAD_PCT:
        return f"other work used {used:.0f} % of the trial's CPUs meanwhile; run it again on a quiet host"
    if crowding is not None and (taken := crowding - trial_pct - theirs) > OTHER_LOAD_PCT:
        free_cpus = max(0.0, case.resolved.cpus * (1 - taken / 100))
        return (
            f"other work on the host left {free_cpus:.1f} of {format_count(case.resolved.cpus, 'CPU')} that the trial "
            "may use; run it again on a quiet host, or on CPUs of its own (srun --cpu-bind=cores, or taskset -c)"
        )
    return None


def _warn_sample_gaps(case: WarningEvidence) -> str | None:
    def missed(part: dict[str, Any]) -> float:
        return 100.0 * int(part["gaps"]) / max(1, int(part["gaps"]) + int(part["samples"]))

    # A meter's gaps are no sign of a busy host, and where they matter its figures are empty.
    shares = {
        column: missed(part)
        for column, part in case.seen.provenance.items()
        if part["gaps"] >= FEWEST_GAPS and column not in meter_figures.COLUMNS
    }
    worst = max(shares, key=shares.__getitem__, default=None)
    if worst is None or shares[worst] <= GAPS_PCT:
        return None
    return f"{shares[worst]:.0f} % of the samples of {worst} are missing: the host was overloaded, or NVML failed"


def _warn_diverged(case: WarningEvidence) -> str | None:
    # A rate has no loss on held-out images; that of its window tells.
    is_rate_lost = any(
        isinstance(row, EpochRow) and not math.isfinite(row.train_loss) for row in case.ended.counted
    )
    if "finite" not in case.ended.missing.get("loss", "") and not is_rate_lost:
        return None
    return "training diverged: its speed is that of a network that learnt nothing; use a smaller --set lr"


def _warn_slower_than_turns(case: WarningEvidence) -> str | None:
    slowdown, membership = case.find_number("slowdown"), case.job.membership
    if slowdown is None or membership is None or slowdown <= BEYOND_TURNS * membership.size:
        return None
    cure = "" if case.job.trial.cpu_sharing == "pinned" else " (--cpu-sharing pinned keeps them apart)"
    return (
        f"it took {slowdown:.2f} times as long as alone, where {membership.size} jobs one after the other would take "
        f"{membership.size}: they hinder each other, as threads of several jobs do that compete for the same CPUs{cure}"
    )


RULES: Mapping[str, Callable[[WarningEvidence], str | None]] = {
    "stranger": lambda case: (
        f"another process used the GPU: {case.seen.strangers[0]}; run again when it is gone"
        if case.seen.strangers
        else None
    ),
    "desktop": lambda case: (
        f"a desktop draws on the GPU: {case.seen.desktops[0]}; figures are steadier on a GPU without a screen"
        if case.seen.desktops
        else None
    ),
    "throttled": _warn_throttled,
    "low-clock": _warn_low_clock,
    "slow-reading": _warn_slow_reading,
    "spread": _warn_epoch_time_spread,
    "near-limit": _warn_memory_near_limit,
    "retries": lambda case: (
        f"the allocator ran out of memory and had to free some {format_count(round(retries), 'time')}, which takes "
        "time; use a smaller batch"
        if (retries := case.find_number("gpu_alloc_retries"))
        else None
    ),
    "cpu-starved": lambda case: (
        f"{workers} loader workers share {format_count(cpus, 'CPU')}; use fewer workers or more CPUs"
        if (workers := case.resolved.workers) > (cpus := case.resolved.all_cpus)
        else None
    ),
    "other-load": _warn_other_load,
    "unbound-cpus": lambda case: (
        f"the trial had {format_count(case.resolved.cpus, 'CPU')} of its job, but could run on "
        f"{case.could_run_on}: it may have shared them with other jobs; have SLURM "
        "bind them (srun --cpu-bind=cores; TaskPlugin=task/affinity)"
        if case.could_run_on is not None
        else None
    ),
    "gaps": _warn_sample_gaps,
    "diverged": _warn_diverged,
    "dp": lambda case: (
        "DataParallel copies the model in every step, from one process; prefer ddp"
        if case.job.trial.strategy == "dp"
        else None
    ),
    # Seen on an H200: a step of mobilenet_v2 took seconds, all of it preparing kernels.
    "dp-channels-last": lambda case: (
        "DataParallel's replicas drop channels-last, and its new threads make cuDNN prepare its kernels anew in every "
        "step; use memory_format=contiguous or ddp"
        if case.job.trial.strategy == "dp" and case.job.trial.memory_format == "channels_last"
        else None
    ),
    "compile-cache": lambda case: (
        "the first steps compile the model, which takes less time where an earlier run filled the compiler's cache"
        if case.job.trial.execution == "compile"
        else None
    ),
    "breakdown": lambda case: (
        "one of every two steps was timed in parts, which adds what breakdown_cost_pct says (noise may hide it); take "
        "times from a row without --breakdown"
        if case.job.trial.breakdown
        else None
    ),
    "skipped-images": lambda case: (
        f"{case.skipped_images:,} of {case.images:,} images could not be decoded and "
        f"{'was' if case.skipped_images == 1 else 'were'} left out; compare only with rows that read the same images, "
        "or repair them"
        if case.skipped_images
        else None
    ),
    "shared-gpu": lambda case: (
        "GPU use, memory traffic, power, clocks and temperature are the GPU's, which other jobs of the group shared; "
        "energy is an estimate: the GPU's, divided by the busy time that each job's work takes alone"
        if case.shared_gpus
        else None
    ),
    "solo-stale": lambda case: (
        "the same trial alone was measured under other versions of torch, driver or gpubench; --retry stale measures "
        "it again"
        if case.stale_solo
        else None
    ),
    "beyond-turns": _warn_slower_than_turns,
    "faster-together": lambda case: describe_speedup_doubt(case.find_number("slowdown")),
}
"""The code of each entry -> what says the sentence, or None where there is no such doubt."""


def find_warnings(case: WarningEvidence) -> dict[str, str]:
    """Code -> a sentence with advice, for every doubt about this result."""
    ok = case.ended.status == "ok"
    rules = {code: rule for code, rule in RULES.items() if ok or find_doubt(code).any_ending}
    return {code: sentence for code, rule in rules.items() if (sentence := rule(case)) is not None}
