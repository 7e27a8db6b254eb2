"""What results folders hold, as sheets: columns as they are defined, and lines of typed values under them.

CSVs, Parquet files, sheets of a workbook and frames of pandas are made of these.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from gpubench.analyze.folder import Folder, list_table_columns, make_table_csv_rows, select_trials
from gpubench.analyze.grid import split_codes
from gpubench.analyze.view import COLUMNS as COLUMNS_BY_NAME
from gpubench.analyze.view import WHOLE, TableView
from gpubench.render import words
from gpubench.results.csv_text import PLAIN, Dialect, csv_text
from gpubench.results.rows import epoch_rows
from gpubench.schema.columns import (
    BY_NAME,
    COLUMNS,
    ENVIRONMENT,
    EPOCH_COLUMNS,
    Column,
    Count,
    Moment,
)
from gpubench.schema.kinds import find_kind, format_value_text, parse_moment
from gpubench.schema.record import Record

RESULTS = Column("results", "", "name of the results folder")
"""The first column of each sheet of several folders."""
MEASURED_ON = tuple(column for column in ENVIRONMENT if column.name != "started_at")
ENVIRONMENT_COUNTS = (
    Column("attempts", "", "attempts that count and were measured under it", holds=Count),
    Column("first_started_at", "", "when the first of them began, in local time", holds=Moment),
    Column("last_started_at", "", "when the last of them began", holds=Moment),
)
WARNING_COLUMNS = (
    *(BY_NAME[name] for name in ("trial_id", "round", "experiment")),
    Column("row", "", "what tells the trial from the others"),
    Column("code", "", "the warning's short code"),
    Column("sentence", "", "what it warns of, and what to do"),
)

Line: TypeAlias = Sequence[Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Sheet:
    """Lines of typed values under columns."""

    name: str
    columns: tuple[Column, ...]
    values: tuple[Sequence[Any], ...]
    """A sequence a column: a value a line, None where there is none."""

    def lines(self) -> Iterator[Line]:
        """One value a column."""
        return zip(*self.values, strict=True)

    def format_csv(self, dialect: Dialect = PLAIN) -> str:
        """The text of a CSV."""
        return csv_text([column.name for column in self.columns], self.lines(), dialect=dialect)

    def to_frame(self) -> pd.DataFrame:
        """A frame of pandas; units and meanings of its columns stand in `attrs`.

        Whole numbers are Int64, other numbers float64, yes or no boolean, times datetime64, all else string. What is
        missing is missing: NA, NaN or NaT.
        """
        frame = pd.DataFrame(
            {
                column.name: make_pandas_series(column, values)
                for column, values in zip(self.columns, self.values, strict=True)
            }
        )
        return attach_column_info(frame, self.columns)


# ---- sheets ----


def make_table_sheet(folders: Sequence[Folder], view: TableView = WHOLE) -> Sheet:
    """The lines of table.csv: those rows and columns of them that are shown."""
    names = view.choose_columns(list_table_columns(folders))
    columns = tuple(COLUMNS_BY_NAME[name] for name in names)
    return _join_folders("table", columns, folders, lambda folder: _select_table_columns(folder, names, view))


def _select_table_columns(folder: Folder, names: Sequence[str], view: TableView) -> list[Sequence[Any]]:
    order = [label for table in folder.tables for label in view.select_rows(folder.select_table_rows(table))]
    rows = make_table_csv_rows(folder).loc[order]
    return [list_plain(rows[name]) for name in names]


def make_trial_sheet(folders: Sequence[Folder]) -> Sheet:
    """The lines of trials.csv."""

    def list_columns(folder: Folder) -> list[Sequence[Any]]:
        runs = select_trials(folder)
        return [list_plain(runs[column.name]) for column in COLUMNS]

    return _join_folders("trials", COLUMNS, folders, list_columns)


def make_epoch_sheet(folders: Sequence[Folder]) -> Sheet:
    """The lines of epochs.csv."""
    return _join_folders(
        "epochs",
        EPOCH_COLUMNS,
        folders,
        lambda folder: _to_columns(EPOCH_COLUMNS, epoch_rows(folder.records)),
    )


def make_environment_sheet(folders: Sequence[Folder]) -> Sheet:
    """A line for each machine with its software on which something was measured that counts."""
    known = [column.name for column in MEASURED_ON]
    every = (name for folder in folders for record in folder.records for name in record.environment)
    more = [name for name in dict.fromkeys(every) if name not in known]
    columns = (
        *MEASURED_ON,
        *(Column(name, "", "as the record tells it") for name in more),
        *ENVIRONMENT_COUNTS,
    )

    def list_lines(folder: Folder) -> Iterator[Line]:
        alike: dict[str, list[Record]] = {}
        for record in folder.records:
            alike.setdefault(json.dumps(record.environment, sort_keys=True), []).append(record)
        for records in alike.values():
            facts = [records[0].environment.get(name) for name in (*known, *more)]
            starts = sorted(record.started_at for record in records)
            yield [*facts, len(records), starts[0] or None, starts[-1] or None]

    return _join_folders(
        "environment", columns, folders, lambda folder: _to_columns(columns, list_lines(folder))
    )


def make_warning_sheet(folders: Sequence[Folder]) -> Sheet:
    """A line for each warning of each trial; then one for each record or plan that can't be read, of no row."""

    def list_lines(folder: Folder) -> Iterator[Line]:
        fields = dict.fromkeys(
            ("group", "job", *(field for table in folder.tables for field in table.varied))
        )
        runs = select_trials(folder)
        runs = runs[runs["doubts"].notna()]
        for _, run in runs.iterrows():
            label = words.name_row({field: value for field in fields if _is_known(value := run[field])})
            texts = run["doubt_texts"]
            for code in split_codes(run["doubts"]):
                for text in texts.get(code) or (words.ROW_WARNINGS.get(code),):
                    yield [run["trial_id"], run["round"], run["experiment"], label, code, text]
        for problem in folder.problems:
            yield [*[None] * (len(WARNING_COLUMNS) - 1), problem]

    return _join_folders(
        "doubts", WARNING_COLUMNS, folders, lambda folder: _to_columns(WARNING_COLUMNS, list_lines(folder))
    )


