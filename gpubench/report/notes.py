"""The remarks under a table: what its marks mean, what failed and why; and how rows are named in a few words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpubench.analysis.varied import label, unit
from gpubench.basics.words import LOGGED, WORDS, all_of, clean, listed, many
from gpubench.report import nodes, spread
from gpubench.report.groups import agree, number_of
from gpubench.schema.row import Row, TableRow

SILENT = ("ok", "missing")
"""Endings of which no reason need be told."""


def remarks(rows: Sequence[TableRow], fields: Sequence[str]) -> list[str]:
    """Marks, then reasons. `rows`: the table's, repeats merged. `fields`: those that tell them apart."""
    said = []
    if any(row.epoch_time_source == "extrapolated" for row in rows):
        said.append("~ marks an epoch time extrapolated from the steps that were measured.")
    said += spread.sentences(rows)
    said += nodes.sentences(rows, lambda some: which(some, rows, fields))
    return [clean(note) for note in (*said, *_missed(rows, fields), *_reasons(rows, fields))]


def _missed(rows: Sequence[TableRow], fields: Sequence[str]) -> list[str]:
    sentences: dict[str, list[Row]] = {}
    for row in rows:
        if row.until_top1 and row.reached < (tried := sum(run.has_all_figures for run in row.runs)):
            whose = f" in {tried - row.reached} of {tried} processes" if row.reached else ""
            missed = f"Top-1 of {row.until_top1:g} % was not reached within {many(row.epochs or 0, 'epoch')}{whose}"
            sentences.setdefault(missed, []).append(row)
    return [f"{text} ({which(some, rows, fields)})" for text, some in sentences.items()]


def _reasons(rows: Sequence[TableRow], fields: Sequence[str]) -> list[str]:
    """Why trials did not end ok, each reason once, of every repeat; with the log of what the processes printed."""
    found: dict[str, list[tuple[Row, Row]]] = {}
    for row in rows:
        for one in row.not_ok if row.endings != "oom" else ():
            if one.status not in SILENT or (one.status == "missing" and one.reason):
                reason = (one.reason or "no reason was recorded").strip().splitlines()[0]
                text = f"{WORDS.get(one.status, one.status)}: {reason}"
                found.setdefault(text, []).append((row, one))
    notes = []
    for text, pairs in found.items():
        mine = list({id(row): row for row, _ in pairs}.values())
        logs = [one.log for _, one in pairs if one.log and one.status in LOGGED]
        notes.append(f"{text} ({which(mine, rows, fields)}{_logs(logs)})")
    return notes


def _logs(logs: Sequence[str]) -> str:
    """`; log: logs/ab/tab12-1.log and 2 more`: what to read first."""
    more = f" and {len(logs) - 1} more" if len(logs) > 1 else ""
    return f"; log: {logs[0]}{more}" if logs else ""


def which(some: Sequence[Row], rows: Sequence[Row], fields: Sequence[str]) -> str:
    """Names `some` of a table's `rows` in a few words."""
    if len(some) == len(rows):
        return "all rows" if len(rows) > 1 else "the only row"
    names = _names(some, fields)
    if len(names) > 3:
        return f"{len(some)} of {len(rows)} rows, the first: {names[0]}"
    return "; ".join(names)


def _names(some: Sequence[Row], fields: Sequence[str]) -> list[str]:
    """A name a row, but one for all jobs of a group: `3 copies: jobs 1 and 3 of 3, batch_size=16`."""
    of_groups: dict[tuple[Any, ...], list[Row]] = {}
    for index, row in enumerate(some):
        together = (row.group, unit(row)) if number_of(row) else (index,)
        of_groups.setdefault(together, []).append(row)
    return [
        _jobs(mine, fields) if number_of(mine[0]) else label(mine[0], fields) for mine in of_groups.values()
    ]


def _jobs(mine: Sequence[Row], fields: Sequence[str]) -> str:
    size = str(mine[0].job).rpartition(" ")[2]
    numbers = [str(number_of(row)) for row in mine]
    every = len(set(numbers)) == int(size)
    said = all_of(int(size), "job") if every else f"job{'s' * (len(mine) > 1)} {listed(numbers)} of {size}"
    alike = [field for field in fields if field not in ("group", "job") and agree(field, [mine])]
    parts = [f"{mine[0].group}: {said}" if "group" in fields else said, label(mine[0], alike)]
    return ", ".join(part for part in parts if part)
