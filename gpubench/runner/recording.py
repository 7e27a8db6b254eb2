"""One attempt as its record: what the child told, what was seen from outside, what was known beforehand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpubench.datasets.facts import DataFacts
from gpubench.environment import Machine
from gpubench.experiment.plan import Job
from gpubench.launch.attempt import Attempt, last_words
from gpubench.launch.outcome import Outcome, outcome
from gpubench.monitor.figures import Window
from gpubench.monitor.watcher import Watcher
from gpubench.result import Record
from gpubench.runner.doubts import Case, doubts
from gpubench.runner.judging import judge, merge, provenance
from gpubench.runner.resolve import Resolved


@dataclass(frozen=True, kw_only=True, slots=True)
class Known:
    """What a sweep knows before its trials."""

    experiment: str
    machine: Machine
    environment: Mapping[str, Any]
    idle_power_w: Mapping[str, float]
    """GPU uuid -> watts before the sweep."""
    no_idle_power: Mapping[str, str]
    """GPU uuid -> why it is not among them."""
    idle_readings: Mapping[str, tuple[int, int]]
    """GPU uuid -> readings behind its idle power, and those that failed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tried:
    """One attempt at one trial, ended."""

    job: Job
    resolved: Resolved
    facts: DataFacts
    machine_key: str
    number: int
    started_at: str
    done: Attempt
    log: Path


def record_of(tried: Tried, known: Known, watcher: Watcher) -> Record:
    """The attempt as it is stored. `watcher`: has seen it to its end."""
    job, resolved, done = tried.job, tried.resolved, tried.done
    t = job.trial
    ended = outcome(
        done.events,
        ranks=resolved.processes,
        batch_size=t.batch_size,
        steps=t.steps,
        has_validation=job.variant.files != "none",
        forced=done.forced,
        last_words=last_words(tried.log),
    )
    windows = [Window(e["t0"], e["t1"], e["epoch"], not e["warmup"]) for e in ended.epochs]
    seen = watcher.figures(windows, _passed_mib(ended, resolved))
    status, reason = judge(ended, seen, t.gpu_mem_cap_mib)
    result, missing = merge(
        ended, seen, status, reason, resolved.gpu_uuids, known.idle_power_w, known.no_idle_power
    )
    case = Case(
        job=job,
        resolved=resolved,
        ended=ended,
        seen=seen,
        result=result,
        gpu_mib=min((known.machine.gpus[i].memory_mib for i in resolved.gpu_ids), default=None),
    )
    return Record(
        trial_id=job.trial_id,
        config_id=job.config_id,
        attempt=tried.number,
        experiment=known.experiment,
        status=status,
        reason=reason,
        machine_key=tried.machine_key,
        trial=t.model_dump(mode="json"),
        variant_definition=job.variant.definition(),
        data=tried.facts.as_dict() if job.variant.files != "none" else {"fingerprint": "none"},
        resolved=resolved.columns()
        | {"gpu_uuids": list(resolved.gpu_uuids), "cpu_ids": list(resolved.cpu_ids)},
        result=result,
        missing=missing,
        provenance=provenance(
            seen.provenance,
            result,
            seen.missing.get("gpu_mem_mib"),
            [known.idle_readings[uuid] for uuid in resolved.gpu_uuids if uuid in known.idle_readings],
        ),
        epochs=[
            {k: v for k, v in e.items() if k not in ("t0", "t1")}
            | {
                "cpu_s": seen.cpu_s_by_epoch.get(e["epoch"]),
                "energy_j": seen.energy_j_by_epoch.get(e["epoch"]),
            }
            for e in ended.epochs
        ],
        windows=[{"epoch": e["epoch"], "t0": e["t0"], "t1": e["t1"]} for e in ended.epochs],
        span={"launched": done.launched, "finished": done.finished},
        phases=ended.phases | {"wall": done.finished - done.launched},
        doubts=doubts(case),
        environment=dict(known.environment) | {"cuda": ended.cuda},
        started_at=tried.started_at,
    )


def step_samples(path: Path, launched: float) -> list[tuple[Any, ...]]:
    """The measured steps as sample rows: when each ended and how long it took."""
    if not path.exists():
        return []
    stored = json.loads(path.read_text())
    times: list[float] = stored["step_s"]
    ends: list[tuple[Any, ...]] = []
    at = stored["t_end"] - launched
    for seconds in reversed(times):
        ends.append((round(at, 4), "rank0", "step_time_ms", 1e3 * seconds))
        at -= seconds
    return ends[::-1]


def _passed_mib(ended: Outcome, resolved: Resolved) -> dict[str, float]:
    """GPU uuid -> how much more torch's allocator held at its peak than when the driver was asked at the end."""
    return {
        resolved.gpu_uuids[int(place)]: max(0.0, held["peak"] - held["at_settle"])
        for place, held in ended.reserved_mib.items()
    }
