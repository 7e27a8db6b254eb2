"""Every column and the record of one attempt. The only place where columns are defined.

A column is a literal line below, or a field of a trial: name, unit, meaning. CSV headers, tables and tests are made
from it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from gpubench.schema.field import in_order
from gpubench.schema.trial_fields import ABOUT, FIELDS, TYPES, those

RECORD_SCHEMA = 1
FEWEST_TIMES = 3
"""Epoch times (of epochs, or of repeats) from which their spread says anything: two have none to speak of."""

Status = Literal["ok", "oom", "failed", "timeout", "interrupted", "skipped", "missing"]
Ended = Literal["ok", "oom", "failed", "timeout", "interrupted", "skipped"]
"""How an attempt ends. `skipped`: another job of its group took it with it."""
FINAL: frozenset[str] = frozenset({"ok", "oom"})
"""Endings that a later sweep never repeats unasked."""


HUGE = 1e15
"""No figure is larger: one that is has been damaged, and would overflow where figures are multiplied."""

# What columns hold. Stored records are checked against it (`stored_record.py`); any column may be empty besides.
Text = str
Amount = Annotated[float, Field(ge=0, le=HUGE)]
Above0 = Annotated[float, Field(ge=1e-9, le=HUGE)]
"""What others are divided by."""
Signed = Annotated[float, Field(ge=-HUGE, le=HUGE)]
Loss = Annotated[float, Field(ge=-1e39, le=1e39)]
"""Of a training that diverges: as large as a 32-bit float."""
Count = Annotated[int, Field(ge=0, le=int(HUGE))]
Count1 = Annotated[int, Field(ge=1, le=int(HUGE))]
Devices = Annotated[int, Field(ge=0, le=1 << 16)]
"""Few enough to be gone through one by one."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of trials.csv."""

    name: str
    unit: str
    """Empty for text and counts."""
    meaning: str
    heading: str = ""
    """How a table for people names it; the name itself where empty."""
    digits: int | None = None
    """Digits after the point in a table for people; None: as it is."""
    kind: Any = None
    """What a stored value must be; None: an Amount where there is a unit, else Text. Fields of a trial have theirs in
    `trial_fields.py`."""

    @property
    def holds(self) -> Any:
        """The type of a stored value, for pydantic."""
        return self.kind or TYPES.get(self.name) or (Amount if self.unit else Text)


IDENTITY: tuple[Column, ...] = (
    Column("trial_id", "", "hash of all that defines the trial"),
    Column("config_id", "", "the same without seed and repeat"),
    Column("experiment", "", "name of the experiment that ran it first"),
    Column("group", "", "co-located group, empty for a trial alone"),
    Column("job", "", "its place in the group"),
    Column("repeat", "", "0, 1, …: the same configuration again with seed + repeat"),
    Column("status", "", "ok, oom, failed, timeout, interrupted or skipped", "status"),
    Column("reason", "", "why it ended so, in words", "reason"),
)

# The trial's own fields, in the order in which a reader asks for them. `trial_fields.py` defines them.
FIELD_COLUMNS: tuple[str, ...] = in_order(
    [name for name in FIELDS if name not in {column.name for column in IDENTITY}],
    {name: ABOUT[name].behind for name in FIELDS},
)
TRIAL: tuple[Column, ...] = (
    *(Column(n, ABOUT[n].unit, ABOUT[n].meaning, ABOUT[n].heading) for n in FIELD_COLUMNS),
    Column("params_m", "million", "parameters of the model", "params M", 2),
    Column("gmacs_per_image", "GMAC", "multiply-adds of one forward pass of one image", "GMAC/image", 2),
)

