"""What jobs would do to each other, from rows of the same trials alone, and how far such predictions were off.

Of the time in which a GPU is busy, waiting for other ranks' gradients does not count: a rank that has its gradients
ready waits for the others inside a kernel, and a neighbour loses little by it. `--breakdown` measures that wait; else
it is estimated by rows of the same network on one GPU: the kernels of a smaller batch take no longer than those of a
larger one, and those of a larger one no longer for an image, so what a rank's GPU is busy beyond that counts as
waiting.

Alone, a job uses a part of each resource: seconds per epoch / (epoch time x capacity). Where CPUs are asked for more
than there is, all jobs on them slow down alike, by what is asked for in sum: loaders, too. A GPU is divided fairly: a
job gets what it wants up to its fair share, and what others leave over is shared again. A job runs at the smallest pace
that one of its resources gives it. Processes that take turns on a GPU lose SLICING of its time.

What is not in it: memory and its bandwidth, caches, PCIe, waiting for each other where nothing is full, and that a job
which is held up by one resource leaves more of its others. tests/benchmarks/README.md compares it with models that have
more to them, and with one that has less.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from gpubench.analyze.folder import Folder
from gpubench.analyze.frames import Runs, Summary, summarize_configurations
from gpubench.analyze.grid import list_labelled_rows, split_doubt_codes, to_python_value
from gpubench.basics.errors import GpubenchError, UnusableError, UsageError
from gpubench.core.prediction import NoPrediction, PredictedGroup, PredictedJob, PredictionNote
from gpubench.datasets.facts import DataFacts
from gpubench.node.environment import Gpu, Machine, make_hardware_key
from gpubench.plan.command_line import find_usual_values, infer_fields_from_trials, read_experiment
from gpubench.plan.groups import format_group_label, format_trial_labels
from gpubench.plan.plan import Job, Unit, expand_experiment, find_trial_data_facts
from gpubench.plan.resolve import ResolvedTrial, resolve_unit_trials
from gpubench.plan.skips import NodeCapacity, find_skip_reason
from gpubench.plan.sources import DiskSources
from gpubench.plan.state import collect_out_of_memory
from gpubench.plan.sweep_options import ExperimentOptions
from gpubench.schema import catalog
from gpubench.schema.cell import format_cell
from gpubench.schema.columns import FIELD_COLUMNS
from gpubench.schema.doubts import find_doubt
from gpubench.schema.record import ALLOTTED, Record
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
KINDS = ("steady rate", "whole epochs", "whole run", "load steps", "published log")
"""Kinds of time; what this version measures goes first."""
SLICING = 0.115
"""Part of a GPU's time that goes to switching between the processes that share it, where they take turns.

From a first run on an H200 (driver 580, no MPS) with mobilenet_v2 and resnet50, bf16, on resident batches: jobs whose
busy time alone summed up to 1.1 to 2.8 times what there is came, together, to 0.88 to 0.90 of it. Measured anew since
(results/h200-copies-2026, results/h200-pairs-2026): 0.88 to 0.89. Under MPS they don't take turns.
"""
HELD = 1e-6
"""A job that loses less of its pace than this waits for nothing."""
Resource: TypeAlias = tuple[str, Any]
"""`("gpu", 0)`: which GPU; `("cpu", frozenset({0, 1}))`: which CPUs."""

Row: TypeAlias = Mapping[str, Any]
"""A row alone as Python's own values, None where missing."""


# ---- the machine that results are of ----


@dataclass(frozen=True, kw_only=True)
class StoredMachine:
    """A machine by what its results tell, and the attempts that were measured on it."""

    key: str
    """Its GPUs, or its CPU where it has measured on no GPU."""
    records: tuple[Record, ...]
    machine: Machine
    """Enough to lay jobs out on it."""
    cpus: int | None
    """None: not on record."""
    is_here: bool
    other_machines: tuple[str, ...]
    """Other machines that have results beside it. They are left out."""

    @property
    def device(self) -> str:
        """What a trial that names no device runs on."""
        return "cuda" if any(find_record_device(record) == "cuda" for record in self.records) else "cpu"


