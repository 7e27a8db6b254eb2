"""Which rows of a table are shown, and in which order: `--where`, `--sort`. Pure.

What is chosen is looked at and nothing else: growths, answers, claims and doubts stay those of the whole table. Else
whoever has seen the rows could choose those that say what is wanted, and an answer would be corrected for fewer claims
than were looked at.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from gpubench.basics.errors import UsageError, unknown
from gpubench.basics.quoted import shown
from gpubench.basics.words import clean, number
from gpubench.report.choice import hint
from gpubench.report.table import COLUMN, Table
from gpubench.schema.cell import cell
from gpubench.schema.columns import Column
from gpubench.schema.row import TableRow

ALONE = "alone"
"""What stands above rows that are no jobs of a group, where those of a group stand above them."""

Compared = Callable[[Any, Any], bool]
SIGNS: Mapping[str, Compared] = {
    "!=": operator.ne, "<=": operator.le, ">=": operator.ge, "=": operator.eq, "<": operator.lt, ">": operator.gt,
}  # fmt: skip
"""Sign of a condition -> what it asks. Those of two letters first: they are looked for in this order."""
OF_ORDER = ("<", "<=", ">", ">=")


@dataclass(frozen=True, kw_only=True, slots=True)
class Condition:
    """One that a row must meet to be shown."""

    text: str
    """As it was given."""
    column: str
    sign: str
    values: tuple[Any, ...]
    """Any of which it may be; with `!=` none of which. Of one type with the column's values."""

    def met(self, row: TableRow) -> bool:
        """An empty value meets none."""
        value = _value(row, self.column)
        if value is None:
            return False
        compared = SIGNS[self.sign]
        met = (compared(_like(value, one), one) for one in self.values)
        return all(met) if self.sign == "!=" else any(met)


@dataclass(frozen=True, kw_only=True, slots=True)
class Showing:
    """What was asked for."""

    where: tuple[Condition, ...] = ()
    """All of which must be met."""
    sort: tuple[tuple[str, bool], ...] = ()
    """Columns, the first of which counts first, and whether each goes downward."""

    def __bool__(self) -> bool:
        return bool(self.where or self.sort)

    def of(self, table: Table) -> Table:
        """The table with these rows, and with a line above it that says so."""
        numbers = [n for n, row in enumerate(table.rows) if all(one.met(row) for one in self.where)]
        for name, downward in reversed(self.sort):  # Python's sort keeps the order of equals
            numbers = _sorted(numbers, [_value(row, name) for row in table.rows], downward)
        return replace(
            table,
            heading=(*table.heading, self._line(table, len(numbers))),
            rows=tuple(table.rows[n] for n in numbers),
            cells=tuple(_cells(table, numbers)),
            whole=len(table.rows),
        )

    def _line(self, table: Table, count: int) -> str:
        whole = len(table.rows)
        how = [f"where {' and '.join(one.text for one in self.where)}"] if self.where else []
        if self.sort:
            how.append("sorted by " + ", ".join(f"{name}{' downward' * down}" for name, down in self.sort))
        some = f"{number(count)} of {number(whole)} rows" if count != whole else f"All {number(whole)} rows"
        return clean(
            f"{some} shown, {', '.join(how)}; growths, answers and doubts are those of the whole table."
        )


def parse(where: Sequence[str] = (), sort: str | None = None) -> Showing:
    """What these options ask for. Raises UsageError."""
    return Showing(
        where=tuple(_condition(text) for text in where),
        sort=_order(sort) if sort is not None else (),
    )


def _order(text: str) -> tuple[tuple[str, bool], ...]:
    asked: dict[str, bool] = {}
    for part in text.split(","):
        word = part.strip()
        name = word.removeprefix("-").strip()
        _known("--sort", name)
        if name in asked:
            raise UsageError(f"--sort: {name} is given twice")
        asked[name] = word.startswith("-")
    return tuple(asked.items())


