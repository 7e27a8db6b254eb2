"""A trial: one fully specified configuration. Frozen, validated, and hashed to an id.

What is left to default to the machine (`None`) hashes as `auto`; the value that it got stands in the record.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from gpubench.schema import catalog

SCHEMA = 1
"""Goes up when the meaning of a field changes, so that old results are never taken for new ones."""

LARGEST_NUMBER = 1_000_000_000
"""In any field: more is a slip of the pen, and no record could hold it."""
LONGEST_TRAINING = 100_000
"""Epochs of a trial at most. Its record keeps a row of each."""


def _at_most(limit: int) -> AfterValidator:
    def check(value: float) -> float:
        if value > limit:
            raise ValueError(f"must be at most {limit:,}")
        return value

    return AfterValidator(check)


PositiveInt = Annotated[int, Field(ge=1), _at_most(LARGEST_NUMBER)]
Count = Annotated[int, Field(ge=0), _at_most(LARGEST_NUMBER)]
EpochCount = Annotated[int, Field(ge=1), _at_most(LONGEST_TRAINING)]


class Trial(BaseModel):
    """One configuration. Build it with `make`, which fills the defaults that follow from other fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    model: str = "mobilenet_v2"
    """torchvision's name, `lenet`, `mlp`, or `path/to/file.py:function`."""
    width: Annotated[float, Field(gt=0, le=16)] = 1.0
    """Multiplier of the layers' widths, for models that have one."""
    input_size: PositiveInt | None = None
    """Side of the square input in pixels; auto: the data's own size, 224 for image folders."""
    num_classes: PositiveInt | None = None
    """auto: as many as the data have."""
    variant: str = "crop-resize"
    data: str = catalog.PROCEDURAL
    """`procedural`, a torchvision name, or the path of an image folder. Identity takes the content instead."""
    train_images: PositiveInt | None = None
    """Use the first N training images (spread evenly over the classes); auto: all."""
    batch_size: PositiveInt = 64
    """Global: images that an optimizer step sees over all devices."""
    gpus: Count | None = None
    """auto: 1 on a GPU machine. 0 on a CPU, where `ranks` counts processes."""
    gpu_ids: tuple[Count, ...] | None = None
    """Explicit GPUs, as torch numbers them under the current CUDA_VISIBLE_DEVICES."""
    ranks: PositiveInt | None = None
    """Processes of a CPU trial."""
    strategy: str = "single"
    device: Literal["cuda", "cpu"] | None = None
    precision: Literal["fp32", "tf32", "bf16", "fp16"] = "fp32"
    memory_format: Literal["channels_last", "contiguous"] = "channels_last"
    execution: Literal["eager", "compile", "graph"] = "eager"
    cudnn_benchmark: bool = False
    optimizer: str = "sgd"
    lr: Annotated[float, Field(gt=0, allow_inf_nan=False), _at_most(10**15)] = 0.05
    accumulate: PositiveInt = 1
    """Micro-batches that make one optimizer step."""
    sync_every: PositiveInt | None = None
    """Steps from one mean of the ranks' models to the next, under strategy `local`; None under any other."""
    workers: Count | None = None
    """Loader processes of the whole trial; auto: the CPUs that it may use."""
    prefetch: PositiveInt = 2
    """Batches that each worker holds ready."""
    cpus: PositiveInt | None = None
    """CPUs that the trial is bound to; auto: all that this process may use."""
    cpu_sharing: Literal["shared", "pinned"] = "shared"
    """Among jobs that run together: the same CPUs for all, or `cpus` of its own for each."""
    copies: PositiveInt = 1
    """Identical jobs that run together, this one among them."""
    gpu_mem_cap_mib: PositiveInt | None = None
    """Answer like a card of this size: the driver's figure stays below it."""
    epochs: EpochCount = 3
    """Epochs trained in all, `warmup_epochs` of them unmeasured."""
    warmup_epochs: Count = 1
    steps: PositiveInt | None = None
    """Measure this many steps instead of epochs; the epoch time is then extrapolated, and says so."""
    until_top1: Annotated[float, Field(gt=0, lt=100)] | None = None
    """Stop as soon as validation top-1 (in per cent) has reached this; `epochs` is then the most (50, if not given)."""
    breakdown: bool = False
    """Time the parts of one of every two steps: copy, forward, backward, communication, optimizer."""
    seed: Annotated[int, Field(ge=0, lt=1 << 32)] = 0
    repeat: Count = 0

    @property
    def devices(self) -> int:
        """How many devices (GPUs, or processes on a CPU) share a batch."""
        return self.gpus or self.ranks or 1


