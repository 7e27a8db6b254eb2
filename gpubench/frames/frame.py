"""A sheet as a frame of pandas, each column with the dtype that its definition asks for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import numpy as np
import pandas as pd

from gpubench.report.reading import Reading
from gpubench.report.sheets import Sheet
from gpubench.schema.columns import BY_NAME, FIELD_COLUMNS, Column
from gpubench.schema.kinds import as_text, kind, moment
from gpubench.schema.record import Status

Orders = Mapping[str, Sequence[str]]
"""Column -> its categories, in their order."""

ORDERED = tuple(name for name in FIELD_COLUMNS if kind(BY_NAME[name]) in ("text", "list"))
"""The fields of a trial that are no numbers."""


def frame(sheet: Sheet, orders: Orders) -> pd.DataFrame:
    """The sheet's lines. Units and meanings of its columns stand in `attrs`.

    Whole numbers are Int64, other numbers float64, yes or no boolean, times datetime64, text string; a column of
    `orders` is an ordered category. What is missing is missing: NA, NaN or NaT.
    """
    lines = list(sheet.lines())
    values: Sequence[Sequence[Any]] = list(zip(*lines, strict=True)) if lines else [()] * len(sheet.columns)
    made = pd.DataFrame(
        {
            column.name: series(column, found, orders)
            for column, found in zip(sheet.columns, values, strict=True)
        }
    )
    return told(made, sheet.columns)


def told(made: pd.DataFrame, columns: Sequence[Column]) -> pd.DataFrame:
    """The frame with what is known of its columns."""
    made.attrs["units"] = {column.name: column.unit for column in columns}
    made.attrs["meanings"] = {column.name: column.meaning for column in columns}
    return made


def series(column: Column, values: Sequence[Any], orders: Orders) -> pd.Series[Any]:
    """The values of a column. `orders`: only those of columns that hold text or lists count."""
    form = kind(column)
    if form == "moment":
        times = np.array([moment(value) for value in values], dtype="datetime64[us]")
        return pd.Series(times)
    if form in ("whole", "number") and all(_is_number(value) for value in values if value is not None):
        if form == "whole" and all(float(value).is_integer() for value in values if value is not None):
            return pd.Series(pd.array([None if v is None else int(v) for v in values], dtype="Int64"))
        return pd.Series(np.array([math.nan if v is None else v for v in values], dtype="float64"))
    if form == "yes or no":
        return pd.Series(pd.array([None if v is None else bool(v) for v in values], dtype="boolean"))
    texts = [None if value is None else as_text(value) for value in values]
    if column.name not in orders:
        return pd.Series(pd.array(texts, dtype="string"))
    known = dict.fromkeys([*orders[column.name], *(text for text in texts if text is not None)])
    return pd.Series(pd.Categorical(texts, categories=list(known), ordered=True))


def orders_of(readings: Sequence[Reading]) -> Orders:
    """The categories of the columns that have an order: how trials end, and the values of trial fields that are no
    numbers, as the experiments name them, which is the order of the tables' rows."""
    found: dict[str, dict[str, None]] = {name: {} for name in ORDERED}
    found["status"] = dict.fromkeys(get_args(Status))
    for reading in readings:
        tables = [row for table in reading.tables for row in table.trials]
        for row in (*tables, *reading.contents.rows):
            for name in ORDERED:
                if (value := row.value(name)) is not None:
                    found[name][as_text(value)] = None
    return {name: list(values) for name, values in found.items()}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
