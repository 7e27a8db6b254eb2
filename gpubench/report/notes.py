"""The sentences under a table: marks, what failed and why, doubts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpubench.analysis.repeats import codes
from gpubench.analysis.varied import Row, label
from gpubench.report.cells import DOUBTED, epoch_time
from gpubench.report.groups import agree, number_of
from gpubench.report.words import clean, listed


def notes(rows: Sequence[Row], fields: Sequence[str]) -> list[str]:
    said_first = []
    if any(row.get("epoch_time_source") == "extrapolated" for row in rows):
        said_first.append("~ marks an epoch time extrapolated from the steps that were measured.")
    if any(
        " ± " in epoch_time(row, row["epoch_time_s"], 2)
        for row in rows
        if row.get("epoch_time_s") is not None
    ):
        over = "repeats" if any(row["repeats"] > 1 for row in rows) else "measured epochs"
        said_first.append(f"± is half the interquartile range over {over}.")
    sentences: dict[str, list[Row]] = {}
    for row in rows:
        if row.get("until_top1") and row["reached"] < row["repeats"]:
            whose = (
                f" in {row['repeats'] - row['reached']} of {row['repeats']} repeats" if row["reached"] else ""
            )
            missed = (
                f"Top-1 of {row['until_top1']:g} % was not reached within {row.get('epochs')} epochs{whose}"
            )
            sentences.setdefault(missed, []).append(row)
        if row["endings"] not in ("ok", "oom", "missing"):
            reason = (row.get("reason") or "no reason was recorded").strip().splitlines()[0]
            sentences.setdefault(f"{row['endings']}: {reason}", []).append(row)
    said = [f"{text} ({which(some, rows, fields)})" for text, some in sentences.items()]
    doubts = _doubts(rows, fields)
    mark = [f"{DOUBTED} marks rows with doubts, which follow."] if doubts else []
    return [clean(note) for note in (*said_first, *said, *mark, *doubts)]


def _doubts(rows: Sequence[Row], fields: Sequence[str]) -> list[str]:
    """One note a doubt, with the figures of the first row that has it; rows with figures of their own are named."""
    doubted: dict[str, list[Row]] = {}
    for row in rows:
        for code in codes(row):
            doubted.setdefault(code, []).append(row)
    found = []
    for code, some in doubted.items():
        text = _doubt(some[0], code)
        same = [row for row in some if _doubt(row, code) == text]
        others = [row for row in some if _doubt(row, code) != text]
        where = which(same, rows, fields)
        where += f"; likewise, with figures of their own: {which(others, rows, fields)}" if others else ""
        found.append(f"Doubt {code}{f': {text}' if text else ''} ({where})")
    return found


def _doubt(row: Row, code: str) -> str | None:
    return (row.get("doubt_texts") or {}).get(code)


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
    for place, row in enumerate(some):
        unit = (row["group"], row.get("group_id")) if number_of(row) else (place,)
        of_groups.setdefault(unit, []).append(row)
    return [
        _jobs(mine, fields) if number_of(mine[0]) else label(mine[0], fields) for mine in of_groups.values()
    ]


def _jobs(mine: Sequence[Row], fields: Sequence[str]) -> str:
    size = str(mine[0]["job"]).rpartition(" ")[2]
    numbers = [str(number_of(row)) for row in mine]
    every = len(set(numbers)) == int(size)
    said = f"all {size} jobs" if every else f"job{'s' * (len(mine) > 1)} {listed(numbers)} of {size}"
    alike = [field for field in fields if field not in ("group", "job") and agree(field, [mine])]
    parts = [f"{mine[0]['group']}: {said}" if "group" in fields else said, label(mine[0], alike)]
    return ", ".join(part for part in parts if part)
