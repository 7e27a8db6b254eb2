"""Tables as one CSV that a spreadsheet opens as it stands: what table.csv holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpubench.analysis import scaling
from gpubench.report.choice import SHOW
from gpubench.report.table import FIGURES as SHOWN
from gpubench.report.table import Table
from gpubench.results.csv_text import PLAIN, Dialect, csv_text
from gpubench.schema.columns import DERIVED, MEASURED, OF_GROUPS, TRIAL
from gpubench.schema.row import TableRow, replace

FIGURES = (
    "gpu_mem_mib", "gpu_mem_growth_pct", "cpu_util_pct", "epoch_time_s", "epoch_time_growth_pct", "top1_pct",
    "status", "energy_j", "images_per_joule", "edp_js", *scaling.COLUMNS,
    "images_per_s", "epoch_time_iqr_s", "epoch_time_source", "doubts",
)  # fmt: skip
"""Always there, empty or not, and new ones last, so that a sheet that refers to them keeps working."""

OF_GROUPS = tuple(name for name in OF_GROUPS if not name.endswith("_id"))
"""There where any row is a job of a group."""

ADDED = tuple(
    column.name
    for column in (*MEASURED, *DERIVED)
    if column.name in SHOWN and column.name not in (*FIGURES, *OF_GROUPS)
)
"""The other figures that a printed table may show, in the order of docs/columns.md."""

OVER_PROCESSES = (
    "epoch_time_low_s", "epoch_time_high_s", "between_pct", "within_pct",
    "epoch_time_growth_low_pct", "epoch_time_growth_high_pct",
    "cost_growth_pct", "cost_growth_low_pct", "cost_growth_high_pct", "speedup_low", "speedup_high",
    "strong_efficiency_low_pct", "strong_efficiency_high_pct",
    "weak_efficiency_low_pct", "weak_efficiency_high_pct", "images_per_joule_low", "images_per_joule_high",
)  # fmt: skip
"""How sure figures and ratios are. Always there, at the end."""

GROUPS_OVER_PROCESSES = ("slowdown_low", "slowdown_high", "overlap_gain_low", "overlap_gain_high")
"""Likewise, where any row is a job of a group."""

OF_CROSSINGS = ("top1_crossing_s", "top1_crossing", "top1_crossing_low_s", "top1_crossing_high_s")
"""When a top-1 was crossed. Always there, behind all that came before."""

PLACE = ("gpu_name", "cpu_name", "group", "job")


def text(tables: Sequence[Table], dialect: Dialect = PLAIN) -> str:
    """One header, `names`, and a line a row. Where the tables are of several folders, the first column names these.

    A field that varies in one table only is filled in for the others, too. Cells are those of `csv_text.csv_cell`.
    """
    wanted = names(tables)
    values = (row.values(wanted) for row in lines(tables))
    folders = [table.folder for table in tables for _ in table.rows]
    if len(set(folders)) < 2:
        return csv_text(wanted, values, dialect=dialect)
    named = ([folder, *row] for folder, row in zip(folders, values, strict=True))
    return csv_text([RESULTS, *wanted], named, dialect=dialect)


RESULTS = "results"
"""The column that names the results folder."""


def names(tables: Sequence[Table]) -> list[str]:
    """The columns: experiment, what varies in any table, FIGURES, OF_GROUPS, ADDED, OVER_PROCESSES, OF_CROSSINGS,
    GROUPS_OVER_PROCESSES, and what was asked for besides. So every one that is printed is among them."""
    shown = {column.name for table in tables for column in table.columns}
    varied = {field for table in tables for field in table.varied}
    names = ["experiment", *(name for name in PLACE if name in shown)]
    names += [column.name for column in TRIAL if column.name in varied]
    names += [*(["repeats"] if "repeats" in shown else []), *FIGURES]
    groups = any(row.group for table in tables for row in table.rows)
    names += OF_GROUPS if groups else ()
    names += [*ADDED, *OVER_PROCESSES, *OF_CROSSINGS, *(GROUPS_OVER_PROCESSES if groups else ())]
    asked = tables[0].choice if tables else SHOW
    return [name for name in dict.fromkeys([*names, *asked.added]) if name not in asked.removed]


def lines(tables: Sequence[Table]) -> Iterator[TableRow]:
    """The lines of all tables, each with the table's own name, and how its repeats ended."""
    return (replace(row, experiment=table.name, status=row.endings) for table in tables for row in table.rows)
