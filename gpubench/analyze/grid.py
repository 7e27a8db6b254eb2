"""The lines and columns of a report's table: which figures answer its question, and how its rows stand together."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from gpubench.analyze.folder import BASE_COLUMNS, JOB_COLUMNS, MEASURED_COLUMNS
from gpubench.basics.errors import UsageError
from gpubench.core.claims import Certainty
from gpubench.core.findings import DevicesFinding, Finding, NetworkSizeFinding, SharingFinding
from gpubench.core.report import Cell, ReportColumn, ReportRow, RowGroup
from gpubench.schema.catalog import RATE_UNITS
from gpubench.schema.columns import DERIVED, MEASURED


def split_column_unit(name: str) -> tuple[str, str]:
    """A column's name and, behind it, its unit: `epoch_time` and `_s`."""
    unit = next((unit for unit in ("_pct", "_s") if name.endswith(unit)), "")
    return name.removesuffix(unit), unit


RATES = ("images_per_s", *RATE_UNITS)
"""Columns of rates: of trainings, and of known loads."""
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "batch_size": (*RATES, "epoch_time_s", "memory_gib", "gpu_mem_growth_pct", "cpu_util_pct", "data_wait_pct"),
    "devices": (
        *RATES, "epoch_time_s", "speedup", "strong_efficiency_pct", "weak_efficiency_pct", "memory_gib",
    ),
    "versus": (*RATES, "epoch_time_s", "memory_gib", "cpu_util_pct", "data_wait_pct"),
    "power_limit": ("energy_j", "epoch_time_s", "edp_js", "power_w", "sm_clock_mhz"),
    "network_size": (*RATES, "epoch_time_s", "speedup", "memory_gib"),
    "sharing": (*RATES, "epoch_time_s", "slowdown", "memory_gib", "cpu_util_pct"),
    "target": ("epochs_to_top1", "time_to_top1_s", "energy_to_top1_j", "images_per_s", "memory_gib"),
    "top1": ("top1_pct", "images_per_s", "epoch_time_s", "memory_gib"),
}  # fmt: skip
"""Question -> the columns of figures of its table, in their order, where a line is a row: groups of jobs and networks
have lines of their own."""
ALL_COLUMNS = (
    *RATES, "epoch_time_s", "epoch_time_growth_pct", "memory_gib",
    *(
        name
        for name in (*BASE_COLUMNS, *JOB_COLUMNS, *MEASURED_COLUMNS)
        if name not in ("gpu_mem_mib", "status", "doubts", "epoch_time_source")
    ),
)  # fmt: skip
"""Those of `--columns all`: memory stands in GiB, status and warnings in the rows themselves."""
SOURCES = {"memory_gib": "gpu_mem_mib"}
"""Columns that show another one in another unit."""
MIB_A_GIB = 1024
INTERVALS: Mapping[str, tuple[str, str]] = {
    column.name: (f"{stem}_low{unit}", f"{stem}_high{unit}")
    for column in (*MEASURED, *DERIVED)
    for stem, unit in [split_column_unit(column.name)]
    if f"{stem}_low{unit}" in {other.name for other in DERIVED}
}
"""Column -> those of the lower and the upper end of its interval."""
LINE_COLUMNS = (
    "status", "elsewhere", "further_rounds", "reason", "repeats", "doubts", "images_per_epoch", "epoch_time_low_s",
    "epoch_time_high_s",
)  # fmt: skip
"""What each line needs besides its own columns."""
NEVER_RAN = ("skipped", "missing")
SHARING_COLUMNS = tuple(
    ReportColumn(name=name, is_number=name not in ("group", "overlap"))
    for name in ("group", "epoch_time_s", "slowdown", "work", "overlap")
)
"""Those of a table of groups of jobs, a line a group."""


