"""Every job beside every other, two at a time: half a matrix of slowdowns, and one of overlap gains. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpubench.analysis.varied import CANDIDATES, Axes, as_asked, known, machine, varied
from gpubench.basics.words import UNKNOWN, WORDS, clean, number
from gpubench.plan.groups import BARE
from gpubench.report.groups import MeasuredGroup
from gpubench.schema.cell import cell
from gpubench.schema.record import ALLOTTED
from gpubench.schema.row import Row

FEWEST = 3
"""Pairs, and jobs, from which a matrix tells more than the rows do."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Matrix:
    """Final text, laid out by whoever prints it."""

    title: str
    headings: tuple[str, ...]
    """Over the columns, the first of which names the row's job."""
    cells: tuple[tuple[str, ...], ...]
    where: str = ""
    """What all of its pairs share, as the title ends: ` (variant=crop-resize)`."""
    jobs: tuple[str, ...] = ()
    """Of slowdowns: what the jobs are called."""
    beside: tuple[tuple[float | str, ...], ...] = ()
    """Of slowdowns: how many times as long as alone each job takes beside each, or how the pair ended."""


Job = tuple[Any, ...]
"""What tells one job from the others: its values of the fields in which jobs differ."""


Devices = tuple[str | None, tuple[tuple[int, ...], ...]]
"""A machine, and the sets of its GPUs that the two jobs of a pair use."""


def matrices(groups: Sequence[MeasuredGroup], axes: Axes = ()) -> list[Matrix]:
    """Two matrices for each combination of the other axes: slowdowns and overlap gains. None for too few pairs.

    Two jobs on GPUs of their own tell nothing of two on one GPU: pairs on other GPUs have matrices of their own.
    """
    devices: dict[Devices, list[MeasuredGroup]] = {}
    for pair in groups:
        if len(pair.rows) == 2:
            devices.setdefault((machine(pair.rows[0]), _gpus(pair)), []).append(pair)
    enough = {used: pairs for used, pairs in devices.items() if len(pairs) >= FEWEST}
    machines, sets = ({used[side] for used in enough} for side in (0, 1))
    found = []
    for (where, gpus), pairs in enough.items():
        said = [f"gpu_ids={' and '.join(map(cell, gpus))}"] if gpus and len(sets) > 1 else []
        said += [where] if where and len(machines) > 1 else []
        found += _of_place(pairs, axes, said)
    return found


def _gpus(pair: MeasuredGroup) -> tuple[tuple[int, ...], ...]:
    """The different sets of GPUs that its jobs use."""
    used = {ids for row in pair.rows if (ids := known(row, "gpu_ids"))}
    return tuple(sorted(used))


def _of_place(pairs: Sequence[MeasuredGroup], axes: Axes, where: Sequence[str]) -> list[Matrix]:
    """Those of pairs on the same GPUs. `where`: which, if that has to be said."""
    fields = _fields([row for pair in pairs for row in pair.rows], axes)
    own = [field for field in fields if any(len({_value(row, field) for row in p.rows}) > 1 for p in pairs)]
    others = [field for field in fields if field not in own]
    by_others: dict[Job, list[MeasuredGroup]] = {}
    for pair in pairs:
        by_others.setdefault(_job(pair.rows[0], others), []).append(pair)
    found = []
    for values, mine in by_others.items():
        said = [_said(field, value) for field, value in zip(others, values, strict=True)]
        said += where
        found += _matrices(mine, own, f" ({', '.join(said)})" if said else "")
    return found


def _fields(rows: Sequence[Row], axes: Axes) -> list[str]:
    """The fields in which jobs differ. What a job merely gets because of its neighbour makes it no other job."""
    found = varied(rows, axes)
    return [
        field
        for field in CANDIDATES
        if (len({_value(row, field) for row in rows}) > 1 if field in ALLOTTED else field in found)
    ]


def _value(row: Row, field: str) -> Any:
    """What a job has; of what is divided, what it asked for: None if nothing."""
    return row.asked[field] if field in ALLOTTED and field in row.asked else known(row, field)


