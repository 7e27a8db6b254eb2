"""Rules on runs: are all of them there, and what made each of them end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from gpubench.analysis.audit.facts import (
    NOTHING,
    SCALES,
    AuditedFolder,
    Damaged,
    RuleFinding,
    does,
    first_few,
    of,
    rule_finding,
)
from gpubench.analysis.varied import asked
from gpubench.basics.words import all_of, many
from gpubench.schema.record import FINAL
from gpubench.schema.row import Row


def all_kept(facts: AuditedFolder) -> RuleFinding:
    """Rule 3: every attempt is stored.

    An attempt gets the number after the highest that is there, so one whose record is stored shows that there was
    something under the number before. A log, samples or a damaged file show only what their names say: that an attempt
    was begun.
    """
    if not facts.attempts:
        return NOTHING
    stored: dict[str, set[int]] = {}
    for attempt in facts.attempts:
        stored.setdefault(attempt.trial_id, set()).add(attempt.number)
    of_damaged = {(trial, one.number) for one in facts.damaged for trial in one.trials}
    begun = {trial: set(numbers) for trial, numbers in stored.items()}
    for trial, number in facts.traces:
        begun.setdefault(trial, set()).add(number)
    for one in facts.damaged:
        for trial in one.trials & begun.keys():  # a group may have fewer jobs than ids are possible
            begun[trial].add(one.number)
    gone: list[str] = []
    before_traces: list[str] = []
    for trial, numbers in sorted(begun.items()):
        for first, after in _gaps(sorted(numbers)):
            firm = after in stored.get(trial, ())
            (gone if firm else before_traces).append(_told(trial, first, after - 1))
    unfinished = sorted(
        (trial, number)
        for trial, number in facts.traces - of_damaged
        if number > 0 and number not in stored.get(trial, ())
    )
    rounds: dict[str, dict[int, int]] = {}
    for attempt in facts.attempts:
        rounds.setdefault(attempt.trial_id, {})[attempt.number] = attempt.round
    again = [one for one in facts.damaged if _later(one, rounds)]
    lost = [one for one in facts.damaged if not _later(one, rounds)]
    broken, unclear = [], []
    if gone:
        broken.append(
            f"numbers of attempts have gaps, so what these had left was taken away: {first_few(gone)}"
        )
    if lost:
        names = first_few(sorted(f"{one.unit_id}-{one.number}" for one in lost))
        unclear.append(f"records can't be read: {names}; the sweep that they are of measures them again")
    if again:
        names = first_few(sorted(f"{one.unit_id}-{one.number}" for one in again))
        unclear.append(
            f"records can't be read: {names}; what these held is not known, though their trials ran again"
        )
    if unfinished:
        names = first_few(f"{trial}-{number}" for trial, number in unfinished)
        unclear.append(
            f"attempts began of which there is no record: {names} (still running, killed with the whole machine, "
            "or the record was taken away); their logs may tell"
        )
    if before_traces:
        unclear.append(
            f"of numbers before these there is nothing: {first_few(before_traces)} "
            "(attempts that were taken away, or somebody's own files with higher numbers)"
        )
    foreign = {a.source for a in facts.attempts} - {"measured"}
    if foreign:
        unclear.append(
            f"figures of a {first_few(sorted(foreign))} come without the runs that were tried and left out; "
            "gpubench sweep measures anew and keeps every attempt"
        )
    later = len(facts.attempts) - len(stored)
    endings = Counter(a.status for a in facts.attempts if a.status not in FINAL)
    told = [f"{later} of them repeated a trial"] if later else []
    told += [f"{facts.tries} tried larger batches (--find-max-batch)"] if facts.tries else []
    told += [f"{number} {status}" for status, number in sorted(endings.items())]
    told += [f"{facts.hidden} of edited variants stand in trials.csv only"] if facts.hidden else []
    kept = "is kept" if len(facts.attempts) == 1 else "are kept"
    return rule_finding(
        broken,
        unclear,
        f"{all_of(len(facts.attempts), 'attempt')} at {many(len(stored), 'trial')} {kept}, numbered without a gap"
        f"{' (' + ', '.join(told) + ')' if told else ''}; runs outside this folder can't be seen",
    )


def _later(damaged: Damaged, rounds: Mapping[str, Mapping[int, int]]) -> bool:
    """Whether a record of a later attempt at the same trial can be read that may stand for this one.

    Those of other rounds don't where a round is missing: then this one was of it. `rounds`: trial id -> number of an
    attempt -> its round.
    """
    return any(
        max(there) > damaged.number and {*range(1, max(there.values()) + 1)} <= {*there.values()}
        for trial in damaged.trials
        if (there := rounds.get(trial))
    )


def _gaps(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Each run of numbers from 1 on that are not among these, which are in order: its first, and the one after it."""
    for before, after in pairwise([0, *numbers]):
        if after > before + 1:
            yield before + 1, after


