"""What the page's pictures show: pure descriptions, built from a `Table`. assets/page.js draws them.

The only file here that decides what is drawn; a description from elsewhere may take its place as long as the page gets
`PagePicture`s.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gpubench.analysis.growth import moves_with, ordered_axis, series
from gpubench.analysis.scaling import DEVICES, devices
from gpubench.analysis.varied import asked, label, solo
from gpubench.basics.words import WORDS, clean, listed
from gpubench.report.table import COLUMN, Table
from gpubench.schema.cell import cell
from gpubench.schema.row import TableRow

MOST_SERIES = 8
"""There are as many colours and shapes."""
MOST_BARS = 40
"""More of them nobody can read."""
MOST_ROWS = 5_000
"""A table of more has no pictures: they could not be read, and the page would grow without end."""

NAMES: Mapping[str, str] = {
    "epoch_time_s": "epoch time",
    "gpu_mem_mib": "GPU memory",
    "cpu_util_pct": "CPU use",
    "top1_pct": "top-1",
    "time_to_top1_s": "time to top-1",
    "energy_j": "energy an epoch",
    "images_per_s": "throughput",
    "speedup": "speedup",
    "slowdown": "slowdown",
    "predicted_slowdown": "predicted slowdown",
}
ENDS: Mapping[str, tuple[str, str]] = {
    "epoch_time_s": ("epoch_time_low_s", "epoch_time_high_s"),
    "slowdown": ("slowdown_low", "slowdown_high"),
    "speedup": ("speedup_low", "speedup_high"),
}
"""Column -> the columns of its 95 % interval."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PagePoint:
    """One row in a picture."""

    x: float | str
    """The place along the axis; of bars, the row's name."""
    y: float | None
    """None: a gap."""
    tip: str
    """What is told of it: one line a fact."""
    low: float | None = None
    high: float | None = None
    oom: bool = False
    predicted: float | None = None
    name: str = ""
    """Stands beside the point, where dots have no line."""
    figure: str = ""
    """`y` as the table writes it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PagePicture:
    """One picture."""

    kind: Literal["lines", "bars", "dots"]
    title: str
    caption: str
    """What it shows, in words: its text alternative, beside the table that holds the figures."""
    x: str
    """Title of the axis, with its unit."""
    y: str
    series: Mapping[str, Sequence[PagePoint]]
    log_x: bool = False
    log_y: bool = False
    ideal: Sequence[tuple[float, float]] = ()
    """Points of the line that devices would reach that lose nothing."""
    reference: float | None = None
    """Where a line stands that bars are read against."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _KnownTable:
    """A table, with what points are told by, looked up once."""

    table: Table
    axis: str | None
    cells: Mapping[int, Sequence[str]]
    """Row -> its cells."""
    groups: Mapping[int, str]
    """Row -> what its group is called."""
    lines: Mapping[str, Sequence[TableRow]]
    """Rows along the ordered axis, by what tells their series; empty where there is nothing to follow."""


def pictures(table: Table) -> list[PagePicture]:
    """Those that this table's figures allow, the main ones first; none of a table that is too long for any."""
    if len(table.rows) > MOST_ROWS:
        return []
    axis = ordered_axis(table.axes, table.rows)
    known = _KnownTable(
        table=table,
        axis=axis,
        lines=_lines(table, axis) if axis is not None else {},
        cells={id(row): cells for row, cells in zip(table.rows, table.cells, strict=True)},
        groups=group_labels(table),
    )
    return [one for make in (_along, _slowdowns, _scaling, _bars, _energy) for one in make(known)]


def group_labels(table: Table) -> dict[int, str]:
    """Row -> what its group is called. In a table's cells that stands in the first row of each alone."""
    index = next((number for number, one in enumerate(table.columns) if one.name == "group"), None)
    found: dict[int, str] = {}
    last = ""
    for row, cells in zip(table.rows, table.cells, strict=True):
        if row.group:
            last = (cells[index] if index is not None else "") or last or clean(row.group)
            found[id(row)] = last
    return found


