"""Which of the stored attempts at a unit counts, which got of the machine what they would get now, and of which folder
they are. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from gpubench.schema.attempt_ids import hash_content
from gpubench.schema.record import FINAL, Record, decide_group_ending, find_allotted_values

LONGEST_NUMBER = 8
"""Signs of the number of a claim: more are no work of gpubench."""


def find_unit_id(record: Record) -> str:
    """The id of what was stored as one: the trial, or the group that it was a job of."""
    return record.group_id or record.trial_id


def make_start_key(record: Record) -> tuple[str, str, int]:
    """Sorts attempts as they began; within one second, always in the same way."""
    return record.started_at, record.trial_id, record.attempt


AttemptKey = tuple[str, str, str, str, str]
"""What tells one attempt at a unit from every other one: equal for the jobs of a group."""


def identify_attempt(record: Record) -> AttemptKey:
    """The attempt that a record is of.

    A folder into which several machines' results were put may hold several first attempts at one unit, which jobs of
    one array may have begun in the same second: the host tells them apart, and the machine where no host is on record.
    """
    machine = "" if record.group_id else record.machine_key  # jobs of one group may be on unlike devices
    return find_unit_id(record), record.attempt_name, record.started_at, find_record_host(record), machine


def find_record_host(record: Record) -> str:
    """The host that it was measured on; empty where that is not on record."""
    return str(record.environment.get("host") or "")


def group_by_attempt(records: Iterable[Record]) -> list[list[Record]]:
    """The records of each attempt together, in the order in which the first of each comes."""
    attempts: dict[AttemptKey, list[Record]] = {}
    for record in records:
        attempts.setdefault(identify_attempt(record), []).append(record)
    return list(attempts.values())


Allowance = frozenset[tuple[str | None, tuple[Any, ...]]]
"""What the machine gave the jobs of one attempt of what they left to it."""
Counts = tuple[str, str, int, Allowance]
"""Trial id, machine, round and allowance, of which one attempt counts."""


def select_counting_of_first_round(records: Iterable[Record]) -> dict[tuple[str, str], Record]:
    """(trial id, machine) -> the attempt of the first round that counts: the last final one, else the last one.

    The jobs of a group come from one and the same attempt.
    """
    return select_counting_by_round(records).get(1, {})


def select_counting_by_round(records: Iterable[Record]) -> dict[int, dict[tuple[str, str], Record]]:
    """Number of a round -> (trial id, machine) -> the attempt of it that counts, for rounds of which there is one."""
    rounds: dict[int, dict[tuple[str, str], Record]] = {}
    for jobs in _select_counting_attempts(records, lambda _: frozenset()).values():
        for job in jobs:
            rounds.setdefault(job.round, {})[job.trial_id, job.machine_key] = job
    return rounds


def count_attempts_without_first_round(records: Collection[Record]) -> dict[str, int]:
    """Trial id -> how many attempts of further rounds are stored of it, of trials without any of a first round.

    Such attempts count nowhere: the first round's record was damaged, or taken away.
    """
    whole = {record.trial_id for record in records if record.round == 1 and not record.reference}
    return Counter(record.trial_id for record in records if record.trial_id not in whole)


def select_counting_records(records: Iterable[Record]) -> dict[Counts, Record]:
    """The attempts that count, for each round and each allowance of CPUs by itself: what a folder shows.

    An attempt under another allowance is one at another configuration. It takes no row away, so that whichever
    allowance the next sweep has, the folder shows all that the sweep shows.
    """
    counting = _select_counting_attempts(records, find_attempt_allowance).values()
    return key_records_as_counting(chain.from_iterable(counting))


def key_records_as_counting(records: Iterable[Record]) -> dict[Counts, Record]:
    """These attempts, each of which is to count, whatever came before or after it."""
    once: dict[Allowance, Allowance] = {}  # each is kept once: of many attempts few had another one
    return {
        (job.trial_id, job.machine_key, job.round, once.setdefault(allowance, allowance)): job
        for jobs in group_by_attempt(records)
        for allowance in [find_attempt_allowance(jobs)]
        for job in jobs
    }


def find_attempt_allowance(jobs: Sequence[Record]) -> Allowance:
    """Under which allowance an attempt was made; `jobs`: of a group all of them."""
    return frozenset((job.job, tuple(find_allotted_values(job).values())) for job in jobs)


Place = tuple[str, tuple[str, ...], Allowance]
"""Unit, machines of its jobs and allowance, of which one measurement counts."""


def _select_counting_attempts(
    records: Iterable[Record], allowed: Callable[[Sequence[Record]], Allowance]
) -> dict[tuple[int, Place], list[Record]]:
    """Round and place -> the attempt that counts there. `allowed`: which allowances are told apart.

    All rounds of a unit are of one folder: where several were merged, of the one that measured it last.
    """
    places: dict[Place, dict[str, list[list[Record]]]] = {}
    counted: dict[tuple[int, Place], list[Record]] = {}
    # Clocks may be set back; numbers only go up.
    for jobs in sorted(group_by_attempt(records), key=lambda jobs: jobs[0].attempt):
        if not jobs[0].reference:
            place = find_unit_id(jobs[0]), tuple(sorted(job.machine_key for job in jobs)), allowed(jobs)
            places.setdefault(place, {}).setdefault(jobs[0].folder_id, []).append(jobs)
            counted.setdefault((jobs[0].round, place), [])
    for place, folders in places.items():
        measured = max(map(_select_attempt_by_round, folders.values()), key=_make_folder_sort_key)
        for number, jobs in measured.items():
            counted[number, place] = jobs
    return {key: jobs for key, jobs in counted.items() if jobs}


def _select_attempt_by_round(attempts: Sequence[list[Record]]) -> dict[int, list[Record]]:
    """Number of a round -> the attempt that counts in it, of those at one unit in one folder, by their numbers.

    Further rounds add to the first one's attempt that counts. Those that came before it, or of which there is none,
    don't count: the unit was measured anew since.
    """
    chosen: dict[int, list[Record]] = {}
    superseded = set(map(id, _list_superseded_attempts(attempts)))
    for jobs in attempts:
        if id(jobs) in superseded:
            continue
        number = jobs[0].round
        if number not in chosen or _has_final_ending(jobs) or not _has_final_ending(chosen[number]):
            chosen[number] = jobs
    if 1 not in chosen:
        return {}
    first = chosen[1][0].attempt
    return {number: jobs for number, jobs in chosen.items() if number == 1 or jobs[0].attempt > first}


def list_superseded_records(records: Iterable[Record]) -> list[Record]:
    """Attempts in whose place another one counts, of a later claim of the same unit and round.

    Their sweep was taken for dead, and stored what it had measured all the same.
    """
    units: dict[tuple[str, str], list[list[Record]]] = {}
    for jobs in group_by_attempt(record for record in records if record.claim):
        units.setdefault((find_unit_id(jobs[0]), jobs[0].folder_id), []).append(jobs)
    return [
        job for attempts in units.values() for jobs in _list_superseded_attempts(attempts) for job in jobs
    ]


def _list_superseded_attempts(attempts: Sequence[list[Record]]) -> list[list[Record]]:
    """The same of the attempts at one unit in one folder. One that ended goes before one that was stopped."""
    last: dict[str, tuple[bool, int]] = {}
    places = [(jobs, *_split_claim_name(jobs[0].claim)) for jobs in attempts if jobs[0].claim]
    for jobs, item, number in places:
        last[item] = max(last.get(item, (False, 0)), (_has_final_ending(jobs), number))
    return [jobs for jobs, item, number in places if (_has_final_ending(jobs), number) < last[item]]


def _split_claim_name(name: str) -> tuple[str, int]:
    """What is claimed, and the number of the claim."""
    item, _, number = name.rpartition(".")
    return item, int(number) if number.isdecimal() and len(number) < LONGEST_NUMBER else 0


def _has_final_ending(jobs: Sequence[Record]) -> bool:
    return decide_group_ending([job.status for job in jobs]) in FINAL


def _make_folder_sort_key(rounds: Mapping[int, Sequence[Record]]) -> tuple[bool, bool, str, str]:
    """Sorts the measurements of several folders at one unit: what ended before what did not, then as they began."""
    if not rounds:
        return False, False, "", ""
    began = max(jobs[0].started_at for jobs in rounds.values())
    return True, _has_final_ending(rounds[1]), began, rounds[1][0].folder_id


# ---- what the machine gave ----

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


# ---- whose attempts they are ----


def derive_folder_id_from_records(records: Collection[Record]) -> str:
    """The id of a folder of an earlier version, by the attempt that began first: the same wherever it is derived."""
    ids = (
        f"{record.started_at} {record.group_id or record.trial_id} {record.attempt} {record.machine_key} "
        f"{record.environment.get('host')} {record.span.launched if record.span else ''}"
        for record in records
    )
    return hash_content(min(ids, default=""))


def find_most_common_folder_id(records: Collection[Record]) -> str:
    """The id of a folder that has lost it: that of most of its attempts; empty where none has any."""
    counts = Counter(record.folder_id for record in records if record.folder_id)
    return min(counts, key=lambda folder_id: (-counts[folder_id], folder_id), default="")
