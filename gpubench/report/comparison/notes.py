"""Below two sides: what was not compared, what answers rest on, and what may be wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpubench.analysis.comparing import MEMORY_SOURCE, MEMORY_SPREAD, SideBySide
from gpubench.analysis.settle import further
from gpubench.analysis.settle import sentence as settling
from gpubench.basics.words import clean, listed, many
from gpubench.report.comparison.figure_words import TOLD
from gpubench.report.comparison.trial_names import ended, fields_of, own_fields, trial_name
from gpubench.schema.row import TableRow

MOST_NAMED = 8
"""Rows of a list that are named one by one; JSON has all."""

DOUBTED = "!"
"""Stands behind a figure of a row with doubts."""
INDENT = "  "
"""Before the lines of a list."""


def notes(of: SideBySide) -> list[str]:
    """Below: what was not compared, what answers rest on, and what may be wrong."""
    fields = fields_of(of)
    matching = of.matching
    said = []
    named = [f"{trial_name(a, fields)} ({ended(a)} in A, {ended(b)} in B)" for a, b in of.not_ok]
    said += _some(f"Not compared, for not both ended ok: {many(len(named), 'trial')}", named)
    named = [
        f"{trial_name(one.a[0], fields)} ({len(one.a)} in A, {len(one.b)} in B)" for one in matching.several
    ]
    said += _some(f"Not compared, for several match: {many(len(named), 'place')}", named)
    for name, rows in (("A", matching.only_a), ("B", matching.only_b)):
        own = own_fields(rows, fields)
        said += _some(f"Only in {name}: {many(len(rows), 'trial')}", [trial_name(row, own) for row in rows])
    said += _rests(of)
    return [clean(one) for one in said]


def _some(title: str, names: Sequence[str]) -> list[str]:
    """A line that says what is listed, and a line for each of the first; nothing for none."""
    if not names:
        return []
    more = len(names) - MOST_NAMED
    rest = [f"{INDENT}and {more} more, which --json lists"] if more > 0 else []
    return [f"{title}:", *(f"{INDENT}{name}" for name in names[:MOST_NAMED]), *rest]


def _rests(of: SideBySide) -> list[str]:
    said = []
    every = [(name, found) for one in of.beside for name, found in one.figures.items()]
    if of.family:
        said.append(
            "Changes are of B against A; in brackets are 95 % intervals over processes."
            + (
                f" Answers are corrected for {many(of.family, 'claim')} together, so one may be open though its "
                "interval leaves out 0."
                if of.family > 1
                else ""
            )
        )
    said += _would_settle(of)
    if any(found.basis == "exact" for _, found in every):
        said.append(
            f"Memory is taken for exact: processes of one configuration differed by {100 * MEMORY_SPREAD:g} % at most "
            "where it was measured, on one GPU, by the driver's figure of the trial's own processes "
            f"({MEMORY_SOURCE})."
            + (" No more than that is no regression." if of.threshold is not None else "")
        )
    for why in dict.fromkeys(found.why for _, found in every if found.why):
        names = dict.fromkeys(TOLD[name].title for name, found in every if found.why == why)
        said.append(
            f"{listed(list(names))}: {why}; the change is plain arithmetic, and says nothing by itself."
        )
    shared = sum(not attempts_of(one.a).isdisjoint(attempts_of(one.b)) for one in of.beside)
    if shared:
        said.append(
            f"{many(shared, 'trial')} rest on some of the same attempts on both sides: what these have in common "
            "tells nothing of a difference."
        )
    doubted = sum(bool(one.a.doubts or one.b.doubts) for one in of.beside)
    if doubted:
        said.append(
            f"{DOUBTED} marks {many(doubted, 'trial')} with doubts on a side; gpubench table says which."
        )
    return said


def attempts_of(row: TableRow) -> set[tuple[object, ...]]:
    """What a row was measured in, so that one knows it again in another folder."""
    runs = row.runs or [row]
    return {(run.trial_id, run.round, run.started_at, run.host, run.epoch_time_s) for run in runs}


def _would_settle(of: SideBySide) -> list[str]:
    """What it would take to tell more of times that are open."""
    times = [(one, one.figures["time"]) for one in of.beside if "time" in one.figures]
    opened = [found.interval for _, found in times if found.word == "open" and found.interval]
    said = []
    if opened:
        how = replace(further([row for one, _ in times for row in (one.a, one.b)]), turns=())
        some_decided = any(found.interval and found.word != "open" for _, found in times)
        whose = "Times" if some_decided else "Of times that are open"
        takes = settling(opened, of.family, how, some_decided=some_decided)
        said.append(f"{whose}: {takes}, on both sides.")
    if any(found.basis == "one process" for _, found in times):
        said.append("Of rows of one process gpubench sweep … --rounds 3, on both sides, would tell more.")
    return said
