"""What there is to choose from: literal tables of names and of facts that the plan needs. Imports no torch.

A new strategy, variant, small model or load is one line here and one file (or function) under `train/`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from gpubench.basics.errors import UsageError, make_unknown_name_error

Files = Literal["full", "resized", "decoded", "none"]
BadImages = Literal["fail", "skip"]
BAD_IMAGES: tuple[BadImages, ...] = ("fail", "skip")
"""What becomes of a trial whose images can't all be used: it fails, or those images are left out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StrategyFacts:
    """What a plan needs to know of a strategy, which is how one trial uses its devices."""

    target: str
    """`module:class`, imported in the child only."""
    exchange: str | None
    """`module:function`, likewise: how many bytes one rank of the prepared strategy hands over in a step. None: nobody
    can tell. Each entry says it for itself, for a class that is inherited may exchange more than its base; a test
    counts the bytes of every entry."""
    min_devices: int = 1
    max_devices: int | None = None
    """None: any number."""
    needs_gpu: bool = False
    process_per_device: bool = False
    """True: as many ranks as devices; False: one process drives them all."""
    cannot: Mapping[str, Mapping[Any, str]] = field(default_factory=dict)
    """Trial field -> each of its values that this strategy can't work with -> why. The plan refuses such trials, and
    tells the reason where there are words for it. It may be any field: precision, memory_format, optimizer, execution,
    model."""
    own_fields: Mapping[str, Any] = field(default_factory=dict)
    """Trial fields that belong to this strategy -> their defaults. They are empty (None) in trials of others."""


STRATEGIES: dict[str, StrategyFacts] = {
    "single": StrategyFacts(
        target="gpubench.train.strategies.contract:Strategy", exchange=None, max_devices=1
    ),
    "dp": StrategyFacts(
        target="gpubench.train.strategies.dp:DataParallel",
        exchange=None,
        min_devices=2,
        needs_gpu=True,
        cannot={"execution": {"compile": "", "graph": ""}},
    ),
    "ddp": StrategyFacts(
        target="gpubench.train.strategies.ddp:DistributedDataParallel",
        exchange="gpubench.train.strategies.ddp:exchanged_bytes",
        process_per_device=True,
        cannot={"execution": {"graph": ""}},
    ),
    "fsdp": StrategyFacts(
        target="gpubench.train.strategies.fsdp:FullySharded",
        exchange="gpubench.train.strategies.fsdp:exchanged_bytes",
        min_devices=2,
        process_per_device=True,
        cannot={"execution": {"graph": "its weights are gathered into other memory in every step"}},
    ),
    "local": StrategyFacts(
        target="gpubench.train.strategies.local:Local",
        exchange="gpubench.train.strategies.local:exchanged_bytes",
        min_devices=2,
        process_per_device=True,
        # On two H200s the exchange then costs 1 to 2 % of the speed (resnet50, vgg16), which more steps could hardly
        # better, while fewer keep the models nearer to each other.
        own_fields={"sync_every": 8},
    ),
}

OWN_FIELDS: tuple[str, ...] = tuple(
    dict.fromkeys(name for facts in STRATEGIES.values() for name in facts.own_fields)
)
"""Every trial field that belongs to some strategies only."""


def find_strategy_fields(strategy: object) -> Mapping[str, Any]:
    """The trial fields that belong to this strategy, with their defaults; none for a name that is not known."""
    facts = STRATEGIES.get(strategy) if isinstance(strategy, str) else None
    return facts.own_fields if facts else {}


MOST_RANKS = 128
"""Processes of one trial at most: each has a connection to the parent, and one message hands over all of them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class InputVariant:
    """One way to feed the same images: where they lie, what the CPU does, what the GPU does.

    A transform is a name, or a name with its arguments. `cpu` names are torchvision.transforms.v2 classes,
    applied to one uint8 image; `gpu` names are those of `gpubench.train.data.on_device`, which draw per image.
    Normalisation always runs on the device and is not listed.
    """

    files: Files
    """`full`: as photographed; `resized`: cropped to the input size beforehand; `decoded`: the same, as uint8
    in one memory map; `none`: one resident batch, no input pipeline at all."""
    cpu: tuple[Mapping[str, Mapping[str, Any]], ...] = ()
    gpu: tuple[Mapping[str, Mapping[str, Any]], ...] = ()
    data: str | None = None
    """A user's variant may name its own image folder."""
    needs_gpu: bool = False
    answers: str = ""
    """The question that this variant answers, for `gpubench data list`. Not part of its identity."""

    def make_definition(self) -> dict[str, Any]:
        """What makes this variant this variant: part of a trial's identity (its data enter by content)."""
        return {
            "files": self.files,
            "cpu": [{k: dict(v) for k, v in t.items()} for t in self.cpu],
            "gpu": [{k: dict(v) for k, v in t.items()} for t in self.gpu],
        }


