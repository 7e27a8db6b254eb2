"""The table that stands on a terminal between rounds: a few columns and rows of it, as far as there is room. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpubench.analysis.noise import process_interval
from gpubench.basics.words import clean, many, number
from gpubench.plan.outlook import Left, place
from gpubench.plan.rounds import Rounds
from gpubench.report import layout
from gpubench.report.notes import which
from gpubench.report.spread import UNKNOWN_PCT
from gpubench.report.table import Table
from gpubench.report.terminal import style
from gpubench.schema.row import TableRow

if TYPE_CHECKING:
    from rich.text import Text

PRECISION = "±"
"""What the column of half widths is called."""
WANTED = (
    "epoch_time_s", PRECISION, "repeats", "status", "gpu_mem_mib", "slowdown", "overlap_gain", "images_per_s",
    "epoch_time_growth_pct",
)  # fmt: skip
"""Columns beside those that tell rows apart, the most wanted first: as many of them as there is room for."""
FEWEST_ROWS = 2
"""Rows under which no table is shown, unless it has no more."""


def standing(table: Table, width: int, height: int) -> list[Text]:
    """Lines of the table, at most so wide and so many; none where that is too few.

    Rows for which there is no room are those that are known best, and those without a time; the last line counts them.
    """
    from rich.text import Text

    names, headings, cells, right = _columns(table)
    top, body = layout.padded(headings, cells, right)
    widths = [len(cell) for cell in top[0]]
    block = _fitting(table, names, widths, width)
    rule = Text(layout.GAP.join("─" * widths[n] for n in block), "dim")
    head = [*(Text(layout.GAP.join(cells[n] for n in block), "bold") for cells in top), rule]
    groups = _groups(table)
    shown = _rows(table, groups, height - len(head))
    if len(shown) < min(FEWEST_ROWS, len(table.rows)):
        return []
    lines, before = head, ""
    for one in shown:
        if groups[one] != before:
            lines.append(Text(groups[one], "bold"))
        before = groups[one]
        line, endings = Text(), str(table.rows[one].endings)
        for n in block:
            line.append(body[one][n], style(names[n], endings))
            line.append(layout.GAP)
        lines.append(line)
    hidden = len(table.rows) - len(shown)
    if hidden:
        lines.append(Text(f"{many(hidden, 'row')} not shown: the surest, or without a time", "dim"))
    for line in lines:
        line.rstrip()
        line.truncate(width, overflow="ellipsis")
    return lines


def round_line(round_: int, rounds: Rounds, table: Table, left: Left) -> str:
    """`round 2 of 5: widest interval ± 4.1 % (batch_size=16); about 3 min left`, once a round is over."""
    known = [(half, row) for row in table.rows if (half := half_pct(row)) is not None]
    if known:
        half, row = max(known, key=lambda one: one[0])
        place_of = [*(("group", "job") if row.group else ()), *table.varied]
        said = f"widest interval {_plus_minus(half)} ({which([row], table.rows, place_of)})"
    else:
        said = "each row is of one process" if any(row.repeats for row in table.rows) else "no row has a time"
    return f"{place(round_, rounds)}: {said}{f'; {left}' if left.seconds else ''}"


def half_pct(row: TableRow) -> float | None:
    """Half the 95 % interval of a row's epoch time, in per cent of it; None where it is of one process."""
    known = process_interval(row)
    return None if known is None else known.half_pct


def _plus_minus(half: float) -> str:
    return f"± >{UNKNOWN_PCT:g} %" if half > UNKNOWN_PCT else f"± {number(half, 1)} %"


def _columns(table: Table) -> tuple[list[str], list[str], list[list[str]], list[bool]]:
    """The table's columns with that of half widths behind the time: names, headings, cells by rows, alignment."""
    names, headings = [column.name for column in table.columns], list(table.headings)
    cells, right = [list(row) for row in table.cells], list(table.right)
    halves = [half_pct(row) for row in table.rows]
    if "epoch_time_s" in names and any(half is not None for half in halves):
        after = names.index("epoch_time_s") + 1
        names.insert(after, PRECISION)
        headings.insert(after, PRECISION)
        right.insert(after, True)
        for row, half in zip(cells, halves, strict=True):
            row[after - 1] = row[after - 1].removesuffix(f" ± >{UNKNOWN_PCT:g} %")  # the next column says it
            row.insert(after, "" if half is None else _plus_minus(half).removeprefix("± "))
    return names, headings, cells, right


def _fitting(table: Table, names: Sequence[str], widths: Sequence[int], width: int) -> list[int]:
    """Columns by number, in the table's order: those that tell rows apart, and of WANTED what fits beside them."""
    chosen = {n for n, name in enumerate(names) if name in (*table.varied, *layout.PLACE)}
    used = sum(widths[n] + len(layout.GAP) for n in chosen) - len(layout.GAP)
    for name in WANTED:
        if name in names and (n := names.index(name)) not in chosen:
            more = widths[n] + len(layout.GAP) * bool(chosen)
            if used + more > width:
                break
            chosen.add(n)
            used += more
    return sorted(chosen)


def _groups(table: Table) -> list[str]:
    """The name of the group that each row belongs to; empty for a trial alone."""
    found, name = [], ""
    for number_, row in enumerate(table.rows):
        name = layout.section(table, number_) or (name if row.group else "")
        found.append(clean(name))
    return found


def _rows(table: Table, groups: Sequence[str], height: int) -> list[int]:
    """Rows by number, in the table's order: all, or those that are the least sure, with a line to spare."""
    least_sure_first = sorted(range(len(table.rows)), key=lambda n: -_doubt(table.rows[n]))
    for count in range(len(table.rows), 0, -1):
        shown = sorted(least_sure_first[:count])
        above = {groups[n] for n in shown} - {""}
        if count + len(above) + (count < len(table.rows)) <= height:
            return shown
    return []


def _doubt(row: TableRow) -> float:
    """How unsure a row's time is: more than any interval where it is of one process, less where there is none."""
    if not row.repeats:
        return -1.0
    half = half_pct(row)
    return math.inf if half is None else half
