"""What jobs would do to each other, from rows of the same trials alone, and how far such predictions were off.

Of the time in which a GPU is busy, waiting for other ranks' gradients does not count: a rank that has its gradients
ready waits for the others inside a kernel, and a neighbour loses little by it. `--breakdown` measures that wait; else
it is estimated by rows of the same network on one GPU: the kernels of a smaller batch take no longer than those of a
larger one, and those of a larger one no longer for an image, so what a rank's GPU is busy beyond that counts as
waiting. What follows from these needs is told in `plan.slowdowns`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from gpubench.analyze.folder import Folder
from gpubench.analyze.frames import Runs, Summary, summarize_configurations
from gpubench.analyze.grid import list_labelled_rows, split_doubt_codes, to_python_value
from gpubench.basics.errors import UsageError
from gpubench.core.prediction import NoPrediction, PredictedGroup, PredictedJob, PredictionNote
from gpubench.node.environment import Machine
from gpubench.plan.command_line import find_usual_values, infer_fields_from_trials, read_experiment
from gpubench.plan.groups import format_group_label, format_trial_labels
from gpubench.plan.plan import Job, Unit, expand_experiment
from gpubench.plan.resolve import ResolvedTrial, resolve_unit_trials
from gpubench.plan.skips import NodeCapacity, find_skip_reason
from gpubench.plan.slowdowns import SLICING, JobDemand, predict_slowdowns
from gpubench.plan.state import collect_out_of_memory
from gpubench.plan.stored_machine import RecordedSources, StoredMachine, choose_measured_machine
from gpubench.plan.sweep_options import ExperimentOptions
from gpubench.schema import catalog
from gpubench.schema.cell import format_cell
from gpubench.schema.columns import FIELD_COLUMNS
from gpubench.schema.doubts import find_doubt
from gpubench.schema.record import ALLOTTED
from gpubench.schema.trial_fields import ABOUT

PACE = tuple(name for name in FIELD_COLUMNS if ABOUT[name].pace)
"""What rows have in common whose seconds per epoch are the same; so, too, images and variant."""
SAME_RANKS = tuple(name for name in PACE if name not in ("breakdown", "train_images"))
"""What rows have in common whose steps take equally long."""
SAME_KERNELS = tuple(
    name
    for name in SAME_RANKS
    if name not in ("batch_size", "gpus", "ranks", "strategy", *catalog.OWN_FIELDS)
)
"""What rows have in common whose GPUs do the same for an image."""
NO_JOBS = "there are no jobs to predict; give --job once for each, or --copies 2"
KINDS = ("steady rate", "whole epochs", "published log")
"""Kinds of time; what this version measures goes first."""

Row: TypeAlias = Mapping[str, Any]
"""A row alone as Python's own values, None where missing."""


# ---- rows alone as demands ----


def make_demand(row: Row, place: ResolvedTrial, alone: Summary) -> JobDemand | None:
    """What a row alone says of its job on these GPUs and CPUs; None without an epoch time.

    `alone`: rows alone of the same machine and kind of time, which may tell how long its ranks wait for each other.
    """
    if not row["epoch_time_s"]:
        return None
    busy, gpus = row["gpu_busy_s_per_epoch"], tuple(place.gpu_ids)
    strategy = catalog.STRATEGIES.get(row["strategy"] or "")
    has_ranks = len(gpus) > 1 and bool(strategy and strategy.process_per_device)
    wait, is_measured = estimate_gradient_wait_share(row, alone) if has_ranks else (0.0, False)
    return JobDemand(
        epoch_time_s=row["epoch_time_s"],
        cpu_s=row["cpu_s_per_epoch"],
        gpu_s=busy / len(gpus) * (1 - wait) if gpus and busy is not None else None,
        gpus=gpus,
        cpus=place.cpus,
        cpu_ids=frozenset(place.cpu_ids),
        has_unmeasured_wait=has_ranks and not is_measured,
    )