def _along(known: _KnownTable) -> Iterator[PagePicture]:
    """Lines over the ordered axis: epoch time and memory; where variants differ, CPU use and top-1 beside them."""
    table = known.table
    axis, named = known.axis, known.lines
    if axis is None or not named or (known.groups and axis not in asked(table.axes)):
        return  # rows that jobs are compared with are no curve
    wanted = ["epoch_time_s", "gpu_mem_mib"]
    wanted += ["cpu_util_pct", "top1_pct"] if "variant" in table.varied else []
    wanted += ["time_to_top1_s"]
    for column in wanted:
        drawn = _drawn(known, named, axis, column)
        if any(sum(point.y is not None for point in points) > 1 for points in drawn.values()):
            xs = [float(point.x) for points in drawn.values() for point in points]
            log_x = _doubling(xs)
            log_y = not column.endswith("_pct") and _wide(drawn)
            yield PagePicture(
                kind="lines",
                title=f"{_upper(NAMES[column])} over {_called(axis)}",
                caption=_caption(known, column, drawn, named, log_x, log_y),
                x=_upper(_called(axis)),
                y=_titled(column),
                series=drawn,
                log_x=log_x,
                log_y=log_y,
            )


def _lines(table: Table, axis: str) -> dict[str, list[TableRow]]:
    """Rows along the ordered axis, by what tells their series; empty where there is nothing to follow."""
    rows = [row for row in solo(table.rows) if row.value(axis) is not None]
    named: dict[str, list[TableRow]] = {}
    for key, members in series(rows, axis, moves_with(axis, table.axes, rows)).items():
        name = clean(" ".join(f"{field}={cell(value)}" for field, value in key if value is not None))
        named.setdefault(name, []).extend(members)
    if not any(len({row.value(axis) for row in members}) > 1 for members in named.values()):
        return {}
    return {name: sorted(members, key=lambda row: float(row.value(axis))) for name, members in named.items()}


def _scaling(known: _KnownTable) -> Iterator[PagePicture]:
    """Throughput over devices with the ideal line, one picture for each way to scale."""
    table = known.table
    for kind, column in (("strong", "strong_efficiency_pct"), ("weak", "weak_efficiency_pct")):
        if all(one.name != column for one in table.columns):
            continue
        rows = [row for row in solo(table.rows) if row.value(column) is not None]
        if len({devices(row) for row in rows}) < 2:
            continue
        measure = "images_per_s" if all(row.images_per_s for row in rows) else "speedup"
        named = _scaled(table, rows, kind)
        drawn = _drawn(known, named, devices, measure)
        if not drawn:
            continue
        what = "GPUs" if any(row.gpus for row in rows) else "ranks"
        base = min(rows, key=lambda row: (devices(row), -(row.value(measure) or 0)))
        most = max(devices(row) for row in rows)
        one = (base.value(measure) or 0) / devices(base)
        same = "the same global batch" if kind == "strong" else f"the same batch a {what[:-1]}"
        yield PagePicture(
            kind="lines",
            title=f"{_upper(NAMES[measure])} over {what}, {same}",
            caption=f"{_upper(NAMES[measure])} over the number of {what} with {same}. The dashed line is what "
            f"{what} would reach that lose nothing, from {devices(base)} up."
            + _bars_mean(drawn)
            + _left_out(named, drawn),
            x=what,
            y=_titled(measure),
            series=drawn,
            # On even scales alone is what grows with the devices a straight line.
            ideal=[(float(devices(base)), one * devices(base)), (float(most), one * most)],
        )


def _scaled(table: Table, rows: Sequence[TableRow], kind: str) -> dict[str, list[TableRow]]:
    """Rows by what tells their series. A row on one device is the beginning of each strategy's."""
    apart = [
        f for f in table.varied if f not in {*DEVICES, "gpu_ids", "strategy", "batch_size", "workers", "cpus"}
    ]

    def key(row: TableRow) -> tuple[Any, ...]:
        share = (row.batch_size or 0) / (devices(row) if kind == "weak" else 1)
        return (share, *(cell(row.value(field)) for field in apart))

    strategies = list(
        dict.fromkeys(row.strategy for row in rows if row.strategy and row.strategy != "single")
    )
    several = len({key(row)[0] for row in rows}) > 1
    named: dict[str, list[TableRow]] = {}
    for strategy in strategies or [""]:
        for row in sorted(rows, key=devices):
            if row.strategy not in (strategy, "single", None):
                continue
            batch = f"batch {key(row)[0]:g}{' a device' if kind == 'weak' else ''}" if several else ""
            name = " ".join(part for part in (strategy, batch, label(row, apart)) if part)
            named.setdefault(clean(name), []).append(row)
    return {name: members for name, members in named.items() if len({devices(row) for row in members}) > 1}


