"""Which rows of two sides are of one and the same trial, whatever machine each ran on. Pure.

Two rows match where their trials ask for the same: fields that were left to the machine, ids of devices, hardware and
versions may differ. Where no row of one side has a match, those fields are set aside in which the sides have no value
in common: that is a guess, and `Matching.set_aside` tells it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from gpubench.analysis.alternatives import SETTLED
from gpubench.analysis.varied import AUTO, CANDIDATES, FOLLOWS, known, left_to_machine, machine, unit
from gpubench.schema import catalog
from gpubench.schema.record import ALLOTTED
from gpubench.schema.row import TableRow
from gpubench.schema.trial import make
from gpubench.schema.trial_fields import DEVICE_AXES

DEFINITION = "variant_definition"
"""What a variant does, beside its name: two sides may mean different things by one."""
NAMES: tuple[str, ...] = (*(field for field in CANDIDATES if field != "gpu_ids"), DEFINITION)
"""All by which trials are told apart. Which GPUs they ran on is none of it, only how many."""
LENGTHS = ("window", "steps")
"""Fields in which steady rates may differ and still be compared."""
NO_FILES = "no files"
"""Stands for the images of a variant that reads none."""
AT_MACHINE = "left to the machine"
_FOLLOWS = {**FOLLOWS, "strategy": DEVICE_AXES}
"""Beside a table's: a strategy that nobody asked for goes by how many devices there are."""
FOLLOWED = ""
"""Stands for what follows from a field that was asked to differ."""

Identity = Mapping[str, Hashable]
Pair = tuple[TableRow, TableRow]


@dataclass(frozen=True, kw_only=True, slots=True)
class Several:
    """Rows that match each other, of which a side has more than one."""

    a: Sequence[TableRow]
    b: Sequence[TableRow]


@dataclass(frozen=True, kw_only=True, slots=True)
class Matching:
    """The rows of two sides, each in one of these."""

    pairs: Sequence[Pair]
    only_a: Sequence[TableRow]
    only_b: Sequence[TableRow]
    several: Sequence[Several]
    set_aside: tuple[str, ...] = ()
    """Fields that differ in all pairs: the pairs are then guessed."""
    free: tuple[str, ...] = ()
    """Fields that were asked to differ."""
    followed: tuple[str, ...] = ()
    """Fields that differ in some pair because they follow from those by themselves."""


def matched(
    a: Sequence[TableRow],
    b: Sequence[TableRow],
    *,
    free: Collection[str] = (),
    with_own_images: Collection[str] = (),
) -> Matching:
    """The rows of two sides by their trials.

    `free`: fields that are to differ, with what follows from them; both sides are then of one folder.
    `with_own_images`: variants of that which name images of their own.
    """
    asked = {*free}
    if "variant" in asked and any(row.variant in with_own_images for row in (*a, *b)):
        asked.add("data")
    alone = [_identities(rows, asked, [*a, *b] if free else rows) for rows in (a, b)]
    sides = [_completed(a, alone[0], b, alone[1]), _completed(b, alone[1], a, alone[0])]
    exact = _paired(a, b, *(_keys(rows, own, ()) for rows, own in zip((a, b), sides, strict=True)))
    apart = () if exact.pairs or exact.several else _nothing_in_common(*sides)
    if apart:
        keys = [_keys(rows, own, apart) for rows, own in zip((a, b), sides, strict=True)]
        guessed = _paired(a, b, *keys)
        if guessed.pairs or guessed.several:
            return replace(guessed, set_aside=apart, free=tuple(free))
    followed = _followed(exact.pairs, free) if free else ()
    return replace(exact, free=tuple(free), followed=followed)


def _followed(pairs: Sequence[Pair], free: Collection[str]) -> tuple[str, ...]:
    """The fields in which pairs differ that were not asked to; what the machine gave `settled_apart` tells."""
    return tuple(
        field
        for field in NAMES
        if field not in (*free, *ALLOTTED, DEFINITION)
        and any(
            known(a, field) != known(b, field)
            for a, b in pairs
            if a.status not in _PLANNED and b.status not in _PLANNED
        )
    )


def settled_apart(pairs: Sequence[Pair]) -> tuple[str, ...]:
    """The fields that both sides left to their machine, and that got other values there in some pair."""
    return tuple(
        field
        for field in ALLOTTED
        if any(
            left_to_machine(a, field) and left_to_machine(b, field) and known(a, field) != known(b, field)
            for a, b in pairs
        )
    )


