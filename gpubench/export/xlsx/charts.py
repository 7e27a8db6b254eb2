"""Charts that Excel draws itself: epoch time and memory of a table over its axis, with intervals as bars."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xlsxwriter import Workbook
from xlsxwriter.utility import quote_sheetname, xl_range_abs
from xlsxwriter.worksheet import Worksheet

from gpubench.basics.words import clean
from gpubench.export.xlsx.grid import printed
from gpubench.plot.shared import Key, heading, name_of, names_of, title_of
from gpubench.plot.table import PlotTable
from gpubench.schema.kinds import as_text
from gpubench.schema.row import TableRow

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Those of M. Okabe and K. Ito, which people with any kind of colour vision tell apart."""
MARKERS = ("circle", "square", "triangle", "diamond", "x", "plus", "star")
DASHES = ("solid", "dash", "round_dot", "dash_dot", "long_dash", "square_dot", "long_dash_dot")
MOST_LINES = 7
"""More can't be told apart."""
MOST_BARS = 30
WIDE = 8.0
"""How many times its smallest value the largest one of an axis is from which on its steps are doublings."""
MOST_ABOVE = 2.5
"""How many times as high as the highest point the end of an interval may move the end of the axis."""
MOST_STEPS = 8
"""Of the axis of figures."""
SIZE = {"width": 480, "height": 320}
"""Pixels."""
HEADER = ("chart", "line", "x", "y", "down to the interval's lower end", "up to its upper end")


@dataclass(frozen=True, kw_only=True, slots=True)
class ChartPoint:
    """A row's place in a chart."""

    x: Any
    y: float | None
    """None: the row has no such figure, and the line a gap."""
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class NativeChart:
    """What a chart shows."""

    title: str
    x_title: str
    y_title: str
    is_numeric: bool
    """Whether x is a number: points on lines; else a bar for each."""
    lines: tuple[tuple[str, tuple[ChartPoint, ...]], ...]
    left_out: int
    """Lines, or bars, for which there is no room."""


def native_charts(table: PlotTable) -> list[NativeChart]:
    """Epoch time and memory of the trials that ran alone, over the axis that growth runs along, else row by row.

    Empty where there is nothing to compare.
    """
    rows, axis = table.alone, table.table.axis
    grouped: list[tuple[Key, list[TableRow]]]
    if axis is None:
        grouped, left_out = [((), rows[:MOST_BARS])], len(rows[MOST_BARS:])
    else:
        found = table.series(axis)
        grouped, left_out = found[:MOST_LINES], len(found[MOST_LINES:])
    made = []
    on_gpu = any(row.status == "ok" and row.gpu_mem_mib for row in rows)
    for name in ("epoch_time_s", "gpu_mem_mib" if on_gpu else "host_mem_mib"):
        what = f"{name_of(name)[0].upper()}{name_of(name)[1:]}"
        lines = tuple(
            (called or clean(table.title), tuple(_points(some, axis, table, name)))
            for called, (_, some) in zip(_names([key for key, _ in grouped]), grouped, strict=True)
        )
        if sum(point.y is not None for _, points in lines for point in points) > 1:
            over = title_of(axis) if axis else ", ".join(map(heading, table.varied))
            made.append(
                NativeChart(
                    title=f"{what} over {name_of(axis)}" if axis else what,
                    x_title=over,
                    y_title=title_of(name),
                    is_numeric=axis is not None,
                    lines=lines,
                    left_out=left_out,
                )
            )
    return made


def _points(rows: Sequence[TableRow], axis: str | None, table: PlotTable, name: str) -> list[ChartPoint]:
    found = []
    for row in rows:
        x = _bar(row, table.varied) if axis is None else row.value(axis)
        if x is None:
            continue
        y = row.value(name) or None if row.status == "ok" else None
        has_interval = name == "epoch_time_s" and y is not None
        low, high = (row.epoch_time_low_s, row.epoch_time_high_s) if has_interval else (None, None)
        found.append(ChartPoint(x=x, y=y, low=low, high=high))
    return found


def _bar(row: TableRow, fields: Sequence[str]) -> str:
    """`pre-resized, 4`: the axis says which fields these are values of."""
    return clean(", ".join(as_text(row.value(field)) for field in fields if row.value(field) is not None))


def _names(keys: Sequence[Key]) -> list[str]:
    """What tells each line from the others, as pictures name it; a chart's legend has no title, so `workers 4`."""
    field, names = names_of(keys)
    is_text = all(isinstance(value, str) for key in keys for _, value in key)
    return names if is_text or not field else [f"{field} {name}" for name in names]


