"""One attempt as its records, one a job: what the child told, what was seen from outside, what was known beforehand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from gpubench.datasets.facts import DataFacts
from gpubench.node.environment import Machine
from gpubench.plan.plan import Job
from gpubench.plan.resolve import ResolvedTrial
from gpubench.plan.state import is_record_stale
from gpubench.record import energy_figures, gpu_figures, host_figures, meter_figures
from gpubench.record.commands import find_run_span, make_command_outcome
from gpubench.record.epochs import collect_finished_segments, find_common_span, find_measured_span
from gpubench.record.figures import WatchedFigures, compute_watched_figures
from gpubench.record.host_figures import compute_tree_cpu_s
from gpubench.record.loads import make_load_outcome
from gpubench.record.outcome import Outcome
from gpubench.record.together import (
    ENERGY,
    GroupJob,
    GroupPrediction,
    Shares,
    compare_group_with_solos,
    divide_energy,
    find_shared_gpus,
)
from gpubench.record.training import make_outcome
from gpubench.record.warnings import WarningEvidence, find_warnings
from gpubench.schema import hosts
from gpubench.schema.attempt import Attempt
from gpubench.schema.codes import REASONS, SOURCES, format_ending
from gpubench.schema.columns import MEASURED, OF_GROUPS
from gpubench.schema.epoch_times import WHOLE_RUN
from gpubench.schema.events import End, Event, Steps
from gpubench.schema.gpu_look import PERIOD_S, IdlePower
from gpubench.schema.missing import Unmeasured
from gpubench.schema.record import EpochWindow, Record, TrialSpan
from gpubench.schema.samples import STEP_TIME
from gpubench.schema.watched import NOTHING, Window
from gpubench.schema.window import FEWEST_STEPS

RESERVED = "torch-reserved"
"""The source of memory where torch's own count stands in for the driver's."""
EXPLAINED_COLUMNS = tuple(
    dict.fromkeys(
        (
            *(column.name for column in MEASURED if column.name != "doubts"),
            *gpu_figures.COLUMNS,
            *energy_figures.COLUMNS,
            *host_figures.COLUMNS,
            *meter_figures.COLUMNS,
        )
    )
)
"""Columns of which a record tells why they are empty: what watching fills is among them wherever trials.csv has it."""
OF_GPUS = frozenset({
    *(c.name for c in MEASURED if c.name.startswith("gpu_")), *gpu_figures.COLUMNS, *energy_figures.COLUMNS,
    "idle_power_w", "energy_to_top1_j",
})  # fmt: skip
"""Columns that only a trial on GPUs can fill."""
OF_NODES = ("cpu_util_pct", "cpu_s_per_epoch", "host_mem_mib")
"""Columns that are stored for each of several nodes, too."""
TOO_FEW_STEPS = (
    f"fewer than {FEWEST_STEPS} of its steps lay in the time in which all jobs measured: give all of them a longer "
    "--window"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepFacts:
    """What a sweep knows before its trials."""

    experiment: str
    machine: Machine
    environment: Mapping[str, Any]
    idle_power: IdlePower


@dataclass(frozen=True, kw_only=True, slots=True)
class EndedAttempt:
    """One attempt at one job, ended."""

    job: Job
    resolved: ResolvedTrial
    facts: DataFacts
    machine_key: str
    number: int
    attempt_id: str
    claim: str = ""
    started_at: str
    round: int = 1
    done: Attempt


@dataclass(kw_only=True, slots=True)
class _EndedJob(GroupJob):
    """What one job's attempt amounts to."""

    tried: EndedAttempt
    ended: Outcome
    seen: WatchedFigures


