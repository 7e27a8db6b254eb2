"""Rules on runs: are all of them there, and what made each of them end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from gpubench.analysis.audit.facts import NOTHING, SCALES, Facts, Finding, does, first_few, judge, of
from gpubench.analysis.varied import Row, asked
from gpubench.result import FINAL


def all_kept(facts: Facts) -> Finding:
    """Rule 3: every attempt is stored. Attempts are numbered from 1, so that a record taken away leaves a gap."""
    if not facts.attempts:
        return NOTHING
    taken: dict[str, set[int]] = {}
    for attempt in facts.attempts:
        taken.setdefault(attempt.trial_id, set()).add(attempt.number)
    begun: dict[str, set[int]] = {trial: set(numbers) for trial, numbers in taken.items()}
    for trial, number in facts.traces:
        begun.setdefault(trial, set()).add(number)
    gone = [name for trial, numbers in sorted(begun.items()) for name in _gaps(trial, sorted(numbers))]
    unfinished = sorted(
        (trial, number) for trial, number in facts.traces if number > 0 and number not in taken.get(trial, ())
    )
    broken, unclear = [], []
    if gone:
        names = first_few(gone)
        broken.append(f"numbers of attempts have gaps, so records were taken away: {names}")
    if unfinished:
        names = first_few(f"{trial}-{number}" for trial, number in unfinished)
        unclear.append(
            f"attempts began of which no record can be read: {names} (still running, killed with the whole machine, "
            "damaged or taken away); their logs may tell"
        )
    foreign = {a.source for a in facts.attempts} - {"measured"}
    if foreign:
        unclear.append(
            f"figures of a {first_few(sorted(foreign))} come without the runs that were tried and left out; "
            "gpubench sweep measures anew and keeps every attempt"
        )
    later = len(facts.attempts) - len(taken)
    endings = Counter(a.status for a in facts.attempts if a.status not in FINAL)
    told = [f"{later} of them repeated a trial"] if later else []
    told += [f"{number} {status}" for status, number in sorted(endings.items())]
    told += [f"{facts.hidden} of edited variants stand in trials.csv only"] if facts.hidden else []
    return judge(
        broken,
        unclear,
        f"all {len(facts.attempts)} attempts at {len(taken)} trials are kept, numbered without a gap"
        f"{' (' + ', '.join(told) + ')' if told else ''}; runs outside this folder can't be seen",
    )


def _gaps(trial: str, numbers: Sequence[int]) -> Iterator[str]:
    """The numbers from 1 on that are not among these: `t0-2`, or `t0-2 to t0-9`. `numbers`: in order."""
    for before, after in pairwise([0, *numbers]):
        if after > before + 1:
            first, last = f"{trial}-{before + 1}", f"{trial}-{after - 1}"
            yield first if first == last else f"{first} to {last}"


def ended_by_epochs(facts: Facts) -> Finding:
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
    unknown = [row for row in facts.ok if not row.get("epochs") and not row.get("steps")]
    unclear = (
        [f"how many epochs were trained is not on record for {of(unknown, facts.ok)}"] if unknown else []
    )
    goals = [f"after {first_few(lengths)} epochs"] if (lengths := _lengths(facts.ok, "epochs")) else []
    goals += (
        [f"after {first_few(lengths)} measured steps"] if (lengths := _lengths(facts.ok, "steps")) else []
    )
    aimed = [row for row in facts.ok if row.get("until_top1")]
    there = [row for row in aimed if row.get("time_to_top1_s") is not None]
    short = [row for row in aimed if row.get("time_to_top1_s") is None]
    goals += [f"at a top-1 within {first_few(_most(there))} epochs"] if there else []
    goals += [f"after {first_few(_most(short))} epochs without reaching a top-1"] if short else []
    cut = [row for row in facts.rows if row["status"] == "timeout"]
    late = f"; {len(cut)} that met the deadline {does(cut, 'have')} no figures" if cut else ""
    return judge(
        broken,
        unclear,
        f"{of(facts.ok, facts.ok)} ended as fixed beforehand: {' or '.join(goals)}, none by the clock{late}",
    )


def _most(rows: Sequence[Row]) -> list[int]:
    """How many epochs rows that aim at a top-1 may train."""
    return sorted({row["epochs"] for row in rows if row.get("epochs")})


def _lengths(rows: Sequence[Row], field: str) -> list[int]:
    """How long rows were to train: those that measured steps by their steps, the others by their epochs."""
    chosen = [
        row for row in rows if not row.get("until_top1") and bool(row.get("steps")) == (field == "steps")
    ]
    return sorted({row[field] for row in chosen if row.get(field)})