class Charts:
    """Puts charts into a workbook, and the figures that they show onto a sheet of their own."""

    def __init__(self, book: Workbook, data: Worksheet) -> None:
        self.book = book
        self._data = data
        self._row = 1
        bold = book.add_format({"bold": True})
        for index, title in enumerate(HEADER):
            data.write_string(0, index, title, bold)
        data.set_column(0, 1, 34)
        data.set_column(2, 3, 16)
        data.set_column(4, 5, 34)
        data.freeze_panes(1, 0)
        printed(data)

    def made(self, drawn: NativeChart, table: PlotTable) -> Any:
        """The chart, to be inserted."""
        kind = (
            {"type": "scatter", "subtype": "straight_with_markers"}
            if drawn.is_numeric
            else {"type": "column"}
        )
        chart = self.book.add_chart(kind)
        for number, (name, points) in enumerate(drawn.lines):
            chart.add_series(self._series(drawn, f"{table.title}: {drawn.title}", number, name, points))
        chart.set_title({"name": drawn.title, "name_font": {"size": 12}, "overlay": False})
        grid = {"visible": True, "line": {"color": "#D9D9D9", "width": 0.5}}
        chart.set_x_axis(
            {"name": drawn.x_title, "name_font": {"bold": False}, "major_gridlines": grid} | _reach(drawn)
        )
        chart.set_y_axis(
            {
                "name": drawn.y_title,
                "name_font": {"bold": False},
                "min": 0,
                "major_gridlines": grid,
                "num_format": "General" if _highest(drawn) < 10 else "#,##0",
            }
            | y_axis_reach(drawn)
        )
        chart.set_legend({"position": "bottom"} if len(drawn.lines) > 1 else {"none": True})
        chart.show_blanks_as("gap")
        chart.set_size(SIZE)
        return chart

    def _series(
        self, drawn: NativeChart, title: str, number: int, name: str, points: Sequence[ChartPoint]
    ) -> dict[str, Any]:
        first = self._row
        for point in points:
            self._data.write_string(self._row, 0, title)
            self._data.write_string(self._row, 1, name)
            self._write(2, point.x)
            self._write(3, point.y)
            if point.y is not None and point.low is not None and point.high is not None:
                self._write(4, point.y - point.low)
                self._write(5, point.high - point.y)
            self._row += 1
        last = self._row - 1

        def at(column: int) -> str:
            where = quote_sheetname(self._data.name)
            return f"={where}!{xl_range_abs(first, column, last, column)}"

        colour = COLOURS[number % len(COLOURS)]
        made: dict[str, Any] = {
            "name": [self._data.name, first, 1],
            "categories": at(2),
            "values": at(3),
            "categories_data": [point.x for point in points],
            "values_data": [point.y for point in points],
        }
        if drawn.is_numeric:
            made["marker"] = {
                "type": MARKERS[number % len(MARKERS)],
                "size": 7,
                "border": {"color": colour},
                "fill": {"color": colour},
            }
            made["line"] = {"color": colour, "width": 1.75, "dash_type": DASHES[number % len(DASHES)]}
        else:
            made["fill"], made["gap"] = {"color": colour}, 60
        if any(point.low is not None for point in points):
            made["y_error_bars"] = {
                "type": "custom",
                "direction": "both",
                "end_style": 1,
                "minus_values": at(4),
                "plus_values": at(5),
                "line": {"color": colour if drawn.is_numeric else "#000000", "width": 1.25},
            }
        return made

    def _write(self, column: int, value: Any) -> None:
        if isinstance(value, str):
            self._data.write_string(self._row, column, value)
        elif value is not None:
            self._data.write_number(self._row, column, value)


def _highest(drawn: NativeChart) -> float:
    return max((p.y for _, points in drawn.lines for p in points if p.y is not None), default=0.0)


def y_axis_reach(drawn: NativeChart) -> dict[str, Any]:
    """The upper end of the axis of figures where intervals reach above all points, at which programs look alone.

    Intervals that are far longer than the figures themselves are cut, or nothing else could be seen.
    """
    highest = _highest(drawn)
    ends = max((p.high for _, points in drawn.lines for p in points if p.high is not None), default=0.0)
    if ends <= highest:
        return {}
    top = min(ends, MOST_ABOVE * highest)
    whole = 10.0 ** math.floor(math.log10(top))
    step = next(step for step in (whole / 5, whole / 2, whole, 2 * whole) if top / step <= MOST_STEPS)
    return {"max": step * (math.floor(top / step) + 1), "major_unit": step}


def _reach(drawn: NativeChart) -> dict[str, Any]:
    """From where to where the axis of numbers runs: in doublings where they reach far or are such."""
    found = [float(point.x) for _, points in drawn.lines for point in points if drawn.is_numeric]
    if not found or min(found) <= 0 or min(found) == max(found):
        return {}
    if max(found) < WIDE * min(found) and not all(math.log2(one).is_integer() for one in found):
        return {}
    # No point on an edge: LibreOffice draws none there, nor counts it for the other axis.
    low, high = math.ceil(math.log2(min(found))) - 1, math.floor(math.log2(max(found))) + 1
    return {"num_format": "0", "log_base": 2, "min": 2**low, "max": 2**high, "major_unit": 2}