FIELDS: tuple[str, ...] = tuple(Trial.model_fields)
TYPES: dict[str, Any] = get_type_hints(Trial, include_extras=True)
"""Field -> its type, with its bounds."""
MOST_EPOCHS = 50
"""The default of `epochs` where training goes on until an accuracy is reached."""
REPEAT_FIELDS = ("seed", "repeat")
"""What `config_id` leaves out."""


def make(fields: Mapping[str, Any]) -> Trial:
    """The trial of these fields. Fills what follows from others: GPU count, strategy, learning rate, most epochs.

    Raises pydantic.ValidationError for a value that its field does not take.
    """
    values = dict(fields)
    if values.get("gpu_ids") is not None and values.get("gpus") is None:
        values["gpus"] = len(values["gpu_ids"])
    if values.get("device") == "cpu" and values.get("gpus") is None:
        values["gpus"] = 0
    if values.get("strategy") is None:
        several = (values.get("gpus") or values.get("ranks") or 1) > 1
        values["strategy"] = "ddp" if several else "single"
    for name, default in catalog.own_fields(values["strategy"]).items():
        if values.get(name) is None:
            values[name] = default
    if values.get("lr") is None:
        optimizer = catalog.OPTIMIZERS.get(values.get("optimizer", "sgd"))
        if optimizer is not None:
            values["lr"] = optimizer.lr
        else:
            values.pop("lr", None)
    if values.get("until_top1") is not None and values.get("epochs") is None:
        values["epochs"] = MOST_EPOCHS
    return Trial.model_validate(values)


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
_CONFIG_FIELDS = tuple(sorted(name for name in FIELDS if name not in REPEAT_FIELDS))
_ADDED: dict[str, Any] = {"until_top1": None, "breakdown": False, "cpu_sharing": "shared", "sync_every": None}
"""Fields that came after the first results were stored: they enter the hash only where they are set, so that
earlier results keep their ids."""


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def config_id(
    trial: Trial, variant_definition: Mapping[str, Any], data_fingerprint: str, model_fingerprint: str = ""
) -> str:
    """Id of a configuration, whatever its seed and repeat: `c` and 12 hex digits.

    `model_fingerprint`: hash of a user's model file, which may change behind its name.
    """
    own = vars(trial)  # iterating over a pydantic model costs a third of a large plan's time
    fields = {name: "auto" if own[name] is None else own[name] for name in _CONFIG_FIELDS}
    for name, default in _ADDED.items():
        if own[name] == default:
            del fields[name]
    fields["data"] = data_fingerprint
    fields["variant"] = variant_definition
    fields["schema"] = SCHEMA
    if model_fingerprint:
        fields["model"] = model_fingerprint
    return "c" + _hash(_CANONICAL.encode(fields))


def trial_id(config: str, seed: int, repeat: int) -> str:
    """Id of one trial of configuration `config`: `t` and 12 hex digits."""
    return "t" + _hash(f"{config}/{seed}/{repeat}")


def group_ids(jobs: Sequence[tuple[str, int, int]]) -> tuple[str, str]:
    """Ids of jobs that run together, each as (config id, seed, repeat): of the configuration and of the group.

    The second is `g` and 12 hex digits. Names play no part; places do.
    """
    return "c" + _hash("+".join(config for config, _, _ in jobs)), "g" + _hash(
        "+".join(trial_id(*job) for job in jobs)
    )


def job_ids(group_config: str, group_id: str, number: int) -> tuple[str, str]:
    """config_id and trial_id (`j` and 12 hex digits) of the job at place `number` of a group."""
    return "c" + _hash(f"{group_config}/{number}"), "j" + _hash(f"{group_id}/{number}")