def estimate_gradient_wait_share(row: Row, alone: Summary) -> tuple[float, bool]:
    """The part of its GPUs' busy time that a job only waits for other ranks' gradients, and whether it was measured.

    Measured by the newest row of the same configuration that was broken down; estimated, it may be more.
    """
    alone = alone[alone["status"] == "ok"]
    like_this = alone[has_same_fields(alone, row, SAME_RANKS)]
    timed = like_this.assign(part=like_this["comm_ms"] / 1e3 / compute_gpu_busy_step_s(like_this)).dropna(
        subset="part"
    )
    if len(timed):
        newest = timed.sort_values("started_at", kind="stable").iloc[-1]
        return min(max(float(newest["part"]), 0.0), 1.0), True
    single = alone[has_same_fields(alone, row, SAME_KERNELS) & (alone["gpus"] == 1)]
    wanted = pd.DataFrame([row])
    images = float((wanted["batch_size"] / wanted["gpus"]).astype("float64").iloc[0])
    larger = (images / single["batch_size"].astype("float64")).clip(lower=1.0)
    need, busy = (
        (compute_gpu_busy_step_s(single) * larger).min(),
        float(compute_gpu_busy_step_s(wanted).iloc[0]),
    )
    return (float(1 - need / busy) if need < busy else 0.0), False


def has_same_fields(rows: Summary, row: Row, fields: Iterable[str]) -> pd.Series[bool]:
    """Whether rows agree with this one in these fields, missing values among them, and in their variant."""
    is_agreeing: pd.Series[bool] = pd.Series(True, index=rows.index)
    for name in (*fields, "variant_definition"):
        is_agreeing &= rows[name].isna() if row[name] is None else (rows[name] == row[name]).fillna(False)
    return is_agreeing


def compute_gpu_busy_step_s(rows: pd.DataFrame) -> pd.Series[float]:
    """Busy seconds of each of a row's GPUs in a step; NaN where that is not known."""
    busy, images, batch, gpus = (
        rows[name].astype("float64").where(lambda values: values > 0)
        for name in ("gpu_busy_s_per_epoch", "images_per_epoch", "batch_size", "gpus")
    )
    return busy / gpus / (images / batch)


def predict_job_slowdowns(
    group: str, rows: Mapping[str, Row], places: Sequence[ResolvedTrial], alone: Summary
) -> PredictedGroup | NoPrediction:
    """What jobs, by their names, with these rows alone do to each other on these GPUs and CPUs."""
    demands = {
        name: demand
        for (name, row), place in zip(rows.items(), places, strict=True)
        if (demand := make_demand(row, place, alone))
    }
    if len(demands) < len(rows):
        return NoPrediction(name=group, why=(PredictionNote("no-time"),))
    takes_turns = any(row["mps"] != "on" for row in rows.values())
    return predict_slowdowns(group, demands, SLICING if takes_turns else 0.0)


# ---- which row stands for a job ----


def summarize_solo_runs(runs: Runs) -> dict[str, Summary]:
    """Kind of time -> rows of trials alone, several processes as one; also of those that did not end ok.

    What a trial left open may have been filled differently under another allowance of CPUs: that is no repeat
    (`frames.number_runs_by_configuration`).
    """
    rows = {}
    for kind, of_kind in runs[runs["group"].isna()].groupby("kind", sort=False):
        of_kind = of_kind.reset_index(drop=True)
        summary, members = summarize_configurations(of_kind)
        first = members.drop_duplicates("row")["run"].to_numpy()
        images = of_kind["images"].take(first)
        rows[str(kind)] = summary.assign(
            variant_definition=of_kind["variant_definition"].take(first).map(_format_variant_key).to_numpy(),
            images_fingerprint=[known and known.fingerprint for known in images],
        )
    return rows


def _format_variant_key(definition: Mapping[str, Any] | None) -> str | None:
    return repr(sorted(definition.items())) if definition else None