MEASURED: tuple[Column, ...] = (
    Column(
        "epoch_time_s", "s", "median over measured epochs, loading included", "epoch time s", 2, kind=Above0
    ),
    Column(
        "epoch_time_iqr_s", "s", "interquartile range of the same, from three measured epochs on", "IQR s", 2
    ),
    Column("epochs_measured", "", "how many epochs the median is of", "epochs", kind=Count),
    Column("epoch_time_source", "", "measured, or extrapolated from `steps`", "source"),
    Column("images_per_s", "images/s", "images_per_epoch / epoch_time_s", "images/s", 0, kind=Above0),
    Column("images_per_epoch", "images", "full batches only", "images", kind=Count1),
    Column("step_time_ms_p50", "ms", "median time between ends of steps", "step ms p50", 1, kind=Signed),
    Column("step_time_ms_p95", "ms", "95th percentile of the same", "step ms p95", 1, kind=Signed),
    Column(
        "first_batch_s",
        "s",
        "from iter(loader) to the first batch, median over measured epochs",
        "first batch s",
        2,
        kind=Signed,
    ),
    Column(
        "data_wait_pct",
        "%",
        "share of the epoch in which the device starved for a batch",
        "data wait %",
        1,
        kind=Signed,
    ),
    Column(
        "copy_ms", "ms", "of a step: batch to the device, its transforms there", "copy ms", 2, kind=Signed
    ),
    Column(
        "forward_ms",
        "ms",
        "of a step: forward pass and loss, DDP's copy of buffers included",
        "forward ms",
        2,
        kind=Signed,
    ),
    Column("backward_ms", "ms", "of a step: backward pass, less `comm_ms`", "backward ms", 2, kind=Signed),
    Column(
        "comm_ms",
        "ms",
        "of a step: waiting for other ranks' gradients, with nothing left to compute",
        "comm ms",
        2,
        kind=Signed,
    ),
    Column(
        "comm_hidden_ms",
        "ms",
        "of a step: communication behind the backward pass",
        "hidden comm ms",
        2,
        kind=Signed,
    ),
    Column("optimizer_ms", "ms", "of a step: the optimizer's update", "optimizer ms", 2, kind=Signed),
    Column("comm_pct", "%", "comm_ms as a share of the step", "comm %", 1, kind=Signed),
    Column(
        "comm_mib_per_step",
        "MiB",
        "gradients and weights that each rank hands over in a step",
        "comm MiB/step",
        1,
    ),
    Column(
        "slowest_rank",
        "",
        "the rank that the others waited for, from 0; empty where all are alike",
        "slowest rank",
        kind=Count,
    ),
    Column(
        "breakdown_cost_pct",
        "%",
        "what timing the parts added to each step whose parts were timed, one of every two; noise may be below 0",
        "breakdown cost %",
        1,
        kind=Signed,
    ),
    Column(
        "gpu_mem_mib", "MiB", "peak on the fullest GPU, trial's own processes, warm-up included", "GPU MiB", 0
    ),
    Column(
        "gpu_mem_source",
        "",
        "nvml-process, nvml-device-delta, torch-reserved or published-log",
        "memory source",
    ),
    Column(
        "gpu_mem_allocated_mib", "MiB", "the allocator's peak of tensors, fullest GPU", "allocated MiB", 0
    ),
    Column("gpu_mem_reserved_mib", "MiB", "the allocator's peak of segments, fullest GPU", "reserved MiB", 0),
    Column(
        "gpu_alloc_retries",
        "",
        "times the allocator had to give memory back and try again",
        "retries",
        kind=Count,
    ),
    Column("gpu_util_pct", "%", "share of time with a kernel running, mean over GPUs and window", "GPU %", 0),
    Column("gpu_util_max_pct", "%", "highest sample of the same", "GPU max %", 0),
    Column(
        "gpu_mem_util_pct", "%", "share of time in which device memory was read or written", "mem util %", 0
    ),
    Column("gpu_mem_util_max_pct", "%", "highest sample of the same", "mem util max %", 0),
    Column("cpu_util_pct", "%", "all work on the CPUs that the trial may use", "CPU %", 1),
    Column("cpu_util_max_pct", "%", "highest sample of the same", "CPU max %", 0),
    Column("cpu_util_trial_pct", "%", "the trial's process tree's share of the same CPUs", "trial CPU %", 0),
    Column("cpu_s_per_epoch", "s", "CPU seconds of the trial's process tree", "CPU s/epoch", 1),
    Column(
        "gpu_busy_s_per_epoch",
        "s",
        "utilisation × epoch time, summed over GPUs; of `steps` their busy time, scaled to an epoch's steps",
        "GPU busy s",
        2,
    ),
    Column("host_mem_mib", "MiB", "proportional resident memory of the process tree", "host MiB", 0),
    Column("energy_j", "J", "per measured epoch, all its GPUs; `energy_source` says by what", "energy J", 0),
    Column("power_w", "W", "mean of sampled power, all its GPUs", "power W", 0),
    Column(
        "energy_source",
        "",
        "of energy_j: nvml-counter, or nvml-power-integral where the counter told nothing",
        "energy source",
    ),
    Column("energy_sampled_j", "J", "energy_j anew, as the integral of sampled power", "sampled J", 0),
    Column("idle_power_w", "W", "of its GPUs together, before the sweep", "idle W", 0),
    Column("sm_clock_mhz", "MHz", "mean clock of the multiprocessors", "SM MHz", 0),
    Column(
        "throttled_pct",
        "%",
        "share of the time in which power cap, heat or hardware lowered the clocks",
        "throttled %",
        0,
    ),
    Column(
        "throttle_reasons", "", "what slowed the clocks meanwhile, the most frequent first", "throttled by"
    ),
    Column("temperature_c", "°C", "highest temperature", "°C", 0, kind=Signed),
    Column("top1_pct", "%", "top-1 on the validation split after the last epoch", "top-1 %", 1),
    Column("loss", "", "cross-entropy on the validation split, after the last epoch", "loss", 3, kind=Loss),
    Column(
        "epochs_to_top1", "", "epochs trained until `until_top1` was reached", "epochs to top-1", kind=Count
    ),
    Column(
        "time_to_top1_s",
        "s",
        "training until `until_top1` was reached: first epoch included, evaluation not",
        "s to top-1",
        1,
    ),
    Column("energy_to_top1_j", "J", "energy of all its GPUs in `time_to_top1_s`", "J to top-1", 0),
    Column("solo_epoch_time_s", "s", "epoch time of the same trial alone", "alone s", 2, kind=Above0),
    Column("slowdown", "", "epoch time together / alone", "slowdown", 2, kind=Above0),
    Column(
        "overlap_gain",
        "",
        "1 is parallel, 0 merely concurrent, below 0 slower than one after the other",
        "overlap gain",
        2,
        kind=Signed,
    ),
    Column(
        "predicted_slowdown",
        "",
        "what the solo rows predicted, before the group ran",
        "predicted",
        2,
        kind=Above0,
    ),
    Column(
        "sharing",
        "",
        "parallel, partly parallel, merely concurrent, or between two of them: the verdict on overlap_gain; "
        "perhaps: nobody knows how far the times spread, or how far somebody else's work moved them",
        "sharing",
    ),
    Column("full_together", "", "what was full while the jobs ran together, as cpu+input", "full together"),
    Column("group_id", "", "the group that it ran in: equal for jobs that ran together"),
    Column("solo_id", "", "trial_id of the same trial alone"),
    Column("doubts", "", "short codes, spelled out under the table", "doubts"),
)