SHEETS: Mapping[str, Callable[[Sequence[Folder]], Sheet]] = {
    "table": make_table_sheet,
    "trials": make_trial_sheet,
    "epochs": make_epoch_sheet,
    "environment": make_environment_sheet,
    "doubts": make_warning_sheet,
}


def _join_folders(
    name: str,
    columns: tuple[Column, ...],
    folders: Sequence[Folder],
    list_columns: Callable[[Folder], Sequence[Sequence[Any]]],
) -> Sheet:
    """The lines of all folders, with a first column that names the folder where there are several."""
    parts = [list_columns(folder) for folder in folders]
    values = [
        [value for column in parts_of_column for value in column]
        for parts_of_column in zip(*parts, strict=True)
    ]
    if len(folders) > 1:
        columns = (RESULTS, *columns)
        titles = [
            folder.name for folder, part in zip(folders, parts, strict=True) for _ in range(len(part[0]))
        ]
        values = [titles, *values]
    return Sheet(name=name, columns=columns, values=tuple(values))


def _to_columns(columns: Sequence[Column], lines: Iterator[Line]) -> list[Sequence[Any]]:
    """Lines as columns."""
    return list(zip(*lines, strict=True)) or [()] * len(columns)


def list_plain(values: pd.Series[Any]) -> list[Any]:
    """A column of a frame as Python's own values; what is missing is None."""
    plain: list[Any] = values.astype(object).where(values.notna(), None).tolist()
    return plain


def _is_known(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or bool(pd.notna(value))


# ---- frames ----


def attach_column_info(frame: pd.DataFrame, columns: Sequence[Column]) -> pd.DataFrame:
    """The frame with what is known of its columns."""
    frame.attrs["units"] = {column.name: column.unit for column in columns}
    frame.attrs["meanings"] = {column.name: column.meaning for column in columns}
    return frame


def make_pandas_series(column: Column, values: Sequence[Any]) -> pd.Series[Any]:
    """The values of a column."""
    form = find_kind(column)
    known = [value for value in values if value is not None]
    if form == "moment":
        return pd.Series(np.array([parse_moment(value) for value in values], dtype="datetime64[us]"))
    if form in ("whole", "number") and all(type(value) in (int, float) for value in known):
        if form == "whole" and all(float(value).is_integer() for value in known):
            return pd.Series(pd.array([None if v is None else int(v) for v in values], dtype="Int64"))
        return pd.Series(np.array([math.nan if v is None else v for v in values], dtype="float64"))
    if form == "yes or no":
        return pd.Series(pd.array([None if v is None else bool(v) for v in values], dtype="boolean"))
    texts = [None if value is None else format_value_text(value) for value in values]
    return pd.Series(pd.array(texts, dtype="string"))