NO_IMAGES = InputVariant(files="none")
"""Of a command or a load, which is given none."""

# "$input_size" is replaced by the trial's input size.
VARIANTS: dict[str, InputVariant] = {
    "crop-resize": InputVariant(
        files="full",
        cpu=({"RandomResizedCrop": {"size": "$input_size", "antialias": True}}, {"RandomHorizontalFlip": {}}),
        answers="the usual recipe: decode, random crop, resize and flip on the CPU, in every epoch",
    ),
    "pre-resized": InputVariant(
        files="resized",
        cpu=({"RandomHorizontalFlip": {}},),
        answers="what moving crop and resize out of the epoch saves",
    ),
    "gpu-augment": InputVariant(
        files="resized",
        gpu=({"RandomResizedCrop": {}}, {"RandomHorizontalFlip": {}}),
        needs_gpu=True,
        answers="what moving the augmentation to the GPU saves",
    ),
    "cached": InputVariant(
        files="decoded",
        cpu=({"RandomHorizontalFlip": {}},),
        answers="no decoding at all: uint8 images in one shared memory map",
    ),
    "synthetic": InputVariant(
        files="none", answers="the GPU's own limit: one resident batch, no input pipeline"
    ),
}

# Every transform of torchvision.transforms.v2, kept here because the plan must know them without importing
# torchvision. A test compares the two lists.


@dataclass(frozen=True, kw_only=True, slots=True)
class NamedData:
    """A torchvision data set that is known by name; its facts are those of its authors' pages."""

    target: str
    train_images: int
    val_images: int
    num_classes: int
    size: int
    """Side of its square images, in pixels."""
    kwargs: Mapping[str, Any] = field(default_factory=dict)


NAMED_DATA: dict[str, NamedData] = {
    "cifar10": NamedData(
        target="torchvision.datasets:CIFAR10", train_images=50_000, val_images=10_000, num_classes=10, size=32
    ),
    "cifar100": NamedData(
        target="torchvision.datasets:CIFAR100",
        train_images=50_000,
        val_images=10_000,
        num_classes=100,
        size=32,
    ),
    "mnist": NamedData(
        target="torchvision.datasets:MNIST", train_images=60_000, val_images=10_000, num_classes=10, size=28
    ),
    "fashion-mnist": NamedData(
        target="torchvision.datasets:FashionMNIST",
        train_images=60_000,
        val_images=10_000,
        num_classes=10,
        size=28,
    ),
}

PROCEDURAL = "procedural"
"""The name of the built-in image folder, made by `gpubench data make`."""

# Our own small models for MNIST-sized input. torchvision's are known by torchvision's names.
SMALL_MODELS: dict[str, str] = {"lenet": "gpubench.train.models:lenet", "mlp": "gpubench.train.models:mlp"}


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadFacts:
    """A known load: a calculation in a network's place, of which it is known how much work a step is."""

    target: str
    """`module:function`, imported in the child only."""
    size: str
    """What `batch_size` is of it, in words."""
    usual_size: int
    """The size where nobody gives one."""
    work: str
    """What is counted of a step, in words."""
    rate: Literal["tflops", "gb_per_s"]
    """The column of its rate: floating-point operations or bytes."""
    count: Callable[[int], float]
    """Operations or bytes of a step, by size."""
    has_precision: bool = False
    """Whether `precision` changes it."""


LOADS: dict[str, LoadFacts] = {
    "matmul": LoadFacts(
        target="gpubench.train.loads:make_matrix_product",
        size="side of the square matrices",
        usual_size=4096,
        work="2 size³ operations",
        rate="tflops",
        count=lambda side: 2.0 * side**3,
        has_precision=True,
    ),
    "copy": LoadFacts(
        target="gpubench.train.loads:make_copy",
        size="MiB that are copied",
        usual_size=1024,
        work="each byte read and written",
        rate="gb_per_s",
        count=lambda mebibytes: 2.0 * mebibytes * 2**20,
    ),
    "nbody": LoadFacts(
        target="gpubench.train.loads:make_nbody",
        size="bodies, each of which attracts every other",
        usual_size=8192,
        # As is usual for N-body codes, whatever a machine does for it (Nyland, Harris, Prins: GPU Gems 3, chapter 31).
        work="20 operations for each of size² pairs",
        rate="tflops",
        count=lambda bodies: 20.0 * bodies**2,
    ),
}
RATE_UNITS = {"tflops": 1e12, "gb_per_s": 1e9}
"""Column of a load's rate -> how many operations or bytes a second are 1."""

