"""Groups as any version stored them, judged by this one: what their rows say of sharing. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpubench.analysis.sharing import full_cell, full_together, not_full, stored_resources
from gpubench.analysis.slowdown import judgement
from gpubench.analysis.varied import machine, unit, where
from gpubench.schema.epoch_times import FEWEST_TIMES
from gpubench.schema.judgement import Judgement
from gpubench.schema.row import Row, replace

Alone = Mapping[tuple[Any, ...], Row]
"""Rows of trials alone, by trial id, machine and epoch time."""


def judged(rows: Sequence[Row], alone: Iterable[Row]) -> list[Row]:
    """The same rows in the same order; those of groups with `judgement`, `sharing` and `full_together` as this version
    finds them.

    Records keep what the version that measured them found. Rows of one group agree in `varied.unit` and host; of a
    published log they have no unit, and no range. `alone`: rows among which those are that the jobs were compared with.
    Where one of these is gone, what the earlier version found of range and refusal counts.
    """
    solos = {_key(row.trial_id, row, row.epoch_time_s): row for row in alone}
    jobs: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        jobs.setdefault((unit(row), where(row)), []).append(row)
    return [_judged(row, jobs[unit(row), where(row)], solos) for row in rows]


def _judged(row: Row, jobs: Sequence[Row], alone: Alone) -> Row:
    facts, gain = row.together, row.overlap_gain
    if gain is None:
        return row
    if facts is None or unit(row) is None:
        found = judgement(gain, (), (), [Judgement(why_not=facts.undecidable if facts else None)])
        return replace(row, judgement=found, sharing=found.cell)
    solos = [alone.get(_key(job.solo_id, job, job.solo_epoch_time_s)) for job in jobs]
    found = judgement(gain, solos, jobs, [] if all(solos) else [_stored(jobs)])
    missing = {**row.missing, "sharing": found.why_not} if found.why_not else row.missing
    row = replace(row, judgement=found, sharing=found.cell, missing=missing)
    if not facts.resources:
        return row
    resources = stored_resources(facts)
    full = full_cell(full_together(resources))
    return replace(
        row,
        full_together=full,
        missing={**missing, "full_together": not_full(resources)} if full is None else missing,
    )


def _stored(jobs: Sequence[Row]) -> Judgement:
    """What the version that measured these jobs found; a range that it took from too few epochs is none."""
    facts = jobs[0].together
    if facts is None:
        return Judgement()
    few = any((row.epochs_measured or 0) < FEWEST_TIMES for row in jobs)
    return Judgement(gain_range=None if few else facts.gain_range, why_not=facts.undecidable)


def _key(trial_id: Any, row: Row, epoch_time_s: Any) -> tuple[Any, ...]:
    return trial_id, machine(row), epoch_time_s