def split_head_and_row_fields(
    varied: Sequence[str], axis: str | None, tied: Collection[str] = ()
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The fields whose values stand over a group of rows, and those that tell its rows apart: columns at the left.

    With an ordered axis those that vary beside it stand over groups, without one all are columns.
    """
    if axis is None:
        return (), tuple(varied)
    along = tuple(field for field in varied if field in tied)
    return tuple(field for field in varied if field != axis and field not in tied), (axis, *along)


UNMEASURED = ("images_per_s", "epoch_time_s")
"""Columns of a table of which nothing is measured yet."""


def choose_figure_columns(summary: pd.DataFrame, question: str, *, has_all: bool = False) -> tuple[str, ...]:
    """The columns of figures, or with `has_all` every one that table.csv has; those that are empty in all rows are
    left out, unless nothing at all is known."""
    names = tuple(dict.fromkeys(ALL_COLUMNS)) if has_all else COLUMNS[question]
    return tuple(name for name in names if summary[SOURCES.get(name, name)].notna().any()) or UNMEASURED


def select_lines_of_rows(
    groups: Sequence[RowGroup], order: Sequence[int], *, is_sorted: bool
) -> tuple[RowGroup, ...]:
    """The lines that are of any of these rows, with `is_sorted` in their order. `groups`: without heads."""
    places = {label: place for place, label in enumerate(order)}
    lines = [line for group in groups for line in group.rows if places.keys() & set(line.labels)]
    if is_sorted:
        lines.sort(key=lambda line: min(places[label] for label in line.labels if label in places))
    return (RowGroup(head={}, rows=tuple(lines)),)


def remove_table_columns(
    columns: Sequence[ReportColumn], groups: Sequence[RowGroup], removed: Collection[str]
) -> tuple[tuple[ReportColumn, ...], tuple[RowGroup, ...]]:
    """A table without these columns. Raises UsageError where none is left."""
    kept = [
        place
        for place, column in enumerate(columns)
        if not {column.name, SOURCES.get(column.name)} & set(removed)
    ]
    if not kept:
        raise UsageError("--columns: every column is removed; leave one, or add one")
    kept_groups = []
    for group in groups:
        rows = [replace(line, cells=tuple(line.cells[place] for place in kept)) for line in group.rows]
        kept_groups.append(replace(group, rows=tuple(rows)))
    return tuple(columns[place] for place in kept), tuple(kept_groups)


def build_trial_groups(
    summary: pd.DataFrame,
    axis: str | None,
    heads: Sequence[str],
    labels: Sequence[str],
    columns: Sequence[str],
    findings: Sequence[Finding],
    is_affecting: Callable[[str], bool],
) -> tuple[RowGroup, ...]:
    """The lines of a table of trials that ran alone, a group for each value of `heads`.

    `summary`: the table's rows in their order. Neighbours that did not run for one reason are one line. `is_affecting`:
    whether the warning of a code weakens a figure that is shown.
    """
    words = collect_cell_certainties(findings)
    answers = {finding.choice.row for finding in findings if finding.choice}
    largest = to_python_value(summary["images_per_s"].max())
    groups = []
    ends = {end for name in columns for end in INTERVALS.get(name, ())}
    sources = {SOURCES.get(name, name) for name in columns}
    wanted = {*heads, *labels, *sources, *ends, *LINE_COLUMNS}
    summary = summary[[name for name in summary.columns if name in wanted]]
    parts = summary.groupby(list(heads), sort=False, dropna=False) if heads else [((), summary)]
    for key, members in parts:
        lines: list[ReportRow] = []
        for label, row in list_labelled_rows(members):
            reason = row.get("reason")
            if axis and lines and is_of_previous_line(lines[-1], row):
                last = lines[-1]
                lines[-1] = replace(
                    last,
                    labels=(*last.labels, label),
                    skipped=(*last.skipped, row[axis]),
                    is_answer=False,
                )
                continue
            cells = [Cell(value=to_python_value(row.get(field))) for field in labels]
            cells += [build_cell(row, name, words.get((name, label)), largest) for name in columns]
            lines.append(
                ReportRow(
                    labels=(label,),
                    cells=tuple(cells),
                    status=find_unmeasured_status(row) if not row["repeats"] else "ok",
                    reason=reason if isinstance(reason, str) else None,
                    is_answer=label in answers,
                    warnings=tuple(filter(is_affecting, split_doubt_codes(row.get("doubts")))),
                )
            )
        head = dict(zip(heads, map(to_python_value, key), strict=True))
        groups.append(RowGroup(head=head, rows=tuple(lines)))
    return tuple(groups)


def is_of_previous_line(last: ReportRow, row: Mapping[str, Any]) -> bool:
    """Whether a row that did not run belongs to the line before it: skipped because that ran out of memory, or for
    the same reason."""
    if row["status"] == "missing":
        return last.status == find_unmeasured_status(row)
    return row["status"] == "skipped" and last.status in ("oom", "skipped")


def find_unmeasured_status(row: Mapping[str, Any]) -> str:
    """How a row without figures ended. One that is missing may have been measured: `elsewhere`, by another part of its
    plan, or `unread`, where no record of its first round can be read, without which further ones do not count."""
    status = str(row["status"])
    if status == "missing" and row.get("elsewhere"):
        return "elsewhere"
    return "unread" if status == "missing" and row.get("further_rounds") else status


def build_cell(row: Mapping[str, Any], name: str, word: Certainty | None, largest: float | None) -> Cell:
    """A figure with its ends, its bar, and how sure the comparison in it is. `largest`: rate of the table."""
    value = row.get(SOURCES.get(name, name)) if row["repeats"] else None
    if name == "memory_gib" and value is not None:
        value /= MIB_A_GIB
    low, high = (row.get(column) for column in INTERVALS.get(name, ("", "")))
    bar = None
    if name == "images_per_s":  # the faster the shorter
        bar = value / largest if largest and value is not None else None
        images = row["images_per_epoch"]
        times = (row["epoch_time_high_s"], row["epoch_time_low_s"])
        low, high = (images / time if images and time else None for time in times)
    return Cell(value=value, low=low, high=high, bar=bar, word=word)


def collect_cell_certainties(findings: Sequence[Finding]) -> dict[tuple[str, int], Certainty]:
    """How sure comparisons in cells are: of speed-ups, and of one way against another."""
    words: dict[tuple[str, int], Certainty] = {}
    for finding in findings:
        if isinstance(finding, DevicesFinding):
            for speed_up in finding.speed_ups:
                if not speed_up.same_batch_a_device or ("speedup", speed_up.claim.candidate) not in words:
                    words["speedup", speed_up.claim.candidate] = speed_up.claim.decided.word
        elif isinstance(finding, NetworkSizeFinding):
            for claim in finding.claims:
                words["speedup", claim.candidate] = claim.decided.word
    return words


def build_network_groups(summary: pd.DataFrame, finding: NetworkSizeFinding) -> tuple[RowGroup, ...]:
    """A line a network: its size, its time on few devices and on more, and how many times as fast that is."""
    lines = []
    for claim in finding.claims:
        (_, baseline), (_, row) = list_labelled_rows(summary.loc[[claim.baseline, claim.candidate]])
        verdict = claim.decided
        lines.append(
            ReportRow(
                labels=(claim.candidate, claim.baseline),
                cells=(
                    Cell(value=format_network_name(row)),
                    Cell(value=to_python_value(row["gmacs_per_image"])),
                    *(
                        Cell(
                            value=to_python_value(side["epoch_time_s"]),
                            low=to_python_value(side["epoch_time_low_s"]),
                            high=to_python_value(side["epoch_time_high_s"]),
                        )
                        for side in (baseline, row)
                    ),
                    Cell(
                        value=math.exp(claim.evidence.center),
                        low=verdict.low,
                        high=verdict.high,
                        word=verdict.word,
                    ),
                ),
            )
        )
    return (RowGroup(head={}, rows=tuple(lines)),)


def make_network_columns(summary: pd.DataFrame, finding: NetworkSizeFinding) -> tuple[ReportColumn, ...]:
    """The columns of a table of networks: times on few devices and on more stand side by side."""
    field = "gpus" if summary["gpus"].fillna(0).max() > 0 else "ranks"
    fewest = int(summary.loc[[claim.baseline for claim in finding.claims], field].min())
    return (
        ReportColumn(name="network", is_number=False),
        ReportColumn(name="gmacs_per_image", is_number=True),
        *(
            ReportColumn(name="epoch_time_s", is_number=True, series={field: count})
            for count in (fewest, finding.devices)
        ),
        ReportColumn(name="speedup", is_number=True),
    )


def build_job_groups(summary: pd.DataFrame, finding: SharingFinding) -> tuple[RowGroup, ...]:
    """A line a group of jobs: their times together, by how much each was slowed down, how much work they got done.

    Of a group none of whose jobs has a time it tells how it ended.
    """
    lines = []
    for group in finding.groups:
        jobs = summary.loc[list(group.rows)]
        is_ended = bool((jobs["repeats"] > 0).any())
        figures: list[Any] = [
            tuple(map(to_python_value, jobs[name])) for name in ("epoch_time_s", "slowdown")
        ]
        work = Cell(
            value=group.work,
            low=group.bound if group.is_lower_bound else None,
            high=None if group.is_lower_bound else group.bound,
            word=group.word,
        )
        cells = [*(Cell(value=value) for value in figures), work, Cell(value=group.overlaps)]
        status, reason = ("ok", None) if is_ended else find_group_ending(jobs)
        lines.append(
            ReportRow(
                labels=group.rows,
                cells=(Cell(value=group.name), *(cells if is_ended else [Cell(value=None)] * len(cells))),
                status=status,
                reason=reason,
            )
        )
    return (RowGroup(head={}, rows=tuple(lines)),)


def find_group_ending(jobs: pd.DataFrame) -> tuple[str, str | None]:
    """How a group ended: its status and reason are those of the job that ended the others (`oom`, then `skipped`)."""
    order = jobs["status"].isin(NEVER_RAN).sort_values(kind="stable").index
    first = jobs.loc[order[0]]
    return str(first["status"]), to_python_value(first["reason"])


def make_report_columns(
    summary: pd.DataFrame, labels: Sequence[str], names: Sequence[str]
) -> tuple[ReportColumn, ...]:
    """The columns of a table: those of the fields that tell rows apart, then those of figures."""
    return tuple(
        ReportColumn(name=name, is_number=pd.api.types.is_numeric_dtype(summary[SOURCES.get(name, name)]))
        for name in (*labels, *names)
    )


def format_network_name(row: Mapping[str, Any]) -> str:
    """`lenet x4`: a network, and how many times as wide."""
    width = to_python_value(row.get("width"))
    return f"{row['model']} x{width:g}" if width not in (None, 1) else str(row["model"])


def split_doubt_codes(codes: Any) -> tuple[str, ...]:
    """The codes of a cell of the column `doubts`."""
    return tuple(codes.split("+")) if isinstance(codes, str) and codes else ()


def list_labelled_rows(frame: pd.DataFrame) -> list[tuple[int, dict[str, Any]]]:
    """Each row's label and values, by column, as Python's own."""
    columns = {str(name): map(to_python_value, values.tolist()) for name, values in frame.items()}
    return [
        (label, dict(zip(columns, values, strict=True)))
        for label, *values in zip(frame.index.tolist(), *columns.values(), strict=True)
    ]


def to_python_value(value: Any) -> Any:
    """A value of a frame as Python's own; None where it is missing."""
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return None
    return value.item() if isinstance(value, np.generic) else value
