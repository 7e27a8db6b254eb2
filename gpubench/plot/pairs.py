"""Every job beside every other: a matrix of slowdowns. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpubench.analyze.series import CANDIDATES
from gpubench.basics.words import UNKNOWN, WORDS, clean, number
from gpubench.plan.groups import BARE
from gpubench.plot.description import Cell, Panel, Picture, PlottedAxis
from gpubench.plot.shared import caption
from gpubench.plot.subject import Subject
from gpubench.plot.table import PlotTable, as_asked, known
from gpubench.schema.cell import cell
from gpubench.schema.record import ALLOTTED
from gpubench.schema.row import TableRow

FEWEST = 3
"""Pairs, and jobs, from which a matrix tells more than the rows do."""
Pair = Sequence[TableRow]
Job = tuple[Any, ...]
"""What tells one job from the others: its values of the fields in which jobs differ."""


def pictures(subject: Subject) -> Sequence[Picture]:
    """A picture for each combination of the other axes, and for each set of GPUs: two jobs on GPUs of their own tell
    nothing of two on one GPU."""
    table = subject.table
    found = [
        (where, jobs, measured)
        for where, pairs in part_pairs(table)
        if (beside := match_jobs(table, pairs)) is not None
        for jobs, measured in [beside]
    ]
    rows = [row for row in table.rows if row.group]
    return [
        Picture(
            name="pairs",
            part=str(place) if len(found) > 1 else "",
            experiment=table.name,
            of=table.title,
            shows=f"slowdown of two jobs together{f' ({where})' if where else ''}",
            panels=(
                Panel(
                    kind="cells",
                    x=PlottedAxis(title="beside this job", from_zero=False),
                    y=PlottedAxis(title="slowdown of this job", from_zero=False),
                    places=tuple(jobs.values()),
                    cells=tuple(
                        _cell(down, across, measured.get((job, other)), is_same=job == other)
                        for down, job in enumerate(jobs)
                        for across, other in enumerate(jobs)
                    ),
                ),
            ),
            caption=caption(
                table,
                "How many times as long as alone the job of a row takes beside the job of a column.",
                rows,
                intervals=False,
            ),
        )
        for place, (where, jobs, measured) in enumerate(found, 1)
    ]


def part_pairs(table: PlotTable) -> list[tuple[str, list[Pair]]]:
    """The pairs of jobs that belong into one matrix, with what all of them share and others don't."""
    pairs: list[Pair] = [rows for _, rows in table.groups if len(rows) == 2]
    shared = [
        field for field in _fields(table) if all(_value(a, field) == _value(b, field) for a, b in pairs)
    ]
    parts: dict[Job, list[Pair]] = {}
    for pair in pairs:
        gpus = tuple(sorted({ids for row in pair if (ids := known(row, "gpu_ids"))}))
        place = (pair[0].gpu_name, gpus, *(_value(pair[0], field) for field in shared))
        parts.setdefault(place, []).append(pair)
    enough = {place: pairs for place, pairs in parts.items() if len(pairs) >= FEWEST}
    several = [len({place[at] for place in enough}) > 1 for at in range(2)]
    found = []
    for (machine, gpus, *values), pairs in enough.items():
        said = [_say(field, value) for field, value in zip(shared, values, strict=True)]
        said += [f"gpu_ids={' and '.join(map(cell, gpus))}"] if gpus and several[1] else []
        said += [str(machine)] if machine and several[0] else []
        found.append((clean(", ".join(said)), pairs))
    return found


def match_jobs(
    table: PlotTable, pairs: Sequence[Pair]
) -> tuple[dict[Job, str], Mapping[tuple[Job, Job], Pair]] | None:
    """The jobs with their names, and each two that were measured beside each other; None of too few."""
    own = [field for field in _fields(table) if any(_value(a, field) != _value(b, field) for a, b in pairs)]
    measured: dict[tuple[Job, Job], Pair] = {}
    names: dict[Job, str] = {}
    for pair in pairs:
        first, second = (tuple(_value(row, field) for field in own) for row in pair)
        names |= {job: _name(job, own) for job in (first, second) if job not in names}
        measured.setdefault((first, second), pair)
        measured.setdefault((second, first), pair[::-1])
    different = {frozenset(both) for both in measured if both[0] != both[1]}
    return (names, measured) if min(len(different), len(names)) >= FEWEST else None


def _cell(down: int, across: int, pair: Pair | None, *, is_same: bool) -> Cell:
    """The slowdown of a pair's first job, or how the pair ended."""
    value, text = None, "" if is_same else UNKNOWN
    if pair is not None and (status := _ending(pair)) != "ok":
        text = WORDS.get(status, status)
    elif pair is not None and (value := pair[0].slowdown) is not None:
        text = number(value, 2)
    return Cell(row=down, column=across, value=value, text=text)


def _ending(pair: Pair) -> str:
    """How a pair ended. One that was skipped was so because of the other."""
    ended = [row.status for row in pair if row.status != "ok"]
    status = str(([status for status in ended if status != "skipped"] or ended or ["ok"])[0])
    return UNKNOWN if status == "missing" else status


def _fields(table: PlotTable) -> list[str]:
    """The fields in which jobs differ. What a job merely gets because of its neighbour makes it no other job."""
    jobs = [row for row in table.rows if row.group]
    return [
        field
        for field in CANDIDATES
        if (len({_value(row, field) for row in jobs}) > 1 if field in ALLOTTED else field in table.varied)
    ]


def _value(row: TableRow, field: str) -> Any:
    """What a job has; of what is divided, what it asked for: None if nothing."""
    value = row.asked[field] if field in ALLOTTED and field in row.asked else known(row, field)
    return tuple(value) if isinstance(value, list) else value


def _say(field: str, value: Any) -> str:
    return f"{field}={'auto' if value is None and field in ALLOTTED else as_asked(value)}"


def _name(job: Job, own: Sequence[str]) -> str:
    """`resnet34 16`, `32 precision=bf16`."""
    parts = [
        cell(value) if field in BARE else _say(field, value)
        for field, value in zip(own, job, strict=True)
        if value is not None or field in ALLOTTED
    ]
    return clean(" ".join(parts)) or "job"
