"""How much jobs will slow each other down, worked out from how each ran alone.

Alone, a job uses a part of each resource: seconds per epoch / (epoch time x capacity). Where CPUs are asked for more
than there is, all jobs on them slow down alike, by what is asked for in sum: loaders, too. A GPU is divided fairly: a
job gets what it wants up to its fair share, and what others leave over is shared again. A job runs at the smallest pace
that one of its resources gives it.

Processes that take turns on a GPU lose SLICING of its time. Of the time in which a GPU is busy, waiting for other
ranks' gradients does not count: a rank that has its gradients ready waits for the others inside a kernel, and a
neighbour loses little by it. `--breakdown` measures that wait; else it is estimated by rows of the same network on one
GPU: the kernels of a smaller batch take no longer than those of a larger one, and those of a larger one no longer for
an image, so what a rank's GPU is busy beyond that counts as waiting. What is not in it: memory and its bandwidth,
caches, PCIe, waiting for each other where nothing is full, and that a job which is held up by one resource leaves more
of its others. docs/side-by-side.md compares it with models that have more to them, and with one that has less.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import pandas as pd

from gpubench.analyze.folder import Folder
from gpubench.analyze.frames import Runs, Summary, summarize
from gpubench.analyze.grid import list_rows, plain, split_codes
from gpubench.basics.errors import GpubenchError, UnusableError, UsageError
from gpubench.core.prediction import NoPrediction, Note, PredictedGroup, PredictedJob, Predictions
from gpubench.datasets.facts import DataFacts
from gpubench.node.environment import Gpu, Machine, machine_key
from gpubench.plan.command_line import read_experiment
from gpubench.plan.experiment import Experiment
from gpubench.plan.groups import BARE, label
from gpubench.plan.options import Options, job_option
from gpubench.plan.plan import Job, Unit, expand
from gpubench.plan.resolve import Resolved, resolve_unit
from gpubench.plan.skips import Room, skip_reason
from gpubench.plan.sources import Disk
from gpubench.plan.state import out_of_memory
from gpubench.plan.values import as_text
from gpubench.schema import catalog, trial
from gpubench.schema.cell import cell as as_cell
from gpubench.schema.columns import FIELD_COLUMNS
from gpubench.schema.doubts import doubt_of
from gpubench.schema.record import ALLOTTED, Record
from gpubench.schema.trial_fields import ABOUT, those

SLICING = 0.115
"""Part of a GPU's time that goes to switching between the processes that share it, where they take turns.

From a first run on an H200 (driver 580, no MPS) with mobilenet_v2 and resnet50, bf16, on resident batches: jobs whose
busy time alone summed up to 1.1 to 2.8 times what there is came, together, to 0.88 to 0.90 of it. Measured anew since
(results/h200-copies-2026, results/h200-pairs-2026): 0.88 to 0.89. Under MPS they don't take turns.
"""
HELD = 1e-6
"""A job that loses less of its pace than this waits for nothing."""
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
UNSTATED = ("ranks", *catalog.OWN_FIELDS)
"""Fields of PACE that a row need not state."""
MOST_DIFFERENCES = 2
"""Differences up to which the nearest row is worth mentioning."""
OF_THE_WORK = (
    "model", "width", "input_size", "num_classes", "variant", "data", "train_images", "precision", "memory_format",
    "execution", "cudnn_benchmark", "optimizer", "accumulate", "prefetch",
)  # fmt: skip
"""Fields that are taken from the rows where nobody gives them: those of the work, never of where it runs."""

Resource: TypeAlias = tuple[str, Any]
"""`("gpu", 0)`: which GPU; `("cpu", frozenset({0, 1}))`: which CPUs."""
Row: TypeAlias = Mapping[str, Any]
"""A row alone as Python's own values, None where missing."""


# ---- the model ----


@dataclass(frozen=True, kw_only=True, slots=True)
class Demand:
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Slowdowns:
    """What jobs do to each other; the figures are those of `core.prediction.PredictedGroup`."""

    slowdowns: tuple[float, ...]
    waits_for: tuple[str, ...]
    least_s: Mapping[str, float]
    is_upper_bound: bool
    unknown: tuple[str, ...]
    """`cpu`, `gpu`: what jobs share while the need of one of them is not known. It counts as nothing here."""


