"""The sentences under a table: marks, what failed and why, doubts."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.analysis.varied import Row, label
from gpubench.report.cells import epoch_time
from gpubench.report.words import clean


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
    # One note a doubt: its figures are those of the first row that has it, which is where the eye goes.
    doubted: dict[str, list[Row]] = {}
    for row in rows:
        for code in filter(None, (row.get("doubts") or "").split("+")):
            doubted.setdefault(code, []).append(row)
    for code, some in doubted.items():
        text = (some[0].get("doubt_texts") or {}).get(code)
        sentences[f"Doubt {code}: {text}" if text else f"Doubt {code}"] = some
    return said_first + [clean(f"{said} ({which(some, rows, fields)})") for said, some in sentences.items()]


def which(some: Sequence[Row], rows: Sequence[Row], fields: Sequence[str]) -> str:
    """Names `some` of a table's `rows` in a few words."""
    if len(some) == len(rows):
        return "all rows" if len(rows) > 1 else "the only row"
    if len(some) > 3:
        return f"{len(some)} of {len(rows)} rows, the first: {label(some[0], fields)}"
    return "; ".join(label(row, fields) for row in some)
