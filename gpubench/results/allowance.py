"""Stored attempts at trials that left CPUs or loaders to the machine: which were given what it would give now. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpubench.plan.state import PlannedUnit
from gpubench.results.counting import group_by_attempt, identify_attempt
from gpubench.schema.record import Record, decide_group_ending, find_allotted_values

Key = tuple[str, str]
"""Trial id and machine."""


EXPLANATIONS: Mapping[str, str] = {
    "cpus": "measured on {then} CPU{s}, here {now} may be used",
    "workers": "measured with {then} loader worker{s}, here it gets {now}",
}
"""How it is said that a field got another value. What follows from others comes after them."""


def explain_allowance_mismatch(jobs: Sequence[Record], now: Mapping[Key, Mapping[str, Any]]) -> str | None:
    """What the machine gave one attempt that it would not give now; None where that is the same.

    `jobs`: of a group all of them, for they stand together: one that is unlike takes its neighbours along. `now`: the
    columns of `ResolvedTrial`. What ran out of GPU memory is alike: CPUs don't change that.
    """
    if decide_group_ending([job.status for job in jobs]) == "oom":
        return None
    for job in jobs:
        given_now = now.get((job.trial_id, job.machine_key), {})
        then = find_allotted_values(job)
        for field, words in EXPLANATIONS.items():
            if given_now and then.get(field) is not None and then[field] != given_now[field]:
                s = "" if then[field] == 1 else "s"
                return words.format(then=then[field], s=s, now=given_now[field])
    return None


def select_matching_records(
    records: Iterable[Record], now: Mapping[Key, Mapping[str, Any]]
) -> tuple[list[Record], dict[str, str]]:
    """The attempts without those that were given something else; and trial id -> why, where no other is left.

    `now`: what the machine would give. Attempts at other trials, and of other machines, stay.
    """
    stored = list(records)
    out = {
        identify_attempt(jobs[0]): why
        for jobs in group_by_attempt(stored)
        if (why := explain_allowance_mismatch(jobs, now)) is not None
    }
    kept = [record for record in stored if identify_attempt(record) not in out]
    without = now.keys() - {(record.trial_id, record.machine_key) for record in kept}
    lost = {
        record.trial_id: out[identify_attempt(record)]
        for record in stored
        if identify_attempt(record) in out and (record.trial_id, record.machine_key) in without
    }
    return kept, lost


def list_not_reused_lines(planned: Iterable[PlannedUnit]) -> list[str]:
    """One line for each reason why stored results are not reused, as a sweep says it."""
    reasons = Counter(item.why for item in planned if item.state == "run" and item.why)
    return [
        f"{number} stored result{'s are' if number > 1 else ' is'} not reused: {why}"
        for why, number in reasons.items()
    ]