def make_records(
    tried: Sequence[EndedAttempt], known: SweepFacts, group_prediction: GroupPrediction
) -> list[Record]:
    """The attempt as it is stored: one record for each job of the unit. `group_prediction`: made before it ran."""
    ended_jobs: dict[int, _EndedJob] = {}
    shared = None
    if len(tried) > 1:
        shared = find_common_span([_find_measured_span(attempt) for attempt in tried])
    # Those that were taken along last: their reason is another's.
    for index, attempt in sorted(enumerate(tried), key=lambda item: item[1].done.cut_by is not None):
        cause = attempt.done.cut_by
        forced = attempt.done.forced if cause is None else ("skipped", _describe_cause_job(ended_jobs[cause]))
        ended_jobs[index] = _evaluate_job(attempt, known, forced, shared)
    jobs = [ended_jobs[index] for index in range(len(tried))]
    # Over its cap, as the driver says now that all have ended; or too slow for a figure of the time that they shared.
    culprit = next((job for job in jobs if job.status == "oom" and job.ended.status == "ok"), None)
    slow = next((job for job in jobs if job.status == "ok" and not job.ended.counted), None)
    if culprit is None and slow is not None and slow.tried.job.trial.command is None:
        culprit = _evaluate_job(slow.tried, known, ("failed", TOO_FEW_STEPS))
        jobs = [culprit if job is slow else job for job in jobs]
    if culprit is not None and len(jobs) > 1:
        taken = ("skipped", _describe_cause_job(culprit))
        jobs = [_evaluate_job(job.tried, known, taken) if job.status == "ok" else job for job in jobs]
    facts = _fill_group_columns(jobs, known, group_prediction) if len(jobs) > 1 else {}
    return [
        _make_record(_gather_warning_evidence(jobs, index, known, group_prediction), job, known, facts)
        for index, job in enumerate(jobs)
    ]


def _find_measured_span(attempt: EndedAttempt) -> tuple[float, float] | None:
    if attempt.job.trial.command is None:
        return find_measured_span(attempt.done.events, attempt.resolved.processes)
    return find_run_span(attempt.done.events)


def _describe_cause_job(cause: _EndedJob) -> str:
    assert cause.tried.job.membership is not None
    words = {"oom": "ran out of GPU memory", "timeout": "timed out"}.get(cause.status, cause.status)
    return f"job {cause.tried.job.membership.name} {words}: {cause.reason}"


def _evaluate_job(
    tried: EndedAttempt,
    known: SweepFacts,
    forced: tuple[Any, str] | None,
    shared: tuple[float, float] | None = None,
) -> _EndedJob:
    job, resolved = tried.job, tried.resolved
    match job.trial.workload:
        case "training":
            ended = make_outcome(job, resolved, tried.done, forced, shared)
        case "load":
            ended = make_load_outcome(job, tried.done, forced, shared)
        case "command":
            ended = make_command_outcome(job, tried.done, forced)
    watched = tried.done.watched
    # How much more torch's allocator held at its peak than when the driver was asked at the end.
    missed_mib = {
        watched.gpus[int(index)]: max(0.0, held.peak - held.at_settle) for index, held in ended.held.items()
    }
    seen = compute_watched_figures(watched.replace_windows(ended.windows, missed_mib))
    status, reason = decide_ending(ended, seen, job.trial.gpu_mem_cap_mib)
    result, missing = merge_measured_columns(
        ended, seen, status, reason, resolved.gpu_uuids, known.idle_power, alone=job.membership is None
    )
    return _EndedJob(
        tried=tried,
        ended=ended,
        seen=seen,
        status=status,
        reason=reason,
        resolved=resolved,
        result=result,
        missing=missing,
        joules_by_gpu=seen.joules_by_gpu,
    )


def decide_ending(ended: Outcome, seen: WatchedFigures, cap_mib: int | None) -> tuple[Any, str]:
    """The ending, once what was seen from outside is known too."""
    memory = seen.result.get("gpu_mem_mib")
    if ended.status == "ok" and cap_mib is not None and memory is not None and memory > cap_mib:
        return "oom", f"{memory:,.0f} MiB by the driver, over the cap of {cap_mib:,} MiB"
    if ended.status == "oom" and seen.strangers and cap_mib is None:
        return "failed", f"GPU memory ran out while others held some: {seen.strangers[0]}"
    return ended.status, ended.reason


