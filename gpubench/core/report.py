"""A report: all that a renderer knows of one table, in typed values. No renderer asks for anything else.

`analyze.report` builds it from a folder; `render` says it on a terminal, in Markdown, LaTeX, CSV, JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpubench.core.claims import Certainty
from gpubench.core.findings import Finding, TargetFinding


@dataclass(frozen=True, kw_only=True, slots=True)
class HeadingFacts:
    """What stands above a table: what was the same in all rows, and on what it was measured."""

    fixed: Mapping[str, Any]
    """Fields that are equal in all rows and differ from what nobody needs to be told."""
    machines: tuple[str, ...]
    """`4 × NVIDIA H200, 64 CPUs`: what could be used."""
    images: int | None
    """Images of an epoch's training; None where rows differ in it."""
    processes: tuple[int, int]
    """The fewest and the most processes of a row."""
    is_published: bool
    """Whether the figures are a published log's."""
    time_kind: str
    """`steady rate`, `whole epochs`, `whole run` or `published log`; `load steps` where all rows are of known loads."""
    target_pct: float | None = None
    until: str | None = None
    """`acc=60`: the figure that commands were to reach; None where rows differ in it, or nothing was asked."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One value of a table."""

    value: Any
    """None: empty, for the reason in `Report.missing`, where one is known."""
    low: float | None = None
    high: float | None = None
    bar: float | None = None
    """0 to 1: its share of the largest of its column, where it has a bar."""
    word: Certainty | None = None
    """How sure the comparison in it is, where it holds one."""
    status: str = "ok"
    """Where series stand side by side: how the run ended that the cell is of, told in the first cell of its series."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportColumn:
    """A column of a table."""

    name: str
    """As in table.csv; `growth` columns stand behind the column that they are of."""
    is_number: bool
    series: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the series that the column is of, where series stand side by side."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportRow:
    """A line of a table: one configuration, or several sizes that did not run for the same reason."""

    labels: tuple[int, ...]
    """Of the summary."""
    cells: tuple[Cell, ...]
    """One a column."""
    status: str = "ok"
    reason: str | None = None
    skipped: tuple[Any, ...] = ()
    """Values of the axis that were skipped for the same reason (`512 ran out of memory; 1024, 2048 skipped`)."""
    is_answer: bool = False
    warnings: tuple[str, ...] = ()
    """Codes of warnings that touch this row's figures."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RowGroup:
    """Rows under a head of their own."""

    head: Mapping[str, Any]
    """Fields that are equal in them and differ between groups; empty for the only group."""
    rows: tuple[ReportRow, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportWarning:
    """A kind of warning in the rows of a report."""

    code: str
    """A key of `schema.doubts.DOUBTS`, or of the report's further warnings in `render.words`."""
    rows: tuple[int, ...]
    figures: Mapping[str, float] = field(default_factory=dict)
    """What its sentence names, as the largest difference that such rows were seen to have (`noise`: 0.4)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RowSelection:
    """Which rows are shown, where that was asked for; findings and warnings are of all rows."""

    rows: int
    """That are shown."""
    total: int
    where: tuple[str, ...] = ()
    """Conditions that they meet, as they were given."""
    sort: tuple[str, ...] = ()
    """Columns by which they are sorted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """A table with its findings."""

    name: str
    """The experiment's."""
    question: str
    """The experiment's own question in words; empty where it has none."""
    facts: HeadingFacts
    columns: tuple[ReportColumn, ...]
    groups: tuple[RowGroup, ...]
    findings: tuple[Finding, ...]
    """The question that the plan asks comes first."""
    warnings: tuple[ReportWarning, ...]
    labels: Mapping[int, Mapping[str, Any]]
    """Row of the summary -> its varied fields, by which words name it."""
    figures: Mapping[int, Mapping[str, Any]]
    """Row of the summary -> its figures that words need (images_per_s, epoch_time_s, gpu_mem_mib, time_to_top1_s …)."""
    training: Mapping[int, tuple[tuple[float, float], ...]] = field(default_factory=dict)
    """Row of the summary -> seconds of training and top-1 in per cent after each epoch that was judged, of the
    process with the median time to the target; where a target was asked for."""
    missing: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    """Row of the summary -> its figures and shown columns that are empty, with the reason that its records hold. Of one
    that did not end ok its line tells why."""
    axis: str | None = None
    """The field that is ordered along the rows."""
    problems: tuple[str, ...] = ()
    """What is wrong with records and plans of its folder that can't be read, a line each."""
    unlisted_rows: tuple[int, ...] = ()
    """Rows of the summary that a table of groups of jobs neither shows nor compares with: other trials alone."""
    selection: RowSelection | None = None
    """None: all rows are shown, in their own order."""

    @property
    def rows(self) -> Sequence[ReportRow]:
        """All lines, whatever group they stand in."""
        return [row for group in self.groups for row in group.rows]

    @property
    def recommended_row(self) -> int | None:
        """The row that the first finding with a recommendation names; None where nothing is recommended."""
        for finding in self.findings:
            if isinstance(finding, TargetFinding) and finding.order:
                return finding.order[0]
            if finding.choice is not None:
                return finding.choice.row
        return None