def predict_slowdowns(demands: Sequence[Demand], slicing: float = SLICING) -> Slowdowns:
    """What two jobs or more with these demands do to each other when they run at the same time.

    `slicing`: part of a shared GPU's time that is lost.
    """
    capacity: dict[Resource, float] = {}
    for demand in demands:
        capacity["cpu", demand.cpu_ids] = max(demand.cpus, capacity.get(("cpu", demand.cpu_ids), 0.0))
        capacity |= {("gpu", gpu): 1.0 for gpu in demand.gpus}
    # Work on the CPUs is work on every set of CPUs that a job's own lie in: of each, there is no more than it has.
    needs: list[dict[Resource, float | None]] = [
        {
            (kind, which): demand.cpu_s if kind == "cpu" else demand.gpu_s
            for kind, which in capacity
            if (demand.cpu_ids <= which if kind == "cpu" else which in demand.gpus)
        }
        for demand in demands
    ]
    uses = [
        {r: min(1.0, seconds / (demand.epoch_time_s * capacity[r])) for r, seconds in need.items() if seconds}
        for demand, need in zip(demands, needs, strict=True)
    ]
    most = {}
    for resource in capacity:
        wants = [use[resource] for use in uses if resource in use]
        if resource[0] == "gpu":
            most[resource] = find_fair_share(wants, 1.0 - slicing if len(wants) > 1 else 1.0)
    sums = {r: math.fsum(use.get(r, 0.0) for use in uses) for r in capacity if r[0] == "cpu"}
    paces = [
        {r: min(1.0, 1 / sums[r] if r in sums else most[r] / part) for r, part in use.items()} for use in uses
    ]
    slowest = [min(pace.values(), default=1.0) for pace in paces]
    shared = {r: seconds for r in capacity if len(seconds := [need[r] for need in needs if r in need]) > 1}
    waits_for = {
        resource[0]
        for pace, least in zip(paces, slowest, strict=True)
        for resource, allowed in pace.items()
        if least < 1 - HELD and allowed <= least + HELD
    }
    names = name_resources(shared)
    return Slowdowns(
        slowdowns=tuple(1 / pace for pace in slowest),
        waits_for=tuple(sorted(waits_for)),
        least_s={
            names[r]: math.fsum(s for s in seconds if s is not None) / capacity[r]
            for r, seconds in shared.items()
            if None not in seconds
        },
        is_upper_bound="gpu" in waits_for
        and any(d.has_unmeasured_wait and any(("gpu", gpu) in shared for gpu in d.gpus) for d in demands),
        unknown=tuple(sorted({r[0] for r, seconds in shared.items() if None in seconds})),
    )


def find_fair_share(wants: Iterable[float], available: float = 1.0) -> float:
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


def name_resources(resources: Iterable[Resource]) -> dict[Resource, str]:
    """`gpu 0`; `cpu`, or `cpu 0`, `cpu 1` where jobs share several sets of CPUs."""
    sets = [each for each in resources if each[0] == "cpu"]
    names = {each: "cpu" if len(sets) == 1 else f"cpu {number}" for number, each in enumerate(sets)}
    return {each: names.get(each, f"gpu {each[1]}") for each in resources}


# ---- rows alone as demands ----


def make_demand(row: Row, place: Resolved, others: Summary) -> Demand | None:
    """What a row alone says of its job on these GPUs and CPUs; None without an epoch time.

    `others`: rows alone of the same machine and kind of time, which may tell how long its ranks wait for each other.
    """
    if not row["epoch_time_s"]:
        return None
    busy, gpus = row["gpu_busy_s_per_epoch"], tuple(place.gpu_ids)
    strategy = catalog.STRATEGIES.get(row["strategy"] or "")
    has_ranks = len(gpus) > 1 and bool(strategy and strategy.process_per_device)
    wait, is_measured = find_gradient_wait(row, others) if has_ranks else (0.0, False)
    return Demand(
        epoch_time_s=row["epoch_time_s"],
        cpu_s=row["cpu_s_per_epoch"],
        gpu_s=busy / len(gpus) * (1 - wait) if gpus and busy is not None else None,
        gpus=gpus,
        cpus=place.cpus,
        cpu_ids=frozenset(place.cpu_ids),
        has_unmeasured_wait=has_ranks and not is_measured,
    )


