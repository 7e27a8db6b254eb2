"""Epoch time and memory over the batch size, or whatever else grows along the ordered axis. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gpubench.basics.words import listed
from gpubench.plot.description import Picture
from gpubench.plot.shared import (
    along,
    caption,
    fields_without,
    name_of,
    names_of,
    over,
    text_of,
)
from gpubench.plot.subject import Subject
from gpubench.schema.row import TableRow

FEWEST = 2
"""Points of one series from which a growth can be seen."""


def pictures(subject: Subject) -> Sequence[Picture]:
    """Two panels that share the x axis: the epoch time, and below it the memory where it is known."""
    table = subject.table
    found = along(table)
    if found is None:
        return ()
    axis, keys, lines = found
    if axis == "gpus" or not any(
        sum(row.status == "ok" and row.epoch_time_s is not None for row in rows) >= FEWEST for rows in lines
    ):
        return ()
    legend, names = names_of(keys)
    memory = next(
        (one for one in ("gpu_mem_mib", "host_mem_mib") if any(r.value(one) for r in table.alone)), None
    )
    columns = ["epoch_time_s", *([memory] if memory else [])]
    what = "Epoch time and memory" if memory else "Epoch time"
    by = name_of(axis)
    return (
        Picture(
            name="growth",
            experiment=table.name,
            of=table.title,
            shows=f"{what.lower()} over {by}",
            panels=over(subject, axis, names, lines, columns),
            legend=legend if fields_without(table, axis) else "",
            caption=caption(
                table,
                f"{what} over {by}{_moved(table.varied, axis, lines)}.",
                [row for rows in lines for row in rows],
            ),
        ),
    )


def _moved(fields: Sequence[str], axis: str, series: Iterable[Sequence[TableRow]]) -> str:
    """Which other fields change along a curve."""
    every = list(series)
    moved = [
        f for f in fields if f != axis and any(len({text_of(row, f) for row in rows}) > 1 for rows in every)
    ]
    return f", along which {listed(moved)} {'move' if len(moved) > 1 else 'moves'}" if moved else ""
