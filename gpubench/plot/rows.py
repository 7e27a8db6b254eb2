"""Rows side by side where nothing is ordered, as networks are not: epoch time, memory, CPU use and top-1. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.basics.words import listed
from gpubench.plot import alternatives, growth, scaling
from gpubench.plot.description import Picture
from gpubench.plot.shared import caption, name_of, places
from gpubench.plot.subject import Subject

COLUMNS = ("epoch_time_s", "gpu_mem_mib", "cpu_util_pct", "top1_pct")
FEWEST, MOST = 2, 60
"""Rows: of more nobody could read the bars."""


def pictures(subject: Subject) -> Sequence[Picture]:
    """A panel for each column that two rows have; none where another picture sets these rows side by side."""
    table = subject.table
    rows = [row for row in table.alone if row.status not in ("missing", "skipped")]
    if any(row.group for row in table.rows) or not FEWEST <= len(rows) <= MOST:
        return ()
    if any(kind.pictures(subject) for kind in (growth, scaling, alternatives)):
        return ()
    ended = [row for row in rows if row.status == "ok"]
    shown = [c for c in COLUMNS if sum(row.value(c) is not None for row in ended) >= FEWEST]
    if not shown:
        return ()
    words = listed([name_of(column) for column in shown])
    return (
        Picture(
            name="rows",
            experiment=table.name,
            of=table.title,
            shows=words,
            panels=places(subject, rows, shown),
            caption=caption(table, f"{words[:1].upper()}{words[1:]} of each row.", rows),
        ),
    )
