"""What may be doubtful of a row. The only place where doubts are defined.

An entry says all of one but its sentence, which a function in `record/warnings.py` decides and words. Tables,
verdicts, predictions, the audit and the table in docs/measuring.md go by these entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Literal

THROTTLED_PCT = 5.0
LOW_CLOCK_PCT = 80.0
"""Per cent of the highest clock."""
BUSY_PCT = 50.0
"""GPU utilisation from which its clocks should be up."""
SPREAD_PCT = 5.0
"""How far epoch times, or those of a row's processes, may lie apart, in per cent of their median."""
DRIFT_PCT = 5.0
"""How much longer the first measured steps may take than the last."""
ENERGY_APART_PCT = 5.0
"""How far the two figures of energy may differ."""
ENERGY_WINDOW_S = 10.0
TIMED_S = 1.0
"""Measured time below which a disturbance of 10 ms, or a tick of the kernel's CPU clock, is a per cent of it."""
READING_PCT = 5.0
"""Per cent of a command's time that reading its output may take."""
FULL_PCT = 95.0
"""Per cent of the GPU's memory, or of the cap."""
GAPS_PCT = 10.0
FEWEST_GAPS = 3
"""Gaps below which a share says nothing: a column that is read rarely may lose half of its samples by chance."""
OTHER_LOAD_PCT = 10.0
"""Points of CPU use beside the trial's own from which its times are doubtful."""
BEYOND_TURNS = 1.25
"""How many times as long as one after the other jobs may take before they hinder each other."""
FASTER = 0.95
"""Share of its time alone: a job of a group that takes less was not sped up by its neighbours, so one of both times
is off."""

SLOW_CPU_PCT = 85.0
"""Of the fastest that the host's CPU was seen to be in the folder."""