def merge_measured_columns(
    ended: Outcome,
    seen: WatchedFigures,
    status: str,
    reason: str,
    gpu_uuids: Sequence[str],
    idle_power: IdlePower,
    *,
    alone: bool = True,
) -> tuple[dict[str, Any], dict[str, str]]:
    """One value or one reason for every measured column. `alone`: no job of a group, whose columns come later."""
    result = {k: v for k, v in (ended.result | seen.result).items() if v is not None}
    missing = {
        **(dict.fromkeys(OF_GROUPS, REASONS["alone"]) if alone else {}),
        **seen.missing,
        **ended.missing,
    }
    if "gpu_util_pct" in result and "epoch_time_s" in result:
        result["gpu_busy_s_per_epoch"] = (
            result["gpu_util_pct"] / 100 * result["epoch_time_s"] * len(gpu_uuids)
        )
    elif "gpu_util_pct" in missing:
        missing["gpu_busy_s_per_epoch"] = missing["gpu_util_pct"]
    reserved = result.get("gpu_mem_reserved_mib")
    if reserved is not None and _is_driver_memory_unusable(result, reserved):
        result["gpu_mem_mib"], result["gpu_mem_source"] = reserved, RESERVED
    if gpu_uuids and all(uuid in idle_power.watts for uuid in gpu_uuids):
        result["idle_power_w"] = sum(idle_power.watts[uuid] for uuid in gpu_uuids)
    else:
        why_not = [idle_power.missing[uuid] for uuid in gpu_uuids if uuid in idle_power.missing]
        missing["idle_power_w"] = "; ".join(why_not) or REASONS["no-idle-power"]
    if result.get("epoch_time_source") == WHOLE_RUN and "time_to_top1_s" in result and "energy_j" in result:
        result["energy_to_top1_j"] = result["energy_j"]  # the target ended the run
    if "epochs_to_top1" in result and "energy_to_top1_j" not in missing:
        joules = [seen.energy_j_by_epoch.get(e.epoch) for e in ended.epochs[: result["epochs_to_top1"]]]
        known = [j for j in joules if j is not None]
        if joules and len(known) == len(joules):
            result["energy_to_top1_j"] = sum(known)
        else:
            missing["energy_to_top1_j"] = missing.get("energy_j", REASONS["energy-on-the-way"])
    if status != "ok":
        # What an unfinished trial showed on the way is no figure of the configuration.
        kept = {k: v for k, v in result.items() if k in ("params_m", "gmacs_per_image")}
        return kept, {name: format_ending(status, reason) for name in EXPLAINED_COLUMNS if name not in kept}
    explained = dict.fromkeys((*EXPLAINED_COLUMNS, *ended.missing))
    names = [name for name in explained if alone or name not in OF_GROUPS]
    why = {**missing, **(dict.fromkeys(OF_GPUS, REASONS["no-gpu"]) if not gpu_uuids else {})}
    return result, {n: why.get(n, ended.unexplained) for n in names if result.get(n) is None}


def _is_driver_memory_unusable(result: Mapping[str, Any], reserved_mib: float) -> bool:
    """Whether the driver told nothing, or a growth that can't be: somebody else gave memory back meanwhile."""
    if result.get("gpu_mem_source") == "nvml-device-delta":
        return bool(result["gpu_mem_mib"] < reserved_mib)
    return result.get("gpu_mem_mib") is None


def collect_provenance(
    seen: Mapping[str, Mapping[str, Any]],
    result: Mapping[str, Any],
    why: str | None,
    idle_readings: Sequence[tuple[int, int]] = (),
) -> dict[str, Mapping[str, Any]]:
    """Where the figures come from: `seen`, the look before the sweep, and memory that torch's allocator stands in for.

    `why`: the reason that the driver's figure is missing; None where there was one that could not be.
    `idle_readings`: of each GPU, taken and failed.
    """
    if result.get("idle_power_w") is not None:
        look = {
            "source": SOURCES["power-before"],
            "period_s": PERIOD_S,
            "samples": sum(taken for taken, _ in idle_readings),
            "gaps": sum(failed for _, failed in idle_readings),
        }
        seen = {**seen, "idle_power_w": look}
    if result.get("gpu_mem_source") != RESERVED:
        return dict(seen)
    reason = why or "the device's memory grew by less than that: somebody else gave some back"
    facts = {
        "source": f"torch's allocator, reserved at its peak ({reason})",
        "period_s": None,
        "samples": 1,
        "gaps": 0,
    }
    return {**seen, "gpu_mem_mib": facts, "gpu_mem_source": facts}


