"""The chart beside a table in a workbook: the figures of its finding's picture, drawn by Excel itself.

`make_chart` chooses what is shown, of a report; `ChartDrawer` puts it into a workbook.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from xlsxwriter import Workbook
from xlsxwriter.chart import Chart
from xlsxwriter.worksheet import Worksheet

from gpubench.core.findings import (
    BatchSizeFinding,
    DevicesFinding,
    Finding,
    NetworkSizeFinding,
    SharingFinding,
    TargetFinding,
    VersusFinding,
)
from gpubench.core.report import Report
from gpubench.export.finding_sheet import Style, to_text
from gpubench.render import words
from gpubench.render.pictures import devices, growth, networks, target, together, vega, ways

Role = Literal["figures", "context", "goal", "answer", "out of memory"]

MOST_SERIES = 30
"""More can't be told apart: then there is no chart."""
MARKERS = ("circle", "square", "triangle", "diamond", "star", "plus", "short_dash")
LIGHT = "#D5D8DD"
"""The colour of bars that figures are held against."""
PIXELS = (560, 340)
BAR_PIXELS, BAR_MARGIN = 16, 110
"""Of the height of a chart of bars: each bar's, and what is above and below them."""
HEADINGS = ("chart", "series", "x", "y", "down to the interval's lower end", "up to its upper end")
"""Of the sheet with the charts' figures."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChartPoint:
    """A figure and its place along the other axis."""

    x: Any = ""
    """Text where places are categories."""
    y: float | None = None
    """None: there is none here, and the series has a gap."""
    low: float | None = None
    high: float | None = None


GAP = ChartPoint()


@dataclass(frozen=True, kw_only=True, slots=True)
class ChartSeries:
    """A line, a curve, or bars of one colour. Those of one chart have the same categories."""

    name: str
    points: tuple[ChartPoint, ...]
    role: Role = "figures"


@dataclass(frozen=True, kw_only=True, slots=True)
class NativeChart:
    """A chart."""

    kind: Literal["line", "bar", "scatter"]
    """line: over categories in equal steps; bar: a horizontal bar a category; scatter: curves over a number."""
    title: str
    """What the figures are, with their unit."""
    x_title: str
    series: tuple[ChartSeries, ...]

    @property
    def top(self) -> float:
        """Where the axis of figures ends: at a round number above all points with their names, and above intervals
        unless these are far longer than the figures themselves."""
        points = [point for series in self.series for point in series.points if point.y is not None]
        figures = [point.y or 0.0 for point in points]
        top = max(1.1 * max(figures), vega.find_end(figures, [point.high for point in points]))
        step = 10.0 ** math.floor(math.log10(top)) / 2 if top > 0 else 1.0
        return step * (math.floor(top / step) + 1)


def make_chart(report: Report) -> NativeChart | None:
    """The chart of the first finding that has one; None where there is nothing to compare."""
    for finding in report.findings:
        make = CHARTS.get(type(finding))
        chart = make(report, finding) if make else None
        if chart is not None and len(chart.series) <= MOST_SERIES:
            return chart
    return None


def chart_growth(report: Report, finding: BatchSizeFinding) -> NativeChart | None:
    """A line a series over the sizes that ran or ran out of memory, the choice and each first size that failed."""
    points = growth.list_points(report)
    if len({point.size for point in points if point.rate is not None}) < 2:
        return None
    unit = growth.name_unit(report)
    sizes = sorted({point.size for point in points})

    def spread(heights: Mapping[int, ChartPoint]) -> tuple[ChartPoint, ...]:
        return tuple(replace(heights.get(size, GAP), x=words.format_axis(size)) for size in sizes)

    lines = []
    failed: dict[int, list[str]] = {}
    for name in growth.name_series(points):
        members = [point for point in points if point.series == name]
        heights = {point.size: ChartPoint(y=point.rate, low=point.low, high=point.high) for point in members}
        lines.append(ChartSeries(name=name or unit, points=spread(heights)))
        for size in [point.size for point in members if point.is_out_of_memory][:1]:
            failed.setdefault(size, []).append(name)
    count = len(lines)
    for size, names in failed.items():
        who = "" if len(names) == count else f"{words.join_words(names)} "
        name = f"{who}{words.format_axis(size)}: {words.STATUSES['oom']}"
        # How fast it would have been is not known: the cross stands on the axis.
        cross = spread({size: ChartPoint(y=0.0)})
        lines.append(ChartSeries(name=name, points=cross, role="out of memory"))
    for point in points:
        if finding.choice and point.row == finding.choice.row and point.rate is not None:
            ring = spread({point.size: ChartPoint(y=point.rate)})
            lines.append(ChartSeries(name=growth.name_rate(point, unit), points=ring, role="answer"))
    return NativeChart(kind="line", title=unit, x_title="batch size, images", series=tuple(lines))


def make_bars(
    title: str, rows: Sequence[Mapping[str, Any]], bars: Mapping[str, tuple[str, Role]]
) -> NativeChart | None:
    """`bars`: key of a row's figure -> the name and the role of its bars. Those with the role `figures` have the row's
    interval, where it has one."""
    rows, left_out = vega.limit_rows(rows)
    series = [
        ChartSeries(
            name=name,
            points=tuple(
                ChartPoint(
                    x=row["name"],
                    y=row[key],
                    low=row.get("low") if role == "figures" else None,
                    high=row.get("high") if role == "figures" else None,
                )
                for row in reversed(rows)  # the first bar stands lowest
            ),
            role=role,
        )
        for key, (name, role) in reversed(list(bars.items()))
        if any(row[key] is not None for row in rows)
    ]
    title = ", ".join(filter(None, (title, left_out)))
    return NativeChart(kind="bar", title=title, x_title="", series=tuple(series)) if series else None


def chart_devices(report: Report, finding: DevicesFinding) -> NativeChart | None:
    rows = devices.list_rows(report, finding)
    for row in rows:
        row["name"] += ", same batch a device" if row["is_weak"] else ""
    return make_bars("times as fast", rows, {"ratio": ("measured", "figures"), "ideal": ("ideal", "goal")})


def chart_networks(report: Report, finding: NetworkSizeFinding) -> NativeChart | None:
    rows = [{**row, "ideal": finding.devices} for row in networks.list_networks(report, finding)]
    return make_bars("times as fast", rows, {"ratio": ("measured", "figures"), "ideal": ("ideal", "goal")})


def chart_sharing(report: Report, finding: SharingFinding) -> NativeChart | None:
    rows = [
        {
            **row,
            "low": row["bound"] if row["bound"] < row["work"] else None,
            "high": row["bound"] if row["bound"] > row["work"] else None,
        }
        for row in together.list_groups(report, finding)
    ]
    return make_bars(
        "work done together, 1 = one job after the other",
        rows,
        {
            "work": ("measured", "figures"),
            "predicted": ("predicted before it ran", "context"),
            "jobs": ("full overlap", "goal"),
        },
    )


def chart_ways(report: Report, finding: VersusFinding) -> NativeChart | None:
    bars: dict[str, tuple[str, Role]] = {
        "candidate": (words.name_value(finding.field, finding.value), "figures"),
        "baseline": (words.name_value(finding.field, finding.baseline), "figures"),
    }
    return make_bars("epoch time, s", ways.list_rows(report, finding), bars)


def chart_target(report: Report, finding: TargetFinding) -> NativeChart | None:
    """Top-1 over the time of training, a curve a run; those that did not reach the target in grey."""
    traces = {row: trace for row, trace in report.training.items() if len(trace) > 1 and row in finding.rows}
    if not traces:
        return None
    curves = [
        ChartSeries(
            name=", ".join(words.describe_target(report, row)[: 2 if row in finding.order else 1]),
            points=tuple(ChartPoint(x=seconds, y=top1) for seconds, top1 in traces[row]),
            role="figures" if row in finding.order else "context",
        )
        for row in target.list_runs(finding, traces)
    ]
    longest = max(seconds for trace in traces.values() for seconds, _ in trace)
    goal = tuple(ChartPoint(x=x, y=finding.target_pct) for x in (0.0, longest))
    curves.append(ChartSeries(name=f"{finding.target_pct:g} % top-1", points=goal, role="goal"))
    return NativeChart(
        kind="scatter",
        title="top-1 on the validation images, %",
        x_title="training time, s",
        series=tuple(curves),
    )


CHARTS: Mapping[type[Finding], Callable[[Report, Any], NativeChart | None]] = {
    BatchSizeFinding: chart_growth,
    DevicesFinding: chart_devices,
    NetworkSizeFinding: chart_networks,
    SharingFinding: chart_sharing,
    TargetFinding: chart_target,
    VersusFinding: chart_ways,
}


class ChartDrawer:
    """Draws charts; their figures stand on a sheet of their own."""

    def __init__(self, book: Workbook, sheet: Worksheet, style: Style) -> None:
        self.book = book
        self.sheet = sheet
        self.row = 1
        """The next one to be written."""
        for place, heading in enumerate(HEADINGS):
            sheet.write_string(0, place, heading, style(bold=True, bottom=1, text_wrap=True))
        sheet.set_column(0, 1, 34)
        sheet.set_column(2, 5, 16)
        sheet.freeze_panes(1, 0)

    def draw(self, chart: NativeChart, name: str) -> Chart:
        """The chart, to be inserted. `name`: of the sheet where it will stand."""
        drawing = self.book.add_chart(
            {"type": chart.kind, "subtype": "straight" if chart.kind == "scatter" else None}
        )
        figures = [place for place, series in enumerate(chart.series) if series.role == "figures"]
        if chart.kind == "bar":
            figures.reverse()  # as bars are, so that each has the colour that it has in the picture
        for number, series in enumerate(chart.series):
            color = figures.index(number) if number in figures else 0
            drawing.add_series(
                self.write_series(chart.kind, series, name) | style_series(chart.kind, series, color)
            )
        drawing.set_title({"name": chart.title, "name_font": {"size": 11, "bold": False}, "overlay": False})
        vertical: dict[str, Any] = {
            "min": 0,
            "max": chart.top,
            "num_format": "#,##0" if chart.top >= 5 else "0.0",
            "major_gridlines": {"visible": True, "line": {"color": "#E6E8EB"}},
        }
        horizontal: dict[str, Any] = {
            "name": chart.x_title,
            "name_font": {"bold": False},
            "major_gridlines": {"visible": False},
        }
        points = [point for series in chart.series for point in series.points]
        if chart.kind == "scatter":
            horizontal |= {"min": 0, "max": max(point.x for point in points), "num_format": "#,##0"}
        # Of bars the figures run along the horizontal axis.
        drawing.set_x_axis(vertical if chart.kind == "bar" else horizontal)
        drawing.set_y_axis(horizontal if chart.kind == "bar" else vertical)
        labelled = [place for place, series in enumerate(chart.series) if series.role in MARKS]
        has_legend = len(chart.series) - len(labelled) > 1
        drawing.set_legend(
            {"position": "bottom", "delete_series": labelled} if has_legend else {"none": True}
        )
        drawing.show_blanks_as("gap")
        width, height = PIXELS
        if chart.kind == "bar":
            height = max(height, BAR_PIXELS * len(points) + BAR_MARGIN)
        drawing.set_size({"width": width, "height": height})
        return drawing

    def write_series(self, kind: str, series: ChartSeries, name: str) -> dict[str, Any]:
        """Puts the points of a series onto the sheet; returns where they stand."""
        first = self.row
        for point in series.points:
            self.sheet.write_string(self.row, 0, name)
            self.sheet.write_string(self.row, 1, to_text(series.name))
            if isinstance(point.x, str):
                self.sheet.write_string(self.row, 2, to_text(point.x))
            else:
                self.sheet.write_number(self.row, 2, point.x)
            down, up = (
                None if end is None or point.y is None else abs(end - point.y)
                for end in (point.low, point.high)
            )
            for place, figure in enumerate((point.y, down, up), start=3):
                if figure is not None:
                    self.sheet.write_number(self.row, place, figure)
            self.row += 1
        x, y, down_column, up_column = (
            f"='{self.sheet.name}'!${letter}${first + 1}:${letter}${self.row}" for letter in "CDEF"
        )
        options: dict[str, Any] = {
            "name": [self.sheet.name, first, 1],
            "categories": x,
            "values": y,
            "categories_data": [point.x for point in series.points],
            "values_data": [point.y for point in series.points],
        }
        if any(end is not None for point in series.points for end in (point.low, point.high)):
            errors = {"type": "custom", "minus_values": down_column, "plus_values": up_column}
            options["x_error_bars" if kind == "bar" else "y_error_bars"] = errors
        return options


MARKS: Mapping[Role, tuple[str, int, str]] = {
    "answer": ("circle", 13, "#000000"),
    "out of memory": ("x", 9, vega.ALARM),
}
"""Single points that carry their names -> marker, its size, its colour."""


def style_series(kind: str, series: ChartSeries, number: int) -> dict[str, Any]:
    """How a series is drawn. `number`: its place among those with figures."""
    color = vega.COLORS[number % len(vega.COLORS)] if series.role == "figures" else vega.CONTEXT
    if series.role in MARKS:
        marker, size, color = MARKS[series.role]
        edge = {"color": color, "width": 1.75}
        return {
            "line": {"none": True},
            "marker": {"type": marker, "size": size, "border": edge, "fill": {"none": True}},
            "data_labels": {
                "series_name": True,
                "value": False,
                "position": "above",
                "font": {"color": color},
            },
        }
    if kind == "bar":
        return {"fill": {"color": LIGHT if series.role == "goal" else color}, "gap": 60}
    line: dict[str, Any] = {"color": color, "width": 2.25 if series.role == "figures" else 1.25}
    if series.role == "goal":
        line["dash_type"] = "dash"
    if kind == "scatter":
        return {"line": line, "marker": {"type": "none"}}
    shape, fill = MARKERS[number % len(MARKERS)], {"color": color}
    return {"line": line, "marker": {"type": shape, "size": 6, "border": fill, "fill": fill}}
