"""What a reader asks to see of a table: columns, rows and their order (`--columns`, `--where`, `--sort`).

What is chosen is looked at and nothing else: growth, findings and warnings stay those of the whole table. Else whoever
has seen the rows could choose those that say what is wanted, and an answer would be corrected for fewer claims than
were looked at.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from gpubench.basics.errors import UsageError, make_unknown_name_error
from gpubench.basics.quoted import quote_value
from gpubench.basics.words import clean_line
from gpubench.core.report import RowSelection
from gpubench.schema.cell import format_cell
from gpubench.schema.columns import TABLE_BY_NAME, Column
from gpubench.schema.kinds import find_column_kind

ALL = "all"
"""In place of names of columns."""
REMOVABLE = ("memory_gib", "network", "overlap", "work")
"""Columns that only printed tables have, so that they can be left out and no more."""
SHOWN_AS = {"status": "endings"}
"""Columns that a table shows as another one of the summary: how all processes of a row ended."""
OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "!=": operator.ne, "<=": operator.le, ">=": operator.ge, "=": operator.eq, "<": operator.lt, ">": operator.gt,
}  # fmt: skip
"""Sign of a condition -> what it asks."""
CONDITION = re.compile(f"(.*?)({'|'.join(OPERATORS)})(.*)", re.DOTALL)
ORDER_OPERATORS = ("<", "<=", ">", ">=")
YES_OR_NO = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}


@dataclass(frozen=True, kw_only=True, slots=True)
class RowCondition:
    """One that a row must meet to be shown."""

    text: str
    """As it was given."""
    column: Column
    sign: str
    values: tuple[Any, ...]
    """Any of which the row's may be; with `!=` none of which. Of one type with the column's values."""

    def test_rows(self, summary: pd.DataFrame) -> pd.Series[bool]:
        """Whether each row meets it. An empty value meets none."""
        values = get_comparable_column(summary, self.column)
        known = values[values.notna()]
        tests = [OPERATORS[self.sign](known, value).astype(bool).to_numpy() for value in self.values]
        is_met = np.logical_and.reduce(tests) if self.sign == "!=" else np.logical_or.reduce(tests)
        return pd.Series(values.index.isin(known.index[is_met]), index=values.index, dtype=bool)


@dataclass(frozen=True, kw_only=True, slots=True)
class TableView:
    """What was asked for."""

    added: tuple[str, ...] = ()
    removed: frozenset[str] = frozenset()
    has_all_columns: bool = False
    """Whether each figure of table.csv that any row has is shown."""
    where: tuple[RowCondition, ...] = ()
    """All of which must be met."""
    sort: tuple[tuple[Column, bool], ...] = ()
    """Columns, the first of which counts first, and whether each goes downward."""

    @property
    def has_added_columns(self) -> bool:
        """Whether columns besides the usual ones are asked for."""
        return bool(self.added) or self.has_all_columns

    def choose_columns(self, usual: Sequence[str]) -> tuple[str, ...]:
        """The usual ones without those that are removed, and behind them those that are added."""
        kept = [name for name in usual if name not in self.removed]
        return tuple(dict.fromkeys([*kept, *self.added]))

    def select_rows(self, summary: pd.DataFrame) -> list[int]:
        """The labels of the rows that meet all conditions, in the order that was asked for; equals in their own.

        Those without a value stand last, whichever way it goes.
        """
        rows = summary
        for condition in self.where:
            rows = rows[condition.test_rows(rows)]
        for column, is_downward in reversed(self.sort):
            order = get_comparable_column(rows, column).sort_values(ascending=not is_downward, kind="stable")
            rows = rows.loc[order.index]
        return [int(label) for label in rows.index]

    def make_selection(self, rows: int, total: int) -> RowSelection | None:
        """What a report says of it; None where all rows are shown in their own order."""
        if not (self.where or self.sort):
            return None
        order = tuple(f"{column.name}{' downward' * is_downward}" for column, is_downward in self.sort)
        where = tuple(clean_line(condition.text) for condition in self.where)
        return RowSelection(rows=rows, total=total, where=where, sort=order)


WHOLE = TableView()
"""The usual columns of all rows."""


def get_comparable_column(summary: pd.DataFrame, column: Column) -> pd.Series[Any]:
    """A column as it is compared: numbers as they are, lists as text (`0+1`).

    Empty where other folders' commands alone have it.
    """
    name = SHOWN_AS.get(column.name, column.name)
    values = summary[name] if name in summary else pd.Series(np.nan, index=summary.index, dtype=object)
    if find_column_kind(column) in ("number", "whole", "yes or no"):
        return values
    return values.map(format_cell, na_action="ignore").astype(object)


# ---- from text ----


def parse_view(
    columns: str | None = None,
    where: Sequence[str] = (),
    sort: str | None = None,
    of_commands: Mapping[str, Column] = MappingProxyType({}),
) -> TableView:
    """What these options ask for. `of_commands`: columns that users named, by name. Raises UsageError."""
    known = {**TABLE_BY_NAME, **of_commands}
    names = split_signed_names(columns)
    for name, is_minus in names:
        if name not in (REMOVABLE if is_minus else (ALL,)):
            find_column(name, known)
    added = [name for name, is_minus in names if not is_minus]
    return TableView(
        added=tuple(name for name in added if name != ALL),
        removed=frozenset(name for name, is_minus in names if is_minus),
        has_all_columns=ALL in added,
        where=tuple(parse_condition(text, known) for text in where),
        sort=tuple((find_column(name, known), is_minus) for name, is_minus in split_signed_names(sort)),
    )


def split_signed_names(text: str | None) -> tuple[tuple[str, bool], ...]:
    """Of `a,-b` each name, and whether `-` stands before it."""
    words = [word.strip() for word in text.split(",")] if text is not None else []
    return tuple((word.removeprefix("-").strip(), word.startswith("-")) for word in words)


def find_column(name: str, known: Mapping[str, Column]) -> Column:
    """The column of this name. Raises UsageError where there is none."""
    if name not in known:
        raise make_unknown_name_error("column", name, known)
    return known[name]


def parse_condition(text: str, known: Mapping[str, Column]) -> RowCondition:
    """`batch_size>=64`, `variant=cached,synthetic`. Raises UsageError."""
    parts = CONDITION.fullmatch(text)
    if parts is None or not parts[3].strip():
        raise UsageError(
            f"--where: {quote_value(text)} is no condition; write one such as 'batch_size>=64' in quotes"
        )
    name, sign, value = map(str.strip, parts.groups())
    column = find_column(name, known)
    words = [word.strip() for word in value.split(",")]
    if len(words) > 1 and sign in ORDER_OPERATORS:
        raise UsageError(f"--where: {quote_value(text)}: several values go with = and != alone")
    values = tuple(parse_condition_value(word, column, sign) for word in words)
    return RowCondition(text=f"{name}{sign}{value}", column=column, sign=sign, values=values)


def parse_condition_value(word: str, column: Column, sign: str) -> Any:
    """A word as a value of its column's type. Raises UsageError where it is none."""
    form = find_column_kind(column)
    if form in ("yes or no", "list") and sign in ORDER_OPERATORS:
        raise UsageError(f"--where: {column.name} has no order; use = or !=")
    if form == "yes or no":
        if word.lower() not in YES_OR_NO:
            raise UsageError(f"--where: {column.name} is yes or no, not {quote_value(word)}")
        return YES_OR_NO[word.lower()]
    if form in ("number", "whole"):
        try:
            return float(word)
        except ValueError:
            raise UsageError(
                f"--where: {column.name} holds numbers, and {quote_value(word)} is none"
            ) from None
    return word
