"""Every job beside every other, two at a time: half a matrix of slowdowns, and one of overlap gains. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpubench import result
from gpubench.analysis.varied import Axes, Row, known, machine, varied
from gpubench.report.groups import Group, agree
from gpubench.report.words import BARE, UNKNOWN, clean, number

FEWEST = 3
"""Pairs, and jobs, from which a matrix tells more than the rows do."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Matrix:
    """Final text, laid out by whoever prints it."""

    title: str
    headings: tuple[str, ...]
    """Over the columns, the first of which names the row's job."""
    cells: tuple[tuple[str, ...], ...]


Job = tuple[Any, ...]
"""What tells one job from the others: its values of the fields in which jobs differ."""


def matrices(groups: Sequence[Group], axes: Axes = ()) -> list[Matrix]:
    """Two matrices for each combination of the other axes: slowdowns and overlap gains. None for too few pairs."""
    pairs = [group for group in groups if len(group.rows) == 2]
    fields = varied([row for pair in pairs for row in pair.rows], axes)
    others = [field for field in fields if agree(field, [pair.rows for pair in pairs])]
    own = [field for field in fields if field not in others]
    places: dict[tuple[Any, ...], list[Group]] = {}
    for pair in pairs:
        first = pair.rows[0]
        place = (machine(first), *(known(first, field) for field in others))
        places.setdefault(place, []).append(pair)
    several = len({place[0] for place in places} - {None}) > 1
    found = []
    for (where, *_), mine in places.items():
        said = [f"{field}={result.cell(known(mine[0].rows[0], field))}" for field in others]
        said += [str(where)] if several and where else []
        found += _matrices(mine, own, f" ({', '.join(said)})" if said else "")
    return found


def _matrices(pairs: Sequence[Group], own: Sequence[str], where: str) -> list[Matrix]:
    measured: dict[tuple[Job, Job], Group] = {}
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
        ),
        Matrix(
            title=f"Their overlap gain: 1 is parallel, 0 merely concurrent{where}",
            headings=headings,
            cells=tuple(gains),
        ),
    ]


def _both(measured: dict[tuple[Job, Job], Group], down: Job, across: Job) -> tuple[str, str]:
    """The two cells of a pair: `1.51 / 1.70` and `0.25`, or how it ended in both."""
    if (down, across) in measured:
        rows = measured[down, across].rows
    elif (across, down) in measured:
        rows = measured[across, down].rows[::-1]
    else:
        return UNKNOWN, UNKNOWN
    if (ended := _ending(rows)) != "ok":
        return ended, ended
    times = [number(row["slowdown"], 2) if row.get("slowdown") is not None else UNKNOWN for row in rows]
    gain = rows[0].get("overlap_gain")
    return " / ".join(times), UNKNOWN if gain is None else number(gain, 2)


def _ending(rows: Sequence[Row]) -> str:
    """How a pair ended. One that was skipped was so because of the other."""
    ended = [str(row["status"]) for row in rows if row["status"] != "ok"]
    causes = [status for status in ended if status != "skipped"]
    status = (causes or ended or ["ok"])[0]
    return UNKNOWN if status == "missing" else status


def _job(row: Row, own: Sequence[str]) -> Job:
    return tuple(known(row, field) for field in own)


def _label(job: Job, own: Sequence[str]) -> str:
    """`resnet34 16`, `32 precision=bf16`."""
    parts = [
        result.cell(value) if field in BARE else f"{field}={result.cell(value)}"
        for field, value in zip(own, job, strict=True)
        if value is not None
    ]
    return clean(" ".join(parts)) or "job"