def find_gradient_wait(row: Row, others: Summary) -> tuple[float, bool]:
    """The part of its GPUs' busy time that a job only waits for other ranks' gradients, and whether it was measured.

    Measured by the newest row of the same configuration that was broken down; estimated, it may be more.
    """
    others = others[others["status"] == "ok"]
    same = others[is_alike(others, row, SAME_RANKS)]
    timed = same.assign(part=same["comm_ms"] / 1e3 / find_busy_step_s(same)).dropna(subset="part")
    if len(timed):
        newest = timed.sort_values("started_at", kind="stable").iloc[-1]
        return min(max(float(newest["part"]), 0.0), 1.0), True
    single = others[is_alike(others, row, SAME_KERNELS) & (others["gpus"] == 1)]
    own = pd.DataFrame([row])
    images = float((own["batch_size"] / own["gpus"]).iloc[0])
    larger = (images / single["batch_size"].astype("float64")).clip(lower=1.0)
    need, busy = (find_busy_step_s(single) * larger).min(), float(find_busy_step_s(own).iloc[0])
    return (float(1 - need / busy) if need < busy else 0.0), False


def is_alike(rows: Summary, row: Row, fields: Iterable[str]) -> pd.Series[bool]:
    """Whether rows agree with this one in these fields, missing values among them, and in their variant."""
    same: pd.Series[bool] = pd.Series(True, index=rows.index)
    for name in (*fields, "variant_definition"):
        same &= rows[name].isna() if row[name] is None else (rows[name] == row[name]).fillna(False)
    return same


def find_busy_step_s(rows: pd.DataFrame) -> pd.Series[float]:
    """Busy seconds of each of a row's GPUs in a step; NaN where that is not known."""
    busy, images, batch, gpus = (
        rows[name].astype("float64").where(lambda values: values > 0)
        for name in ("gpu_busy_s_per_epoch", "images_per_epoch", "batch_size", "gpus")
    )
    return busy / gpus / (images / batch)


# ---- stored rows of one machine ----


@dataclass(frozen=True, kw_only=True)
class StoredRuns:
    """The attempts that count, of one machine."""

    key: str
    """Its GPUs, or its CPU where it has measured on no GPU."""
    runs: Runs
    """Of trials alone and of jobs; `machine_key`, `host`."""
    records: tuple[Record, ...]
    machine: Machine
    """Enough to lay jobs out on it."""
    cpus: int | None
    """None: not on record."""
    is_here: bool
    others: tuple[str, ...]
    """Other machines that have results in the same folders. They are left out."""

    @property
    def device(self) -> str:
        """What a trial that names no device runs on."""
        return "cuda" if (self.runs["device"] == "cuda").any() else "cpu"