def choose_measured_machine(
    records: Iterable[Record], this_machine: Machine, device: str | None = None
) -> StoredMachine:
    """The results of this machine; where it has none, of the machine that has most, published logs last.

    `records`: attempts that count, of one folder or several; the same one in two folders counts once. `device`: where
    jobs must run on a GPU or on a CPU. Results on a machine's CPU stay with those on its GPUs. Raises UnusableError
    where nothing ended ok.
    """
    attempts: dict[tuple[object, ...], Record] = {}
    for record in records:
        attempt = record.trial_id, record.attempt, record.started_at, record.machine_key
        attempts.setdefault(attempt, record)
    ok = [record for record in attempts.values() if record.status == "ok"]
    usable = [record for record in ok if device in (None, find_record_device(record))]
    measured = [record for record in usable if record.source == "measured"]
    count = Counter(record.machine_key for record in measured or usable)
    if not count:
        raise UnusableError(f"no trial in these results ended ok{f' with device {device}' if device else ''}")
    keys_here = [
        make_hardware_key(this_machine, kind) for kind in (["cuda", "cpu"] if this_machine.gpus else ["cpu"])
    ]
    key = next((name for name in keys_here if name in count), count.most_common(1)[0][0])
    cpu_names = {r.environment.get("cpu_name") for r in attempts.values() if r.machine_key == key}
    keys = {key, *(cpu_names if key not in cpu_names else ())}
    mine = tuple(record for record in attempts.values() if record.machine_key in keys)
    newest_of_most_gpus = max(mine, key=lambda record: (_count_gpus(record), record.started_at))
    facts, is_here = newest_of_most_gpus.environment, key in keys_here
    gpus, cpus = _count_gpus(newest_of_most_gpus), facts.get("cpu_count")
    if is_here:  # GPUs that are hidden at present are there, if its rows show them
        shown = [_count_gpus(r) for r in mine if r.environment.get("cpu_name") == this_machine.cpu_name]
        gpus, cpus = max(len(this_machine.gpus), *shown, 0), this_machine.cpu_count
    machine = Machine(
        host=this_machine.host if is_here else str(facts.get("host") or ""),
        gpus=tuple(
            Gpu(index=n, uuid=f"GPU-{n}", name=str(facts.get("gpu_name")), memory_mib=0) for n in range(gpus)
        ),
        driver=None,
        cpu_name=str(facts.get("cpu_name")),
        cpu_ids=tuple(range(cpus or 1)),
        cpu_count=cpus or 1,
    )
    other_machines = tuple(sorted({record.machine_key for record in ok} - keys))
    return StoredMachine(
        key=key,
        records=mine,
        machine=machine,
        cpus=cpus,
        is_here=is_here,
        other_machines=other_machines,
    )


def find_record_device(record: Record) -> str | None:
    """The device that a trial ran on, or was asked to."""
    device: str | None = record.resolved.get("device") or record.trial.get("device")
    return device


def _count_gpus(record: Record) -> int:
    return record.environment.get("gpu_count") or 0


class RecordedSources(DiskSources):
    """Looks on the disk; of images and model files that do not lie there, the results tell.

    `policy`: under `fail` rows from which images were left out tell of other images than those that are asked about.
    """

    def __init__(self, records: Sequence[Record], policy: catalog.BadImages = "fail") -> None:
        super().__init__(policy)
        self._records = records
        self._is_of_all_images = policy == "fail"

    def find_data_facts(self, name: str) -> DataFacts:
        """Facts of these images: those that have read them know most. Raises GpubenchError where nothing tells."""
        try:
            return super().find_data_facts(name)
        except GpubenchError:
            known = [
                record
                for record in self._records
                if record.trial.get("data") == name
                and record.data.get("fingerprint")
                and not (self._is_of_all_images and record.data.get("skipped_images"))
            ]
            if not known:
                raise
        best = max(
            known,
            key=lambda record: (
                record.data["fingerprint"] != "none",
                bool(record.data.get("skipped_images")),
                record.started_at,
            ),
        )
        facts = best.resolved | best.data
        counts = {count: facts.get(count) or 0 for count in ("train_images", "val_images", "num_classes")}
        self.known_data[name] = DataFacts(
            name=name, kind="folder", root=None, fingerprint=facts["fingerprint"], size=facts.get("size"), **counts
        )  # fmt: skip
        return self.known_data[name]

    def find_model_fingerprint(self, name: str) -> str:
        """The fingerprint of a model's file; empty where that is not here but the results know the model."""
        try:
            return super().find_model_fingerprint(name)
        except UsageError:
            if not any(record.trial.get("model") == name for record in self._records):
                raise
            return self.known_models.setdefault(name, "")


# ---- the model ----


@dataclass(frozen=True, kw_only=True, slots=True)
class JobDemand:
    """What an epoch of a job takes when the job runs alone."""

    epoch_time_s: float
    cpu_s: float | None
    """CPU seconds of its process tree. None: not known."""
    gpu_s: float | None
    """Seconds in which each of its GPUs has something to do for it. None: not known, or no GPU."""
    gpus: tuple[int, ...]
    cpus: float
    """CPUs' worth of time that it may use."""
    cpu_ids: frozenset[int]
    """Jobs on equal ones share them; they may also lie within another job's."""
    has_unmeasured_wait: bool = False
    """Whether it has several ranks whose wait for each other's gradients was not measured."""