Doubted = Literal["time", "energy", "memory", "accuracy", "comparison"]
"""What a doubt is about: a row's figures of one kind, or `comparison`: what it says beside rows without this doubt."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """One kind of doubt about a row."""

    says: str
    """What is so where it is raised, in one short sentence."""
    _: KW_ONLY
    code: str = ""
    """What stands in the row, in the column `doubts`: the key of its entry."""
    about: tuple[Doubted, ...] = ()
    """What it casts doubt on; empty: nothing, it only says what the row is."""
    serious: bool = True
    """Whether a conclusion from the row is weaker for it. If not, the audit leaves it out, and so does what is said of
    the trials alone behind a group."""
    any_ending: bool = False
    """Whether it is told of a trial that did not end `ok`, too: it may be why."""
    raised_by: Literal["rule", "processes", "folder", "log", "earlier"] = "rule"
    """`rule`: a function in `record/warnings.py`; `processes`: what a row's processes tell together, where they become
    one row; `folder`: what the rows of a folder tell together; `log`: it came with a published log; `earlier`: versions
    before 0.2 raised it, and their records hold it."""


_ENTRIES: dict[str, Doubt] = {
    "diverged": Doubt(
        "The loss is not a finite number, so the network learnt nothing.", about=("accuracy", "comparison")
    ),
    "stranger": Doubt(
        "A process of somebody else computed on the trial's GPUs.",
        about=("time", "energy", "memory"),
        any_ending=True,
    ),
    "throttled": Doubt(
        f"The GPU's clocks were lowered for more than {THROTTLED_PCT:g} % of the time.", about=("time",)
    ),
    "slow-reading": Doubt(
        "Reading what the command printed took a good part of its time, and it waits while its terminal is full.",
        about=("time", "energy"),
    ),
    "spread": Doubt(
        f"Epoch times, or those of a row's processes, spread by more than {SPREAD_PCT:g} % of their median "
        "(by their interquartile range; of two processes, by their difference).",
        about=("time",),
    ),
    "outlier": Doubt(
        "Of five processes or more, one or some lie further from the others than chance explains (the generalized "
        "ESD test); they count as the others do.",
        serious=False,
        raised_by="processes",
    ),
    "other-load": Doubt(
        f"Work that belongs neither to the trial nor to jobs beside it used more than {OTHER_LOAD_PCT:g} % of the "
        f"trial's CPUs. Where it may use a number of CPUs and none in particular: other work left so few idle that "
        f"more than {OTHER_LOAD_PCT:g} % of that number were missing.",
        about=("time",),
    ),
    "slow-cpu": Doubt(
        f"The host's CPU ran at less than {SLOW_CPU_PCT:g} % of its fastest in the folder, by fixed work before "
        "loaders start and after they end.",
        about=("time",),
        serious=False,
        raised_by="folder",
    ),
    "unbound-cpus": Doubt(
        "SLURM gave a number of CPUs, but the trial could run on more: nothing keeps it and other jobs apart.",
        about=("time",),
        serious=False,
    ),
    "low-clock": Doubt(
        f"The GPU ran below {LOW_CLOCK_PCT:g} % of its highest clock while it was busy (a utilisation of "
        f"{BUSY_PCT:g} % or more).",
        about=("time",),
    ),
    "cpu-starved": Doubt("There are more loader workers than CPUs.", about=("time",), any_ending=True),
    "short-warmup": Doubt(
        "Nothing was warmed up, or the first measured steps (of a further round, the first steady ones) took "
        f"more than {DRIFT_PCT:g} % longer than the last.",
        about=("time",),
        raised_by="earlier",
    ),
    "short-epochs": Doubt(
        f"The measured windows last less than {TIMED_S:g} s in all.", about=("time",), raised_by="earlier"
    ),
    "short-steps": Doubt(
        "An epoch is extrapolated from fewer steps than two waves and what the loaders hold ready (a wave: one "
        "step for each loader worker of a rank).",
        about=("time",),
        raised_by="earlier",
    ),
    "solo-stale": Doubt(
        "The trial alone, with which a job of a group is compared, was measured under other versions.",
        about=("comparison",),
    ),
    "faster-together": Doubt(
        f"A job of a group took less than {100 * FASTER:g} % of its time alone: epoch times differ by as much "
        "from process to process, or something disturbed the trial alone.",
        about=("comparison",),
    ),
    "beyond-turns": Doubt(
        f"A job of a group took more than {BEYOND_TURNS:g} times as long as all its jobs would take one after the "
        "other: they hinder each other.",
        about=("comparison",),
    ),
    "retries": Doubt(
        "The allocator ran out of GPU memory, gave some back and tried again, which takes time.",
        about=("comparison",),
    ),
    "near-limit": Doubt(
        f"{FULL_PCT:g} % or more of the GPU's memory, or of the cap, was used: cuDNN may have had to take slower "
        "algorithms.",
        about=("comparison",),
    ),
    "gaps": Doubt(
        f"More than {GAPS_PCT:g} % of a figure's samples are missing, and at least {FEWEST_GAPS}.",
        about=("time", "energy"),
    ),
    "energy": Doubt(
        f"The energy counter and the integral of power differ by more than {ENERGY_APART_PCT:g} %.",
        about=("energy",),
        raised_by="earlier",
    ),
    "desktop": Doubt("A desktop drew on the trial's GPUs.", about=("energy", "comparison"), any_ending=True),
    "in-words": Doubt(
        "A published log tells figures of this row in words only.", about=("comparison",), raised_by="log"
    ),
    "inferred": Doubt(
        "A published log does not state some fields of this row; they are inferred.",
        about=("comparison",),
        raised_by="log",
    ),
    "breakdown": Doubt(
        "The parts of steps were timed (`--breakdown`), which takes time.",
        about=("comparison",),
        serious=False,
    ),
    "shared-gpu": Doubt(
        "Other jobs of the group used the job's GPUs: what the driver tells is of the whole GPU, and energy is an "
        "estimate.",
        about=("energy",),
        serious=False,
    ),
    "short-window": Doubt(
        f"Energy was measured over less than {ENERGY_WINDOW_S:g} s.",
        about=("energy",),
        serious=False,
        raised_by="earlier",
    ),
    "skipped-images": Doubt(
        "Images that can't be decoded were left out (`--bad-images skip`).",
        about=("comparison",),
        serious=False,
    ),
    "compile-cache": Doubt(
        "The model was compiled: the first steps take less time where the compiler's cache is warm.",
        about=("comparison",),
        serious=False,
    ),
    "dp-channels-last": Doubt(
        "DataParallel ran with `channels_last`, for which cuDNN prepares its kernels anew in every step.",
        serious=False,
        any_ending=True,
    ),
    "dp": Doubt("DataParallel copies the model in every step.", serious=False, any_ending=True),
}
"""The worst first: the audit names the first of them that it finds, and docs/measuring.md lists them in this order."""

BY_CODE: Mapping[str, Doubt] = {code: replace(entry, code=code) for code, entry in _ENTRIES.items()}
DOUBTS: tuple[Doubt, ...] = tuple(BY_CODE.values())


def find_doubt(code: str) -> Doubt:
    """The entry of a code. Nothing is known of a code that another version stored, so it counts as serious."""
    return BY_CODE.get(code) or Doubt("", code=code)


def rank_doubt(code: str) -> int:
    """The place of a code among all doubts, from the worst on; unknown ones come last."""
    doubt = BY_CODE.get(code)
    return len(DOUBTS) if doubt is None else DOUBTS.index(doubt)


def describe_speedup_doubt(slowdown: float | None) -> str | None:
    """The doubt about a job that its neighbours seem to have sped up; None where there is none."""
    if slowdown is None or slowdown >= FASTER:
        return None
    return (
        f"it took {slowdown:.2f} times as long as alone, which sharing can't do: its epoch time differs from process "
        "to process by as much, or something slowed the trial alone down (other work, low clocks, CPUs at rest); "
        "measure more processes of both (--rounds 5)"
    )