def choose_machine(folders: Sequence[Folder], here: Machine, device: str | None = None) -> StoredRuns:
    """The results of this machine; where it has none, of the machine that has most, published logs last.

    `device`: where jobs must run on a GPU or on a CPU. Results on a machine's CPU stay with those on its GPUs. The same
    attempt in two folders counts once. Raises UnusableError where nothing ended ok.
    """
    records = [record for folder in folders for record in folder.records]
    runs = pd.concat([folder.runs.iloc[: len(folder.records)] for folder in folders], ignore_index=True)
    runs["machine_key"] = [record.machine_key for record in records]
    runs["attempt"] = [record.attempt for record in records]
    runs = runs[~runs.duplicated(["trial_id", "attempt", "started_at", "machine_key"])]
    ok = runs[runs["status"] == "ok"]
    usable = ok if device is None else ok[ok["device"] == device]
    measured = usable[usable["source"] == "measured"]
    count = Counter((measured if len(measured) else usable)["machine_key"])
    if not count:
        raise UnusableError(f"no trial in these results ended ok{f' with device {device}' if device else ''}")
    own = [machine_key(here, kind) for kind in (["cuda", "cpu"] if here.gpus else ["cpu"])]
    key = next((name for name in own if name in count), count.most_common(1)[0][0])
    cpu_names = set(runs.loc[runs["machine_key"] == key, "cpu_name"])
    mine = runs[runs["machine_key"].isin({key, *(cpu_names if key not in cpu_names else ())})]
    is_here = key in own
    fullest = (
        mine.assign(gpu_count=mine["gpu_count"].fillna(0)).sort_values(["gpu_count", "started_at"]).iloc[-1]
    )
    gpus, cpus = int(fullest["gpu_count"]), plain(fullest["cpu_count"])
    if is_here:  # GPUs that are hidden at present are there, if its rows show them
        shown = mine.loc[mine["cpu_name"] == here.cpu_name, "gpu_count"].fillna(0).max()
        gpus, cpus = max(len(here.gpus), int(shown if shown == shown else 0)), here.cpu_count
    name, host = str(fullest["gpu_name"]), here.host if is_here else plain(fullest["host"])
    machine = Machine(
        host=host or "",
        gpus=tuple(Gpu(index=n, uuid=f"GPU-{n}", name=name, memory_mib=0) for n in range(gpus)),
        driver=None, cpu_name=str(fullest["cpu_name"]), cpu_ids=tuple(range(cpus or 1)), cpu_count=cpus or 1,
    )  # fmt: skip
    others = tuple(sorted(set(ok["machine_key"]) - set(mine["machine_key"])))
    return StoredRuns(
        key=key, runs=mine, records=tuple(records[place] for place in mine.index), machine=machine, cpus=cpus,
        is_here=is_here, others=others,
    )  # fmt: skip


class RememberedSources(Disk):
    """Looks on the disk; of images and model files that do not lie there, the results tell.

    `policy`: under `fail` rows from which images were left out tell of other images than those that are asked about.
    """

    def __init__(self, records: Sequence[Record], policy: catalog.BadImages = "fail") -> None:
        super().__init__(policy)
        self._records = records
        self._is_of_all_images = policy == "fail"

    def data(self, name: str) -> DataFacts:
        """Facts of these images: those that have read them know most. Raises GpubenchError where nothing tells."""
        try:
            return super().data(name)
        except GpubenchError:
            known = [
                record
                for record in self._records
                if record.trial.data == name
                and record.data.get("fingerprint")
                and not (self._is_of_all_images and record.data.get("skipped_images"))
            ]
            if not known:
                raise
        best = max(
            known,
            key=lambda r: (
                r.data["fingerprint"] != "none",
                bool(r.data.get("skipped_images")),
                r.started_at,
            ),
        )
        facts = best.resolved | best.data
        counts = {count: facts.get(count) or 0 for count in ("train_images", "val_images", "num_classes")}
        self.known_data[name] = DataFacts(
            name=name,
            kind="folder",
            root=None,
            fingerprint=facts["fingerprint"],
            size=facts.get("size"),
            **counts,
        )
        return self.known_data[name]

    def model(self, name: str) -> str:
        """The fingerprint of a model's file; empty where that is not here but the results know the model."""
        try:
            return super().model(name)
        except UsageError:
            if not any(record.trial.model == name for record in self._records):
                raise
            return self.known_models.setdefault(name, "")


def summarize_alone(runs: Runs) -> dict[str, Summary]:
    """Kind of time -> rows of trials alone, several processes as one; also of those that did not end ok.

    Unlike kinds of time are never mixed. What a trial left open may have been filled differently under another
    allowance of CPUs: that is no repeat (`frames.number_configurations`).
    """
    alone = runs[runs["group"].isna()]
    rows = {}
    for kind in dict.fromkeys(alone["kind"]):
        mine = alone[alone["kind"] == kind].reset_index(drop=True)
        summary, members = summarize(mine)
        first = members.drop_duplicates("row").set_index("row")["run"].reindex(summary.index)
        summary["variant_definition"] = [_as_key(mine.at[run, "variant_definition"]) for run in first]
        for name in ("fingerprint", "skipped"):
            images = mine.loc[first, "images"]
            summary[f"images_{name}"] = [known and getattr(known, name) for known in images]
        rows[str(kind)] = summary
    return rows