OF_GROUPS: tuple[str, ...] = (
    "solo_epoch_time_s", "slowdown", "overlap_gain", "predicted_slowdown", "sharing", "full_together", "group_id",
    "solo_id",
)  # fmt: skip
"""Those of MEASURED that only jobs of groups have."""

ENVIRONMENT: tuple[Column, ...] = (
    Column("host", "", "host name"),
    Column("gpu_name", "", "GPU model"),
    Column("gpu_count", "", "GPUs that could be used", kind=Devices),
    Column("driver", "", "NVIDIA driver version"),
    Column("cuda", "", "CUDA version torch was built with"),
    Column("torch", "", "torch version"),
    Column("cpu_name", "", "CPU model"),
    Column("cpu_count", "", "CPUs that could be used", kind=Devices),
    Column("gpubench", "", "gpubench version"),
    Column("started_at", "", "local time"),
    Column("mps", "", "on, off or perhaps: whether CUDA's Multi-Process Service shares the GPUs out"),
)

IMAGES: tuple[Column, ...] = (
    Column(
        "skipped_images",
        "images",
        "images of the folder that could not be decoded and were left out, of training and validation together",
        "skipped images",
    ),
)
"""What came last, so that the columns before it stay where they are."""

COLUMNS: tuple[Column, ...] = (*IDENTITY, *TRIAL, *MEASURED, *ENVIRONMENT, *IMAGES)
BY_NAME: dict[str, Column] = {column.name: column for column in COLUMNS}