def find_solo_row(
    job: Job, place: ResolvedTrial, fingerprint: str, rows: Summary
) -> tuple[Row, list[PredictionNote]] | PredictionNote:
    """The row that stands for a job, with what is to be said of that; else why there is none.

    `fingerprint`: of the job's images. What a row does not state does not part it from the job.
    """
    assert job.membership is not None, "a job that runs beside others"
    wanted = job.trial.asdict() | place.make_columns()
    wanted |= {
        "variant_definition": _format_variant_key(job.variant.make_definition()),
        "images_fingerprint": fingerprint,
    }
    if job.variant.files == "none":
        wanted.pop("images_fingerprint")
    compared = [name for name in (*PACE, "variant_definition", "images_fingerprint") if name in wanted]
    is_other: pd.Series[bool] = pd.Series(False, index=rows.index)
    for name in compared:
        is_other |= (rows[name].notna() & (rows[name] != wanted[name])).fillna(False)
    is_same = rows["config_id"] == job.membership.solo.config_id
    like = rows.assign(
        agree=sum((rows[name] == wanted[name]).fillna(False).astype(int) for name in ALLOTTED),
        is_same=is_same,
        is_there=rows["gpu_ids"].map(format_cell) == format_cell(wanted["gpu_ids"]),
        start=rows["started_at"].fillna(""),
        is_ok=rows["status"] == "ok",
    )[is_same | ~is_other]
    if not len(like):
        return PredictionNote("not-measured")
    best = like.sort_values(["is_ok", "agree", "is_same", "is_there", "start"], kind="stable").iloc[-1]
    row = {str(name): to_python_value(value) for name, value in best.items()}
    if not row["is_ok"]:
        return PredictionNote("ended", {"status": row["status"]})
    notes = [
        PredictionNote("another-allowance", {"field": name, "wanted": wanted[name], "value": row[name]})
        for name in ALLOTTED
        if row[name] != wanted[name] and (row[name] is not None or getattr(job.trial, name) is not None)
    ]
    if codes := split_doubt_codes(row["doubts"]):
        notes.append(PredictionNote("doubts", {"codes": codes}))
    load, time = row["cpu_util_pct"], row["epoch_time_s"]
    if row["cpu_s_per_epoch"] is None and load is not None and time:
        row["cpu_s_per_epoch"] = load / 100 * time * (row["cpus"] or place.cpus)
        notes.append(PredictionNote("cpu-load"))
    return row, notes


# ---- answers ----


@dataclass(frozen=True, kw_only=True, slots=True)
class Predictions:
    """Answers by the stored rows of one machine."""

    stored: StoredMachine
    filled: Mapping[str, str]
    """Fields that nobody gave and that are those of the rows."""
    groups: tuple[PredictedGroup | NoPrediction, ...]
    """Those that were asked about; without any, those that ran, as predicted before."""


def predict_experiment_slowdowns(
    folders: Sequence[Folder],
    options: ExperimentOptions,
    this_machine: Machine,
    *,
    path: Path | None = None,
    device: str | None = None,
) -> Predictions:
    """What jobs of `options`, or of the experiment at `path`, would do to each other, by the rows of one machine.

    Raises UsageError where there are no jobs, UnusableError where no trial ended ok.
    """
    stored, runs = choose_machine_with_runs(folders, this_machine, device)
    has_gpu = stored.device == "cuda"
    usual = find_usual_values(read_experiment(None, ExperimentOptions(), has_gpu=has_gpu))
    trials = [r.trial for r in stored.records if r.status == "ok" and not r.group]
    filled = {} if path is not None else infer_fields_from_trials(options, trials, usual)
    options = replace(options, fields={**options.fields, **filled})
    experiment = read_experiment(path, options, has_gpu=has_gpu)
    sources = RecordedSources(stored.records, experiment.bad_images)
    plan = expand_experiment(experiment, device=stored.device, sources=sources, cpus=stored.machine.cpu_count)
    configurations = dict(zip(runs["trial_id"], runs["config_id"], strict=True))
    measured = {
        (rows["cpu_sharing"].iloc[0], *rows["solo_id"].map(configurations)): tuple(
            rows["slowdown"].astype("float64")
        )
        for rows in list_group_jobs(folders, runs)
        if rows["slowdown"].notna().all()
    }
    alone = summarize_solo_runs(runs)
    axes = [name for axis in experiment.varied for name in axis]
    groups = [
        predict_group_slowdowns(unit, axes, stored, sources, alone, measured)
        for unit in plan.units
        if unit.is_group
    ]
    if not groups:
        raise UsageError(NO_JOBS)
    return Predictions(stored=stored, filled=filled, groups=tuple(groups))


def collect_past_predictions(folders: Sequence[Folder], this_machine: Machine) -> Predictions:
    """The groups that ran on one machine, with what was predicted of them before."""
    stored, runs = choose_machine_with_runs(folders, this_machine)
    figures = ["job", "solo_epoch_time_s", "predicted_slowdown", "slowdown"]
    groups = [
        PredictedGroup(
            name=format_group_label(
                rows["group"].iloc[0], [row for _, row in list_labelled_rows(rows)], rows["varied"].iloc[0]
            ),
            jobs=tuple(
                PredictedJob(
                    name=job,
                    alone_s=to_python_value(alone_s),
                    slowdown=float(slowdown),
                    measured=float(measured),
                )
                for job, alone_s, slowdown, measured in rows[figures].itertuples(index=False)
            ),
        )
        for rows in list_group_jobs(folders, runs)
        if len(rows) > 1 and rows[figures[2:]].notna().all(axis=None)
    ]
    return Predictions(stored=stored, filled={}, groups=tuple(groups))