def _as_key(definition: Mapping[str, Any] | None) -> str | None:
    return repr(sorted(definition.items())) if definition else None


# ---- which row stands for a job ----


def find_alone(job: Job, place: Resolved, fingerprint: str, rows: Summary) -> tuple[Row, list[Note]] | Note:
    """The row that stands for a job, with what is to be said of that; else why there is none.

    `fingerprint`: of the job's images. What a row does not state does not part it from the job.
    """
    assert job.membership is not None, "a job that runs beside others"
    wanted = vars(job.trial) | place.columns()
    differs = pd.DataFrame({name: _differs(rows, name, wanted[name]) for name in PACE}, index=rows.index)
    definition = _as_key(job.variant.definition())
    differs["variant_definition"] = _differs(rows, "variant_definition", definition)
    is_of_images = job.variant.files != "none"
    differs["images"] = is_of_images & _differs(rows, "images_fingerprint", fingerprint)
    is_same = rows["config_id"] == job.membership.solo.config_id
    like = rows.assign(
        agree=sum((rows[name] == wanted[name]).fillna(False).astype(int) for name in ALLOTTED),
        is_same=is_same,
        is_there=rows["gpu_ids"].map(as_cell) == as_cell(wanted["gpu_ids"]),
        start=rows["started_at"].fillna(""),
        is_ok=rows["status"] == "ok",
    )[is_same | ~differs.any(axis=1)]
    if not len(like):
        near = (rows["status"] == "ok") & (rows["model"] == wanted["model"])
        near &= (rows["batch_size"] == wanted["batch_size"]).fillna(False)
        return _describe_nearest(rows[near], differs[near])
    best = like.sort_values(["is_ok", "agree", "is_same", "is_there", "start"], kind="stable").iloc[-1]
    row = {str(name): plain(value) for name, value in best.items()}
    if not row["is_ok"]:
        return Note("ended", {"status": row["status"]})
    return _list_cpu_seconds(row, place, _list_notes(row, job, wanted))


def _differs(rows: Summary, name: str, wanted: Any) -> pd.Series[bool]:
    differs: pd.Series[bool] = rows[name].notna() & (rows[name] != wanted).fillna(False)
    return differs


def _describe_nearest(rows: Summary, differs: pd.DataFrame) -> Note:
    """In what the most similar row of that model and batch differs; in too much to be told, nothing is said of it."""
    count = differs.sum(axis=1)
    if not len(count) or count.min() > MOST_DIFFERENCES:
        return Note("not-measured")
    row = count.idxmin()
    fields = [name for name in differs if differs.at[row, name]]
    if "images" in fields and "train_images" in fields:
        fields.remove("train_images")  # comes with them
    return Note(
        "nearest", {"fields": {name: plain(rows.at[row, name]) if name in rows else None for name in fields}}
    )


def _list_notes(row: Row, job: Job, wanted: Row) -> list[Note]:
    """What makes a row that stands for a job less than sure."""
    notes = []
    for name in ALLOTTED:
        if row[name] is not None and row[name] != wanted[name]:
            notes.append(
                Note("another-allowance", {"field": name, "wanted": wanted[name], "value": row[name]})
            )
        elif row[name] is None and vars(job.trial)[name] is not None:
            notes.append(Note("unknown-allowance", {"field": name, "wanted": wanted[name]}))
    missing = tuple(name for name in PACE if row[name] is None and name not in UNSTATED and name not in ADDED)
    if row["source"] != "measured" and missing:
        notes.append(Note("unstated", {"fields": missing}))
    if ".py:" in (row["model"] or "") and not row["is_same"]:
        notes.append(Note("model-file"))
    if codes := split_codes(row["doubts"]):
        notes.append(Note("doubts", {"codes": codes}))
    return notes


ADDED = those(lambda about: about.added)
"""Fields that came after the first results were stored: a row that lacks them means their default."""


