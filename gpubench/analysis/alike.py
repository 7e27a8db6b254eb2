"""Which rows may be compared: those of one workload, but for one axis and what may honestly move along it.

The workload is every trial field: what is computed, on which images, how they are fed, by what resources. Growth,
knees, scaling and the audit all go by MOVES, whatever fields an experiment has put on one axis.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from typing import Any

from gpubench.analysis.varied import (
    CANDIDATES,
    first_gpus,
    known,
    left_to_machine,
    machine,
    same_in_all,
    values,
)
from gpubench.schema import catalog
from gpubench.schema.row import Row
from gpubench.schema.trial_fields import ABOUT, FIELDS, those

WAY: tuple[str, ...] = ("strategy", *catalog.OWN_FIELDS)
"""The fields that say how devices shared the work."""
DEVICES = those(lambda about: about.of_devices)
"""The fields that say on what devices a trial ran, and how they shared the work."""

COUNTS = frozenset({"gpus", "ranks"})
"""Those that say how many devices; `devices` reads them."""

MOVES: dict[str, frozenset[str]] = {
    axis: frozenset(name for name in FIELDS if axis in ABOUT[name].moves_with)
    for axis in {axis for name in FIELDS for axis in ABOUT[name].moves_with}
}
"""Axis -> the fields that may move along it, where they are tied to it. All others tell workloads apart. `fair_step`
says how far strategy and batch size may."""


def devices(row: Row) -> int:
    """GPUs of the row's trial; on a CPU its ranks."""
    fields = row.fields  # as attributes they take twice as long, and it is asked of each row several times
    return fields.get("gpus") or fields.get("ranks") or 1


def way(row: Row) -> tuple[Any, ...]:
    """How the devices of the row's trial shared the work: the strategy, and what belongs to that alone."""
    return tuple(known(row, field) for field in WAY)


def movable(axis: str, tied: Collection[str]) -> frozenset[str]:
    """The fields of `tied` that may move along `axis`; where devices are among them, what may move along those, too."""
    axes = {axis, *(COUNTS & set(tied))}
    may = frozenset().union(*(MOVES.get(one, frozenset()) for one in axes))
    return (may & set(tied)) - {axis}


def workload(
    row: Row, fields: Collection[str], free: Collection[str] = ()
) -> tuple[tuple[str, Hashable], ...]:
    """The (field, value) pairs of `fields` that are not `free`: equal in rows of one workload.

    Of loaders whose number was left to the machine only that counts where devices or CPUs are free: it follows them.
    """
    follows = bool({*COUNTS, "cpus"} & set(free))
    return tuple((field, _told(row, field, follows)) for field in fields if field not in free)


def workloads(
    rows: Sequence[Row], fields: Collection[str], free: Collection[str] = ()
) -> Iterator[tuple[tuple[str, Hashable], ...]]:
    """The `workload` of each row."""
    follows = bool({*COUNTS, "cpus"} & set(free))
    names = [field for field in fields if field not in free]
    told = [
        [_told(row, name, follows) if name in TOLD_IN_WORDS else known(row, name) for row in rows]
        for name in names
    ]
    # One at a time: of 100,000 rows they would take 20 MB.
    return (
        tuple(zip(names, own, strict=True)) for own in (zip(*told, strict=True) if told else [()] * len(rows))
    )


def telling(rows: Sequence[Row], free: Collection[str]) -> list[str]:
    """The trial fields, but for `free` ones, that differ between rows: those that follow others, too."""
    follows = bool({*COUNTS, "cpus"} & set(free))
    same = same_in_all(rows) - {*TOLD_IN_WORDS}
    found = []
    for field in CANDIDATES:
        if field in free or field in same:
            continue
        told = (
            {_told(row, field, follows) for row in rows} - {None}
            if field in TOLD_IN_WORDS
            else values(rows, field)
        )
        if len(told) > 1:
            found.append(field)
    return found


def likeness(row: Row, *axes: str, tied: Collection[str] = ()) -> Hashable:
    """Equal in rows of one machine that differ in nothing but `axes` and what may move along them.

    `axes`: of MOVES, or any trial field. `tied`: the fields that the experiment put on one axis with those; without,
    only the learning rate and the length of training move with the batch size, and GPU ids, strategy and loaders left
    to the machine with the devices.
    """
    own = {*tied, *MOVES["batch_size"], *(DEVICES if COUNTS & set(axes) else ())}
    free = set(axes).union(*(movable(axis, own) for axis in axes))
    return machine(row), workload(row, CANDIDATES, free)


def fair_step(before: Row, after: Row) -> bool:
    """Whether what moves along between two neighbours of a series may.

    Where the number of devices changes, the batch size or the batch a device must stay, and the strategy, but that
    `single` on one device is where every strategy begins. Where it stays, a larger batch brings no other strategy,
    GPUs, loaders or CPUs.
    """
    some, others = devices(before), devices(after)
    same_batch = before.batch_size == after.batch_size
    if some == others:
        beside = ("strategy", "gpu_ids", "workers", "cpus")
        return same_batch or all(known(before, field) == known(after, field) for field in beside)
    fewer, more = (before, after) if some < others else (after, before)
    if not same_batch and _per_device(before) != _per_device(after):
        return False
    begins = devices(fewer) == 1 and fewer.strategy == "single"
    return begins or way(fewer) == way(more)


def _per_device(row: Row) -> float | None:
    batch = row.batch_size
    return batch / devices(row) if batch else None


TOLD_IN_WORDS = ("gpu_ids", "workers")
"""Fields of which `_told` has words besides their values. Both may be left to the machine."""


def _told(row: Row, field: str, follows: bool) -> Any:
    """The value by which rows are told apart."""
    value = known(row, field)
    if field == "gpu_ids" and (first_gpus(value) or left_to_machine(row, field)):
        return "first"  # as many as there are devices; others of the same model where one of these was lost
    return "auto" if follows and field == "workers" and left_to_machine(row, field) else value
