"""Every job beside every other: a matrix of slowdowns. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.basics.words import number
from gpubench.plot.description import Cell, Panel, Picture, PlottedAxis
from gpubench.plot.shared import caption
from gpubench.plot.subject import Subject


def pictures(subject: Subject) -> Sequence[Picture]:
    """One picture for each matrix of slowdowns that the table has."""
    table = subject.table
    found = [matrix for matrix in table.matrices if matrix.beside]
    jobs = [row for row in table.rows if row.group]
    return [
        Picture(
            name="pairs",
            part=str(place + 1) if len(found) > 1 else "",
            experiment=table.name,
            of=table.title,
            shows=f"slowdown of two jobs together{matrix.where}",
            panels=(
                Panel(
                    kind="cells",
                    x=PlottedAxis(title="beside this job", from_zero=False),
                    y=PlottedAxis(title="slowdown of this job", from_zero=False),
                    places=matrix.jobs,
                    cells=tuple(
                        Cell(
                            row=down,
                            column=across,
                            value=told if isinstance(told, float) else None,
                            text=number(told, 2) if isinstance(told, float) else told,
                        )
                        for down, line in enumerate(matrix.beside)
                        for across, told in enumerate(line)
                    ),
                ),
            ),
            caption=caption(
                table,
                "How many times as long as alone the job of a row takes beside the job of a column.",
                jobs,
                intervals=False,
            ),
        )
        for place, matrix in enumerate(found)
    ]
