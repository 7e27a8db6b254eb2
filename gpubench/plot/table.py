"""The rows of one table as pictures, the page and the workbook lay them out: figures, cells, names and sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal

import pandas as pd

from gpubench.analyze import grid
from gpubench.analyze.folder import Folder, Table, place_columns
from gpubench.analyze.frames import Runs, Summary
from gpubench.analyze.grid import list_rows, plain
from gpubench.analyze.questions import report_table
from gpubench.analyze.series import DEVICES, OLD_DEFAULTS, Fields, asked_fields
from gpubench.analyze.table_rows import name_machines
from gpubench.basics.quoted import clean
from gpubench.basics.words import UNKNOWN, listed
from gpubench.core.findings import SharingFinding
from gpubench.core.report import Cell, Report, ReportColumn
from gpubench.plot.description import DOUBTED
from gpubench.render import words
from gpubench.render.grid import make_cell
from gpubench.schema.cell import cell
from gpubench.schema.columns import BY_NAME, DERIVED, OF_GROUPS, REPEATS, Column
from gpubench.schema.kinds import kind
from gpubench.schema.row import Row, TableRow

FIGURES: tuple[str, ...] = (
    "gpu_mem_mib", "gpu_mem_growth_pct", "gpu_util_pct", "cpu_util_pct", "epoch_time_s", "epoch_time_growth_pct",
    "images_per_s", "speedup", "strong_efficiency_pct", "weak_efficiency_pct", "data_wait_pct", "copy_ms", "forward_ms",
    "backward_ms", "comm_ms", "comm_hidden_ms", "optimizer_ms", "comm_pct", "comm_mib_per_step", "slowest_rank",
    "breakdown_cost_pct", "energy_j", "images_per_joule", "solo_epoch_time_s", "slowdown", "predicted_slowdown",
    "overlap_gain", "sharing", "full_together", "top1_pct", "epochs_to_top1", "time_to_top1_s", "top1_crossing_s",
    "energy_to_top1_j",
)  # fmt: skip
"""Columns of figures, in reading order; those that are empty for all rows are left out."""
COMPARED = frozenset(
    {"gpu_mem_growth_pct", "epoch_time_growth_pct", "speedup", "strong_efficiency_pct", "weak_efficiency_pct"}
)
"""Those that a row without another one to be compared with need not have."""
COLUMN: Mapping[str, Column] = {
    **BY_NAME,
    **{column.name: column for column in DERIVED},
    REPEATS.name: REPEATS,
    "group": Column("group", "", "", "group"),
    "job": Column("job", "", "", "job"),
    "gpu_name": Column("gpu_name", "", "", "GPU"),
    "cpu_name": Column("cpu_name", "", "", "CPU"),
}  # fmt: skip
INTERVALS: Mapping[str, tuple[str, str]] = {
    **grid.INTERVALS,
    "top1_crossing_s": ("top1_crossing_low_s", "top1_crossing_high_s"),
}
"""Column -> those of both ends of its interval."""
VERSIONS = ("torch", "driver")


@dataclass(frozen=True, kw_only=True)
class DevicesCompared:
    """A row on several devices beside the row on fewer that it is measured against; that one beside itself, too."""

    kind: Literal["strong", "weak"]
    """The same global batch, or the same batch a device."""
    row: TableRow
    baseline: TableRow
    speedup: float
    low: float | None
    high: float | None


@dataclass(frozen=True, kw_only=True)
class PlotTable:
    """One table of a folder, laid out."""

    folder: Folder
    table: Table
    title: str
    """The experiment's name, behind that of the folder where several are read."""

    @property
    def name(self) -> str:
        """The experiment's, with the kind of time where the folder holds two of it."""
        return self.table.name

    @property
    def varied(self) -> tuple[str, ...]:
        """The trial fields that differ between rows."""
        return self.table.varied

    @cached_property
    def summary(self) -> Summary:
        """The figures of the rows."""
        return self.folder.table_frame(self.table)

    @cached_property
    def runs(self) -> Runs:
        """The processes and planned trials that the rows are of."""
        return self.folder.runs.loc[list(self.table.runs)]

    # ---- rows ----

    @cached_property
    def by_label(self) -> Mapping[int, TableRow]:
        """The rows by their labels in the summary, in the table's order."""
        runs = self.folder.runs
        first = self.folder.members.drop_duplicates("row").set_index("row")["run"]
        rows: dict[int, TableRow] = {}
        before = self.summary["before"].map(plain)
        for label, values in list_rows(self.summary):
            run = first[label]
            rows[label] = TableRow.of_columns(
                values,
                **{column.name: values[column.name] for column in DERIVED},
                **{name: values[name] for name in ("source", "repeats", "reached", "endings")},
                missing=runs.at[run, "missing"] or MappingProxyType({}),
                asked=runs.at[run, "asked"] or MappingProxyType({}),
                before=rows.get(before[label]),
            )
        return rows

    @cached_property
    def rows(self) -> tuple[TableRow, ...]:
        """A line a configuration."""
        return tuple(self.by_label.values())

    @property
    def alone(self) -> list[TableRow]:
        """The rows of trials alone."""
        return [row for row in self.rows if not row.group]

    @cached_property
    def trial_ids(self) -> Mapping[int, tuple[str, ...]]:
        """The id of each row -> those of its trials, repeats among them."""
        members = self.folder.members
        mine = members[members["row"].isin(self.table.rows)]
        ids = mine["run"].map(self.folder.runs["trial_id"]).groupby(mine["row"].to_numpy()).agg(tuple)
        return {id(row): tuple(dict.fromkeys(ids[label])) for label, row in self.by_label.items()}

    def series(self, axis: str) -> list[tuple[tuple[tuple[str, Any], ...], list[TableRow]]]:
        """The rows of trials alone that differ in `axis` and what moves along it, under the fields that tell them from
        other series, each by ascending values of the axis."""
        frame = self.summary[self.summary["group"].isna() & self.summary[axis].notna()]
        codes, _ = Fields.of(frame).series(axis, self.table.tied)
        parts = [frame.index[codes == code] for code in pd.unique(codes)]
        heads = frame.loc[[part[0] for part in parts]]
        fields = [field for field in self.varied if field not in (axis, *self.table.tied)]
        fields = [
            field
            for field in (*fields, *name_machines(frame))
            if len({cell(value) for value in heads[field]}) > 1
        ]
        lines = []
        for part in parts:
            rows = sorted((self.by_label[label] for label in part), key=lambda row: float(row.value(axis)))
            lines.append((tuple((field, known(rows[0], field)) for field in fields), rows))
        return lines

    @cached_property
    def compared(self) -> list[DevicesCompared]:
        """The rows on several devices, those that they are compared with among them; none where jobs are what was asked
        for, or all have equally many."""
        is_of_jobs = self.summary["group"].notna().any() and self.table.axes
        if self.table.has_only_baselines or (
            is_of_jobs and not {*asked_fields(self.table.axes)} & {*DEVICES}
        ):
            return []
        pairs: list[DevicesCompared] = []
        kinds: tuple[Literal["strong", "weak"], ...] = ("strong", "weak")
        for each in kinds:
            baselines = self.summary[f"{each}_baseline"].dropna().astype(int)
            for label, baseline in zip(baselines.index, baselines, strict=True):
                row, fewer = self.by_label[label], self.by_label[baseline]
                factor = count_devices(row) / count_devices(fewer) / 100
                speedup, low, high = (
                    None if (share := row.value(f"{each}_efficiency{end}_pct")) is None else share * factor
                    for end in ("", "_low", "_high")
                )
                if speedup is not None:
                    pairs.append(
                        DevicesCompared(
                            kind=each, row=row, baseline=fewer, speedup=speedup, low=low, high=high
                        )
                    )
        return pairs

    @cached_property
    def groups(self) -> list[tuple[str, tuple[TableRow, ...]]]:
        """Jobs that ran together, under what they are called."""
        return [
            (words.name_group(self.report, group), tuple(self.by_label[label] for label in group.rows))
            for finding in self.report.findings
            if isinstance(finding, SharingFinding)
            for group in finding.groups
        ]

    @cached_property
    def group_names(self) -> Mapping[int, str]:
        """The id of each row of a group -> what its group is called."""
        return {id(row): name for name, rows in self.groups for row in rows}

    # ---- columns and cells ----

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Those with any figure: where a row was measured, what varies, figures, how it ended."""
        place = place_columns(self.summary)
        several = ["repeats"] if (self.summary["repeats"] > 1).any() else []
        figures = [name for name in FIGURES if self.summary[name].notna().any()]
        return tuple(COLUMN[name] for name in (*place, *self.varied, *several, *figures, "status"))

    @property
    def headings(self) -> tuple[str, ...]:
        """What stands over each column."""
        return tuple(column.heading or column.name for column in self.columns)

    @property
    def right(self) -> tuple[bool, ...]:
        """Whether each column holds numbers."""
        return tuple(kind(column) in ("whole", "number") for column in self.columns)

    @cached_property
    def cells(self) -> list[tuple[str, ...]]:
        """A tuple of texts for each row, one a column."""
        return [tuple(self._write(row, column.name) for column in self.columns) for row in self.rows]

    def _write(self, row: TableRow, name: str) -> str:
        if name == "status":
            return f"{row.endings} {DOUBTED}" if row.doubts else row.endings
        if name == "group":
            return self.group_names.get(id(row), clean(row.group or ""))
        value = row.value(name)
        if value is None:
            needless = name in (*COMPARED, "job") or (name in OF_GROUPS and not row.group)
            return "" if needless else UNKNOWN
        low, high = (row.value(end) for end in INTERVALS.get(name, ())) if name in INTERVALS else (None, None)
        text = cell(value) if isinstance(value, (list, tuple)) else value
        column = ReportColumn(name=name, is_number=isinstance(value, (int, float)))
        return make_cell(column, Cell(value=text, low=low, high=high)).text

    @cached_property
    def written(self) -> Mapping[int, Mapping[str, str]]:
        """The id of each row -> column -> its cell."""
        names = [column.name for column in self.columns]
        return {
            id(row): dict(zip(names, texts, strict=True))
            for row, texts in zip(self.rows, self.cells, strict=True)
        }

    # ---- words ----

    @cached_property
    def report(self) -> Report:
        """What `gpubench table` says of it."""
        return report_table(self.folder, self.table)

    @cached_property
    def facts(self) -> str:
        """What was the same for all rows, on which machines and with which versions they were measured."""
        versions = [
            f"{field} {listed(list(map(str, known_values)))}"
            for field in VERSIONS
            if len(known_values := self.runs[field].dropna().unique())
        ]
        return " · ".join((*words.describe_facts(self.report), *map(clean, versions)))

    @cached_property
    def answers(self) -> list[str]:
        """What the findings say, the answer first."""
        return [line.text for line in words.write_lines(self.report) if line.kind != "warning"]

    @cached_property
    def warnings(self) -> list[str]:
        """What weakens figures, and which records and plans of the folder can't be read."""
        lines = words.write_lines(self.report)
        return [*(line.text for line in lines if line.kind == "warning"), *self.folder.problems]


