"""What is said of a record that can't be used."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gpubench.results.counting import counting, unit_of
from gpubench.results.file_names import AttemptFile, parse_name
from gpubench.results.stored_record import DamagedError, NewerError
from gpubench.schema.record import FINAL, Record, ending


def describe_damage(path: Path, damage: DamagedError, whole: Iterable[Record]) -> str:
    """One line on a record that can't be used: why, what counts in its place, what to do."""
    name = parse_name(path) or AttemptFile("", "0")
    unit_id, number = name.unit_id, name.number
    what = "group" if unit_id.startswith("g") else "trial"
    records = [
        record for record in whole if unit_of(record) == unit_id and name.folder_id in ("", record.folder_id)
    ]
    statuses: dict[int, list[str]] = {}
    for record in records:
        statuses.setdefault(record.attempt, []).append(record.status)
    endings = {attempt: ending(job_statuses) for attempt, job_statuses in sorted(statuses.items())}
    # A further round is no second attempt at what this one measured.
    further = {record.attempt for record in records if record.round > 1 or record.reference}
    anew = [attempt for attempt in endings if attempt > number and attempt not in further]
    is_newer = isinstance(damage, NewerError)
    if anew:
        last = next((n for n in reversed(anew) if endings[n] in FINAL), anew[-1])
        again = "measured again" if endings[last] in FINAL else f"tried again ({endings[last]})"
        fate = (
            ""
            if is_newer
            else "; leave the file there: without it an attempt would seem to have been taken away"
        )
        return f"record {path} is left out: it {damage}; its {what} was {again} as attempt {last}{fate}"
    remedy = "" if is_newer else "; the sweep that it is of measures it again"
    if endings and further.issuperset(endings):
        return (
            f"record {path} is left out: it {damage}; no record of the first round of its {what} can be read, "
            f"without which further rounds don't count{remedy}"
        )
    counting_attempts = sorted(
        {record.attempt for record in counting(records).values() if endings[record.attempt] in FINAL}
    )
    if further.issuperset(counting_attempts):  # of the first round nothing but tries that were stopped
        return f"record {path} is left out, and its {what} counts as not measured: it {damage}{remedy}"
    if further.isdisjoint(counting_attempts):
        return f"record {path} is left out, and attempt {counting_attempts[-1]} at its {what} counts: it {damage}"
    return f"record {path} is left out, and the other rounds of its {what} count: it {damage}"