def values_of(rows: Sequence[TableRow], field: str) -> list[Hashable]:
    """The different values of a field of `set_aside`, in order of first appearance."""
    return list(dict.fromkeys(one[field] for one in _identities(rows, (), rows)))


def _identities(
    rows: Sequence[TableRow], free: Collection[str], neighbours: Sequence[TableRow]
) -> list[Identity]:
    """What each row's trial asks for. A row that was only planned is completed from the others.

    `neighbours`: all rows in which a name means the same images.
    """
    prints = _only({known(row, "data"): _print(row) for row in neighbours if _print(row)}, neighbours, _print)
    files = _only({row.variant: _files(row) for row in rows if _files(row)}, rows, _files, "variant")
    does = _only({row.variant: _does(row) for row in rows if _does(row)}, rows, _does, "variant")
    auto = {
        field: _single(known(row, field) for row in rows if known(row, field) is not None) for field in AUTO
    }
    return [_identity(row, free, prints, files, does, auto) for row in rows]


def _identity(
    row: TableRow,
    free: Collection[str],
    prints: Mapping[Hashable, Hashable],
    files: Mapping[Hashable, Hashable],
    does: Mapping[Hashable, Hashable],
    auto: Mapping[str, Hashable],
) -> Identity:
    found: dict[str, Hashable] = {}
    for field in NAMES:
        if field in free or (free and _follows(row, field, free)):
            found[field] = FOLLOWED
        elif field in LENGTHS and row.kind == "steady rate":
            found[field] = None
        elif field == DEFINITION:
            found[field] = _does(row) or does.get(row.variant)
        elif field == "data":
            name = known(row, field)
            # A variant that reads no image is beside those that do where variants are to differ.
            is_read = "variant" in free or (_files(row) or files.get(row.variant)) != "none"
            found[field] = (_print(row) or prints.get(name) or name) if is_read else NO_FILES
        elif field in ALLOTTED and (left_to_machine(row, field) or known(row, field) is None):
            found[field] = AT_MACHINE
        else:
            value = known(row, field)
            found[field] = auto.get(field) if value is None and row.status in _PLANNED else value
    return found


_PLANNED = ("missing", "skipped")


def _completed(
    rows: Sequence[TableRow], own: Sequence[Identity], others: Sequence[TableRow], theirs: Sequence[Identity]
) -> list[Identity]:
    """Of a row that was only planned, what a row of the same configuration on the other side tells: no record of its
    own says yet which images it reads and what its variant does, but its id was made of both."""
    measured = {
        row.config_id: found
        for row, found in zip(others, theirs, strict=True)
        if row.config_id and row.status not in _PLANNED
    }
    return [
        measured.get(row.config_id, found) if row.status in _PLANNED else found
        for row, found in zip(rows, own, strict=True)
    ]


def _follows(row: TableRow, field: str, free: Collection[str]) -> bool:
    """Whether a row's value of a field follows from those that are to differ: nobody asked for it."""
    if field == DEFINITION:
        return "variant" in free
    # Inside one folder the images and the other fields fill it; but a CPU never stands in for a GPU.
    if field in AUTO and field != "device":
        return left_to_machine(row, field)
    return bool({*_FOLLOWS.get(field, ())} & {*free}) and _by_itself(row, field)


def _by_itself(row: TableRow, field: str) -> bool:
    """Whether a row has the value of a field that nobody asked for: the machine's, or that of the other fields."""
    if left_to_machine(row, field):
        return True
    if field not in (*SETTLED, "strategy"):
        return False
    own = {name: value for name in _FOLLOWS[field] if (value := known(row, name)) is not None}
    return bool(known(row, field) == getattr(make(own), field))


def _print(row: TableRow) -> str | None:
    """What tells the row's images by their content; None where it reads none, or no record tells."""
    return row.images.fingerprint if row.images and row.images.files != "none" else None


def _files(row: TableRow) -> str | None:
    return row.images.files if row.images else None


def _does(row: TableRow) -> str | None:
    """What the row's variant does, as one text."""
    definition = {name: value for name, value in row.variant_definition.items() if name != "data"}
    return json.dumps(definition, sort_keys=True, default=str) if definition else None


