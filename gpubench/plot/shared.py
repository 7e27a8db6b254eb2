"""What descriptions have in common: names, points of rows, and the sentences of captions. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpubench.basics.words import UNKNOWN, WORDS, clean, listed, many, number
from gpubench.plan.groups import BARE
from gpubench.plot.description import (
    BARS,
    IN_TABLE,
    MARKED_DOUBTS,
    Panel,
    PlottedAxis,
    PlottedPoint,
    PlottedSeries,
)
from gpubench.plot.limits import WIDEST
from gpubench.plot.subject import Subject
from gpubench.plot.table import COLUMN, INTERVALS, PlotTable, known, label
from gpubench.schema.cell import cell
from gpubench.schema.row import Row, TableRow
from gpubench.schema.trial_fields import ABOUT

LOG_FROM = 10.0
"""From this ratio of the largest to the smallest figure an axis from 0 would hide how the small ones differ."""
PERCENT = (0.0, 50.0, 100.0)
"""Labels of an axis of shares."""
DOUBLING_FROM = 7.0
"""From this ratio a field's values are taken for ones that double: 16, 32, …"""
FOUR_DIGITS = 1000.0
"""From here on a whole number has them."""

TITLES: Mapping[str, str] = {
    "batch_size": "global batch size (images)",
    "epoch_time_s": "epoch time (s)",
    "gpu_mem_mib": "GPU memory (MiB)",
    "host_mem_mib": "host memory (MiB)",
    "images_per_s": "throughput (images/s)",
    "cpu_util_pct": "CPU use (%)",
    "gpu_util_pct": "GPU use (%)",
    "top1_pct": "top-1 (%)",
    "energy_j": "energy of an epoch (J)",
    "gpus": "GPUs",
    "speedup": "speedup",
    "slowdown": "slowdown: epoch time together / alone",
    "time_to_top1_s": "training until top-1 (s)",
    "top1_crossing_s": "training until top-1 was crossed (s)",
    "energy_to_top1_j": "energy until top-1 (J)",
}
"""Columns and fields -> what stands along their axes."""


def name_of(name: str) -> str:
    """What a column or field is called in a sentence: `epoch time`."""
    return title_of(name).partition(" (")[0].partition(":")[0]


def title_of(name: str) -> str:
    """What stands along an axis of this column or field, with its unit."""
    if name in TITLES:
        return TITLES[name]
    about = ABOUT.get(name)
    words, unit = (about.heading, about.unit) if about else (COLUMN[name].heading, COLUMN[name].unit)
    words = words or name.replace("_", " ")
    return f"{words} ({unit})" if unit and not words.endswith(f" {unit}") else words


def point(subject: Subject, row: TableRow, x: float, column: str, **more: Any) -> PlottedPoint:
    """The row's figure at `x`, with its interval where it has one."""
    value = row.value(column) if row.status == "ok" else None
    low, high = interval_of(row, column) if value is not None else (None, None)
    return PlottedPoint(
        name=clean(label(row, subject.table.varied)),
        x=x,
        y=None if value is None else float(value),
        low=low,
        high=high,
        status=row.status,
        doubtful=bool(row.doubts),
        written="" if value is None else subject.table.written.get(id(row), {}).get(column, ""),
        told=told(subject, row, column),
        **more,
    )


def told(subject: Subject, row: TableRow, *columns: str, also: Sequence[str] = ()) -> tuple[str, ...]:
    """What the row is, these figures of it as the table writes them, what is `also` said of it, and what is wrong with
    it: a line each."""
    said = [f"job {row.job} of {names[id(row)]}"] if id(row) in (names := subject.table.group_names) else []
    said += [
        f"{heading(field)} {text_of(row, field)}"
        for field in subject.table.varied
        if row.value(field) is not None
    ]
    if row.status == "ok":
        said += [_figure(subject, row, one) for one in columns if row.value(one) is not None]
    else:
        said.append(WORDS.get(row.status, row.status))
    said += also
    if row.doubts:
        said.append(f"doubts: {row.doubts.replace('+', ', ')}")
    return tuple(clean(one) for one in said)


def _figure(subject: Subject, row: TableRow, column: str) -> str:
    """`epoch time 2.06 s (95 %: 1.98 to 2.14)`."""
    cell_text = subject.table.written.get(id(row), {}).get(column) or figure(float(row.value(column)))
    written = cell_text.partition(" ±")[0].partition(" (")[0]  # without the interval, which follows the unit
    said = f"{name_of(column)} {written} {COLUMN[column].unit}".rstrip()
    low, high = interval_of(row, column)
    return said if low is None or high is None else f"{said} (95 %: {figure(low)} to {figure(high)})"