# torchvision's classification models under its own names (`torchvision.models.list_models`), kept here
# because the plan must know them without importing torchvision. A test compares the two lists.
TORCHVISION_MODELS: tuple[str, ...] = (
    "alexnet", "convnext_base", "convnext_large", "convnext_small", "convnext_tiny", "densenet121", "densenet161",
    "densenet169", "densenet201", "efficientnet_b0", "efficientnet_b1", "efficientnet_b2", "efficientnet_b3",
    "efficientnet_b4", "efficientnet_b5", "efficientnet_b6", "efficientnet_b7", "efficientnet_v2_l",
    "efficientnet_v2_m", "efficientnet_v2_s", "googlenet", "inception_v3", "maxvit_t", "mnasnet0_5", "mnasnet0_75",
    "mnasnet1_0", "mnasnet1_3", "mobilenet_v2", "mobilenet_v3_large", "mobilenet_v3_small", "regnet_x_16gf",
    "regnet_x_1_6gf", "regnet_x_32gf", "regnet_x_3_2gf", "regnet_x_400mf", "regnet_x_800mf", "regnet_x_8gf",
    "regnet_y_128gf", "regnet_y_16gf", "regnet_y_1_6gf", "regnet_y_32gf", "regnet_y_3_2gf", "regnet_y_400mf",
    "regnet_y_800mf", "regnet_y_8gf", "resnet101", "resnet152", "resnet18", "resnet34", "resnet50",
    "resnext101_32x8d", "resnext101_64x4d", "resnext50_32x4d", "shufflenet_v2_x0_5", "shufflenet_v2_x1_0",
    "shufflenet_v2_x1_5", "shufflenet_v2_x2_0", "squeezenet1_0", "squeezenet1_1", "swin_b", "swin_s", "swin_t",
    "swin_v2_b", "swin_v2_s", "swin_v2_t", "vgg11", "vgg11_bn", "vgg13", "vgg13_bn", "vgg16", "vgg16_bn", "vgg19",
    "vgg19_bn", "vit_b_16", "vit_b_32", "vit_h_14", "vit_l_16", "vit_l_32", "wide_resnet101_2", "wide_resnet50_2",
)  # fmt: skip

# Models whose layers can be made wider or narrower by the field `width`.
WIDTH_MODELS: tuple[str, ...] = (
    "lenet", "mlp", "mobilenet_v2", "mobilenet_v3_large", "mobilenet_v3_small", "resnet50", "resnet101", "resnet152",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class OptimizerFacts:
    """A torch optimizer under the name that users know it by."""

    target: str
    lr: float
    """The default learning rate."""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    capturable: bool = True
    """Whether a step can be captured into a CUDA graph."""


OPTIMIZERS: dict[str, OptimizerFacts] = {
    "sgd": OptimizerFacts(target="torch.optim:SGD", lr=0.05),
    "momentum": OptimizerFacts(target="torch.optim:SGD", lr=0.02, kwargs={"momentum": 0.9}),
    "nesterov": OptimizerFacts(target="torch.optim:SGD", lr=0.02, kwargs={"momentum": 0.9, "nesterov": True}),
    "adagrad": OptimizerFacts(target="torch.optim:Adagrad", lr=0.01, capturable=False),
    "rmsprop": OptimizerFacts(target="torch.optim:RMSprop", lr=0.001),
    "adam": OptimizerFacts(target="torch.optim:Adam", lr=0.001),
    "adamw": OptimizerFacts(target="torch.optim:AdamW", lr=0.001),
}


def list_model_names() -> tuple[str, ...]:
    """Every model name that can be asked for, besides a user's `path/to/file.py:function`."""
    return (*SMALL_MODELS, *LOADS, *TORCHVISION_MODELS)


def is_user_model(name: str) -> bool:
    """Whether the name reads `path/to/file.py:function`."""
    return ".py:" in name


def check_model_name(name: str) -> None:
    """Raises UsageError unless `name` is a known model or reads `path/to/file.py:function`."""
    path, _, function = name.rpartition(":")
    hint = "a model of your own is FILE.py:FUNCTION"
    if is_user_model(name) and function.isidentifier():
        return
    if name.endswith(".py") or is_user_model(name):
        path = path if is_user_model(name) else name
        raise UsageError(
            f"model {name!r}: " + (hint if Path(path).is_file() else f"there is no file {path}; {hint}")
        )
    if name not in list_model_names():
        raise make_unknown_name_error(
            "model", name, list_model_names(), hint if "/" in name or ":" in name else ""
        )
