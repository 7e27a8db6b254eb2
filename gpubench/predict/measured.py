"""Groups of stored records as their tables show them: of each job one slowdown, over all of its processes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpubench.analysis.repeats import merge_repeats
from gpubench.analysis.stored_groups import with_verdicts
from gpubench.analysis.varied import solo, unit, where
from gpubench.results.counting import counting
from gpubench.results.rows import row_of
from gpubench.schema.record import Record
from gpubench.schema.row import Row, TableRow, replace


def rows_of(records: Sequence[Record]) -> list[Row]:
    """The rows of one folder's records that count, each repeat in each round by itself, in the order of these."""
    allowances = {id(record): key[-1] for key, record in counting(records).items()}
    rows = [row_of(record, allowances[id(record)]) for record in records if id(record) in allowances]
    return with_verdicts(rows, solo(rows))


def measured_groups(folders: Sequence[Sequence[Row]]) -> list[list[TableRow]]:
    """The jobs of each group that these folders hold, all repeats and rounds of a job as one row.

    A group that was measured in two folders counts as two, and each has a `group_id` of its own; the same attempts in
    two folders count once, where there are most of them. `folders`: the rows of each, as `rows_of` gives them.
    """
    groups = [jobs for rows in folders for jobs in _gathered(merge_repeats(rows))]
    most_first = sorted(range(len(groups)), key=lambda place: -sum(len(job.runs) for job in groups[place]))
    seen: set[Any] = set()
    kept = set()
    for place in most_first:
        own = {(run.trial_id, run.started_at, run.job) for job in groups[place] for run in _runs(job)}
        if not own & seen:
            kept.add(place)
            seen |= own
    return [_named(jobs) for place, jobs in enumerate(groups) if place in kept]


def _gathered(rows: Sequence[TableRow]) -> list[list[TableRow]]:
    found: dict[Any, list[TableRow]] = {}
    for row in rows:
        if row.group:
            own = unit(row) or (row.experiment, row.group, row.repeat)
            found.setdefault((row.group, own, where(row)), []).append(row)
    return list(found.values())


def _named(jobs: list[TableRow]) -> list[TableRow]:
    """The jobs with an id that tells their group from the same group measured elsewhere."""
    start = min(run.started_at or "" for job in jobs for run in _runs(job))
    return [replace(job, group_id=job.group_id and f"{job.group_id} of {start}") for job in jobs]


def _runs(job: TableRow) -> list[Row]:
    return [*job.runs, *job.not_ok]
