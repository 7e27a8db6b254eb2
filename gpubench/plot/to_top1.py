"""Time and energy until a top-1 was reached. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.basics.words import clean, listed, many
from gpubench.plot.description import Picture
from gpubench.plot.shared import along, caption, names_of, over, places
from gpubench.plot.subject import Subject
from gpubench.plot.table import label
from gpubench.schema.row import TableRow
from gpubench.schema.top1_crossing import CONFIRMED

TIME, CROSSING, ENERGY = "time_to_top1_s", "top1_crossing_s", "energy_to_top1_j"


def pictures(subject: Subject) -> Sequence[Picture]:
    """Over the ordered axis, a panel each for time and energy; without an axis, bars.

    Where rows have several seeds, the time is that of the crossing between two evaluations, for which there are
    intervals over them.
    """
    table = subject.table
    asked = [row for row in table.alone if row.until_top1]
    time = CROSSING if any(row.top1_crossing_low_s is not None for row in asked) else TIME
    shown = [column for column in (time, ENERGY) if any(row.value(column) is not None for row in asked)]
    if not shown:
        return ()
    targets = " or ".join(dict.fromkeys(f"{row.until_top1:g}\u00a0%" for row in asked if row.until_top1))
    found = along(table)
    if found is None:
        panels, legend = places(subject, asked, shown), ""
    else:
        axis, keys, lines = found
        legend, names = names_of(keys)
        panels = over(subject, axis, names, lines, shown)
    said = f"Training until {targets} top-1: first epoch included, evaluation not."
    return (
        Picture(
            name="to-top1",
            experiment=table.name,
            of=table.title,
            shows=f"training until top-1 of {targets}",
            panels=panels,
            legend=legend,
            caption=caption(
                table, f"{said}{_crossed(asked) if time == CROSSING else ''}{_never(asked, table.varied)}",
                asked, intervals=False,
            ),
        ),
    )  # fmt: skip


def _crossed(rows: Sequence[TableRow]) -> str:
    """What the times of several seeds are, and which of them no further evaluation has confirmed."""
    known = [row for row in rows if row.top1_crossing_s is not None]
    counts = sorted({row.repeats for row in known if row.top1_crossing_low_s is not None})
    seeds = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    single = any(row.top1_crossing_low_s is None for row in known)
    unsure = sum(row.top1_crossing != CONFIRMED for row in known)
    fell = sum(row.top1_crossing_s is None and row.time_to_top1_s is not None for row in rows)
    said = [
        f"Times: the crossing on a straight line between two evaluations, with 95 % intervals over {seeds} seeds",
        *(["points without a bar are of one seed"] if single else []),
        *([f"{unsure} of {len(known)} not confirmed by a further evaluation"] if unsure else []),
        *([f"no time for {many(fell, 'row')} of which not every seed stayed there"] if fell else []),
    ]
    return f" {'; '.join(said)}."


SEVERAL = 2
"""Seeds of a row, of which some may reach a top-1 and others not."""


def _never(rows: Sequence[TableRow], fields: Sequence[str]) -> str:
    late = [row for row in rows if row.status == "ok" and row.time_to_top1_s is None]
    never = [clean(label(row, fields)) for row in late if row.repeats < SEVERAL]
    not_all = [clean(label(row, fields)) for row in late if row.repeats >= SEVERAL]
    said = f" Never reached: {listed(never)}." if never else ""
    return f"{said} Not reached by every seed: {listed(not_all)}." if not_all else said