def _condition(text: str) -> Condition:
    places = [(text.find(sign), n, sign) for n, sign in enumerate(SIGNS) if sign in text]
    if not places:
        raise UsageError(
            f"--where: {shown(text)} is no condition; write one such as 'batch_size>=64' in quotes"
        )
    place, _, sign = min(places)
    name, value = text[:place].strip(), text[place + len(sign) :].strip()
    column = _known("--where", name)
    if not value:
        raise UsageError(
            f"--where: {shown(text)} names no value; a figure that is empty meets no condition anyway"
        )
    words = [word.strip() for word in value.split(",")]
    if len(words) > 1 and sign in OF_ORDER:
        raise UsageError(f"--where: {shown(text)}: several values go with = and != alone")
    return Condition(
        text=f"{name}{sign}{value}",
        column=name,
        sign=sign,
        values=tuple(_typed(word, column, sign) for word in words),
    )


def _known(option: str, name: str) -> Column:
    if not name:
        raise UsageError(f"{option}: the name of a column is missing; see docs/columns.md")
    if name not in COLUMN:
        raise unknown("column", name, COLUMN, hint(name, COLUMN))
    return COLUMN[name]


TRUTH = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}


def _typed(word: str, column: Column, sign: str) -> Any:
    """A word as a value of its column's type. Raises UsageError where it is none."""
    kinds = _kinds(column)
    if kinds == {bool}:
        if word.lower() not in TRUTH:
            raise UsageError(f"--where: {column.name} is yes or no, not {shown(word)}")
        if sign in OF_ORDER:
            raise UsageError(f"--where: {column.name} is yes or no, which have no order; use = or !=")
        return TRUTH[word.lower()]
    if kinds & {int, float}:
        try:
            value = float(word)
        except ValueError:
            value = float("nan")
        if value != value:
            raise UsageError(f"--where: {column.name} holds numbers, and {shown(word)} is none")
        return value
    if kinds & {tuple, list} and sign in OF_ORDER:
        raise UsageError(f"--where: {column.name} holds lists, which have no order; use = or !=")
    return word


def _kinds(column: Column) -> set[type]:
    """The plain types that a column's values may have; of one that only tables have, text unless it counts."""
    if column.name == "repeats":
        return {int}
    return _plain(column.holds) - {type(None)} if column.holds is not None else {str}


def _plain(kind: Any) -> set[type]:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _plain(inner[0])
    if origin in (Union, UnionType):
        return set().union(*map(_plain, inner))
    return {type(one) for one in inner} if origin is Literal else {origin or kind}


def _value(row: TableRow, name: str) -> Any:
    """As the table shows it: the status is that of all repeats together."""
    return row.endings if name == "status" else row.value(name)


def _like(value: Any, wanted: Any) -> Any:
    """A row's value as it is compared with what was asked for: text with text."""
    return value if isinstance(wanted, (bool, float)) or isinstance(value, str) else cell(value)


def _sorted(numbers: Sequence[int], values: Sequence[Any], downward: bool) -> list[int]:
    """Rows by number in the order of their values; those without one last, whichever way it goes."""
    there = [n for n in numbers if values[n] is not None]
    empty = [n for n in numbers if values[n] is None]
    return [*sorted(there, key=lambda n: _key(values[n]), reverse=downward), *empty]


def _key(value: Any) -> tuple[int, Any]:
    """Numbers before text; lists as text."""
    return (0, value) if isinstance(value, (int, float)) else (1, cell(value))


def _cells(table: Table, numbers: Sequence[int]) -> list[tuple[str, ...]]:
    """The rows' cells, the name of a group where its rows begin, and again where other rows stand between them."""
    names = [column.name for column in table.columns]
    if "group" not in names:
        return [table.cells[n] for n in numbers]
    place = names.index("group")
    groups, found = _groups([cells[place] for cells in table.cells]), []
    last = (0, "")
    for index, n in enumerate(numbers):
        own = groups[n]
        name = own[1] or (ALONE if index else "")
        found.append((*table.cells[n][:place], name if own != last else "", *table.cells[n][place + 1 :]))
        last = own
    return found


def _groups(cells: Sequence[str]) -> list[tuple[int, str]]:
    """The number and name of each row's group, of cells that name each once; 0 for rows that are of none."""
    found, last = [], (0, "")
    for text in cells:
        last = (last[0] + 1, text) if text else last
        found.append(last)
    return found
