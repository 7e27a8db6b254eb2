"""A report's table as text in cells, before any medium sets it: figures, headings, heads of groups, endings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gpubench.basics.quoted import clean_line
from gpubench.core.findings import collect_job_groups, format_possible_overlaps
from gpubench.core.report import Cell, Report, ReportColumn, ReportRow
from gpubench.render import words
from gpubench.schema.cell import format_cell
from gpubench.schema.columns import TABLE_BY_NAME

Tone = Literal["plain", "better", "worse", "running"]

CHANGES = ("gpu_mem_growth_pct", "epoch_time_growth_pct")
"""Columns of signed changes in per cent."""
RATIOS = ("speedup", "slowdown", "work", "strong_efficiency_pct", "weak_efficiency_pct", "overlap_gain")
"""Columns whose intervals are told by their ends, not as ± per cent: a reader looks which side of 1 they are on."""
WIDE, WIDER = 1.0, "±100+%"
"""Half an interval from which on nothing is known but that it is as wide, and what stands there."""
CLOSE = 1.1
"""Values of one cell that lie as close together as this (the largest over the least) are told as a span."""


@dataclass(frozen=True, slots=True)
class GridCell:
    """One cell."""

    text: str
    bar: float | None = None
    """0 to 1."""
    tone: Tone = "plain"
    """Whether it holds a comparison that is better or worse, sure or likely."""


@dataclass(frozen=True, slots=True)
class GridRow:
    """A row of cells; of one that has no figures, `ending` stands in place of those that are empty at its end."""

    cells: tuple[GridCell, ...]
    ending: str = ""
    is_answer: bool = False
    is_warned: bool = False
    is_pending: bool = False
    """Whether it is still to be measured."""

    def list_texts_with_ending(self) -> list[str]:
        """The texts of its cells, its ending in the first that is empty."""
        texts = [cell.text for cell in self.cells]
        if self.ending and "" in texts:
            texts[texts.index("")] = self.ending
        return texts


@dataclass(frozen=True, slots=True)
class GridGroup:
    """Rows under a head, which is empty for the only group."""

    head: str
    rows: tuple[GridRow, ...]
    is_warned: bool = False
    """Whether all its rows have the same warnings, which then stand at its head alone."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table."""

    series: tuple[str, ...]
    """Upper line of the headings, one a column: what series it is of; all empty where no series stand side by side."""
    headings: tuple[str, ...]
    is_number: tuple[bool, ...]
    groups: tuple[GridGroup, ...]

    @property
    def rows(self) -> list[GridRow]:
        """All rows, whatever group they stand in."""
        return [row for group in self.groups for row in group.rows]


def make_grid(report: Report) -> Grid:
    """The report's table as text."""
    headings = [words.format_column_heading(report, column) for column in report.columns]
    jobs = {group.rows: words.name_group(report, group) for group in collect_job_groups(report.findings)}
    groups = []
    for group in report.groups:
        common = {row.warnings for row in group.rows}
        is_common = len(group.rows) > 1 and len(common) == 1 and common != {()}
        rows = tuple(_make_row(report, row, jobs, is_marked=not is_common) for row in group.rows)
        groups.append(GridGroup(words.name_row(group.head), rows, is_common))
    return Grid(
        tuple(series for series, _ in headings),
        tuple(heading for _, heading in headings),
        tuple(column.is_number for column in report.columns),
        tuple(groups),
    )


def _make_row(
    report: Report, row: ReportRow, jobs: Mapping[tuple[int, ...], str], *, is_marked: bool
) -> GridRow:
    cells = tuple(
        GridCell(jobs[row.labels])
        if column.name == "group" and row.labels in jobs
        else make_cell(column, cell)
        for column, cell in zip(report.columns, row.cells, strict=True)
    )
    ending = "" if row.status == "ok" else words.describe_ending(report, row)
    return GridRow(cells, ending, row.is_answer, bool(row.warnings) and is_marked)


def make_cell(column: ReportColumn, cell: Cell) -> GridCell:
    """A cell's text with its interval, and a question mark where the comparison in it is unknown."""
    if cell.status != "ok":
        return GridCell(words.STATUSES.get(cell.status, cell.status))
    if cell.value is None:
        return GridCell("")
    text = format_value(column, cell.value)
    if cell.low is not None or cell.high is not None:
        text += f" {_format_interval(column, cell)}"
    if cell.word == "unknown" and isinstance(cell.value, (int, float)):
        text += " ?"
    return GridCell(text, cell.bar, _find_tone(column, cell))


def format_value(column: ReportColumn, value: Any) -> str:
    """A value by its column: `1,234`, `4.90`, `+62 %`, `0.78 / 1.41`, `1.87–1.99`."""
    if column.name == "overlap":
        return format_possible_overlaps([value] if isinstance(value, str) else value)
    if isinstance(value, (tuple, list)):
        return _format_job_values(column, value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return clean_line(value if isinstance(value, str) else format_cell(value), 80)
    if value != value:
        return words.UNKNOWN
    if column.name in CHANGES:
        return words.format_change(value)
    if column.name in ("strong_efficiency_pct", "weak_efficiency_pct"):
        return f"{words.format_number(value)} %"
    if column.name == "memory_gib":
        return words.format_gib(1024 * value)
    if column.name in RATIOS:
        return words.format_ratio(value)
    if isinstance(value, int):
        return f"{value:,}"
    definition = TABLE_BY_NAME.get(column.name)
    if definition is not None and definition.unit == "%":
        return words.format_number(value, definition.digits)
    return words.format_significant(value, 2 if column.name == "gmacs_per_image" else 3)


def _format_job_values(column: ReportColumn, values: Sequence[Any]) -> str:
    """Values of several jobs; empty ones as a dash."""
    texts = [words.UNKNOWN if value is None else format_value(column, value) for value in values]
    numbers = [value for value in values if isinstance(value, (int, float))]
    if not texts or len(set(texts)) == 1:
        return texts[0] if texts else ""
    if len(numbers) == len(values) and 0 < max(numbers) <= CLOSE * min(numbers):
        return f"{format_value(column, min(numbers))}–{format_value(column, max(numbers))}"
    return " / ".join(texts)


def _format_interval(column: ReportColumn, cell: Cell) -> str:
    if cell.low is not None and cell.high is not None and column.name not in (*RATIOS, *CHANGES):
        if cell.low <= 0 or cell.high <= 0:
            return f"({words.format_interval(cell.low, cell.high, words.format_significant)})"
        half = (cell.high / cell.low) ** 0.5 - 1  # on the log scale, as it was worked out
        return f"±{words.format_percent(half).replace(' ', '')}" if half <= WIDE else WIDER
    if cell.low is not None and cell.high is not None and column.name in CHANGES:
        return f"({words.format_number(cell.low)} to {words.format_number(cell.high)} %)"
    return f"({words.format_interval(cell.low, cell.high, lambda value: format_value(column, value))})"


def _find_tone(column: ReportColumn, cell: Cell) -> Tone:
    """Better or worse, of a ratio to 1 that is sure or likely: nothing else has a colour."""
    if cell.word in (None, "unknown") or not isinstance(cell.value, (int, float)):
        return "plain"
    if column.name == "work" and cell.high is not None:
        return "plain"  # that it is at most so much is what is sure
    if column.name in ("speedup", "work"):
        return "better" if cell.value > 1 else "worse"
    return "plain"