def _told(trial: str, first: int, last: int) -> str:
    """`t0-2`, or `t0-2 to t0-9`."""
    return f"{trial}-{first}" if first == last else f"{trial}-{first} to {trial}-{last}"


def ended_by_epochs(facts: AuditedFolder) -> RuleFinding:
    """Rule 10: training ends after so many epochs, fixed beforehand, or at an accuracy; not by the clock."""
    if not facts.ok:
        return NOTHING
    broken = []
    for table in facts.tables:
        for field in ("epochs", "steps"):
            # A job of a group trains as long as what it is compared with; another job may train longer.
            lengths = _lengths(table.own, field)
            with_scale = any(field in group and SCALES & set(group) for group in table.axes)
            if len(lengths) > 1 and (field not in asked(table.axes) or with_scale):
                why = (
                    "on one axis with the batch size or the devices" if with_scale else "though nobody asked"
                )
                broken.append(f"{table.name}: rows trained {first_few(lengths)} {field}, {why}")
    rates = [row for row in facts.ok if row.kind == "steady rate"]
    unknown = [row for row in facts.ok if not row.epochs and not row.steps and row.kind != "steady rate"]
    unclear = (
        [f"how many epochs were trained is not on record for {of(unknown, facts.ok)}"] if unknown else []
    )
    goals = [f"after {first_few(lengths)} epochs"] if (lengths := _lengths(facts.ok, "epochs")) else []
    goals += (
        [f"after {first_few(lengths)} measured steps"] if (lengths := _lengths(facts.ok, "steps")) else []
    )
    goals += ["after a window of as many steps as were settled before it"] if rates else []
    aimed = [row for row in facts.ok if row.until_top1]
    there = [row for row in aimed if row.time_to_top1_s is not None]
    short = [row for row in aimed if row.time_to_top1_s is None]
    goals += [f"at a top-1 within {first_few(_most(there))} epochs"] if there else []
    goals += [f"after {first_few(_most(short))} epochs without reaching a top-1"] if short else []
    cut = [row for row in facts.rows if row.status == "timeout"]
    late = f"; {len(cut)} that met the deadline {does(cut, 'have')} no figures" if cut else ""
    return rule_finding(
        broken,
        unclear,
        f"{of(facts.ok, facts.ok)} ended as fixed beforehand: {' or '.join(goals)}, none by the clock{late}",
    )


def _most(rows: Sequence[Row]) -> list[int]:
    """How many epochs rows that aim at a top-1 may train."""
    return sorted({row.epochs for row in rows if row.epochs})


def _lengths(rows: Sequence[Row], field: str) -> list[int]:
    """How long rows were to train: those that measured steps by their steps, the others by their epochs."""
    chosen = [row for row in rows if not row.until_top1 and bool(row.steps) == (field == "steps")]
    return sorted({row.value(field) for row in chosen if row.value(field)})
