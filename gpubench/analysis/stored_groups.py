"""Groups as any version stored them, with the verdicts of this one: what their rows say of sharing. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpubench.analysis.sharing import full_cell, full_together, not_full, stored_resources
from gpubench.analysis.slowdown import group_verdict
from gpubench.analysis.varied import machine, unit, where
from gpubench.schema.epoch_times import FEWEST_TIMES
from gpubench.schema.row import Row, replace
from gpubench.schema.verdict import Verdict

Alone = Mapping[tuple[Any, ...], Row]
"""Rows of trials alone, by trial id, machine and epoch time."""


def with_verdicts(rows: Sequence[Row], alone: Iterable[Row]) -> list[Row]:
    """All of these rows, in their order; those of groups with `verdict`, `sharing` and `full_together` as this version
    finds them.

    Records keep what the version that measured them found. Rows of one group agree in `varied.unit` and host; of a
    published log they have no unit, and no range. `alone`: rows among which those are that the jobs were compared with.
    Where one of these is gone, what the earlier version found of range and refusal counts.
    """
    solos = {_key(row.trial_id, row, row.epoch_time_s): row for row in alone}
    jobs: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        jobs.setdefault((unit(row), where(row)), []).append(row)
    return [_with_verdict(row, jobs[unit(row), where(row)], solos) for row in rows]


def _with_verdict(row: Row, jobs: Sequence[Row], alone: Alone) -> Row:
    facts, gain = row.together, row.overlap_gain
    if gain is None:
        return row
    if facts is None or unit(row) is None:
        found = group_verdict(gain, (), (), [Verdict(why_not=facts.undecidable if facts else None)])
        return replace(row, verdict=found, sharing=found.cell)
    solos = [alone.get(_key(job.solo_id, job, job.solo_epoch_time_s)) for job in jobs]
    found = group_verdict(gain, solos, jobs, [] if all(solos) else [_stored(jobs)])
    missing = {**row.missing, "sharing": found.why_not} if found.why_not else row.missing
    row = replace(row, verdict=found, sharing=found.cell, missing=missing)
    if not facts.resources:
        return row
    resources = stored_resources(facts)
    full = full_cell(full_together(resources))
    return replace(
        row,
        full_together=full,
        missing={**missing, "full_together": not_full(resources)} if full is None else missing,
    )


def _stored(jobs: Sequence[Row]) -> Verdict:
    """What the version that measured these jobs found; a range that it took from too few epochs is none."""
    facts = jobs[0].together
    if facts is None:
        return Verdict()
    few = any((row.epochs_measured or 0) < FEWEST_TIMES for row in jobs)
    return Verdict(gain_range=None if few else facts.gain_range, why_not=facts.undecidable)


def _key(trial_id: Any, row: Row, epoch_time_s: Any) -> tuple[Any, ...]:
    return trial_id, machine(row), epoch_time_s
