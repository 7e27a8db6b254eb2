"""Which trials of a plan are done, which are to run, which are skipped. Worked out anew at every start. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError

from gpubench.experiment.plan import Plan, Room, Unit, chain_key, skip_reason
from gpubench.result import FINAL, Record
from gpubench.trial import Trial

State = Literal["done", "run", "skip", "failed"]
VERSIONS = ("torch", "torchvision", "driver", "gpubench")
"""What makes a record stale when it differs."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A trial of the plan and what is to become of it."""

    unit: Unit
    state: State
    why: str = ""
    record: Record | None = None
    stale: bool = False


def oom_chains(records: Iterable[Record]) -> dict[tuple[Any, ...], int]:
    """Chain -> the smallest batch that ran out of memory, whichever plan ran it. `records`: of one machine."""
    found: dict[tuple[Any, ...], int] = {}
    for record in records:
        if record.status == "oom":
            try:
                t = Trial.model_validate_json(json.dumps(record.trial))
            except ValidationError:
                continue  # of a version with other fields: no trial of today is in its chain
            key = chain_key(t, record.variant_definition)
            found[key] = min(found.get(key, t.batch_size), t.batch_size)
    return found


def is_stale(record: Record, environment: Mapping[str, Any]) -> bool:
    """Whether the record was made under other versions than these."""
    return any(record.environment.get(name) != environment.get(name) for name in VERSIONS)


def survey(
    plan: Plan,
    chosen: Mapping[str, Record],
    *,
    oom: Mapping[tuple[Any, ...], int],
    room: Room | None,
    environment: Mapping[str, Any],
    retry: Collection[str] = (),
    fresh: bool = False,
) -> list[Planned]:
    """One line a trial. `chosen`: trial id -> the attempt that counts on this machine; `oom`: of `oom_chains`.

    `retry`: statuses to run again, `stale` among them. `fresh`: everything again.
    """
    if fresh or "oom" in retry:
        oom = {}
    found = []
    for unit in plan.units:
        record = None if fresh else chosen.get(unit.trial_id)
        stale = record is not None and is_stale(record, environment)
        if (
            record is not None
            and record.status in FINAL
            and not ((stale and "stale" in retry) or record.status in retry)
        ):
            found.append(Planned(unit, "done", record.status, record, stale))
            continue
        skipped = skip_reason(unit, oom, room, plan.device)
        if skipped:
            found.append(Planned(unit, "skip", skipped, record))
        elif record is not None and record.status in ("failed", "timeout") and record.status not in retry:
            found.append(Planned(unit, "failed", record.reason, record, stale))
        else:
            found.append(Planned(unit, "run", "", record, stale))
    return found