def _fill_group_columns(
    jobs: Sequence[_EndedJob], known: SweepFacts, group_prediction: GroupPrediction
) -> dict[str, Any]:
    """Fills the group's columns in; returns the group's facts."""
    memberships = [job.tried.job.membership for job in jobs]
    for index, job in enumerate(jobs):
        job.doubts = find_warnings(_gather_warning_evidence(jobs, index, known, group_prediction))
    shares_by_job, facts = compare_group_with_solos(
        jobs,
        group_prediction,
        [_find_smallest_gpu_mib(job.resolved, known.machine) for job in jobs],
        memberships[0].group_id if memberships[0] else "",
        [membership.solo.trial_id for membership in memberships if membership],
    )
    for job, shares in zip(jobs, shares_by_job, strict=True):
        if shares:
            _divide_epoch_energy(job, shares)
    done = jobs[0].tried.done
    return facts | {"released": done.released, "stopped": done.stopped}


def _divide_epoch_energy(job: _EndedJob, shares: Shares) -> None:
    """Divides each epoch's energy among the jobs, too, and says of all figures that were divided that they were."""
    provenance = dict(job.seen.provenance)
    for column in (*ENERGY, "energy_source"):
        if column in job.result and column in job.seen.whole_provenance:
            whole = job.seen.whole_provenance[column]
            provenance[column] = whole | {"source": f"{whole['source']}; {SOURCES['divided']}"}
    # While a job warms up its neighbours may not have begun, or wait for it: nobody knows its part then.
    measured = {row.epoch for row in job.ended.counted}
    by_epoch = {
        epoch: divide_energy(joules, shares) if joules and epoch in measured else None
        for epoch, joules in job.seen.joules_by_epoch.items()
    }
    job.seen = replace(job.seen, provenance=provenance, energy_j_by_epoch=by_epoch)


def _compute_others_cpu_pct(jobs: Sequence[_EndedJob], index: int) -> float | None:
    """Per cent of a job's CPUs that the other jobs of its group used in its windows; None: not known."""
    mine = jobs[index]
    cpus = set(mine.resolved.cpu_ids)
    on_same = [job for k, job in enumerate(jobs) if k != index and set(job.resolved.cpu_ids) & cpus]
    # Of one whose CPUs reach beyond this job's nobody knows how much it did on these.
    within = all(set(job.resolved.cpu_ids) <= cpus for job in on_same)
    measured = mine.ended.counted
    spent = [compute_tree_cpu_s(job.tried.done.watched, e.t0, e.t1) for job in on_same for e in measured]
    usable = mine.resolved.cpus * sum(e.t1 - e.t0 for e in measured)
    known = [seconds for seconds in spent if seconds is not None]
    return 100 * sum(known) / usable if usable and within and len(known) == len(spent) else None


def _find_smallest_gpu_mib(resolved: ResolvedTrial, machine: Machine) -> int | None:
    return min((machine.gpus[i].memory_mib for i in resolved.gpu_ids), default=None)


def _gather_warning_evidence(
    jobs: Sequence[_EndedJob], number: int, known: SweepFacts, group_prediction: GroupPrediction
) -> WarningEvidence:
    """What the doubts about one of these jobs rest on."""
    job = jobs[number]
    tried, membership = job.tried, job.tried.job.membership
    data, reads, cpus = tried.facts, tried.job.variant.files != "none", len(tried.resolved.cpu_ids)
    solo = group_prediction.solos[membership.number] if membership else None
    return WarningEvidence(
        job=tried.job,
        resolved=tried.resolved,
        ended=job.ended,
        seen=job.seen,
        result=job.result,
        gpu_mib=_find_smallest_gpu_mib(tried.resolved, known.machine),
        shared_gpus=len(find_shared_gpus([other.resolved for other in jobs], number)),
        others_cpu_pct=_compute_others_cpu_pct(jobs, number),
        images=data.train_images + data.val_images + data.skipped_images if reads else 0,
        skipped_images=data.skipped_images if reads else 0,
        could_run_on=cpus if known.machine.has_unbound_cpus and cpus > tried.resolved.cpus else None,
        stale_solo=solo is not None and is_record_stale(solo, known.environment),
    )