def _bars(known: _KnownTable) -> Iterator[PagePicture]:
    """Where nothing is ordered: rows beside each other, by time, memory, CPU use and top-1."""
    table = known.table
    rows = [row for row in solo(table.rows) if row.status == "ok"]
    if known.groups or not 2 <= len(rows) <= MOST_BARS or known.lines:
        return
    names = [clean(label(row, table.varied)) or f"row {number}" for number, row in enumerate(rows, 1)]
    if len(set(names)) < len(names):  # two bars of one name would lie upon each other
        names = [f"{name} ({number})" for number, name in enumerate(names, 1)]
    for column in ("epoch_time_s", "gpu_mem_mib", "cpu_util_pct", "top1_pct"):
        points = [
            _point(known, row, name, column)
            for row, name in zip(rows, names, strict=True)
            if row.value(column) is not None
        ]
        if len(points) > 1:
            drawn = {"": points}
            yield PagePicture(
                kind="bars",
                title=_upper(NAMES[column]),
                caption=f"{_upper(NAMES[column])} of each row, from 0." + _bars_mean(drawn),
                x=_titled(column),
                y="",
                series=drawn,
            )


def _slowdowns(known: _KnownTable) -> Iterator[PagePicture]:
    """What jobs cost each other."""
    table = known.table
    jobs = [row for row in table.rows if row.group and row.slowdown is not None]
    if not 1 <= len(jobs) <= MOST_BARS:
        return
    points: list[PagePoint] = []
    for row in jobs:
        own = " ".join(cell(row.value(f)) for f in table.varied if f in ("model", "variant", "batch_size"))
        name = clean(f"{known.groups[id(row)]}: job {row.job}" + (f", {own}" if own else ""))
        if any(point.x == name for point in points):
            name = f"{name} ({len(points) + 1})"
        point = _point(known, row, name, "slowdown")
        points.append(point)
    predicted = any(point.predicted is not None for point in points)
    yield PagePicture(
        kind="bars",
        title="How many times as long as alone",
        caption="Epoch time of each job together with its neighbours, over that of the same trial alone; 1 is as fast "
        "as alone."
        + (" The upright marks are what the trials alone predicted." if predicted else "")
        + _bars_mean({"": points}),
        x="Times as long as alone",
        y="",
        series={"": points},
        reference=1.0,
    )


def _energy(known: _KnownTable) -> Iterator[PagePicture]:
    """Energy against time: which rows are beaten in both."""
    if all(one.name != "energy_j" for one in known.table.columns):
        return
    rows = [
        row for row in solo(known.table.rows) if row.energy_j is not None and row.epoch_time_s is not None
    ]
    lines = known.lines
    axis = known.axis if lines else None
    told = {id(row) for row in rows}
    named = {
        name: [row for row in members if id(row) in told] for name, members in (lines or {"": rows}).items()
    }
    drawn = _drawn(known, named, "epoch_time_s", "energy_j", axis)
    if sum(len(points) for points in drawn.values()) < 3:
        return
    beside = f" The number beside a point is its {_called(axis)}." if axis else ""
    yield PagePicture(
        kind="dots",
        title="Energy against epoch time",
        caption=f"Energy an epoch over epoch time; further left is faster, further down takes less energy.{beside}"
        + _left_out(named, drawn),
        x=_titled("epoch_time_s"),
        y=_titled("energy_j"),
        series=drawn,
    )


def _point(
    known: _KnownTable, row: TableRow, x: float | str, column: str, beside: str | None = None
) -> PagePoint:
    """A row as a point. `beside`: the field that names it."""
    ends = ENDS.get(column)
    low, high = (_finite(row.value(end)) for end in ends) if ends else (None, None)
    y = _finite(row.value(column))
    whole = None not in (y, low, high)
    return PagePoint(
        x=x,
        y=y,
        low=low if whole else None,
        high=high if whole else None,
        oom=row.status == "oom" and y is None,
        predicted=_finite(row.predicted_slowdown) if column == "slowdown" else None,
        tip="\n".join(clean(line) for line in _told(known, row, column)),
        name=cell(row.value(beside)) if beside else "",
        figure=_shown(known, row, column) if y is not None else "",
    )


