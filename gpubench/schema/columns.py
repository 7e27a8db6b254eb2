"""Every column: its name, unit, meaning, heading and what it holds. One entry a column, and no other list of them.

An entry is an attribute of one of the classes below, from which `row.Row` is made: code reads `row.epoch_time_s`, and
the order in CSVs, docs/columns.md and the check of stored values follow. Fields of a trial are entries of
`trial_fields.py`, from which their columns are made.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, get_args, get_type_hints

from msgspec import Meta

from gpubench.schema.command import find_number_type
from gpubench.schema.trial_fields import ABOUT, FIELDS, TYPES, order_names

HUGE = 1e15
"""No figure is larger: one that is has been damaged, and would overflow where figures are multiplied."""

# What columns hold. Stored records are checked against it (`stored_record.py`); any column may be empty besides.
Text = str
MOMENT = "a local time, as 2026-11-20 09:53:00, or its day alone"
Moment = Annotated[str, MOMENT]
Amount = Annotated[float, Meta(ge=0, le=HUGE)]
Above0 = Annotated[float, Meta(ge=1e-9, le=HUGE)]
"""What others are divided by."""
Signed = Annotated[float, Meta(ge=-HUGE, le=HUGE)]
Loss = Annotated[float, Meta(ge=-1e39, le=1e39)]
"""The loss of a training that diverges is as large as a 32-bit float."""
Count = Annotated[int, Meta(ge=0, le=int(HUGE))]
Count1 = Annotated[int, Meta(ge=1, le=int(HUGE))]
Devices = Annotated[int, Meta(ge=0, le=1 << 16)]
"""Few enough to be gone through one by one."""
CONFIRMED, UNCONFIRMED = "confirmed", "unconfirmed"
"""The words of `top1_crossing`."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a CSV or a table."""

    name: str
    unit: str
    """Empty for text and counts."""
    meaning: str
    heading: str = ""
    """How a table for people names it; the name itself where empty. `{target}`: the top-1 that was to be reached."""
    digits: int = 0
    """Digits after the point in a table for people, of per cents: of other figures there are three that tell."""
    holds: Any = None
    """What a stored value must be. None for columns that only tables have."""


def column(unit: str, meaning: str, heading: str = "", digits: int = 0, default: Any = None) -> Any:
    """An attribute that is a column: `Column` says what these are. Its type is what a stored value must be."""
    described = {"unit": unit, "meaning": meaning, "heading": heading, "digits": digits}
    return field(default=default, metadata=described)


def list_class_columns(owner: type) -> tuple[Column, ...]:
    """The columns that a class has as attributes, in their order."""
    types = get_type_hints(owner, include_extras=True)
    return tuple(
        Column(name=attribute.name, holds=_unwrap_optional(types[attribute.name]), **attribute.metadata)
        for attribute in fields(owner)
    )


def _unwrap_optional(hint: Any) -> Any:
    """The type of what is there, of an attribute that may be None."""
    parts = [part for part in get_args(hint) if part is not type(None)]
    return parts[0] if type(None) in get_args(hint) else hint


@dataclass(frozen=True, kw_only=True, eq=False)
class IdentityColumns:
    """Which trial a row is of, and how it ended."""

    trial_id: Text = column("", "hash of all that defines the trial", default="")
    config_id: Text = column("", "the same without seed and repeat", default="")
    experiment: Text = column("", "name of the experiment that ran it first", default="")
    group: Text | None = column("", "co-located group, empty for a trial alone", "jobs")
    job: Text | None = column("", "its place in the group")
    repeat: Count | None = column("", "0, 1, …: the same configuration again with seed + repeat")
    status: Text = column("", "ok, oom, failed, timeout, interrupted or skipped", "status", default="missing")
    reason: Text | None = column("", "why it ended so, in words", "reason")


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelColumns:
    """Facts of the network."""

    params_m: Amount | None = column("million", "parameters of the model", "params M")
    gmacs_per_image: Amount | None = column("GMAC", "multiply-adds of one forward pass of one image", "GMACs")