def _make_record(
    case: WarningEvidence, ended_job: _EndedJob, known: SweepFacts, facts: Mapping[str, Any]
) -> Record:
    tried, ended, seen, result = ended_job.tried, ended_job.ended, ended_job.seen, ended_job.result
    idle_readings = known.idle_power.readings
    job, resolved, done = tried.job, tried.resolved, tried.done
    membership = job.membership
    environment = dict(known.environment) | {"cuda": ended.cuda, "decoder": ended.decoder}
    environment |= done.watched.gpu_settings
    if job.trial.command is not None:  # whatever it runs, nobody has said that it is ours
        environment |= dict.fromkeys(("torch", "torchvision", "torchcodec"))
    if done.nodes:
        environment["host"] = hosts.join_hosts(node.name for node in done.nodes)
    return Record(
        trial_id=job.trial_id,
        config_id=job.config_id,
        attempt=tried.number,
        attempt_id=tried.attempt_id,
        claim=tried.claim,
        round=tried.round,
        experiment=known.experiment,
        group=membership.group if membership else None,
        job=membership.name if membership else None,
        group_id=membership.group_id if membership else None,
        status=ended_job.status,
        reason=ended_job.reason,
        machine_key=tried.machine_key,
        trial=job.trial.as_json_dict(),
        variant_definition=job.variant.make_definition(),
        data=tried.facts.as_dict() if job.variant.files != "none" else {"fingerprint": "none"},
        resolved=resolved.make_columns(job.trial.fields_of_machine)
        | {"gpu_uuids": list(resolved.gpu_uuids), "cpu_ids": list(resolved.cpu_ids)},
        result=result,
        missing=ended_job.missing,
        provenance=collect_provenance(
            seen.provenance,
            result,
            seen.missing.get("gpu_mem_mib"),
            [idle_readings[uuid] for uuid in resolved.gpu_uuids if uuid in idle_readings],
        ),
        epochs=[
            row.to_record_row()
            | {
                "cpu_s": seen.cpu_s_by_epoch.get(row.epoch),
                "energy_j": seen.energy_j_by_epoch.get(row.epoch),
            }
            for row in ended.epochs
        ],
        windows=[EpochWindow(epoch=e.epoch, t0=e.t0, t1=e.t1) for e in ended.epochs],
        nodes=_make_node_entries(done, ended.windows),
        span=TrialSpan(launched=done.launched, finished=done.finished),
        phases=ended.phases | {"wall": done.finished - done.launched},
        together=dict(facts),
        doubts=find_warnings(case),
        environment=environment,
        started_at=tried.started_at,
    )


def _make_node_entries(done: Attempt, windows: Sequence[Window]) -> list[dict[str, Any]]:
    """What is stored of each of several nodes, under NODE_COLUMNS. Nothing was seen of a node that was lost, nor then
    of the others by itself."""
    seen = done.watched.replace_windows(windows).hosts if done.watched.parts else [NOTHING] * len(done.nodes)
    nodes = []
    for node, part in zip(done.nodes, seen, strict=True):
        facts = asdict(node)
        del facts["last_words"], facts["gpu_uuids"]
        stored = {"node": facts.pop("name"), **facts, "gpu_uuids": list(node.gpu_uuids)}
        for column in OF_NODES:
            try:
                stored[column] = host_figures.COLUMNS[column](part).value
            except Unmeasured:  # the reason stands beside the whole trial's
                stored[column] = None
        nodes.append(stored)
    return nodes


def list_sample_rows(done: Attempt) -> list[tuple[float, str, str, float]]:
    """All that was read and told of one job, as tidy rows under SAMPLE_HEADER."""
    return [*done.watched.samples.list_rows(done.launched), *list_step_rows(done.events, done.launched)]


def list_step_rows(events: Sequence[Event], launched: float) -> list[tuple[float, str, str, float]]:
    """Rank 0's measured steps as sample rows: when each ended, in seconds since the launch, and how long it took.

    None of work that tells of no steps.
    """
    first = [event for event in events if isinstance(event, Steps | End) and event.rank == 0]
    return [
        (round(ended_s - launched, 6), "rank0", STEP_TIME, 1e3 * step_s)
        for segment in collect_finished_segments(first, ranks=1)
        if segment.measured
        for ended_s, step_s in zip(segment.ends_s, segment.step_s, strict=True)
    ]