def _told(known: _KnownTable, row: TableRow, column: str) -> Iterator[str]:
    """What the row is, its figure as the table writes it, and how it ended where that was badly."""
    if row.group:
        yield f"job {row.job} of {known.groups[id(row)]}"
    for field in known.table.varied:
        if row.value(field) is not None:
            yield f"{_called(field)} {cell(row.value(field))}"
    beside = {"energy_j": ["epoch_time_s"], "slowdown": ["predicted_slowdown", "epoch_time_s"]}
    for one in (column, *beside.get(column, ())):
        if row.value(one) is not None:
            yield _figure(known, row, one)
    if row.status != "ok":
        yield WORDS.get(row.status, row.status)


def _figure(known: _KnownTable, row: TableRow, column: str) -> str:
    """`epoch time 2.06 s (95 %: 1.98 to 2.14)`."""
    shown = _shown(known, row, column)
    said = f"{NAMES[column]} {shown} {COLUMN[column].unit}".rstrip()
    low, high = (row.value(end) for end in ENDS.get(column, ("reason", "reason")))
    if isinstance(low, float) and isinstance(high, float) and "(" not in shown:
        said += f" (95 %: {low:.4g} to {high:.4g})"
    return said


def _shown(known: _KnownTable, row: TableRow, column: str) -> str:
    """A figure as the table writes it."""
    index = next((number for number, one in enumerate(known.table.columns) if one.name == column), None)
    return f"{row.value(column):.4g}" if index is None else known.cells[id(row)][index]


def _drawn(
    known: _KnownTable,
    named: Mapping[str, Sequence[TableRow]],
    place: str | Callable[[TableRow], float],
    column: str,
    beside: str | None = None,
) -> dict[str, list[PagePoint]]:
    """Those series that have figures, as many as can be told apart. `place`: what tells where a row stands across."""
    found: dict[str, list[PagePoint]] = {}
    for name, rows in named.items():
        points = [
            _point(known, row, float(place(row) if callable(place) else row.value(place)), column, beside)
            for row in rows
        ]
        if len(found) < MOST_SERIES and any(one.y is not None for one in points):
            found[name] = points
    return found


def _left_out(named: Collection[str], drawn: Collection[str]) -> str:
    more = len(named) - len(drawn)
    return f" {more} more series, without figures or without room, are left to the table." if more else ""


def _caption(
    known: _KnownTable,
    column: str,
    drawn: Mapping[str, Sequence[PagePoint]],
    named: Mapping[str, Sequence[TableRow]],
    log_x: bool,
    log_y: bool,
) -> str:
    axis = known.axis or ""
    both = " on logarithmic scales" if log_x and log_y else ""
    one = " on a logarithmic scale" if log_x or log_y else ""
    said = f"{_upper(NAMES[column])} over {_called(axis)}{both or one}.{_bars_mean(drawn)}"
    points = [point for points in drawn.values() for point in points]
    if any(point.oom for point in points):
        sizes = sorted({float(point.x) for point in points if point.oom})
        said += (
            f" A cross marks where memory ran out ({_called(axis)} {listed([cell(size) for size in sizes])})."
        )
    if any(point.y is None and not point.oom for point in points):
        said += " Rows without a figure have no point."
    return said + _left_out(named, drawn)


def _bars_mean(drawn: Mapping[str, Sequence[PagePoint]]) -> str:
    """What upright lines through points are, where there are any."""
    known = [point for points in drawn.values() for point in points if point.y is not None]
    with_ends = [point for point in known if point.low is not None]
    if not with_ends:
        return ""
    some = "" if len(with_ends) == len(known) else ", where a row is of several"
    return f" Thin lines through points or ends of bars are 95 % intervals over processes{some}."


def _doubling(values: Sequence[float]) -> bool:
    """Whether values rather double than count: 16, 32, 64, …"""
    found = sorted(set(values))
    return len(found) > 2 and found[0] > 0 and found[-1] / found[0] >= 4 * len(found) / 3


def _wide(drawn: Mapping[str, Sequence[PagePoint]]) -> bool:
    ys = [point.y for points in drawn.values() for point in points if point.y]
    return bool(ys) and min(ys) > 0 and max(ys) / min(ys) > 8


def _finite(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None


def _called(field: str) -> str:
    """As people say it: `batch size`, `GPUs`."""
    return COLUMN[field].heading or field.replace("_", " ")


def _titled(column: str) -> str:
    unit = COLUMN[column].unit
    return f"{_upper(NAMES[column])}{f' ({unit})' if unit else ''}"


def _upper(said: str) -> str:
    return said[:1].upper() + said[1:]
