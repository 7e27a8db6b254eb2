"""Ways to do the same work, side by side: variants, strategies, … each against the one named first. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from gpubench.analysis.alike import workload
from gpubench.analysis.certainty.interval import Interval
from gpubench.analysis.growth import epoch_time
from gpubench.analysis.over_processes import time_ratio
from gpubench.analysis.varied import CANDIDATES, FOLLOWS, known, left_to_machine, machine, solo, values
from gpubench.schema import catalog
from gpubench.schema.row import TableRow
from gpubench.schema.trial import make
from gpubench.schema.trial_fields import those

FIELDS = those(lambda about: about.alternatives)
"""Fields whose values are ways to do the same work."""
SETTLED = ("lr", *catalog.OWN_FIELDS)
"""Fields that, where nobody asks for a value, have one that follows from such a field in the trial itself."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Pair:
    """A row beside one that differs from it in the value of one field alone."""

    field: str
    row: TableRow
    baseline: TableRow


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Alternative(Pair):
    """A pair of rows that are compared over processes."""

    ratio: Interval
    """Time per image of the row by that of the baseline."""


def alternatives(pairs: Sequence[Pair]) -> list[Alternative]:
    """Those of the pairs of which something can be said over processes: not those with a row of one process."""
    return [
        Alternative(field=one.field, row=one.row, baseline=one.baseline, ratio=ratio)
        for one in pairs
        if (ratio := time_ratio(one.row, one.baseline)) is not None
    ]


def told_apart_by(field: str, fields: Collection[str]) -> list[str]:
    """Those of the fields of a table that tell places apart at which values of `field` stand beside each other."""
    return [other for other in fields if other != field and field not in FOLLOWS.get(other, ())]


def pairs(rows: Sequence[TableRow], fields: Collection[str]) -> list[Pair]:
    """The rows of a table that differ in one of these fields, field by field.

    The baseline is the row of the value that stands first in the table, of those that stand beside another one:
    `single` never does on two devices. Both are equal in all else, but for what follows from the field by itself. Rows
    that did not end ok, or are jobs of a group, are in none; nor are those of which several are at one place.
    """
    alone = [row for row in solo(rows) if epoch_time(row) is not None]
    found = []
    for field in (name for name in FIELDS if name in fields):
        following = [name for name in CANDIDATES if field in FOLLOWS.get(name, ())]
        order = values(alone, field)
        places: dict[object, dict[object, list[TableRow]]] = {}
        for row in alone:
            asked_for = [None if _by_itself(row, name, field) else known(row, name) for name in following]
            place = (machine(row), workload(row, CANDIDATES, {field, *following}), *asked_for)
            places.setdefault(place, {}).setdefault(known(row, field), []).append(row)
        compared = [
            [here[value][0] for value in order if len(here.get(value, ())) == 1] for here in places.values()
        ]
        beside = {known(row, field) for each in compared if len(each) > 1 for row in each}
        first = next((value for value in order if value in beside), None)
        for each in compared:
            if not each or known(each[0], field) != first:
                continue  # so that all sentences on a field have the same baseline
            found += [Pair(field=field, row=row, baseline=each[0]) for row in each[1:]]
    return found


def _by_itself(row: TableRow, name: str, field: str) -> bool:
    """Whether a row has the value of `name` that comes with its value of `field` where nobody asks for another.

    The machine settles it, or the field: each optimizer has a learning rate of its own.
    """
    if left_to_machine(row, name):
        return True
    return name in SETTLED and bool(known(row, name) == getattr(make({field: known(row, field)}), name))