@dataclass(frozen=True, kw_only=True, eq=False)
class MeasuredColumns:
    """What was measured of a trial."""

    epoch_time_s: Above0 | None = column(
        "s",
        "images_per_epoch / images_per_s; of whole epochs their median, loading included; of a known load, here and "
        "elsewhere, an epoch is one step; in `table.csv`, of several processes, the geometric mean",
        "epoch s",
    )
    epoch_time_iqr_s: Amount | None = column(
        "s",
        "interquartile range of measured epochs, from three on; in `table.csv`, of several processes, of their times",
        "IQR s",
    )
    epochs_measured: Count | None = column("", "how many epochs the median is of", "epochs")
    epoch_time_source: Text | None = column(
        "",
        "steady: the rate of a continuous stream; measured: whole epochs; extrapolated, by versions before 0.2: whole "
        "epochs, from some of their steps; or where a published log comes from",
        "source",
    )
    images_per_s: Above0 | None = column(
        "images/s",
        "images_per_epoch / epoch_time_s; where that is steady, the rate that was measured",
        "images/s",
    )
    images_per_epoch: Count1 | None = column("images", "full batches only", "images")
    step_time_ms_p50: Signed | None = column(
        "ms",
        "median time between ends of steps; of whole epochs without the first one of each",
        "step ms p50",
    )
    step_time_ms_p95: Signed | None = column(
        "ms", "95th percentile of the same, from 20 steps on", "step ms p95"
    )
    first_batch_s: Signed | None = column(
        "s",
        "from iter(loader) to the first batch: of a stream its one cold start, of whole epochs the median",
        "first batch s",
    )
    data_wait_pct: Signed | None = column(
        "%", "share of the epoch in which the device starved for a batch", "wait %", 1
    )
    copy_ms: Signed | None = column("ms", "of a step: batch to the device, its transforms there", "copy ms")
    forward_ms: Signed | None = column(
        "ms", "of a step: forward pass and loss, DDP's copy of buffers included", "forward ms"
    )
    backward_ms: Signed | None = column("ms", "of a step: backward pass, less `comm_ms`", "backward ms")
    comm_ms: Signed | None = column(
        "ms", "of a step: waiting for other ranks' gradients, with nothing left to compute", "comm ms"
    )
    comm_hidden_ms: Signed | None = column(
        "ms", "of a step: communication behind the backward pass", "hidden comm ms"
    )
    optimizer_ms: Signed | None = column("ms", "of a step: the optimizer's update", "optimizer ms")
    comm_pct: Signed | None = column("%", "comm_ms as a share of the step", "comm %", 1)
    comm_mib_per_step: Amount | None = column(
        "MiB", "gradients and weights that each rank hands over in a step", "comm MiB/step"
    )
    slowest_rank: Count | None = column(
        "", "the rank that the others waited for, from 0; empty where all are alike", "slowest rank"
    )
    breakdown_cost_pct: Signed | None = column(
        "%",
        "what timing the parts added to each step whose parts were timed, one of every two; noise may be below 0",
        "breakdown cost %",
        1,
    )
    gpu_mem_mib: Amount | None = column(
        "MiB", "peak on the fullest GPU, trial's own processes, warm-up included", "GPU MiB"
    )
    gpu_mem_source: Text | None = column(
        "", "nvml-process, nvml-device-delta, torch-reserved or published-log", "memory source"
    )
    gpu_mem_allocated_mib: Amount | None = column(
        "MiB", "the allocator's peak of tensors, fullest GPU", "allocated MiB"
    )
    gpu_mem_reserved_mib: Amount | None = column(
        "MiB", "the allocator's peak of segments, fullest GPU", "reserved MiB"
    )
    gpu_alloc_retries: Count | None = column(
        "", "times the allocator had to give memory back and try again", "retries"
    )
    gpu_util_pct: Amount | None = column(
        "%", "share of time with a kernel running, mean over GPUs and window", "GPU %", 0
    )
    gpu_util_max_pct: Amount | None = column("%", "highest sample of the same", "GPU max %", 0)
    gpu_mem_util_pct: Amount | None = column(
        "%", "share of time in which device memory was read or written", "mem util %", 0
    )
    gpu_mem_util_max_pct: Amount | None = column("%", "highest sample of the same", "mem util max %", 0)
    cpu_util_pct: Amount | None = column("%", "all work on the CPUs that the trial may use", "CPU %", 1)
    cpu_util_max_pct: Amount | None = column("%", "highest sample of the same", "CPU max %", 0)
    cpu_util_trial_pct: Amount | None = column(
        "%", "the trial's process tree's share of the same CPUs", "trial CPU %", 0
    )
    cpu_s_per_epoch: Amount | None = column("s", "CPU seconds of the trial's process tree", "CPU s/epoch")
    gpu_busy_s_per_epoch: Amount | None = column(
        "s",
        "utilisation × epoch time, summed over GPUs; of `steps` their busy time, scaled to an epoch's steps",
        "GPU busy s",
    )
    host_mem_mib: Amount | None = column(
        "MiB", "proportional resident memory of the process tree", "host MiB"
    )
    energy_j: Amount | None = column(
        "J", "per measured epoch, all its GPUs; `energy_source` says by what", "energy J"
    )
    power_w: Amount | None = column("W", "mean of sampled power, all its GPUs", "power W")
    energy_source: Text | None = column(
        "",
        "of energy_j: nvml-counter, or nvml-power-integral where the counter told nothing",
        "energy source",
    )
    energy_sampled_j: Amount | None = column(
        "J", "energy_j anew, as the integral of sampled power", "sampled J"
    )
    idle_power_w: Amount | None = column("W", "of its GPUs together, before the sweep", "idle W")
    sm_clock_mhz: Amount | None = column("MHz", "mean clock of the multiprocessors", "SM MHz")
    throttled_pct: Amount | None = column(
        "%", "share of the time in which power cap, heat or hardware lowered the clocks", "throttled %", 0
    )
    throttle_reasons: Text | None = column(
        "", "what slowed the clocks meanwhile, the most frequent first", "throttled by"
    )
    temperature_c: Signed | None = column("°C", "highest temperature", "°C")
    top1_pct: Amount | None = column("%", "top-1 on the validation split after the last epoch", "top-1 %", 1)
    loss: Loss | None = column("", "cross-entropy on the validation split, after the last epoch", "loss")
    epochs_to_top1: Count | None = column(
        "", "epochs trained until `until_top1`, or a command's `until`, was reached", "epochs to {target}"
    )
    time_to_top1_s: Amount | None = column(
        "s",
        "training until `until_top1` was reached: first epoch included, evaluation not; of a command until its `until` "
        "was, from its start or that of its first `gpubench.epoch()`",
        "s to {target}",
    )
    energy_to_top1_j: Amount | None = column(
        "J", "energy of all its GPUs in `time_to_top1_s`", "J to {target}"
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupColumns:
    """What was measured, too, of jobs that ran together."""

    solo_epoch_time_s: Above0 | None = column("s", "epoch time of the same trial alone", "alone s")
    slowdown: Above0 | None = column("", "epoch time together / alone", "slowdown")
    overlap_gain: Signed | None = column(
        "", "1 is no loss at all, 0 as if one after the other, below 0 even slower", "overlap gain"
    )
    predicted_slowdown: Above0 | None = column(
        "", "what the solo rows predicted, before the group ran", "predicted"
    )
    sharing: Text | None = column(
        "",
        "none, some or full: the overlap that overlap_gain tells of; in `table.csv` unknown where that is not shown",
        "sharing",
    )
    full_together: Text | None = column(
        "", "what was full while the jobs ran together, as cpu+input", "full together"
    )
    group_id: Text | None = column("", "the group that it ran in: equal for jobs that ran together")
    solo_id: Text | None = column("", "trial_id of the same trial alone")


@dataclass(frozen=True, kw_only=True, eq=False)
class DoubtColumns:
    """What casts doubt on the figures."""

    doubts: Text | None = column("", "short codes, spelled out under the table", "doubts")


@dataclass(frozen=True, kw_only=True, eq=False)
class EnvironmentColumns:
    """On what, and with which software."""

    host: Text | None = column("", "host name")
    gpu_name: Text | None = column("", "GPU model")
    gpu_count: Devices | None = column("", "GPUs that could be used")
    driver: Text | None = column("", "NVIDIA driver version")
    cuda: Text | None = column("", "CUDA version torch was built with")
    torch: Text | None = column("", "torch version")
    cpu_name: Text | None = column("", "CPU model")
    cpu_count: Devices | None = column("", "CPUs that could be used")
    gpubench: Text | None = column("", "gpubench version")
    started_at: Moment | None = column("", "local time")
    mps: Text | None = column(
        "", "on, off or perhaps: whether CUDA's Multi-Process Service shares the GPUs out"
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class SkippedImageColumns:
    """What came last, so that the columns before it stay where they are."""

    skipped_images: Amount | None = column(
        "images",
        "images of the folder that could not be decoded and were left out, of training and validation together",
        "skipped images",
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class LaterColumns:
    """What trials.csv got when it had all the others, so that it stands behind them."""

    round: Count1 = column(
        "", "1, 2, …: the sweep's round; a row each, measured in processes of its own", default=1
    )
    step_error_pct: Amount | None = column(
        "%",
        "standard error of the mean steady step inside this process, from means of batches of steps",
        "step error %",
        2,
    )
    top1_crossing_s: Amount | None = column(
        "s",
        "training until top-1 crossed `until_top1`, on a straight line between two evaluations; empty where the next "
        "evaluation fell below it again",
        "s to crossing",
    )
    top1_crossing: Text | None = column(
        "",
        "of `top1_crossing_s`: confirmed by the next evaluation, at `until_top1` or above as well, or unconfirmed, for "
        "training ended",
        "crossing",
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class AllocationColumns:
    """What of the machine was given to the sweep, and by whom: environment, too, that came later."""

    slurm_job: Text | None = column("", "id of the SLURM job that measured it")
    slurm_node: Text | None = column("", "the node, as SLURM calls it")
    slurm_partition: Text | None = column("", "the partition of that job")
    memory_limit_mib: Amount | None = column(
        "MiB", "host memory that could be used: the least of the machine's, its cgroup's and what SLURM gave"
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class CpuSpeedColumns:
    """How fast the host's CPU was: measured, too, since trials.csv had all the others."""

    cpu_probe_ms: Above0 | None = column(
        "ms",
        "CPU time of fixed work on the launching thread, the mean of before loaders start and after they end",
        "CPU probe ms",
    )
    cpu_speed_pct: Above0 | None = column(
        "%", "the fastest `cpu_probe_ms` of the same host in the folder over the row's own", "CPU speed %", 0
    )
    rapl_power_w: Amount | None = column(
        "W", "mean power of the CPUs' packages and their memory, by RAPL (`--meter rapl`)", "RAPL W"
    )
    rapl_energy_j: Amount | None = column("J", "the same per measured epoch", "RAPL J")
    meter_power_w: Amount | None = column(
        "W", "mean power by the external meter: all that it measures, of a group all jobs together", "meter W"
    )
    meter_energy_j: Amount | None = column(
        "J", "the same per measured epoch; empty for jobs of a group", "meter J"
    )
    meter_source: Text | None = column("", "which external meter was read", "meter")
    tflops: Amount | None = column(
        "TFLOP/s", "of a known load: 10^12 floating-point operations a second, by the arithmetic", "TFLOP/s"
    )
    gb_per_s: Amount | None = column(
        "GB/s", "of a known load: 10^9 bytes read and written a second, by the arithmetic", "GB/s"
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class GpuSettingColumns:
    """What the trial's GPUs were set to as it began, by whomever: environment, too. Empty where they differ."""

    gpu_power_limit_w: Above0 | None = column("W", "power limit of each of its GPUs", "set limit W", 0)
    gpu_default_limit_w: Above0 | None = column("W", "power limit that they begin with", "default limit W", 0)
    gpu_application_clock_mhz: Above0 | None = column(
        "MHz", "clock of their multiprocessors while programs run (`nvidia-smi -ac`)", "application MHz", 0
    )
    gpu_compute_mode: Text | None = column("", "whom they let in: shared, exclusive or prohibited")
    gpu_persistence: bool | None = column("", "1: the driver keeps them ready while nothing runs")
    gpu_ecc: bool | None = column("", "1: errors of their memory are corrected")
    gpu_pcie: Text | None = column("", "fastest PCIe link that GPU and slot allow: generation and lanes")


@dataclass(frozen=True, kw_only=True, eq=False)
class EpochColumns:
    """One epoch of a trial: a line of epochs.csv."""

    trial_id: Text = column("", "the trial", default="")
    attempt: Count | None = column("", "which attempt at it")
    epoch: Count | None = column("", "0, 1, …; of a stream 0 is its warm-up, 1 its window")
    warmup: bool | None = column("", "1: left out of statistics")
    epoch_time_s: Amount | None = column(
        "s", "from its begin (of an epoch: iter(loader)) to the end of its last step on the device"
    )
    steps: Count | None = column("", "optimizer steps")
    images: Count | None = column("images", "images trained on")
    data_wait_s: Signed | None = column("s", "time in which the device starved for a batch")
    first_batch_s: Signed | None = column(
        "s", "from iter(loader) to the first batch; empty for a window, whose stream had begun"
    )
    train_loss: Loss | None = column("", "mean loss over it")
    cpu_s: Signed | None = column("s", "CPU seconds of the trial's process tree")
    energy_j: Amount | None = column("J", "all its GPUs, by the driver's counter or else by sampled power")
    top1_pct: Amount | None = column("%", "top-1 after this epoch, where it was asked for")
    steady_step_s: Signed | None = column("s", "mean time of a step, of an epoch without its first one")
    steady_steps: Count | None = column("", "how many steps that is the mean of")
    tail_s: Signed | None = column(
        "s", "by versions before 0.2: epoch_time_s less first_batch_s and steps × steady_step_s"
    )
    round: Count1 | None = column("", "the sweep's round")


@dataclass(frozen=True, kw_only=True, eq=False)
class NodeColumns:
    """One of the nodes of a trial over several: an entry of `nodes` in its record, the first node's first."""

    node: Text = column("", "name of its host", default="")
    first_rank: Count | None = column("", "number of its first rank among all of the trial")
    ranks: Count | None = column("", "ranks on it")
    cpus: Amount | None = column("", "CPUs that the trial may use there")
    clock_offset_s: Signed | None = column(
        "s", "what was added to its clock's times to have the first node's, at the first barrier of all ranks"
    )
    clock_drift_s: Signed | None = column("s", "by how much that had changed at the last barrier")
    clock_error_s: Amount | None = column(
        "s", "by versions that asked each node for its time: by how much that may be off"
    )
    cpu_util_pct: Amount | None = column("%", "as in `trials.csv`, of this node alone")
    cpu_s_per_epoch: Amount | None = column("s", "as in `trials.csv`, of this node alone")
    host_mem_mib: Amount | None = column("MiB", "as in `trials.csv`, of this node alone")


@dataclass(frozen=True, kw_only=True, eq=False)
class SampleColumns:
    """One reading of a trial's time series: a line of its file in `samples/`, and when it was taken."""

    t_s: float = column("s", "since the trial was launched", default=0.0)
    device: Text = column("", "GPU number, host or rank0", default="")
    metric: Text = column("", "what was read, its unit in the name", default="")
    value: float = column("", "the reading, in the unit of its metric", default=0.0)
    epoch: Count | None = column("", "the epoch in which it was taken; empty between them")
    measured: bool | None = column(
        "", "whether it was taken in an epoch that counts, not in one that warms up"
    )


IDENTITY = list_class_columns(IdentityColumns)
# The trial's own fields, in the order in which a reader asks for them. `trial_fields.py` defines them.
FIELD_COLUMNS: tuple[str, ...] = order_names(
    [name for name in FIELDS if name not in {column.name for column in IDENTITY}],
    {name: ABOUT[name].behind for name in FIELDS},
)
TRIAL: tuple[Column, ...] = (
    *(
        Column(name, ABOUT[name].unit, ABOUT[name].meaning, ABOUT[name].heading, holds=TYPES[name])
        for name in FIELD_COLUMNS
    ),
    *list_class_columns(ModelColumns),
)
MEASURED: tuple[Column, ...] = (
    *list_class_columns(MeasuredColumns),
    *list_class_columns(GroupColumns),
    *list_class_columns(DoubtColumns),
)
OF_GROUPS: tuple[str, ...] = tuple(column.name for column in list_class_columns(GroupColumns))
"""Those of MEASURED that only jobs of groups have."""
ENVIRONMENT = list_class_columns(EnvironmentColumns)
IMAGES = list_class_columns(SkippedImageColumns)
ROUNDS = list_class_columns(LaterColumns)
ALLOCATION = list_class_columns(AllocationColumns)
CPU_SPEED = list_class_columns(CpuSpeedColumns)
GPU_SETTINGS = list_class_columns(GpuSettingColumns)


def _make_derived_column(
    name: str, unit: str, meaning: str, heading: str, digits: int = 0
) -> tuple[Column, ...]:
    """What tables work out from the rows that they show; never stored."""
    return (Column(name, unit, meaning, heading, digits, holds=float),)


def _make_interval_columns(
    name: str, unit: str, figure: str, heading: str, digits: int = 0, over: str = ", over processes"
) -> tuple[Column, ...]:
    """The ends of the 95 % interval of a figure. `name`, `heading`: with `{}` where low and high stand."""
    lower = f"lower end of the 95 % interval of {figure}{over}"
    return _make_derived_column(
        name.format("low"), unit, lower, heading.format("low"), digits
    ) + _make_derived_column(
        name.format("high"), unit, "upper end of the same", heading.format("high"), digits
    )


_DERIVED: tuple[tuple[Column, ...], ...] = (
    _make_derived_column(
        "gpu_mem_growth_pct", "%", "memory against the row before along the ordered axis", "growth", 0
    ),
    _make_derived_column("epoch_time_growth_pct", "%", "time per image against the row before", "growth", 0),
    _make_derived_column("images_per_joule", "images/J", "images_per_epoch / energy_j", "img/J"),
    _make_derived_column("edp_js", "J s", "energy-delay product: energy_j × epoch_time_s", "EDP J s"),
    _make_derived_column(
        "speedup", "", "images/s over those of the baseline, which is named under the table", "speed-up"
    ),
    _make_derived_column(
        "strong_efficiency_pct", "%", "speedup / how many times the baseline's devices, same global batch",
        "efficiency", 0,
    ),
    _make_derived_column(
        "weak_efficiency_pct", "%", "speedup / how many times the baseline's devices, same batch a device",
        "efficiency", 0,
    ),
    _make_interval_columns("epoch_time_{}_s", "s", "the epoch time", "{} s"),
    _make_derived_column(
        "between_pct", "%", "standard deviation between processes, what their own steps explain taken out",
        "between %", 1,
    ),
    _make_derived_column(
        "within_pct", "%", "standard error of a process's own mean step, root mean square over its processes",
        "within %", 1,
    ),
    _make_interval_columns("epoch_time_growth_{}_pct", "%", "epoch_time_growth_pct", "growth {}", 1),
    _make_derived_column(
        "cost_growth_pct", "%",
        "memory × time per image against the row before, over processes: of steady steps; of whole epochs where one of "
        "both rows has none",
        "cost growth", 1,
    ),
    _make_interval_columns("cost_growth_{}_pct", "%", "cost_growth_pct", "cost {}", 1),
    _make_interval_columns("speedup_{}", "", "speedup", "speedup {}"),
    _make_interval_columns("strong_efficiency_{}_pct", "%", "strong_efficiency_pct", "strong {}", 0),
    _make_interval_columns("weak_efficiency_{}_pct", "%", "weak_efficiency_pct", "weak {}", 0),
    _make_interval_columns("slowdown_{}", "", "slowdown", "slowdown {}"),
    _make_interval_columns("overlap_gain_{}", "", "overlap_gain", "gain {}"),
    _make_interval_columns("images_per_joule_{}", "images/J", "images_per_joule", "img/J {}"),
    _make_interval_columns("top1_crossing_{}_s", "s", "`top1_crossing_s`", "{} s to crossing", over=", over seeds"),
)  # fmt: skip
DERIVED: tuple[Column, ...] = sum(_DERIVED, ())
EPOCH_COLUMNS = list_class_columns(EpochColumns)
NODE_COLUMNS = list_class_columns(NodeColumns)
SAMPLE_COLUMNS = list_class_columns(SampleColumns)

_FIRST_LATER, _FIRST_LATEST = FIELDS.index("repeat") + 1, FIELDS.index("confirm_top1") + 1
LATER: tuple[Column, ...] = tuple(c for c in TRIAL if c.name in FIELDS[_FIRST_LATER:_FIRST_LATEST])
"""Those of TRIAL that came when trials.csv had all the others: they stand behind them, and no other column moves."""
LATEST: tuple[Column, ...] = tuple(c for c in TRIAL if c.name in FIELDS[_FIRST_LATEST:])
"""Those that came when it had the columns of rounds, too: they stand at its end."""
COLUMNS: tuple[Column, ...] = (
    *IDENTITY,
    *(c for c in TRIAL if c not in (*LATER, *LATEST)),
    *MEASURED,
    *ENVIRONMENT,
    *IMAGES,
    *LATER,
    *ROUNDS,
    *ALLOCATION,
    *LATEST,
    *CPU_SPEED,
    *GPU_SETTINGS,
)
"""Those of trials.csv, in its order."""
REPEATS = Column(
    "repeats",
    "",
    "processes that ended ok: each repeat in each round; the row shows what they tell together",
    "n",
    holds=int,
)
"""Of tables alone: a line of trials.csv is one process."""
BY_NAME: dict[str, Column] = {column.name: column for column in COLUMNS}


def make_setting_column(name: str, values: Iterable[str]) -> Column:
    """The column of a command's placeholder that is no field. `values`: all that it has, of which its type follows."""
    kinds = {find_number_type(value) for value in values}
    holds = str if None in kinds else float if float in kinds else int
    return Column(name, "", "value of the command's placeholder", holds=holds)


def make_printed_column(name: str) -> Column:
    """The column of a figure that a command printed, which its user has named (`--metric`)."""
    return Column(
        name, "", "the last that the command printed of it; over processes their median", holds=Signed
    )


TABLE_BY_NAME: dict[str, Column] = {**BY_NAME, **{column.name: column for column in (*DERIVED, REPEATS)}}
"""Those that a table may have."""
IN_FRAMES = frozenset({
    "allowance", "alone", "asked", "before", "doubt_texts", "elsewhere", "endings", "further_rounds",
    "gpu_reserved_mib", "gpu_total_mib", "hardware", "has_all_figures", "image_files", "images", "is_asked_known",
    "is_gpu_ids_auto", "is_workers_auto", "jobs_of_group", "kind", "log",
    "machine", "missing", "outlier_ratio", "outliers", "printed", "reached", "source", "steady_step_s",
    "strong_baseline", "superseded", "table", "together", "took_s", "unit", "val_images", "variant_definition",
    "weak_baseline",
})  # fmt: skip
"""What frames of rows hold besides."""
TAKEN_NAMES = TABLE_BY_NAME.keys() | IN_FRAMES
"""By which no figure and no placeholder of a command can be called."""