def predict_slowdowns(
    group: str, demands: Mapping[str, JobDemand], slicing: float = SLICING
) -> PredictedGroup | NoPrediction:
    """What two jobs or more with these demands do to each other when they run at the same time.

    `demands`: of each job, by its name. `slicing`: part of a shared GPU's time that is lost. No prediction where the
    need of a job for what it shares is not known: it would be taken for nothing.
    """
    capacity: dict[Resource, float] = {}
    for demand in demands.values():
        capacity["cpu", demand.cpu_ids] = max(demand.cpus, capacity.get(("cpu", demand.cpu_ids), 0.0))
        capacity |= {("gpu", gpu): 1.0 for gpu in demand.gpus}
    # Work on the CPUs is work on every set of CPUs that a job's own lie in: of each, there is no more than it has.
    needs: list[dict[Resource, float | None]] = [
        {
            (kind, which): demand.cpu_s if kind == "cpu" else demand.gpu_s
            for kind, which in capacity
            if (demand.cpu_ids <= which if kind == "cpu" else which in demand.gpus)
        }
        for demand in demands.values()
    ]
    shared = {r: seconds for r in capacity if len(seconds := [need[r] for need in needs if r in need]) > 1}
    if unknown := sorted({kind for (kind, _), seconds in shared.items() if None in seconds}):
        return NoPrediction(name=group, why=(PredictionNote("unknown-needs", {"resources": tuple(unknown)}),))
    uses = [
        {r: min(1.0, seconds / (demand.epoch_time_s * capacity[r])) for r, seconds in need.items() if seconds}
        for demand, need in zip(demands.values(), needs, strict=True)
    ]
    paces: list[dict[Resource, float]] = [{} for _ in uses]
    for resource in capacity:
        wants = [use[resource] for use in uses if resource in use]
        share = compute_fair_share(wants, 1.0 - slicing if len(wants) > 1 else 1.0)
        for pace, use in zip(paces, uses, strict=True):
            if want := use.get(resource):
                pace[resource] = min(1.0, 1 / math.fsum(wants) if resource[0] == "cpu" else share / want)
    slowest = [min(pace.values(), default=1.0) for pace in paces]
    waits_for = {
        resource[0]
        for pace, least in zip(paces, slowest, strict=True)
        for resource, allowed in pace.items()
        if least < 1 - HELD and allowed <= least + HELD
    }
    sets = [resource for resource in shared if resource[0] == "cpu"]
    names = {resource: "cpu" if len(sets) == 1 else f"cpu {number}" for number, resource in enumerate(sets)}
    return PredictedGroup(
        name=group,
        jobs=tuple(
            PredictedJob(name=name, alone_s=demand.epoch_time_s, slowdown=1 / pace)
            for (name, demand), pace in zip(demands.items(), slowest, strict=True)
        ),
        waits_for=tuple(sorted(waits_for)),
        least_s={
            names.get(resource, f"gpu {resource[1]}"): math.fsum(s for s in seconds if s is not None)
            / capacity[resource]
            for resource, seconds in shared.items()
        },
        is_upper_bound="gpu" in waits_for
        and any(
            d.has_unmeasured_wait and any(("gpu", gpu) in shared for gpu in d.gpus) for d in demands.values()
        ),
    )


def compute_fair_share(wants: Iterable[float], available: float = 1.0) -> float:
    """What each may have at most, so that all that is available of one resource is given away.

    `wants`: parts of the resource. Infinite where all get what they want.
    """
    ordered = sorted(wants)
    for place, want in enumerate(ordered):
        share = available / (len(ordered) - place)
        if want > share:
            return share
        available -= want
    return math.inf


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
    if not alone:  # all that is stored ran beside others
        notes = (PredictionNote("not-measured", {"job": title}) for title in dict.fromkeys(names))
        return NoPrediction(name=name, why=tuple(notes))
    places = resolve_unit_trials(
        unit, machine, lambda job: find_trial_data_facts(job.trial, sources), stored.device
    )
    matches = {
        kind: [
            find_solo_row(job, place, find_trial_data_facts(job.trial, sources).fingerprint, rows)
            for job, place in zip(unit.jobs, places, strict=True)
        ]
        for kind, rows in alone.items()
    }
    kind = min(
        matches,
        key=lambda name: (sum(isinstance(m, PredictionNote) for m in matches[name]), KINDS.index(name)),
    )
    # Once for jobs that are alike.
    why = {
        title: replace(match, figures={**match.figures, "job": title})
        for title, match in zip(names, matches[kind], strict=True)
        if isinstance(match, PredictionNote)
    }
    if why:
        return NoPrediction(name=name, why=tuple(why.values()))
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
