"""A plan dealt out among machines that share no folder: which of its units belong to shard i of N. Pure.

Lots are dealt like cards: shard i of N gets every Nth lot, from the ith on. That rests on the plan alone, so that every
task of an array works out the same, and a task that is submitted again gets its own part again. Which trials alone a
group is compared with depends on how many CPUs a machine has, so lots go by what was asked for.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import msgspec

from gpubench.basics.errors import UsageError
from gpubench.basics.quoted import quote_value
from gpubench.basics.words import format_count
from gpubench.plan.plan import Job, Plan, Unit
from gpubench.plan.shares import choose_device
from gpubench.plan.skips import make_memory_chain_key
from gpubench.schema.trial import Trial

MOST = 100_000
"""Shards: as many as a plan may have combinations."""
_FORM = re.compile(r"([0-9]{1,6})/([0-9]{1,6})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Shard:
    """One of `count` parts of a plan; the first has number 1."""

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """`2/8`. Raises UsageError."""
        match = _FORM.fullmatch(text.strip())
        number, count = map(int, match.groups()) if match else (0, 0)
        if not 1 <= number <= count <= MOST:
            raise UsageError(
                f"--shard {quote_value(text)}: which part of how many, from 1: 1/8 to 8/8 are the eight parts of a plan"
            )
        return cls(number, count)

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


Parts = tuple[Shard, ...]
"""Parts of a plan that one folder is asked for; none: the whole plan."""


def parse_shards(text: str) -> Parts:
    """`1/8,3/8`; empty for the whole plan. Raises UsageError."""
    return tuple(map(Shard.parse, filter(None, text.split(","))))


def join_shards(requests: Iterable[Parts]) -> Parts:
    """What a folder is asked for that was asked for each of these: the whole plan where one is, or all parts are."""
    shards: set[Shard] = set()
    for parts in requests:
        if not parts:
            return ()
        shards.update(parts)
    dealt_out = Counter(shard.count for shard in shards)
    if any(number == count for count, number in dealt_out.items()):
        return ()
    return tuple(sorted(shards, key=lambda shard: (shard.count, shard.number)))


def select_shards(plan: Plan, parts: Parts) -> Plan:
    """The plan with the units of these parts alone, in the plan's order; the whole plan where none is named."""
    if not parts:
        return plan
    lots = group_inseparable_units(plan)
    chosen = {
        unit.unit_id for shard in parts for lot in lots[shard.number - 1 :: shard.count] for unit in lot
    }
    return replace(plan, units=tuple(unit for unit in plan.units if unit.unit_id in chosen))


def group_inseparable_units(plan: Plan, *, by_memory: bool = True) -> list[list[Unit]]:
    """Units that must stay on one machine, together: in the order of the first of each.

    A group and the trials alone that it is compared with; `by_memory`: trials that differ in nothing but what a smaller
    batch tells of a larger one, whether it runs out of memory.
    """
    root: dict[Any, Any] = {}

    def find(key: Any) -> Any:
        while (above := root.setdefault(key, key)) != key:
            root[key] = root[above]
            key = above
        return key

    of_groups = {
        _make_solo_tie_key(job, plan.device) for unit in plan.units if unit.is_group for job in unit.jobs
    }
    for unit in plan.units:
        for tie in _list_tie_keys(unit, plan.device, of_groups, by_memory=by_memory):
            root[find(tie)] = find(unit.unit_id)
    bundles: dict[Any, list[Unit]] = {}
    for unit in plan.units:
        bundles.setdefault(find(unit.unit_id), []).append(unit)
    return list(bundles.values())


def _list_tie_keys(unit: Unit, device: str, of_groups: Collection[Any], *, by_memory: bool) -> Iterator[Any]:
    """What a unit has in common with those that must stay beside it. `of_groups`: what groups' jobs are tied by."""
    for job in unit.jobs:
        if of_groups and (wide := _make_solo_tie_key(job, device)) in of_groups:
            yield wide
        elif by_memory:
            yield _make_tie_key(job, job.trial, device)


def _make_solo_tie_key(job: Job, device: str) -> Any:
    """The same of whatever trial alone a job with these fields is compared with, on any machine."""
    open_ = {"copies": 1, "cpu_sharing": "shared", "cpus": None, "workers": None}
    return _make_tie_key(job, msgspec.structs.replace(job.trial, **open_), device)


def _make_tie_key(job: Job, t: Trial, device: str) -> Any:
    definition = job.variant.make_definition()
    if choose_device(t, device) == "cuda":
        return make_memory_chain_key(t, definition)
    # Memory of the host is no result of a trial: each is by itself.
    return json.dumps(definition, sort_keys=True), t


def describe_shard(plan: Plan, mine: Plan, shard: Shard) -> str:
    """What a shard is: `shard 2/8: 3 of the plan's 24 trials and groups`. Where it is empty, why."""
    if mine.units:
        return f"shard {shard}: {len(mine.units)} of the plan's {len(plan.units)} trials and groups"
    parts = format_count(len(group_inseparable_units(plan)), "part")
    return (
        f"shard {shard} has nothing to do: the plan falls into {parts}, for what is "
        "compared on one machine, or may run out of memory like a smaller batch, stays together"
    )
