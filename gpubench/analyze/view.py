"""What a reader asks to see of a table: columns, rows and their order (`--columns`, `--where`, `--sort`).

What is chosen is looked at and nothing else: growth, findings and warnings stay those of the whole table. Else whoever
has seen the rows could choose those that say what is wanted, and an answer would be corrected for fewer claims than
were looked at.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from gpubench.basics.errors import UsageError, unknown
from gpubench.basics.quoted import shown
from gpubench.basics.words import clean
from gpubench.core.report import Selection
from gpubench.schema.cell import format_cell
from gpubench.schema.columns import BY_NAME, DERIVED, REPEATS, Column
from gpubench.schema.kinds import kind

COLUMNS: Mapping[str, Column] = {
    **BY_NAME,
    **{column.name: column for column in DERIVED},
    REPEATS.name: REPEATS,
}
"""Name -> column, of those that a table may have."""
ALL = "all"
"""In place of names of columns."""
REMOVABLE = ("memory_gib", "network", "overlap", "work")
"""Columns that only printed tables have, so that they can be left out and no more."""
SHOWN_AS = {"status": "endings"}
"""Columns that a table shows as another one of the summary: how all processes of a row ended."""
OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "!=": operator.ne, "<=": operator.le, ">=": operator.ge, "=": operator.eq, "<": operator.lt, ">": operator.gt,
}  # fmt: skip
"""Sign of a condition -> what it asks. Those of two letters first: they are looked for in this order."""
ORDER_OPERATORS = ("<", "<=", ">", ">=")
YES_OR_NO = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}


@dataclass(frozen=True, kw_only=True, slots=True)
class Condition:
    """One that a row must meet to be shown."""

    text: str
    """As it was given."""
    column: str
    sign: str
    values: tuple[Any, ...]
    """Any of which the row's may be; with `!=` none of which. Of one type with the column's values."""

    def test_rows(self, summary: pd.DataFrame) -> pd.Series[bool]:
        """Whether each row meets it. An empty value meets none."""
        values = list_comparable(summary, self.column)
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
    where: tuple[Condition, ...] = ()
    """All of which must be met."""
    sort: tuple[tuple[str, bool], ...] = ()
    """Columns, the first of which counts first, and whether each goes downward."""

    @property
    def has_columns(self) -> bool:
        """Whether columns besides the usual ones are asked for."""
        return bool(self.added) or self.has_all_columns

    @property
    def has_rows(self) -> bool:
        """Whether rows are chosen, or put in another order."""
        return bool(self.where or self.sort)

    def choose_columns(
        self, usual: Sequence[str], sources: Mapping[str, str] | None = None
    ) -> tuple[str, ...]:
        """The usual ones without those that are removed, and behind them those that are added.

        `sources`: columns that show another one in another unit.
        """
        sources = sources or {}
        kept = [name for name in usual if not self.removed & {name, sources.get(name)}]
        return tuple(dict.fromkeys([*kept, *self.added]))

    def select_rows(self, summary: pd.DataFrame) -> list[int]:
        """The labels of the rows that meet all conditions, in the order that was asked for; equals in their own.

        Those without a value stand last, whichever way it goes.
        """
        rows = summary
        for condition in self.where:
            rows = rows[condition.test_rows(rows)]
        for name, is_downward in reversed(self.sort):
            order = list_comparable(rows, name).sort_values(ascending=not is_downward, kind="stable")
            rows = rows.loc[order.index]
        return [int(label) for label in rows.index]

    def describe(self, rows: int, total: int) -> Selection | None:
        """What a report says of it; None where all rows are shown in their own order."""
        if not self.has_rows:
            return None
        order = tuple(f"{name}{' downward' * is_downward}" for name, is_downward in self.sort)
        where = tuple(clean(condition.text) for condition in self.where)
        return Selection(rows=rows, total=total, where=where, sort=order)


WHOLE = TableView()
"""The usual columns of all rows."""


def list_comparable(summary: pd.DataFrame, name: str) -> pd.Series[Any]:
    """A column as it is compared: numbers as they are, lists as text (`0+1`)."""
    values = summary[SHOWN_AS.get(name, name)]
    if kind(COLUMNS[name]) in ("number", "whole", "yes or no"):
        return values
    return values.map(format_cell, na_action="ignore").astype(object)


# ---- from text ----


def parse_view(columns: str | None = None, where: Sequence[str] = (), sort: str | None = None) -> TableView:
    """What these options ask for. Raises UsageError."""
    added: dict[str, None] = {}
    removed: set[str] = set()
    names = columns.split(",") if columns is not None else []
    for name, is_minus in (split_minus(part) for part in names):
        if not name:
            raise UsageError(
                f"--columns: {columns!r} holds no column between two commas; see docs/columns.md"
            )
        if name not in (REMOVABLE if is_minus else (ALL,)):
            find_column("--columns", name)
        if is_minus:
            removed.add(name)
        else:
            added[name] = None
    if both := removed & set(added):
        raise UsageError(f"--columns: {min(both)} is both added and removed")
    return TableView(
        added=tuple(name for name in added if name != ALL),
        removed=frozenset(removed),
        has_all_columns=ALL in added,
        where=tuple(parse_condition(text) for text in where),
        sort=parse_order(sort) if sort is not None else (),
    )


def split_minus(word: str) -> tuple[str, bool]:
    """A name, and whether `-` stands before it."""
    return word.strip().removeprefix("-").strip(), word.strip().startswith("-")


def find_column(option: str, name: str) -> Column:
    """The column of this name. Raises UsageError where there is none."""
    if not name:
        raise UsageError(f"{option}: the name of a column is missing; see docs/columns.md")
    if name not in COLUMNS:
        raise unknown("column", name, COLUMNS)
    return COLUMNS[name]


def parse_order(text: str) -> tuple[tuple[str, bool], ...]:
    """`a,-b`: by a, then by b downward. Raises UsageError."""
    order: dict[str, bool] = {}
    for name, is_downward in map(split_minus, text.split(",")):
        find_column("--sort", name)
        if name in order:
            raise UsageError(f"--sort: {name} is given twice")
        order[name] = is_downward
    return tuple(order.items())


def parse_condition(text: str) -> Condition:
    """`batch_size>=64`, `variant=cached,synthetic`. Raises UsageError."""
    places = [(text.find(sign), n, sign) for n, sign in enumerate(OPERATORS) if sign in text]
    if not places:
        raise UsageError(
            f"--where: {shown(text)} is no condition; write one such as 'batch_size>=64' in quotes"
        )
    place, _, sign = min(places)
    name, value = text[:place].strip(), text[place + len(sign) :].strip()
    column = find_column("--where", name)
    if not value:
        raise UsageError(
            f"--where: {shown(text)} names no value; a figure that is empty meets no condition anyway"
        )
    words = [word.strip() for word in value.split(",")]
    if len(words) > 1 and sign in ORDER_OPERATORS:
        raise UsageError(f"--where: {shown(text)}: several values go with = and != alone")
    values = tuple(parse_value(word, column, sign) for word in words)
    return Condition(text=f"{name}{sign}{value}", column=name, sign=sign, values=values)


def parse_value(word: str, column: Column, sign: str) -> Any:
    """A word as a value of its column's type. Raises UsageError where it is none."""
    form = kind(column)
    if form in ("yes or no", "list") and sign in ORDER_OPERATORS:
        raise UsageError(f"--where: {column.name} has no order; use = or !=")
    if form == "yes or no":
        if word.lower() not in YES_OR_NO:
            raise UsageError(f"--where: {column.name} is yes or no, not {shown(word)}")
        return YES_OR_NO[word.lower()]
    if form in ("number", "whole"):
        try:
            number = float(word)
        except ValueError:
            number = float("nan")
        if number != number:
            raise UsageError(f"--where: {column.name} holds numbers, and {shown(word)} is none")
        return number
    return word
