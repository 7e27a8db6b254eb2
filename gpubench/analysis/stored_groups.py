"""Groups as any version stored them, judged by this one: what their rows say of sharing. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpubench.analysis.sharing import full_cell, full_together, not_full, stored_resources
from gpubench.analysis.slowdown import Judgement, judgement
from gpubench.analysis.varied import Row, machine, unit, where
from gpubench.schema.result import FEWEST_TIMES

Alone = Mapping[tuple[Any, ...], Row]
"""Rows of trials alone, by trial id, machine and epoch time."""


def judged(rows: Sequence[dict[str, Any]], alone: Iterable[Row]) -> list[dict[str, Any]]:
    """The same rows in the same order; those of groups with `judgement`, `sharing` and `full_together` as this version
    finds them.

    Records keep what the version that measured them found. Rows of one group agree in `varied.unit` and host; of a
    published log they have no unit, and no range. `alone`: rows among which those are that the jobs were compared with.
    Where one of these is gone, what the earlier version found of range and refusal counts.
    """
    solos = {_key(row["trial_id"], row, row.get("epoch_time_s")): row for row in alone}
    jobs: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        jobs.setdefault((unit(row), where(row)), []).append(row)
    return [_judged(row, jobs[unit(row), where(row)], solos) for row in rows]


def _judged(row: dict[str, Any], jobs: Sequence[Row], alone: Alone) -> dict[str, Any]:
    facts, gain = row.get("together") or {}, row.get("overlap_gain")
    if gain is None:
        return row
    if not facts or unit(row) is None:
        found = judgement(gain, (), (), [Judgement(why_not=facts.get("undecidable"))])
        return {**row, "judgement": found, "sharing": found.cell}
    solos = [alone.get(_key(job["solo_id"], job, job.get("solo_epoch_time_s"))) for job in jobs]
    found = judgement(gain, solos, jobs, [] if all(solos) else [_stored(jobs)])
    missing = dict(row.get("missing") or {})
    if found.why_not:
        missing["sharing"] = found.why_not
    row = {**row, "judgement": found, "sharing": found.cell, "missing": missing}
    if facts.get("resources"):
        resources = stored_resources(facts["resources"])
        row["together"] = {**facts, "resources": [one.as_dict() for one in resources]}
        row["full_together"] = full_cell(full_together(resources))
        if row["full_together"] is None:
            missing["full_together"] = not_full(resources)
    return row


def _stored(jobs: Sequence[Row]) -> Judgement:
    """What the version that measured these jobs found; a range that it took from too few epochs is none."""
    facts = jobs[0].get("together") or {}
    ends = facts.get("gain_range")
    few = any((row.get("epochs_measured") or 0) < FEWEST_TIMES for row in jobs)
    return Judgement(
        gain_range=(ends[0], ends[1]) if ends and not few else None, why_not=facts.get("undecidable")
    )


def _key(trial_id: Any, row: Row, epoch_time_s: Any) -> tuple[Any, ...]:
    return trial_id, machine(row), epoch_time_s
