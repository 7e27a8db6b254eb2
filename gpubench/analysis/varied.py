"""Which trial fields differ between rows: those become a table's columns, the others its heading.

Plain Python over rows, here and in all of `analysis` and `report`: a table has tens to hundreds of rows, and
importing pandas would take longer than all of the work.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from gpubench.schema.cell import cell
from gpubench.schema.columns import FIELD_COLUMNS
from gpubench.schema.row import FIELDS, AnyRow, Row, column_of
from gpubench.schema.trial_fields import ABOUT, DEFAULTS, those

Axes = Sequence[Sequence[str]]
"""The axes that an experiment asked for, each a group of fields that move together: `[["batch_size", "lr"]]`.
"""

# None in these means "left to the machine and not known yet" (a planned row), not another value.
AUTO = frozenset(those(lambda about: about.auto))

# Fields that are filled from others where nobody asked for them. While those others determine them they tell
# nothing new, so they take no column.
FOLLOWS: dict[str, tuple[str, ...]] = {name: about.follows for name, about in ABOUT.items() if about.follows}

# What may be a column of its own: what only tells repeats apart never is.
CANDIDATES: tuple[str, ...] = tuple(name for name in FIELD_COLUMNS if not ABOUT[name].repeats)

# Fields that came after the first results were stored: what a row that lacks them means.
BEFORE: dict[str, Any] = {name: DEFAULTS[name] for name in those(lambda about: about.added)}


def known(row: Row, field: str) -> Any:
    """The value of `field`, hashable (lists become tuples)."""
    try:
        value = row.fields[field]  # without a call: this is the innermost loop of all
    except KeyError:
        value = row.value(field)
    if value is None:
        return BEFORE.get(field)
    return tuple(value) if isinstance(value, list) else value


def values(rows: Collection[Row], field: str) -> list[Any]:
    """The different values of `field`, in order of first appearance."""
    found = _different(rows, field)
    if field in AUTO or field not in CANDIDATES:
        found.pop(None, None)
    return list(found)


def differing(rows: Collection[Row], fields: Iterable[str]) -> list[str]:
    """Those of the fields that are not the same in all rows; not known is a value of its own here."""
    return [field for field in fields if len(_different(rows, field)) > 1]


def same_in_all(rows: Collection[Row]) -> frozenset[str]:
    """The trial fields that have one value in all rows, or are known of none: they tell no rows apart.

    In one pass over all rows, where a look at each field by itself takes thirty times as long: of 100,000 rows most
    fields are alike.
    """
    of_rows = [row.fields for row in rows]
    seen = _seen.get()
    if seen is None:
        return _same_in_all(of_rows)
    key = frozenset(map(id, of_rows))
    if key not in seen:
        seen[key] = of_rows, _same_in_all(of_rows)  # kept, so that nothing else gets the id of one of them
    return seen[key][1]


_seen: ContextVar[dict[frozenset[int], tuple[Sequence[Mapping[str, Any]], frozenset[str]]] | None] = (
    ContextVar("_seen", default=None)
)


@contextlib.contextmanager
def remembering() -> Iterator[None]:
    """Inside, `same_in_all` goes once through the same rows: to build a table it is asked ten times of them."""
    token = _seen.set({})
    try:
        yield
    finally:
        _seen.reset(token)


def _same_in_all(of_rows: Collection[Mapping[str, Any]]) -> frozenset[str]:
    """Row after row, and not field after field: the fields of one row lie together, and of 100,000 rows each look at
    another one waits for memory.
    """
    rows = iter(of_rows)
    first = next(rows, {})
    alike, told = list(first), tuple(first.values())
    several = _values_of(alike)
    for fields in rows:
        try:
            found = several(fields)
        except KeyError:  # a row without one of them
            return frozenset()
        if found != told:
            # As tuples are compared: what is the same object is alike, too.
            kept = [
                (name, one) for name, one, other in zip(alike, told, found, strict=True) if (one,) == (other,)
            ]
            alike, told = [name for name, _ in kept], tuple(one for _, one in kept)
            several = _values_of(alike)
    return frozenset(alike)


def _values_of(names: Sequence[str]) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    """What takes these values of a mapping, as a tuple."""
    if len(names) > 1:
        return operator.itemgetter(*names)
    return lambda values: tuple(values[name] for name in names)


def _different(rows: Collection[Row], field: str) -> dict[Any, None]:
    """What `known` says of `field`, each value once."""
    try:  # what differs is looked at, not each row: of 100,000 rows nearly all are alike
        raw = dict.fromkeys(
            [row.fields[field] for row in rows] if field in FIELDS else column_of(rows, field)
        )
    except (KeyError, TypeError):  # a row without this field; lists, which can't be keys
        return dict.fromkeys(known(row, field) for row in rows)
    return dict.fromkeys([BEFORE.get(field) if value is None else value for value in raw])


def determined(rows: Sequence[Row], field: str, by: Sequence[str]) -> bool:
    """Whether rows that are equal in all of `by` never differ in `field`."""
    if len(values(rows, field)) <= 1:
        return True
    seen: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        seen.setdefault(tuple(known(row, name) for name in by), []).append(row)
    return all(len(values(equal, field)) <= 1 for equal in seen.values())


def asked(axes: Axes) -> tuple[str, ...]:
    """Every field of the axes, flat."""
    return tuple(dict.fromkeys(field for group in axes for field in group))


def together(axes: Axes, *fields: str) -> set[str]:
    """The other fields that are on one axis with any of `fields`, and so move with them."""
    return {other for group in axes if set(fields) & set(group) for other in group} - set(fields)


def varied(rows: Sequence[Row], axes: Axes = ()) -> tuple[str, ...]:
    """The trial fields that differ between rows, in the order of TRIAL.

    A field that was asked for as an axis always counts; one that merely follows another (FOLLOWS) does not.
    """
    wanted, same = asked(axes), same_in_all(rows)
    return tuple(
        field
        for field in CANDIDATES
        if field not in same
        and len(values(rows, field)) > 1
        and (field in wanted or field not in FOLLOWS or not _follows(rows, field))
    )


def _follows(rows: Sequence[Row], field: str) -> bool:
    """Whether a field tells nothing beside those of FOLLOWS.

    Of GPU ids, only that they are the first so many, or stand for these where one was lost; of loaders, only if none or
    all trials alone left their number to the machine.
    """
    if field == "gpu_ids" and not all(
        first_gpus(ids) or left_to_machine(row, field)
        for row in rows
        if (ids := known(row, field)) is not None
    ):
        return False
    if field == "workers" and len({left_to_machine(row, field) for row in solo(rows) if row.asked}) > 1:
        return False
    return determined(rows, field, FOLLOWS[field])


def first_gpus(ids: Sequence[int] | None) -> bool:
    """Whether GPU ids are the first so many (0, 1, …), and so tell no more than how many there are."""
    return ids is not None and tuple(ids) == tuple(range(len(ids)))


def left_to_machine(row: Row, field: str) -> bool:
    """Whether the trial left `field` to the machine, as far as the row tells (`asked`: the trial's own fields)."""
    asked_for: Mapping[str, Any] = row.asked or {field: "not told"}
    return asked_for.get(field) is None


def constant(rows: Sequence[Row]) -> dict[str, Any]:
    """The trial fields that have one and the same known value in all rows, with that value."""
    same, some = same_in_all(rows), rows[:1]
    found = {field: values(some if field in same else rows, field) for field in CANDIDATES}
    return {field: only[0] for field, only in found.items() if len(only) == 1 and only[0] is not None}


def solo(rows: Iterable[AnyRow]) -> list[AnyRow]:
    """The rows of trials that ran alone: all but the jobs of groups."""
    return [row for row in rows if not row.group]


def machine(row: Row) -> str | None:
    """What a row's figures depend on: its GPU model, or its CPU model where the device is the CPU."""
    return row.cpu_name if row.fields.get("device") == "cpu" else row.gpu_name  # asked of every row, often


def where(row: Row) -> str | None:
    """Where a row was measured: its host, by which the jobs of a group agree, whatever devices they train on."""
    return row.host or machine(row)


def unit(row: Row) -> tuple[Any, ...] | None:
    """What the jobs agree in that ran together: their group's id and what the machine gave them; None without an id."""
    return (row.group_id, row.allowance) if row.group_id else None


def inferred(row: Row, field: str) -> bool:
    """Whether the record calls this field a guess at what a published log left out."""
    return field in str(row.doubt_texts.get("inferred", ""))


def label(row: Row, fields: Iterable[str]) -> str:
    """A row's name among its neighbours: `batch_size=64 strategy=ddp`. Unknown fields are left out."""
    return " ".join(f"{f}={as_asked(row.value(f))}" for f in fields if row.value(f) is not None)


def as_asked(value: object) -> str:
    """A field's value in a sentence, as one would ask for it: a CSV has 1 and 0 for true and false."""
    return str(value).lower() if isinstance(value, bool) else cell(value)
