"""Stored attempts at trials that left CPUs or loaders to the machine: which were given what it would give now. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from gpubench.plan.state import Planned
from gpubench.results.counting import by_run, run_of
from gpubench.schema.record import Record, ending, given

Key = tuple[str, str]
"""Trial id and machine."""


def _cpus(then: Any, now: Any) -> str:
    return f"measured on {then} CPU{'s' if then != 1 else ''}, here {now} may be used"


def _workers(then: Any, now: Any) -> str:
    return f"measured with {then} loader worker{'s' if then != 1 else ''}, here it gets {now}"


SAID: dict[str, Callable[[Any, Any], str]] = {"cpus": _cpus, "workers": _workers}
"""How it is said that a field got another value. What follows from others comes after them."""


def unlike(jobs: Sequence[Record], now: Mapping[Key, Mapping[str, Any]]) -> str | None:
    """What the machine gave one attempt that it would not give now; None where that is the same.

    `jobs`: of a group all of them, for they stand together: one that is unlike takes its neighbours along. `now`: the
    columns of `Resolved`. What ran out of GPU memory is alike: CPUs don't change that.
    """
    if ending([job.status for job in jobs]) == "oom":
        return None
    for job in jobs:
        here = now.get((job.trial_id, job.machine_key), {})
        then = given(job)
        for field, said in SAID.items():
            if here and then.get(field) is not None and then[field] != here[field]:
                return said(then[field], here[field])
    return None


def alike(
    records: Iterable[Record], now: Mapping[Key, Mapping[str, Any]]
) -> tuple[list[Record], dict[str, str]]:
    """The attempts without those that were given something else; and trial id -> why, where no other is left.

    `now`: what the machine would give. Attempts at other trials, and of other machines, stay.
    """
    stored = list(records)
    out = {run_of(jobs[0]): why for jobs in by_run(stored) if (why := unlike(jobs, now)) is not None}
    kept = [record for record in stored if run_of(record) not in out]
    without = now.keys() - {(record.trial_id, record.machine_key) for record in kept}
    lost = {
        record.trial_id: out[run_of(record)]
        for record in stored
        if run_of(record) in out and (record.trial_id, record.machine_key) in without
    }
    return kept, lost


def again_lines(planned: Iterable[Planned]) -> list[str]:
    """One line for each reason why stored results are not reused, as a sweep says it."""
    reasons = Counter(item.why for item in planned if item.state == "run" and item.why)
    return [
        f"{number} stored result{'s are' if number > 1 else ' is'} not reused: {why}"
        for why, number in reasons.items()
    ]
