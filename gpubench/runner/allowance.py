"""Stored attempts at trials that left CPUs or loaders to the machine: which were given what it would give now. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gpubench.result import LEFT, Record, given
from gpubench.runner.state import Planned

Key = tuple[str, str]
"""Trial id and machine."""


def _cpus(then: Any, now: Any) -> str:
    return f"measured on {then} CPU{'s' if then != 1 else ''}, here {now} may be used"


def _workers(then: Any, now: Any) -> str:
    return f"measured with {then} loader worker{'s' if then != 1 else ''}, here it gets {now}"


SAID: dict[str, Callable[[Any, Any], str]] = dict(zip(LEFT, (_cpus, _workers), strict=True))
"""How it is said that a field got another value."""


def unlike(record: Record, now: Mapping[str, Any]) -> str | None:
    """What the machine gave this attempt that it would not give now; None where that is the same.

    `now`: the columns of `Resolved`. What ran out of GPU memory is alike: CPUs don't change that.
    """
    if record.status == "oom":
        return None
    for field, then in given(record).items():
        if then is not None and then != now[field]:
            return SAID[field](then, now[field])
    return None


def alike(
    records: Iterable[Record], now: Mapping[Key, Mapping[str, Any]]
) -> tuple[list[Record], dict[str, str]]:
    """The attempts without those that were given something else; and trial id -> why, where no other is left.

    `now`: what the machine would give. Attempts at other trials, and of other machines, stay. Jobs of a group stand
    together: one that is unlike takes its neighbours along.
    """
    stored = list(records)
    out: dict[tuple[str, int, str], str] = {}
    for record in stored:
        here = now.get((record.trial_id, record.machine_key))
        why = unlike(record, here) if here is not None else None
        if why is not None:
            out[_attempt(record)] = why
    kept = [record for record in stored if _attempt(record) not in out]
    without = now.keys() - {(record.trial_id, record.machine_key) for record in kept}
    lost = {
        record.trial_id: out[_attempt(record)]
        for record in stored
        if _attempt(record) in out and (record.trial_id, record.machine_key) in without
    }
    return kept, lost


def _attempt(record: Record) -> tuple[str, int, str]:
    return record.group_id or record.trial_id, record.attempt, record.started_at


def again_lines(planned: Iterable[Planned]) -> list[str]:
    """One line for each reason why stored results are not reused, as a sweep says it."""
    reasons = Counter(item.why for item in planned if item.state == "run" and item.why)
    return [
        f"{number} stored result{'s are' if number > 1 else ' is'} not reused: {why}"
        for why, number in reasons.items()
    ]