def figure(value: float) -> str:
    """Four digits of a figure that no table has written."""
    if abs(value) >= FOUR_DIGITS:
        return number(value, 0)
    return f"{value:.4g}"


def interval_of(row: TableRow, column: str) -> tuple[float | None, float | None]:
    """Both ends of the 95 % interval over processes that the table has for a column; None for no such interval."""
    time = row.epoch_time_low_s, row.epoch_time_high_s
    joules = row.images_per_joule_low, row.images_per_joule_high
    images = row.images_per_epoch
    ends: tuple[float | None, float | None]
    if column == "images_per_s":
        ends = _over(images, time)
    elif column == "energy_j":
        ends = _over(images, joules)
    else:
        if column not in INTERVALS:
            return None, None
        low, high = (row.value(name) for name in INTERVALS[column])
        ends = low, high
    if ends[0] is None or ends[1] is None or not all(math.isfinite(end) for end in ends if end is not None):
        return None, None
    return ends


def _over(images: int | None, ends: tuple[float | None, float | None]) -> tuple[float | None, float | None]:
    """The ends of so many images over a figure, from those of the figure."""
    if not images or not ends[0] or not ends[1]:
        return None, None
    return images / ends[1], images / ends[0]


Key = tuple[tuple[str, Any], ...]
"""The fields that tell a series from others, with its values."""


def along(table: PlotTable) -> tuple[str, list[Key], list[list[TableRow]]] | None:
    """The table's ordered axis and its series of rows of trials alone, each in order; None where there is no axis.

    None, too, where nothing grows, as where the rows are there only because jobs are compared with them.
    """
    axis, alone = table.table.axis, table.alone
    if axis is None or (all(row.before is None and row.status == "ok" for row in alone)):
        return None
    found = table.series(axis)
    return axis, [key for key, _ in found], [rows for _, rows in found]


def names_of(keys: Sequence[Key]) -> tuple[str, list[str]]:
    """What series differ in, where that is one field, and a name for each."""
    fields = {field for key in keys for field, _ in key}
    if len(fields) == 1:
        (field,) = fields
        return heading(field), [clean(cell(key[0][1]) or UNKNOWN) if key else UNKNOWN for key in keys]
    return "", [clean(" ".join(f"{field}={cell(value)}" for field, value in key)) for key in keys]


def heading(field: str) -> str:
    """What a field is called beside its values: `batch size`."""
    return (ABOUT[field].heading if field in ABOUT else "") or field.replace("_", " ")


def over(
    subject: Subject,
    axis: str,
    names: Sequence[str],
    lines: Iterable[Sequence[TableRow]],
    columns: Sequence[str],
) -> tuple[Panel, ...]:
    """A panel for each column, below each other, with a line for each of these series of rows over the axis."""
    every = [list(rows) for rows in lines]
    x = x_axis(axis, (float(row.value(axis)) for rows in every for row in rows))
    panels = []
    for column in columns:
        series = tuple(
            PlottedSeries(
                name=name,
                look=look,
                points=tuple(point(subject, row, float(row.value(axis)), column) for row in rows),
            )
            for look, (name, rows) in enumerate(zip(names, every, strict=True))
        )
        panels.append(Panel(kind="lines", x=x, y=y_axis(title_of(column), series), series=series))
    return tuple(panels)


def places(subject: Subject, rows: Sequence[TableRow], columns: Sequence[str]) -> tuple[Panel, ...]:
    """A panel for each column, beside each other, with a bar for each row."""
    names = [clean(label(row, subject.table.varied)) or f"row {at}" for at, row in enumerate(rows, 1)]
    if len(set(names)) < len(names):
        names = [f"{name} ({at})" for at, name in enumerate(names, 1)]
    panels = []
    for column in columns:
        points = tuple(point(subject, row, float(at), column) for at, row in enumerate(rows))
        series = (PlottedSeries(name="measured", points=points),)
        panels.append(bars(column, series, names))
    return tuple(panels)


def bars(
    column: str, series: Sequence[PlottedSeries], names: Sequence[str], line_at: float | None = None
) -> Panel:
    """A panel of bars, one or several for each of the places that have these names."""
    axis = y_axis(title_of(column), series, logarithm=False)
    if column == "cpu_util_pct":
        axis = replace(axis, top=PERCENT[-1], ticks=PERCENT)
    return Panel(
        kind="bars",
        x=PlottedAxis(title="", from_zero=False),
        y=axis,
        series=tuple(series),
        places=tuple(names),
        line_at=line_at,
    )