# Derived columns belong to tables, never to records.
DERIVED: tuple[Column, ...] = (
    Column("gpu_mem_growth_pct", "%", "memory against the row before along the ordered axis", "growth", 0),
    Column("epoch_time_growth_pct", "%", "time per image against the row before", "growth", 0),
    Column("images_per_joule", "images/J", "images_per_epoch / energy_j", "img/J", 2),
    Column("edp_js", "J s", "energy-delay product: energy_j × epoch_time_s", "EDP J s", 0),
    Column(
        "speedup", "", "images/s over those of the baseline, which is named under the table", "speedup", 2
    ),
    Column(
        "strong_efficiency_pct",
        "%",
        "speedup / how many times the baseline's devices, same global batch",
        "strong eff. %",
        0,
    ),
    Column(
        "weak_efficiency_pct",
        "%",
        "speedup / how many times the baseline's devices, same batch a device",
        "weak eff. %",
        0,
    ),
)

EPOCH_COLUMNS: tuple[Column, ...] = (
    Column("trial_id", "", "the trial"),
    Column("attempt", "", "which attempt at it", kind=Count),
    Column("epoch", "", "0, 1, …", kind=Count),
    Column("warmup", "", "1: left out of statistics", kind=bool),
    Column("epoch_time_s", "s", "iter(loader) to the end of the last step on the device"),
    Column("steps", "", "optimizer steps", kind=Count),
    Column("images", "images", "images trained on", kind=Count),
    Column("data_wait_s", "s", "time in which the device starved for a batch", kind=Signed),
    Column("first_batch_s", "s", "from iter(loader) to the first batch", kind=Signed),
    Column("train_loss", "", "mean loss over the epoch", kind=Loss),
    Column("cpu_s", "s", "CPU seconds of the trial's process tree", kind=Signed),
    Column("energy_j", "J", "all its GPUs, by the driver's counter or else by sampled power"),
    Column("top1_pct", "%", "top-1 after this epoch, where it was asked for"),
    Column("steady_step_s", "s", "mean time of a step once the loaders run evenly", kind=Signed),
    Column(
        "steady_steps",
        "",
        "how many steps that is the mean of; 0: too few for it, so it is the mean of those after the first",
        kind=Count,
    ),
    Column(
        "tail_s",
        "s",
        "epoch_time_s less first_batch_s and steps × steady_step_s; may be below 0",
        kind=Signed,
    ),
)