def _said(field: str, value: Any) -> str:
    return f"{field}={'auto' if value is None and field in ALLOTTED else as_asked(value)}"


def _matrices(pairs: Sequence[MeasuredGroup], own: Sequence[str], where: str) -> list[Matrix]:
    measured: dict[tuple[Job, Job], MeasuredGroup] = {}
    for pair in pairs:
        one, other = (_job(row, own) for row in pair.rows)
        measured.setdefault((one, other), pair)
    jobs = list(dict.fromkeys(job for both in measured for job in both))
    different = {frozenset(both) for both in measured if both[0] != both[1]}
    if len(different) < FEWEST or len(jobs) < FEWEST:
        return []
    with_itself = len(different) < len({frozenset(both) for both in measured})
    labels = {job: _label(job, own) for job in jobs}
    across = jobs if with_itself else jobs[:-1]
    slowdowns, gains = [], []
    for number_of_row, down in enumerate(jobs):
        if not number_of_row and not with_itself:
            continue
        reached = jobs[: number_of_row + with_itself]
        cells = [_both(measured, down, job) if job in reached else ("", "") for job in across]
        slowdowns.append((labels[down], *(times for times, _ in cells)))
        gains.append((labels[down], *(gain for _, gain in cells)))
    headings = ("job", *(labels[job] for job in across))
    return [
        Matrix(
            title=f"Two jobs together: how many times as long as alone, the row's job / the column's job{where}",
            headings=headings,
            cells=tuple(slowdowns),
            where=where,
            jobs=tuple(labels.values()),
            beside=tuple(tuple(_beside(measured, down, across) for across in jobs) for down in jobs),
        ),
        Matrix(
            title="Their overlap gain: 1 is parallel, 0 merely concurrent, below 0 slower than one after the other"
            f"{where}",
            headings=headings,
            cells=tuple(gains),
        ),
    ]


def _beside(measured: dict[tuple[Job, Job], MeasuredGroup], job: Job, other: Job) -> float | str:
    """The slowdown of a job beside the other, or how their pair ended."""
    if (job, other) in measured:
        rows = measured[job, other].rows
    elif (other, job) in measured:
        rows = measured[other, job].rows[::-1]
    else:
        return "" if job == other else UNKNOWN
    if (status := _ending(rows)) != "ok":
        return WORDS.get(status, status)
    return UNKNOWN if rows[0].slowdown is None else rows[0].slowdown


def _both(measured: dict[tuple[Job, Job], MeasuredGroup], down: Job, across: Job) -> tuple[str, str]:
    """The two cells of a pair: `1.51 / 1.70` and `0.25`, or how it ended in both."""
    if (down, across) in measured:
        rows = measured[down, across].rows
    elif (across, down) in measured:
        rows = measured[across, down].rows[::-1]
    else:
        return UNKNOWN, UNKNOWN
    if (status := _ending(rows)) != "ok":
        ended = WORDS.get(status, status)
        return ended, ended
    times = [number(row.slowdown, 2) if row.slowdown is not None else UNKNOWN for row in rows]
    gain = rows[0].overlap_gain
    if gain is None:
        return " / ".join(times), UNKNOWN
    # A gain alone would read as if a verdict could be had from it.
    refused = " (no verdict)" if rows[0].sharing is None else ""
    return " / ".join(times), f"{number(gain, 2)}{refused}"


def _ending(rows: Sequence[Row]) -> str:
    """How a pair ended. One that was skipped was so because of the other."""
    ended = [str(row.status) for row in rows if row.status != "ok"]
    causes = [status for status in ended if status != "skipped"]
    status = (causes or ended or ["ok"])[0]
    return UNKNOWN if status == "missing" else status


def _job(row: Row, own: Sequence[str]) -> Job:
    return tuple(_value(row, field) for field in own)


def _label(job: Job, own: Sequence[str]) -> str:
    """`resnet34 16`, `32 precision=bf16`."""
    parts = [
        cell(value) if field in BARE else _said(field, value)
        for field, value in zip(own, job, strict=True)
        if value is not None or field in ALLOTTED
    ]
    return clean(" ".join(parts)) or "job"
