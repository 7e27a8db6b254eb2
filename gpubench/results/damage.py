"""What is said of a record that can't be used."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gpubench.results.counting import unit_of
from gpubench.results.file_names import numbered
from gpubench.results.stored_record import DamagedError, NewerError
from gpubench.schema.record import FINAL, Record, ending


def left_out(path: Path, damage: DamagedError, whole: Iterable[Record]) -> str:
    """One line on a record that can't be used: why, what counts in its place, what to do."""
    unit_id, number = numbered(path) or ("", 0)
    what = "group" if unit_id.startswith("g") else "trial"
    statuses: dict[int, list[str]] = {}
    further: set[int] = set()
    for record in whole:
        if unit_of(record) == unit_id:
            statuses.setdefault(record.attempt, []).append(record.status)
            if record.round > 1:
                further.add(record.attempt)
    endings = {attempt: ending(found) for attempt, found in sorted(statuses.items())}
    later = [attempt for attempt in endings if attempt > number]
    is_newer = isinstance(damage, NewerError)
    if later and further.issuperset(later):
        # A further round is no second attempt at what this one measured.
        if any(attempt not in further and endings[attempt] in FINAL for attempt in endings):
            return f"record {path} is left out, and the other rounds of its {what} count: it {damage}"
        remedy = "" if is_newer else "; the sweep that it is of measures it again"
        return (
            f"record {path} is left out: it {damage}; it was the first round of its {what}, without which "
            f"further rounds don't count{remedy}"
        )
    if later:
        anew = [attempt for attempt in later if attempt not in further]
        last = next((n for n in reversed(anew) if endings[n] in FINAL), anew[-1])
        again = "measured again" if endings[last] in FINAL else f"tried again ({endings[last]})"
        fate = (
            ""
            if is_newer
            else "; leave the file there: without it an attempt would seem to have been taken away"
        )
        return f"record {path} is left out: it {damage}; its {what} was {again} as attempt {last}{fate}"
    if endings and endings[max(endings)] in FINAL:
        return f"record {path} is left out, and attempt {max(endings)} at its {what} counts: it {damage}"
    remedy = "" if is_newer else "; the sweep that it is of measures it again"
    return f"record {path} is left out, and its {what} counts as not measured: it {damage}{remedy}"