def _list_cpu_seconds(row: dict[str, Any], place: Resolved, notes: list[Note]) -> tuple[Row, list[Note]]:
    """The row with CPU seconds per epoch: by the load of all CPUs, where its own were not measured."""
    load, time = row["cpu_util_pct"], row["epoch_time_s"]
    if row["cpu_s_per_epoch"] is not None or load is None or not time:
        return row, notes
    seconds = load / 100 * time * (row["cpus"] or place.cpus)
    return row | {"cpu_s_per_epoch": seconds}, [*notes, Note("cpu-load")]


# ---- answers ----


def predict_experiment(
    folders: Sequence[Folder], options: Options, here: Machine, *, path: Any = None, device: str | None = None
) -> Predictions:
    """What jobs of `options`, or of the experiment at `path`, would do to each other, by the rows of one machine.

    Raises UsageError where there are no jobs, UnusableError where no trial ended ok.
    """
    stored = choose_machine(folders, here, device)
    has_gpu = stored.device == "cuda"
    usual = read_experiment(None, Options(), has_gpu=has_gpu)
    filled = {} if path is not None else fill_fields(options, stored.runs, usual)
    options = replace(options, fields={**options.fields, **filled})
    experiment = read_experiment(path, options, has_gpu=has_gpu)
    sources = RememberedSources(stored.records, experiment.bad_images)
    plan = expand(experiment, device=stored.device, sources=sources, cpus=stored.machine.cpu_count)
    units = [unit for unit in plan.units if unit.is_group]
    if not units:
        raise UsageError("there are no jobs to predict; give --job once for each, or --copies 2")
    alone = summarize_alone(stored.runs)
    measured = find_measured(folders, stored)
    groups = [predict_unit(unit, stored, sources, alone, measured, experiment, usual) for unit in units]
    return _wrap(stored, groups, filled)


def list_measured(folders: Sequence[Folder], here: Machine) -> Predictions:
    """The groups that ran on one machine, with what was predicted of them before."""
    stored = choose_machine(folders, here)
    groups = [
        PredictedGroup(
            name=name_group(
                str(rows["group"].iloc[0]), [row for _, row in list_rows(rows)], rows["varied"].iloc[0]
            ),
            jobs=tuple(
                PredictedJob(
                    name=str(job), alone_s=plain(alone_s), slowdown=float(slowdown), measured=float(measured)
                )
                for job, alone_s, slowdown, measured in zip(
                    *(rows[name] for name in ("job", "solo_epoch_time_s", "predicted_slowdown", "slowdown")),
                    strict=True,
                )
            ),
            kind=str(rows["kind"].iloc[0]),
        )
        for rows in list_groups(folders, stored)
        if len(rows) > 1 and rows[["predicted_slowdown", "slowdown"]].notna().all(axis=None)
    ]
    return _wrap(stored, groups, {})


def _wrap(
    stored: StoredRuns, groups: Sequence[PredictedGroup | NoPrediction], filled: Mapping[str, str]
) -> Predictions:
    return Predictions(
        machine=stored.key, gpus=len(stored.machine.gpus), cpus=stored.cpus, is_here=stored.is_here,
        other_machines=stored.others, filled=filled, groups=tuple(groups),
    )  # fmt: skip


def fill_fields(options: Options, runs: Runs, usual: Experiment) -> dict[str, str]:
    """Fields that nobody gives, as all rows alone that fit agree in them. `usual`: what is taken of a field otherwise.

    Whoever asks about copies on a folder of one network means that network, not the built-in experiment's. Of copies
    whose batch size nobody gives it is those of the rows.
    """
    given = {*options.fields, *(name for text in options.jobs for name in job_option(text))}
    rows: list[Row] = list(runs.loc[(runs["status"] == "ok") & runs["group"].isna(), "asked"])
    for name in set(options.fields) & set(OF_THE_WORK):
        wanted = options.fields[name].split(",")
        rows = [row for row in rows if row.get(name) is None or as_text(row[name]) in wanted]
    defaults = {**vars(trial.make({})), **usual.fixed}
    filled: dict[str, Any] = {}
    for name in OF_THE_WORK:
        values = {row.get(name) for row in rows}
        if name not in given and len(values) == 1 and not values & {None, defaults[name]}:
            filled[name] = values.pop()
    if filled.get("variant") not in (None, *catalog.VARIANTS):
        del filled["variant"]  # a user's own one, which only their file defines
    for name in set(OF_THE_WORK) - given:
        same = [row for row in rows if row.get(name) in (None, filled.get(name, defaults[name]))]
        rows = same or rows
    words = {name: as_text(value) for name, value in filled.items()}
    sizes = sorted({row["batch_size"] for row in rows if row.get("batch_size")})
    if sizes and "batch_size" not in given and not options.jobs:
        words["batch_size"] = ",".join(map(str, sizes))
    return words