class Record(BaseModel):
    """One attempt at one unit, as stored: immutable, the truth behind every table."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: int = RECORD_SCHEMA
    trial_id: str
    config_id: str
    attempt: int = 1
    experiment: str
    group: str | None = None
    job: str | None = None
    group_id: str | None = None
    """The unit that this is a part of, for a job of a group: all its jobs are stored in one file."""
    status: Status
    reason: str = ""
    machine_key: str
    """GPU model and memory, or the CPU model where the device is the CPU."""
    trial: dict[str, Any]
    """The fields as asked; what was left to the machine is null."""
    variant_definition: dict[str, Any] = Field(default_factory=dict)
    data: dict[str, Any] = Field(default_factory=dict)
    """Facts of the images: fingerprint, counts, where they lay."""
    resolved: dict[str, Any] = Field(default_factory=dict)
    """The values that fields left to the machine got."""
    result: dict[str, Any] = Field(default_factory=dict)
    """Columns of MEASURED (and params_m, gmacs_per_image). Absent or null: not measured, see `missing`."""
    missing: dict[str, str] = Field(default_factory=dict)
    """Column -> why it is empty."""
    provenance: dict[str, Any] = Field(default_factory=dict)
    """Where sampled figures come from: source, period, samples, gaps."""
    epochs: list[dict[str, Any]] = Field(default_factory=list)
    """Rows of EPOCH_COLUMNS without the first two. Besides, `steady_wait_s` (data wait of a steady step) and, where
    there are several ranks, `data_wait_s_by_rank` (seconds that each of them starved)."""
    windows: list[dict[str, Any]] = Field(default_factory=list)
    """Edges of every window on the host's monotonic clock, in seconds."""
    span: dict[str, float] = Field(default_factory=dict)
    """`launched` and `finished` on the same clock: every window lies between them. Times of samples count from
    `launched`."""
    phases: dict[str, float] = Field(default_factory=dict)
    """Wall seconds that the trial spent in each phase of its life."""
    together: dict[str, Any] = Field(default_factory=dict)
    """For a job of a group: what was found out about the group, the same for all its jobs. See `runner/together.py`."""
    doubts: dict[str, str] = Field(default_factory=dict)
    """Code -> one sentence with advice."""
    environment: dict[str, Any] = Field(default_factory=dict)
    started_at: str = ""
    source: str = "measured"
    """`measured` by gpubench, or where the figures were taken from."""


class GroupRecord(BaseModel):
    """One attempt at a group, as stored: one file, so that its jobs are there together or not at all."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: int = RECORD_SCHEMA
    group_id: str
    attempt: int
    jobs: list[Record]


_WORST_FIRST: tuple[Status, ...] = ("interrupted", "timeout", "failed", "oom", "ok")


def ending(statuses: Collection[str]) -> Status:
    """How a unit ended whose jobs ended like this: a group as badly as the worst of them.

    Those that a neighbour took with it are `skipped`, and tell nothing themselves.
    """
    worst: Status = next((status for status in _WORST_FIRST if status in statuses), "missing")
    return "failed" if worst == "ok" and "skipped" in statuses else worst


ALLOTTED = those(lambda about: about.allotted)
"""Fields that a trial may leave to the machine, and that get other values with another allowance of CPUs."""


def given(record: Record) -> dict[str, Any]:
    """What the machine gave an attempt of the fields that its trial left to it. Old logs may not tell: None."""
    return {field: record.resolved.get(field) for field in ALLOTTED if record.trial.get(field) is None}


def row(record: Record) -> dict[str, Any]:
    """The record as one row of trials.csv: every name of COLUMNS; None where unknown."""
    values: dict[str, Any] = dict.fromkeys(BY_NAME)
    values.update({k: v for k, v in record.environment.items() if k in values})
    values.update({k: v for k, v in record.trial.items() if k in values})
    values.update({k: v for k, v in record.resolved.items() if k in values and v is not None})
    values.update({k: v for k, v in record.result.items() if k in values})
    values.update(
        trial_id=record.trial_id,
        config_id=record.config_id,
        experiment=record.experiment,
        group=record.group,
        job=record.job,
        group_id=record.group_id,
        repeat=record.trial.get("repeat"),
        status=record.status,
        reason=record.reason or None,
        started_at=record.started_at or None,
        doubts="+".join(sorted(record.doubts)) or None,
        skipped_images=record.data.get("skipped_images"),
    )
    return values


def cell(value: Any, digits: int = 6) -> str:
    """A value as text: empty for unknown, lists as 0+1, numbers to so many significant digits."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, float):
        return f"{value:.{digits}g}" if value == value else ""
    if isinstance(value, (list, tuple)):
        return "+".join(cell(v) for v in value)
    if not isinstance(value, str):
        return str(value)
    # A spreadsheet runs text that begins like a formula; an apostrophe in front makes it plain text.
    return "'" + value if value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
