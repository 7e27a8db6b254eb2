"""Groups as any version stored them, judged by this one: what their rows say of sharing. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpubench.analysis.sharing import full_cell, full_together, not_full, stored_resources
from gpubench.analysis.slowdown import gain_range, word
from gpubench.analysis.varied import Row, machine, unit
from gpubench.result import FEWEST_TIMES

Alone = Mapping[tuple[Any, ...], Row]
"""Rows of trials alone, by trial id, machine and epoch time."""


def judged(rows: Sequence[dict[str, Any]], alone: Iterable[Row]) -> list[dict[str, Any]]:
    """The same rows in the same order; those of groups with `sharing` and `full_together` as this version finds them.

    Records keep what the version that measured them found. Rows of one group agree in `varied.unit` and machine; of a
    published log they have no unit, and no range. `alone`: rows among which those are that the jobs were compared with.
    What they leave open stays as stored.
    """
    solos = {_key(row["trial_id"], row, row.get("epoch_time_s")): row for row in alone}
    jobs: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        jobs.setdefault((unit(row), machine(row)), []).append(row)
    return [_judged(row, jobs[unit(row), machine(row)], solos) for row in rows]


def _judged(row: dict[str, Any], jobs: Sequence[Row], alone: Alone) -> dict[str, Any]:
    facts = row.get("together") or {}
    if row.get("overlap_gain") is None:
        return row
    if not facts or unit(row) is None:
        return {**row, "sharing": word(row["overlap_gain"], None, facts.get("undecidable"))}
    missing = dict(row.get("missing") or {})
    found = {**facts, "gain_range": _range(jobs, alone)}
    if facts.get("resources"):
        resources = stored_resources(facts["resources"])
        found["resources"] = [one.as_dict() for one in resources]
        row = {**row, "full_together": full_cell(full_together(resources))}
        if row["full_together"] is None:
            missing["full_together"] = not_full(resources)
    sharing = word(row["overlap_gain"], found["gain_range"], facts.get("undecidable"))
    return {**row, "sharing": sharing, "together": found, "missing": missing}


def _range(jobs: Sequence[Row], alone: Alone) -> tuple[float, float] | None:
    """From the rows themselves. Without all of those alone: as stored, unless a job measured too few epochs for it."""
    solos = [alone.get(_key(row["solo_id"], row, row.get("solo_epoch_time_s"))) for row in jobs]
    known = [solo for solo in solos if solo]
    if len(known) == len(jobs):
        return gain_range(known, jobs)
    if any((row.get("epochs_measured") or 0) < FEWEST_TIMES for row in jobs):
        return None
    stored = (jobs[0].get("together") or {}).get("gain_range")
    return (stored[0], stored[1]) if stored else None


def _key(trial_id: Any, row: Row, epoch_time_s: Any) -> tuple[Any, ...]:
    return trial_id, machine(row), epoch_time_s