def predict_unit(
    unit: Unit,
    stored: StoredRuns,
    sources: RememberedSources,
    alone: Mapping[str, Summary],
    measured: Mapping[tuple[Any, ...], tuple[float, ...]],
    experiment: Experiment,
    usual: Experiment,
) -> PredictedGroup | NoPrediction:
    """What the jobs of one group would do to each other, by rows alone of one kind of time; or why nobody knows."""
    name = name_unit(unit, experiment)
    machine = stored.machine
    if stored.cpus is None:  # then jobs on the same CPUs have as many as they ask for
        if unit.jobs[0].trial.cpu_sharing == "pinned":
            return NoPrediction(name=name, why=(Note("unknown-cpus"),))
        cpus = max(job.trial.cpus or 1 for job in unit.jobs)
        machine = replace(machine, cpu_ids=tuple(range(cpus)), cpu_count=cpus)
    room = Room(len(machine.gpus), machine.cpu_count)
    if reason := skip_reason(unit, out_of_memory(stored.records), room, stored.device):
        return NoPrediction(name=name, why=(Note("skipped", {"reason": reason}),))
    places = resolve_unit(unit, machine, lambda job: sources.data(job.trial.data), stored.device)
    names = name_jobs(unit.jobs)
    tries = {
        kind: [
            find_alone(job, place, sources.data(job.trial.data).fingerprint, rows)
            for job, place in zip(unit.jobs, places, strict=True)
        ]
        for kind, rows in alone.items()
    }
    # Of several kinds of time that tell of all jobs, what this version measures goes first.
    kind = min(tries, key=lambda each: (sum(isinstance(f, Note) for f in tries[each]), KINDS.index(each)))
    lacking: dict[str, Note] = {}
    options: dict[tuple[str, ...], None] = {}
    standing: list[tuple[Row, list[Note]]] = []
    for job, name_of_job, match in zip(unit.jobs, names, tries[kind], strict=True):
        if isinstance(match, Note):
            lacking[name_of_job] = replace(match, figures={**match.figures, "job": name_of_job})
            options[list_options(job, usual, experiment)] = None
        else:
            standing.append(match)
    if lacking:
        return NoPrediction(name=name, why=tuple(lacking.values()), options=tuple(options))
    demands = [make_demand(row, place, alone[kind]) for (row, _), place in zip(standing, places, strict=True)]
    known = [demand for demand in demands if demand is not None]
    if len(known) < len(demands):
        return NoPrediction(name=name, why=(Note("no-time"),))
    predicted = predict_slowdowns(known, SLICING if any(row["mps"] != "on" for row, _ in standing) else 0.0)
    if predicted.unknown:  # the rest of it would be taken for nothing
        return NoPrediction(name=name, why=(Note("unknown-needs", {"resources": predicted.unknown}),))
    key = (unit.jobs[0].trial.cpu_sharing, *(row["config_id"] for row, _ in standing))
    came: Sequence[float | None] = measured.get(key, (None,) * len(standing))
    return PredictedGroup(
        name=name,
        jobs=tuple(
            PredictedJob(
                name=f"{job.membership.name}: {name_of_job}" if job.membership else name_of_job,
                alone_s=row["epoch_time_s"],
                slowdown=slowdown,
                notes=tuple(notes),
                measured=seen,
            )
            for job, name_of_job, (row, notes), slowdown, seen in zip(
                unit.jobs, names, standing, predicted.slowdowns, came, strict=True
            )
        ),
        word="likely" if all(_is_reliable(row) for row, _ in standing) else "unknown",
        waits_for=predicted.waits_for,
        least_s=predicted.least_s,
        is_upper_bound=predicted.is_upper_bound,
        kind=kind,
    )


