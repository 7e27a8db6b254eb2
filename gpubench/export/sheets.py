"""What results folders hold, as sheets: columns as they are defined, and lines of typed values under them.

CSVs, Parquet files, sheets of a workbook and frames of pandas are made of these.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from gpubench.analyze.folder import (
    Folder,
    list_columns_of_commands,
    list_table_csv_columns,
    make_table_csv_rows,
    make_trials_csv_rows,
)
from gpubench.analyze.grid import list_labelled_rows, split_doubt_codes
from gpubench.analyze.view import WHOLE, TableView
from gpubench.export.formats import FormatOptions
from gpubench.render import words
from gpubench.results.csv_text import DIALECTS, PLAIN, Dialect, format_csv
from gpubench.results.rows import list_epoch_rows
from gpubench.schema.columns import (
    BY_NAME,
    COLUMNS,
    ENVIRONMENT,
    EPOCH_COLUMNS,
    TABLE_BY_NAME,
    Column,
    Count,
    Moment,
)
from gpubench.schema.kinds import find_column_kind, format_value_text, parse_moment
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
    lines: Sequence[Line]
    """One value a column, None where there is none."""

    def format_csv(self, dialect: Dialect = PLAIN) -> str:
        """The text of a CSV."""
        return format_csv([column.name for column in self.columns], self.lines, dialect=dialect)

    def to_frame(self) -> pd.DataFrame:
        """A frame of pandas; units and meanings of its columns stand in `attrs`.

        Whole numbers are Int64, other numbers float64, yes or no boolean, times datetime64, all else string. What is
        missing is missing: NA, NaN or NaT.
        """
        series = {
            column.name: make_pandas_series(column, [line[place] for line in self.lines])
            for place, column in enumerate(self.columns)
        }
        return attach_column_info(pd.DataFrame(series), self.columns)


# ---- sheets ----


def make_table_sheet(folders: Sequence[Folder], view: TableView = WHOLE) -> Sheet:
    """The lines of table.csv: those rows and columns of them that are shown."""
    named = list_columns_of_commands(folders)
    names = view.choose_columns([*list_table_csv_columns(folders), *named])
    columns = tuple(named.get(name) or TABLE_BY_NAME[name] for name in names)

    def list_shown(folder: Folder) -> Iterable[Line]:
        order = [
            label for table in folder.tables for label in view.select_rows(folder.select_table_rows(table))
        ]
        return list_frame_lines(make_table_csv_rows(folder).loc[order], names)

    return _make_joined_sheet("table", columns, folders, list_shown)


def make_trial_sheet(folders: Sequence[Folder]) -> Sheet:
    """The lines of trials.csv. What users named of their commands stands at its end."""
    columns = (*COLUMNS, *list_columns_of_commands(folders).values())
    names = [column.name for column in columns]
    return _make_joined_sheet(
        "trials", columns, folders, lambda folder: list_frame_lines(make_trials_csv_rows(folder), names)
    )


def make_epoch_sheet(folders: Sequence[Folder]) -> Sheet:
    """The lines of epochs.csv."""
    return _make_joined_sheet(
        "epochs", EPOCH_COLUMNS, folders, lambda folder: list_epoch_rows(folder.records)
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

    def list_places(folder: Folder) -> Iterator[Line]:
        alike: dict[str, list[Record]] = {}
        for record in folder.records:
            alike.setdefault(json.dumps(record.environment, sort_keys=True), []).append(record)
        for records in alike.values():
            facts = [records[0].environment.get(name) for name in (*known, *more)]
            starts = sorted(record.started_at for record in records)
            yield [*facts, len(records), starts[0] or None, starts[-1] or None]

    return _make_joined_sheet("environment", columns, folders, list_places)


def make_warning_sheet(folders: Sequence[Folder]) -> Sheet:
    """A line for each warning of each trial; then one for each record or plan that can't be read, of no row."""

    def list_doubts(folder: Folder) -> Iterator[Line]:
        fields = dict.fromkeys(
            ("group", "job", *(field for table in folder.tables for field in table.varied))
        )
        runs = make_trials_csv_rows(folder)
        runs = runs[runs["doubts"].notna()]
        for _, run in list_labelled_rows(runs):
            label = words.name_row({field: run[field] for field in fields})
            texts = run["doubt_texts"]
            for code in split_doubt_codes(run["doubts"]):
                for text in texts.get(code) or (words.ROW_WARNINGS.get(code),):
                    yield [run["trial_id"], run["round"], run["experiment"], label, code, text]
        for problem in folder.problems:
            yield [*[None] * (len(WARNING_COLUMNS) - 1), problem]

    return _make_joined_sheet("doubts", WARNING_COLUMNS, folders, list_doubts)


SHEETS: Mapping[str, Callable[[Sequence[Folder]], Sheet]] = {
    "table": make_table_sheet,
    "trials": make_trial_sheet,
    "epochs": make_epoch_sheet,
    "environment": make_environment_sheet,
    "doubts": make_warning_sheet,
}


def _make_joined_sheet(
    name: str,
    columns: tuple[Column, ...],
    folders: Sequence[Folder],
    make_lines: Callable[[Folder], Iterable[Line]],
) -> Sheet:
    """The lines of all folders, with a first column that names the folder where there are several."""
    if len(folders) == 1:
        return Sheet(name=name, columns=columns, lines=[*make_lines(folders[0])])
    lines = [(folder.name, *line) for folder in folders for line in make_lines(folder)]
    return Sheet(name=name, columns=(RESULTS, *columns), lines=lines)


# ---- files ----


def make_csv(folders: Sequence[Folder], options: FormatOptions) -> bytes:
    """One sheet, in the dialect that was asked for."""
    sheet = SHEETS[options.sheet](folders)
    return sheet.format_csv(DIALECTS[options.dialect]).encode(errors="replace")


def make_parquet(folders: Sequence[Folder], options: FormatOptions) -> bytes:
    """One sheet as Parquet, each column with its type; unit and meaning stand in the metadata of its field."""
    import pyarrow as pa  # not in the core install
    from pyarrow import parquet

    sheet = SHEETS[options.sheet](folders)
    table = pa.Table.from_pandas(sheet.to_frame(), preserve_index=False)
    about = {column.name: {"unit": column.unit, "meaning": column.meaning} for column in sheet.columns}
    fields = [field.with_metadata(about[field.name]) for field in table.schema]
    out = pa.BufferOutputStream()
    schema = pa.schema(fields, metadata=table.schema.metadata)
    parquet.write_table(table.cast(schema), out, compression="zstd")
    content: bytes = out.getvalue().to_pybytes()
    return content


# ---- frames ----


def list_frame_lines(frame: pd.DataFrame, names: Sequence[str]) -> Iterable[Line]:
    """The values of these columns as Python's own, a line a row; what is missing is None."""
    # Of several folders one may lack what a command printed in another.
    frame = frame.reindex(columns=list(names))
    columns = [frame[name].astype(object).where(frame[name].notna(), None).tolist() for name in names]
    return zip(*columns, strict=True) if len(frame) else ()


def attach_column_info(frame: pd.DataFrame, columns: Sequence[Column]) -> pd.DataFrame:
    """The frame with what is known of its columns."""
    frame.attrs["units"] = {column.name: column.unit for column in columns}
    frame.attrs["meanings"] = {column.name: column.meaning for column in columns}
    return frame


def make_pandas_series(column: Column, values: Sequence[Any]) -> pd.Series[Any]:
    """The values of a column."""
    form = find_column_kind(column)
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