def _only(
    told: Mapping[Hashable, Hashable],
    rows: Sequence[TableRow],
    fact: Callable[[TableRow], Hashable],
    field: str = "data",
) -> dict[Hashable, Hashable]:
    """A fact by the value of a field, where all rows that know it agree."""
    seen: dict[Hashable, set[Hashable]] = {}
    for row in rows:
        if (value := fact(row)) is not None:
            seen.setdefault(known(row, field), set()).add(value)
    return {name: value for name, value in told.items() if len(seen.get(name, ())) == 1}


def _single(values: Iterable[Hashable]) -> Hashable:
    """The one value that they all are; None where they differ, or there is none."""
    found = list(dict.fromkeys(values))
    return found[0] if len(found) == 1 else None


def _nothing_in_common(a: Sequence[Identity], b: Sequence[Identity]) -> tuple[str, ...]:
    """The fields in which no row of one side has the value of a row of the other."""
    if not a or not b:
        return ()
    apart = tuple(name for name in NAMES if not {one[name] for one in a} & {one[name] for one in b})
    models = {str(one["model"]) for one in (*a, *b)}
    # Of two networks nobody would guess that they are meant to be one; a user's own may be two versions of one.
    return () if "model" in apart and not all(catalog.is_user_model(name) for name in models) else apart


def _keys(rows: Sequence[TableRow], own: Sequence[Identity], apart: Collection[str]) -> list[Hashable]:
    """Equal in rows of one trial. Of a job of a group: of one job beside the same neighbours."""
    alone = [
        (row.kind, *((name, value) for name, value in one.items() if name not in apart))
        for row, one in zip(rows, own, strict=True)
    ]
    beside: dict[Hashable, list[str]] = {}
    for row, key in zip(rows, alone, strict=True):
        if row.group:
            beside.setdefault(_together(row), []).append(repr(key))
    seen: Counter[Hashable] = Counter()
    keys: list[Hashable] = []
    for row, key in sorted(zip(rows, alone, strict=True), key=lambda pair: pair[0].job or ""):
        if not row.group:
            continue
        place = (_together(row), key)
        seen[place] += 1
        beside.setdefault(id(row), []).append(
            str(seen[place])
        )  # copies of one trial: the first, the second, …
    for row, key in zip(rows, alone, strict=True):
        if row.group:
            keys.append((key, tuple(sorted(beside[_together(row)])), beside[id(row)][0]))
        else:
            keys.append((key, (), ""))
    return keys


def _together(row: TableRow) -> Hashable:
    return ("group", row.group, unit(row), machine(row) if unit(row) is None else None)


def _paired(
    a: Sequence[TableRow], b: Sequence[TableRow], keys_a: Sequence[Hashable], keys_b: Sequence[Hashable]
) -> Matching:
    places: dict[Hashable, tuple[list[TableRow], list[TableRow]]] = {}
    for side, (rows, keys) in enumerate(((a, keys_a), (b, keys_b))):
        for row, key in zip(rows, keys, strict=True):
            places.setdefault(key, ([], []))[side].append(row)
    pairs: list[Pair] = []
    only_a: list[TableRow] = []
    only_b: list[TableRow] = []
    several = []
    for mine, others in places.values():
        if not mine or not others:
            only_a += mine
            only_b += others
            continue
        clear = _clear(mine, others)
        pairs += clear
        taken = {id(row) for pair in clear for row in pair}
        left = [[row for row in rows if id(row) not in taken] for rows in (mine, others)]
        if all(left):
            several.append(Several(a=left[0], b=left[1]))
        else:
            only_a += left[0]
            only_b += left[1]
    return Matching(pairs=pairs, only_a=only_a, only_b=only_b, several=several)


def _clear(a: Sequence[TableRow], b: Sequence[TableRow]) -> list[Pair]:
    """Those of which there is one on each side; of several, by their machine, then by what it gave them, too."""
    if len(a) == len(b) == 1:
        return [(a[0], b[0])]
    found: list[Pair] = []
    for place in (machine, _given):
        taken = {id(row) for pair in found for row in pair}
        by_place: dict[Hashable, tuple[list[TableRow], list[TableRow]]] = {}
        for side, rows in enumerate((a, b)):
            for row in rows:
                if id(row) not in taken:
                    by_place.setdefault(place(row), ([], []))[side].append(row)
        found += [(mine[0], others[0]) for mine, others in by_place.values() if len(mine) == len(others) == 1]
    return found


def _given(row: TableRow) -> Hashable:
    return machine(row), *(known(row, field) for field in ALLOTTED)