KINDS = ("steady rate", "whole epochs", "published log")


def _is_reliable(row: Row) -> bool:
    """Whether a time alone is of several processes and has no doubts."""
    return row["repeats"] > 1 and not any(
        "time" in doubt_of(code).about for code in split_codes(row["doubts"])
    )


def find_measured(folders: Sequence[Folder], stored: StoredRuns) -> dict[tuple[Any, ...], tuple[float, ...]]:
    """How CPUs were shared, and the configurations alone of a group's jobs -> their slowdowns, where it ran."""
    configurations = dict(zip(stored.runs["trial_id"], stored.runs["config_id"], strict=True))
    return {
        (rows["cpu_sharing"].iloc[0], *rows["solo_id"].map(configurations)): tuple(
            rows["slowdown"].astype("float64")
        )
        for rows in list_groups(folders, stored)
        if rows["slowdown"].notna().all()
    }


def list_groups(folders: Sequence[Folder], stored: StoredRuns) -> Iterator[Summary]:
    """The jobs of each group that ran on this machine, in their order; `varied`: what differs in their table."""
    keys = set(stored.runs["machine"])
    for folder in folders:
        jobs = folder.summary[folder.summary["unit"].notna() & folder.summary["machine"].isin(keys)]
        for _, rows in jobs.groupby(["table", "unit"], sort=False):
            yield rows.assign(varied=[folder.tables[table].varied for table in rows["table"]])


def name_unit(unit: Unit, experiment: Experiment) -> str:
    """The group's name, with the axes that tell it from others of that name."""
    axes = [name for axis in experiment.varied for name in axis]
    return name_group(unit.group, [vars(job.trial) for job in unit.jobs], axes)


def name_group(group: str, jobs: Sequence[Row], fields: Iterable[str]) -> str:
    """A group's name, with those of the fields that all of its jobs agree in."""
    same = {name: jobs[0][name] for name in fields if name in jobs[0] and name != "copies"}
    told = [
        f"{name}={as_text(value)}"
        for name, value in same.items()
        if value is not None and all(job[name] == value for job in jobs)
    ]
    return f"{group} ({', '.join(told)})" if told else group


def name_jobs(jobs: Sequence[Job]) -> list[str]:
    """What jobs that run together are called: by model, variant and batch, and by whatever tells them apart."""
    trials = [vars(job.trial) for job in jobs]
    following = ("strategy", "lr", "gpus", "gpu_ids")  # from other fields, mostly
    apart = [
        name
        for name in trials[0]
        if name not in (*BARE, *following) and any(each[name] != trials[0][name] for each in trials)
    ]
    return [
        label(
            {name: own[name] for name in (*BARE, *apart)}
            | (
                {"gpu_ids": own["gpu_ids"]}
                if own["gpu_ids"]
                else {"gpus": own["gpus"]}
                if own["gpus"]
                else {}
            )
        )
        for own in trials
    ]


def list_options(job: Job, usual: Experiment, experiment: Experiment) -> tuple[str, ...]:
    """A job alone as options of a sweep. `usual`: what a sweep does that is asked for nothing."""
    assert job.membership is not None, "a job that runs beside others"
    own = vars(job.membership.solo.trial)
    always: Collection[str] = ("model", "batch_size", "device")  # what is left to a sweep may be another
    defaults = {**vars(trial.make({})), **usual.fixed, **dict.fromkeys(always)}
    defaults |= {name: own[name] for name in ("epochs", "warmup_epochs")}
    fields = {name: value for name, value in own.items() if value != defaults[name]}
    if own["gpu_ids"] or not own["gpus"]:
        fields.pop("gpus", None)  # others tell it, too
    words = [
        f"{name}={as_text(int(value) if isinstance(value, float) and value.is_integer() else value)}"
        for name, value in fields.items()
    ]
    policy = ("--bad-images", "skip") if experiment.bad_images == "skip" else ()
    return (*(part for word in words for part in ("--set", word)), *policy)
