"""What `gpubench audit` does: a results folder is read, the rules look at it, what they find is printed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

from rich.console import Console

from gpubench.analysis.audit.facts import Attempt, Facts, Shown
from gpubench.analysis.audit.rules import audit as look
from gpubench.report import audit as report
from gpubench.report import terminal
from gpubench.result import Record
from gpubench.runner.command import complain, opened
from gpubench.runner.tables import contents
from gpubench.store import Results

Form = Literal["text", "markdown", "json"]


def audit(folder: Path | None, *, form: Form = "text") -> int:
    """`gpubench audit`: 0 whatever the rules find. Raises UnusableError for a folder that can't be read."""
    results, records = opened(folder)
    facts, problems = facts_of(results, records)
    for problem in problems:
        complain(problem)
    found = look(facts)
    console = Console(highlight=False)
    name = str(results.folder)
    if form == "json":
        made = report.json_lines(found)
    elif form == "markdown":
        made = report.as_markdown(name, found)
    else:
        made = report.text(name, found, console.width if console.is_terminal else None)
    sys.stdout.write(terminal.encodable(made, console.encoding))
    return 0


def facts_of(results: Results, records: list[Record]) -> tuple[Facts, list[str]]:
    """What the rules need to know of a folder, and which of its plans could not be read."""
    found = contents(results, records)
    return Facts(
        tables=tuple(Shown(name=t.name, rows=t.trials, axes=t.axes) for t in found.tables),
        attempts=tuple(
            Attempt(trial_id=r.trial_id, number=r.attempt, status=r.status, source=r.source) for r in records
        ),
        traces=frozenset(traces(results.folder)),
        planned=frozenset(found.planned),
        hidden=len(found.superseded & {record.trial_id for record in records}),
    ), found.problems


def traces(folder: Path) -> set[tuple[str, int]]:
    """(trial id, attempt number) of each log, each file of samples and each record, damaged ones too."""
    found = set()
    for kind in ("logs", "samples", "records"):
        for path in (folder / kind).glob("*/*-*.*"):
            trial, _, number = path.stem.rpartition("-")
            if path.name.startswith(
                (".", "g")
            ):  # half written, or of a group, whose jobs have traces of their own
                continue
            if number.isdecimal():
                found.add((trial, int(number)))
    return found