def lay_out(folder: Folder, *, is_named: bool = False) -> list[PlotTable]:
    """All tables of a folder. `is_named`: with its name in their titles, as where several are read."""
    return [
        PlotTable(
            folder=folder, table=table, title=f"{folder.name}: {table.name}" if is_named else table.name
        )
        for table in folder.tables
    ]


def known(row: Row, field: str) -> Any:
    """The value of a field; of one that came later than the row's record, what a row without it means."""
    value = row.value(field)
    return OLD_DEFAULTS.get(field) if value is None else value


def different(rows: Iterable[Row], field: str) -> list[Any]:
    """The different known values of a field, in order of first appearance."""
    return [value for value in dict.fromkeys(known(row, field) for row in rows) if value is not None]


def label(row: Row, fields: Iterable[str]) -> str:
    """A row's name among its neighbours: `batch_size=64 strategy=ddp`. Unknown fields are left out."""
    return " ".join(
        f"{field}={as_asked(row.value(field))}" for field in fields if row.value(field) is not None
    )


def as_asked(value: object) -> str:
    """A field's value as one would ask for it: a CSV has 1 and 0 for true and false."""
    return str(value).lower() if isinstance(value, bool) else cell(value)


def count_devices(row: Row) -> int:
    """GPUs of the row's trial; on a CPU its ranks."""
    return row.gpus or row.ranks or 1


def name_devices(row: Row, device: str) -> str:
    """`ddp on 2 GPUs`."""
    count = count_devices(row)
    return f"{row.strategy} on {count} {device}{'s' if count > 1 else ''}"


def name_device(rows: Sequence[Row]) -> str:
    """`GPU`; `rank` where all are on a CPU."""
    return "rank" if all(row.device == "cpu" for row in rows) else "GPU"