def x_axis(field: str, values: Iterable[float]) -> PlottedAxis:
    """The axis of a field: by doublings where its values are far apart, with a label at each."""
    found = sorted(set(values))
    doubles = (
        bool(found) and found[0] > 0 and (field == "batch_size" or found[-1] / found[0] >= DOUBLING_FROM)
    )
    return PlottedAxis(
        title=title_of(field),
        steps="log2" if doubles else "linear",
        from_zero=False,
        ticks=tuple(found),
    )


def y_axis(title: str, series: Iterable[PlottedSeries], *, logarithm: bool = True) -> PlottedAxis:
    """An axis for these figures: from 0, or by a logarithm, which its title says, where that hides the small ones."""
    points = [p for one in series for p in one.points if p.y is not None]
    values = [p.y for p in points if p.y is not None]
    most = max(values, default=1.0)
    reached = max([most, *(min(p.high, WIDEST * most) for p in points if p.high is not None)])
    if logarithm and far_apart(values):
        return log_axis(title, reached)
    return PlottedAxis(title=title, top=reached)


def far_apart(values: Sequence[float]) -> bool:
    """Whether an axis from 0 would hide how the small ones of these figures differ."""
    return bool(values) and min(values) > 0 and max(values) / min(values) >= LOG_FROM


def log_axis(title: str, top: float | None = None) -> PlottedAxis:
    """An axis by a logarithm, which its title says."""
    return PlottedAxis(
        title=f"{title[:-1]}, log)" if title.endswith(")") else f"{title} (log)",
        steps="log10",
        from_zero=False,
        top=top,
    )


def caption(
    table: PlotTable, drawn: str, rows: Sequence[TableRow], *, intervals: bool = True
) -> tuple[str, ...]:
    """The paragraphs below a picture: what it shows and what its marks mean; what its rows were measured on.

    `intervals`: whether it has figures that may have one.
    """
    said = [drawn, _bars(rows) if intervals else "", _ended(rows, table.varied), _doubts(rows)]
    return " ".join(one for one in said if one), f"{table.facts}."


def _bars(rows: Sequence[TableRow]) -> str:
    """What the bars through points are, or why there are none."""
    ended = [row for row in rows if row.status == "ok"]
    counts = Counter(
        row.repeats for row in ended if row.epoch_time_low_s is not None and row.epoch_time_high_s is not None
    )
    if any(row.source != "measured" for row in ended) and not counts:
        return "No intervals: nobody knows of how many processes the figures are."
    if not counts:
        few = max((row.repeats for row in ended), default=1)
        return "One process each: no interval." if few < 2 else f"{few} processes each: no interval is known."
    sizes = sorted(counts)
    of = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    rest = sum(counts.values()) < len(ended)
    return (
        f"{BARS}95 % intervals over {of} processes"
        f"{'; points without a bar are of one process' if rest else ''}."
    )


def _ended(rows: Sequence[TableRow], fields: Sequence[str]) -> str:
    """Which rows have no figures, and why."""
    by_status: dict[str, list[str]] = {}
    for row in rows:
        if row.status != "ok":
            by_status.setdefault(row.status, []).append(label(row, fields))
    parts = []
    for status, names in by_status.items():
        words = {"missing": "not measured yet", "oom": "oom: out of memory"}.get(status, status)
        told = listed(names) if len(names) < 3 else many(len(names), "row")
        parts.append(f"{told} ({words})")
    return f"No figures: {'; '.join(parts)}." if parts else ""


def _doubts(rows: Sequence[TableRow]) -> str:
    """What `!` means, with the doubts' codes."""
    marked = [row for row in rows if row.doubts and row.status == "ok"]
    codes = dict.fromkeys(code for row in marked for code in (row.doubts or "").split("+"))
    if not codes:
        return ""
    every = len(marked) == sum(row.status == "ok" for row in rows)
    who = MARKED_DOUBTS if not every else "All rows have doubts" if len(marked) > 1 else "The row has doubts"
    return f"{who} ({', '.join(codes)}); {IN_TABLE}"


def fields_without(table: PlotTable, *fields: str) -> list[str]:
    """The fields in which rows differ, but for these."""
    return [field for field in table.varied if field not in fields]


def short(row: Row, fields: Sequence[str]) -> str:
    """A row by these fields: `crop-resize 32 gpus=2`."""
    parts = [
        text_of(row, f) if f in BARE else f"{f}={text_of(row, f)}" for f in fields if row.value(f) is not None
    ]
    return " ".join(parts)


def text_of(row: Row, field: str) -> str:
    """The value of a field as text."""
    return clean(cell(known(row, field))) or UNKNOWN