def choose_machine_with_runs(
    folders: Sequence[Folder], this_machine: Machine, device: str | None = None
) -> tuple[StoredMachine, Runs]:
    """The machine whose results answer, and the lines of its attempts. Raises UnusableError where nothing ended ok."""
    records = [record for folder in folders for record in folder.records]
    stored = choose_measured_machine(records, this_machine, device)
    chosen = set(map(id, stored.records))
    runs = pd.concat([folder.runs.iloc[: len(folder.records)] for folder in folders], ignore_index=True)
    return stored, runs[[id(record) in chosen for record in records]].reset_index(drop=True)


def list_group_jobs(folders: Sequence[Folder], runs: Runs) -> Iterator[Summary]:
    """The jobs of each group that ran on the machine of these runs; `varied`: what differs in their table."""
    for folder in folders:
        summary = folder.summary
        jobs = summary[summary["unit"].notna() & summary["machine"].isin(set(runs["machine"]))]
        for _, rows in jobs.groupby(["table", "unit"], sort=False):
            yield rows.assign(varied=[folder.tables[table].varied for table in rows["table"]])


def predict_group_slowdowns(
    unit: Unit, axes: Sequence[str], stored: StoredMachine, sources: RecordedSources, alone: Mapping[str, Summary],
    measured: Mapping[tuple[Any, ...], tuple[float, ...]],
) -> PredictedGroup | NoPrediction:  # fmt: skip
    """What the jobs of one group would do to each other, by rows alone of one kind of time; or why nobody knows.

    `measured`: how CPUs were shared, and the configurations alone of a group's jobs -> their slowdowns, where it ran.
    """
    trials = [job.trial.asdict() for job in unit.jobs]
    name, names = format_group_label(unit.group, trials, axes), format_trial_labels(trials)
    machine = stored.machine
    if stored.cpus is None:  # then jobs on the same CPUs have as many as they ask for
        if unit.jobs[0].trial.cpu_sharing == "pinned":
            return NoPrediction(name=name, why=(PredictionNote("unknown-cpus"),))
        cpus = max(job.trial.cpus or 1 for job in unit.jobs)
        machine = replace(machine, cpu_ids=tuple(range(cpus)), cpu_count=cpus)
    room = NodeCapacity(len(machine.gpus), machine.cpu_count)
    if reason := find_skip_reason(unit, collect_out_of_memory(stored.records), room, stored.device):
        return NoPrediction(name=name, why=(PredictionNote("skipped", {"reason": reason}),))
    places = resolve_unit_trials(
        unit, machine, lambda job: sources.find_data_facts(job.trial.data), stored.device
    )
    matches = {
        kind: [
            find_solo_row(job, place, sources.find_data_facts(job.trial.data).fingerprint, rows)
            for job, place in zip(unit.jobs, places, strict=True)
        ]
        for kind, rows in alone.items()
    }
    kind = min(
        matches,
        key=lambda name: (sum(isinstance(m, PredictionNote) for m in matches[name]), KINDS.index(name)),
    )
    why = [
        replace(match, figures={**match.figures, "job": title})
        for title, match in zip(names, matches[kind], strict=True)
        if isinstance(match, PredictionNote)
    ]
    if why:
        return NoPrediction(name=name, why=tuple(why))
    found = [match for match in matches[kind] if not isinstance(match, PredictionNote)]
    job_names = [
        f"{job.membership.name if job.membership else ''}: {title}"
        for job, title in zip(unit.jobs, names, strict=True)
    ]
    rows = dict(zip(job_names, (row for row, _ in found), strict=True))
    prediction = predict_job_slowdowns(name, rows, places, alone[kind])
    if isinstance(prediction, NoPrediction):
        return prediction
    key = (unit.jobs[0].trial.cpu_sharing, *(row["config_id"] for row, _ in found))
    jobs = [
        replace(job, notes=tuple(notes), measured=slowdown)
        for job, (_, notes), slowdown in zip(
            prediction.jobs, found, measured.get(key, (None,) * len(found)), strict=True
        )
    ]
    is_likely = all(
        row["repeats"] > 1
        and not any("time" in find_doubt(code).about for code in split_doubt_codes(row["doubts"]))
        for row, _ in found
    )
    return replace(prediction, jobs=tuple(jobs), word="likely" if is_likely else "unknown")
