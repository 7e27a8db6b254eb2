"""What `gpubench audit` does: a results folder is read, the rules look at it, what they find is printed."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from rich.console import Console

from gpubench.analysis.audit.facts import AuditedFolder, Damaged, FurtherRounds, Shown, StoredAttempt
from gpubench.analysis.audit.rules import audit as look
from gpubench.basics.encodable import encodable
from gpubench.commands.opened import opened, warn
from gpubench.plan.groups import MOST_JOBS
from gpubench.plan.max_batch import are_tries
from gpubench.render.forms import AnswerForm
from gpubench.report import audit as report
from gpubench.report.contents import contents
from gpubench.results.file_names import Numbered, numbered
from gpubench.results.status import FolderStatus, status_by
from gpubench.results.store import Results
from gpubench.schema.record import Record
from gpubench.schema.row import Row
from gpubench.schema.trial import job_ids


def audit(folder: Path | None, *, form: AnswerForm = "text") -> int:
    """`gpubench audit`: 0 whatever the rules find. Raises UnusableError for a folder that can't be read."""
    results, records = opened(folder)
    facts, problems = facts_of(results, records)
    for problem in problems:
        warn(problem)
    found = look(facts)
    console = Console(highlight=False)
    name = str(results.folder)
    if form == "json":
        made = report.json_lines(found)
    elif form == "markdown":
        made = report.as_markdown(name, found)
    else:
        made = report.text(name, found, console.width if console.is_terminal else None)
    sys.stdout.write(encodable(made, console.encoding))
    return 0


def facts_of(results: Results, records: list[Record]) -> tuple[AuditedFolder, list[str]]:
    """What the rules need to know of a folder, and which of its plans could not be read."""
    found = contents(results, records)
    searched = {table.name for table in found.tables if are_tries(table.name, table.trials)}
    tried = {row.trial_id for table in found.tables if table.name in searched for row in table.trials}
    return AuditedFolder(
        tables=tuple(
            Shown(name=t.title, rows=_of_here(t.trials, found.elsewhere), axes=t.axes)
            for t in found.tables
            if t.name not in searched
        ),
        attempts=tuple(
            StoredAttempt(
                trial_id=r.trial_id, number=r.attempt, status=r.status, source=r.source, round=r.round
            )
            for r in records
        ),
        damaged=tuple(
            Damaged(unit_id, number, _trials_of(unit_id))
            for unit_id, number in sorted(results.damaged(records))
        ),
        traces=frozenset(traces(results.folder)),
        planned=frozenset(t.title for t in found.tables if t.experiment in found.planned),
        further=further_rounds(status_by(results, records, found.plans)),
        parts=tuple(dict.fromkeys(str(part) for stored in found.plans for part in stored.parts)),
        tries=sum(record.trial_id in tried for record in records),
        hidden=len(found.superseded & {record.trial_id for record in records}),
    ), found.problems


def _of_here(rows: Sequence[Row], elsewhere: Collection[str]) -> tuple[Row, ...]:
    """The rows without those that other parts of the plan measure."""
    return tuple(row for row in rows if row.trial_id not in elsewhere)


def further_rounds(status: FolderStatus) -> FurtherRounds:
    """What a folder's further rounds come to."""
    later = [one for one in status.rounds if one.number > 1]
    return FurtherRounds(
        done=sum(one.done for one in later),
        failed=sum(one.failed for one in later),
        left=sum(one.left for one in later),
    )


def _trials_of(unit_id: str) -> frozenset[str]:
    """The ids that its trials can have: of a group, whose record can't be read, of as many jobs as there may be."""
    if not unit_id.startswith("g"):
        return frozenset([unit_id])
    return frozenset(job_ids("", unit_id, number)[1] for number in range(MOST_JOBS))


def traces(folder: Path) -> set[Numbered]:
    """(trial id, attempt number) of each log and each file of samples."""
    files = (path for kind in ("logs", "samples") for path in (folder / kind).glob("*/*-*.*"))
    return {name for path in files if (name := numbered(path))}
