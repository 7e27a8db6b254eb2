"""The fields of a trial: of each its type, its default and all that is to be said about it, in one entry.

Options, columns, docs/experiments.md, ids, what rows may be compared and what need not run are made from the entries.
Imports nothing heavy: every `--help` reads them.
"""

import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, Literal

from gpubench.schema import catalog
from gpubench.schema.window import WINDOW_S


@dataclass(frozen=True, slots=True)
class FieldOption:
    """An option of `gpubench sweep` for one field. A field without one is given by `--set FIELD=VALUES`."""

    name: str
    """`--batch-size`."""
    help: str
    metavar: str = "VALUES"
    """Stands for the values in `--help`. Of one that takes several with commas between it ends in VALUES or `,…`."""
    behind: str = ""
    """The option behind which it stands in `--help`, where that is not the one of the field before."""
    is_flag: bool = False
    """Whether it takes no value and means true. Flags stand among the options that say how to run."""


@dataclass(frozen=True)
class FieldWords:
    """What a field means, and how people read it."""

    meaning: str
    """What its column holds: for docs/columns.md and docs/experiments.md."""
    _: KW_ONLY
    note: str = ""
    """What docs/experiments.md adds to that, in Markdown."""
    default: str = ""
    """The default in words, in Markdown, where the value alone would not tell it all."""
    auto: str = ""
    """What the machine takes where nothing is given (None), in words. Empty: None means that there is none."""
    unit: str = ""
    heading: str = ""
    """Over its column in a table for people; the field's name where empty."""
    phrase: str = ""
    """How the line above a table says the value that all rows have: `{} worker{s}`. Empty: the line leaves it out."""


@dataclass(frozen=True, kw_only=True)
class FieldRules:
    """Where a field may be given, and what it changes.

    What is left out is right for most fields: one that makes another configuration, takes more or less memory, makes
    steps longer or shorter, and is to be alike in rows that are compared.
    """

    in_run: bool = False
    """Whether an experiment file may give it under [run], too."""
    rivals: tuple[str, ...] = ()
    """Fields that say the same in another way: giving one takes the others' place."""
    behind: str = ""
    """The field behind whose column its own stands, where that is not the field before."""
    added: bool = False
    """Whether it came after the first results were stored. Then a record without it means its default, and only other
    values enter the ids of trials, so that stored results keep theirs. True for every new field."""
    repeats: bool = False
    """Whether it only tells repeats of one configuration apart."""
    memory: Literal["changes", "grows", "keeps"] = "changes"
    """The GPU memory that the trial takes. `grows`: more of it takes more, so that a trial with more than one that ran
    out of memory, all other fields equal, is not tried."""
    pace: bool = True
    """Whether the seconds of an epoch tell nothing of a trial that has another value. False, too, where that is looked
    at apart: images by their content, what is `allotted` by how many there were."""
    alternatives: bool = False
    """Whether its values are ways to do the same work, so that a table says which of them is faster."""
    feeds: bool = False
    """Whether it concerns how images are read, not what is computed of them."""
    of_devices: bool = False
    """Whether it says on what devices a trial ran, and how they shared the work."""
    allotted: bool = False
    """Whether what is left to the machine depends on the CPUs that it may use, and on the jobs beside it."""
    moves_with: tuple[str, ...] = ()
    """Axes along which it may move, where the experiment ties it to them, and rows still are of one workload."""
    follows: tuple[str, ...] = ()
    """Fields that fill it where nobody asked for it. While they determine it, it tells nothing and takes no column."""
    for_commands: bool = False
    """Whether it holds for a user's command that has no placeholder for it. Of all other fields a command knows only
    what its placeholders hand over."""
    for_loads: bool = False
    """Whether it holds for known loads (`catalog.LOADS`), which know no other."""


@dataclass(frozen=True, kw_only=True)
class FieldDescription(FieldWords, FieldRules):
    """All that there is to say about one field."""

    option: FieldOption | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Between what a number must lie: as `msgspec.Meta`, which would import msgspec."""

    gt: float | None = None
    ge: float | None = None
    lt: float | None = None
    le: float | None = None

    def collect_given(self) -> dict[str, float]:
        """Those that there are, by name."""
        bounds = {"gt": self.gt, "ge": self.ge, "lt": self.lt, "le": self.le}
        return {name: limit for name, limit in bounds.items() if limit is not None}


LARGEST_NUMBER = 1_000_000_000
"""In any field: more is a slip of the pen, and no record could hold it."""
LONGEST_TRAINING = 100_000
"""Epochs of a trial at most. Its record keeps a row of each."""
MOST_EPOCHS = 50
"""The default of `epochs` where training goes on until an accuracy is reached."""

PositiveInt = Annotated[int, Bounds(ge=1, le=LARGEST_NUMBER)]
Count = Annotated[int, Bounds(ge=0, le=LARGEST_NUMBER)]

DEVICE_AXES = ("gpus", "gpu_ids", "ranks", "nodes")
"""Axes along which the number of devices changes; `analyze.series.is_fair_step` says how far others may move along."""
CARD_LIMITS = ("power_limit_w", "sm_clock_limit_mhz")
"""Fields that are set on the cards themselves, for whoever runs on them, while the trial runs."""


class TrialFields:
    """One entry a field. Records hold them in this order; columns of those behind `repeat` stand last in trials.csv."""

    model: Annotated[
        str,
        FieldWords(
            "network",
            note="torchvision's classification models by name, `lenet`, `mlp`, `path/to/file.py:function`, or a "
            f"[known load](loads.md): {', '.join(f'`{name}`' for name in catalog.LOADS)}",
            phrase="{}",
        ),
        FieldOption(
            "--model",
            f"torchvision's names, lenet, mlp, path/to/file.py:function, or a known load: {', '.join(catalog.LOADS)}",
        ),
        FieldRules(for_loads=True),
    ] = "mobilenet_v2"
    width: Annotated[
        float,
        Bounds(gt=0, le=16),
        FieldWords("multiplier of the layers' widths", note="for models that have one", phrase="width {}"),
    ] = 1.0
    input_size: Annotated[
        PositiveInt | None,
        FieldWords(
            "side of the square input",
            auto="the data's own size, 224 for image folders",
            unit="px",
            heading="input px",
            phrase="{} px",
        ),
    ] = None
    num_classes: Annotated[
        PositiveInt | None,
        FieldWords("classes of the last layer", auto="as many as the data have", heading="classes"),
        FieldRules(pace=False, feeds=True, follows=("data",)),
    ] = None
    variant: Annotated[
        str,
        FieldWords("how the images are fed", note="`gpubench data list` describes them", phrase="{}"),
        FieldOption("--variant", f"{', '.join(catalog.VARIANTS)}, or the file's own", behind="--strategy"),
        FieldRules(alternatives=True, feeds=True),
    ] = "crop-resize"
    data: Annotated[
        str,
        FieldWords(
            "image folder or data set",
            note="a folder, `procedural`, `procedural:IMAGES`, `procedural:IMAGESxSIDE`, `cifar10`, `mnist`, …; "
            "a trial's id takes the content of the images instead",
            phrase="data {}",
        ),
        FieldOption(
            "--data", "image folder, procedural, cifar10, mnist, …", "PATH|NAME,…", behind="--variant"
        ),
        FieldRules(pace=False, feeds=True),
    ] = catalog.PROCEDURAL
    train_images: Annotated[
        PositiveInt | None,
        FieldWords(
            "training images used",
            note="the first so many, spread evenly over the classes",
            auto="all",
            heading="images",
            phrase="{:,} training image{s}",
        ),
        FieldOption(
            "--images",
            "of a command: images of its epoch; else the first so many of the data",
            "N,…",
            behind="--data",
        ),
        FieldRules(for_commands=True, feeds=True, follows=("data",)),
    ] = None
    batch_size: Annotated[
        PositiveInt,
        FieldWords(
            "global: images an optimizer step sees over all devices; of a known load the size of its problem",
            unit="images",
            phrase="batch size {:,}",
        ),
        FieldOption("--batch-size", "global: 16,32,64 or 16:64:16 or 16:512:x2"),
        FieldRules(for_loads=True, rivals=("batch_per_gpu",), memory="grows", moves_with=DEVICE_AXES),
    ] = 64
    gpus: Annotated[
        Count | None,
        FieldWords(
            "GPUs of the trial; 0 on a CPU", auto="1 on a GPU machine", heading="GPUs", phrase="{} GPU{s}"
        ),
        FieldOption("--gpus", "number of GPUs: 1,2,4"),
        FieldRules(
            for_commands=True, for_loads=True, rivals=("gpu_ids",), of_devices=True, moves_with=DEVICE_AXES
        ),
    ] = None
    gpu_ids: Annotated[
        tuple[Count, ...] | None,
        FieldWords(
            "which GPUs, as 0+1",
            note="as torch numbers them under the present CUDA_VISIBLE_DEVICES; a list `[0, 1]` in a file",
            auto="the first ones",
            heading="GPU ids",
            phrase="GPU ids {}",
        ),
        FieldOption("--gpu-ids", "explicit GPUs: 0+1,2+3"),
        FieldRules(
            for_commands=True,
            for_loads=True,
            rivals=("gpus",),
            pace=False,
            of_devices=True,
            moves_with=DEVICE_AXES,
            follows=("gpus",),
        ),
    ] = None
    ranks: Annotated[
        PositiveInt | None,
        FieldWords("processes of a CPU trial", auto="1 on a CPU", phrase="{} rank{s}"),
        FieldOption("--ranks", "processes of a CPU trial"),
        FieldRules(of_devices=True, moves_with=DEVICE_AXES),
    ] = None
    strategy: Annotated[
        str,
        FieldWords(
            "how the devices share the work",
            note=f"{', '.join(f'`{name}`' for name in catalog.STRATEGIES)}: [how](measuring.md#strategies)",
            default="`single` on one device, else `ddp`",
            phrase="{}",
        ),
        FieldOption(
            "--strategy", f"{', '.join(catalog.STRATEGIES)} (default: single on one device, else ddp)"
        ),
        FieldRules(alternatives=True, of_devices=True, moves_with=DEVICE_AXES),
    ] = "single"
    device: Annotated[
        Literal["cuda", "cpu"] | None,
        FieldWords("cuda or cpu", auto="cuda where there is a GPU"),
        FieldOption("--device", "cuda or cpu", "NAME,…", behind="--gpu-ids"),
        FieldRules(for_commands=True, for_loads=True, behind="accumulate"),
    ] = None
    precision: Annotated[
        Literal["fp32", "tf32", "bf16", "fp16"],
        FieldWords("fp32 (strict), tf32, bf16 or fp16", phrase="{}"),
        FieldOption("--precision", "fp32, tf32, bf16, fp16"),
        FieldRules(for_loads=True, alternatives=True),
    ] = "fp32"
    memory_format: Annotated[
        Literal["channels_last", "contiguous"],
        FieldWords("channels_last or contiguous", phrase="{}"),
        FieldRules(alternatives=True),
    ] = "channels_last"
    execution: Annotated[
        Literal["eager", "compile", "graph"],
        FieldWords(
            "eager, compile or graph", note="`graph`: one CUDA graph a step, with `single` only", phrase="{}"
        ),
        FieldRules(alternatives=True),
    ] = "eager"
    cudnn_benchmark: Annotated[
        bool,
        FieldWords("whether cuDNN times its algorithms first", heading="cuDNN benchmark"),
        FieldRules(alternatives=True),
    ] = False
    optimizer: Annotated[
        str,
        FieldWords("optimizer", note=", ".join(f"`{name}`" for name in catalog.OPTIMIZERS), phrase="{}"),
        FieldOption("--optimizer", ", ".join(catalog.OPTIMIZERS)),
        FieldRules(alternatives=True),
    ] = "sgd"
    lr: Annotated[
        float,
        Bounds(gt=0, le=10**15),
        FieldWords("learning rate", default="by optimizer"),
        FieldRules(
            memory="keeps", pace=False, moves_with=("batch_size", *DEVICE_AXES), follows=("optimizer",)
        ),
    ] = 0.05
    accumulate: Annotated[
        PositiveInt,
        FieldWords("micro-batches a step", note="whose gradients are summed up", heading="micro-batches"),
    ] = 1
    workers: Annotated[
        Count | None,
        FieldWords(
            "loader processes of the whole trial",
            auto="as many as CPUs, a quarter of that on a CPU",
            phrase="{} worker{s}",
        ),
        FieldOption("--workers", "loader processes of the whole trial", behind="--precision"),
        FieldRules(
            behind="cudnn_benchmark",
            pace=False,
            feeds=True,
            allotted=True,
            moves_with=("cpus", *DEVICE_AXES),
            follows=("variant", "gpus", "ranks", "nodes", "cpus", "copies", "device", "group", "job"),
        ),
    ] = None
    prefetch: Annotated[
        PositiveInt,
        FieldWords("batches each worker holds ready"),
        FieldRules(behind="workers", pace=False, feeds=True),
    ] = 2
    cpus: Annotated[
        PositiveInt | None,
        FieldWords(
            "CPUs that the trial may use",
            note="it is bound to so many",
            auto="all that may be used",
            heading="CPUs",
            phrase="{} CPU{s}",
        ),
        FieldOption("--cpus", "CPUs that a trial is bound to: 1,2,4", behind="--device"),
        FieldRules(
            for_commands=True,
            for_loads=True,
            pace=False,
            feeds=True,
            allotted=True,
            moves_with=("workers", *DEVICE_AXES),
            follows=("nodes", "copies", "group", "job"),
        ),
    ] = None
    cpu_sharing: Annotated[
        Literal["shared", "pinned"],
        FieldWords(
            "among jobs together: the same CPUs for all, or pinned to own ones",
            note="`shared` or `pinned`",
            heading="CPU sharing",
            phrase="CPUs {}",
        ),
        FieldOption("--cpu-sharing", "shared or pinned: CPUs of jobs that run together", behind="--cpus"),
        FieldRules(for_commands=True, for_loads=True, added=True, memory="keeps", pace=False),
    ] = "shared"
    copies: Annotated[
        PositiveInt,
        FieldWords("identical jobs at once", phrase="{} copies"),
        FieldOption("--copies", "identical jobs at once on the same GPUs: 1,2,3", behind="--exclude"),
        FieldRules(for_commands=True, for_loads=True, memory="keeps", pace=False, follows=("group",)),
    ] = 1
    gpu_mem_cap_mib: Annotated[
        PositiveInt | None,
        FieldWords(
            "memory cap that stands for a smaller card",
            note="the driver's figure stays below it; `12GiB` and the like are read, too",
            unit="MiB",
            heading="GPU cap MiB",
            phrase="GPU memory capped at {:,} MiB",
        ),
        FieldOption("--gpu-mem-cap", "answer like a smaller card: 12GiB", "SIZE,…", behind="--seed"),
        FieldRules(pace=False),
    ] = None
    epochs: Annotated[
        Annotated[int, Bounds(ge=1, le=LONGEST_TRAINING)] | None,
        FieldWords(
            "whole epochs trained in all, in place of a window; the most where `until_top1` is given",
            default=f"none: a window is measured; {MOST_EPOCHS} with `until_top1`",
        ),
        FieldOption("--epochs", "whole epochs in place of a window, and top-1 after the last"),
        FieldRules(
            in_run=True, rivals=("window", "steps"), pace=False, moves_with=("batch_size", "warmup_epochs")
        ),
    ] = None
    warmup_epochs: Annotated[
        Count | None,
        FieldWords(
            "epochs of them left out of statistics",
            default="1 with `epochs`; 0 where that is 1",
            heading="warm-up epochs",
        ),
        FieldRules(
            for_commands=True,
            in_run=True,
            rivals=("window", "steps"),
            pace=False,
            moves_with=("batch_size", "epochs"),
            follows=("epochs",),
        ),
    ] = None
    steps: Annotated[
        PositiveInt | None,
        FieldWords("the window in steps, in place of seconds", phrase="{:,} step{s}"),
        FieldOption("--steps", "the window in steps, in place of seconds"),
        FieldRules(
            for_loads=True,
            in_run=True,
            rivals=("window", "epochs", "warmup_epochs", "until_top1"),
            pace=False,
            moves_with=("batch_size",),
        ),
    ] = None
    until_top1: Annotated[
        Annotated[float, Bounds(gt=0, lt=100)] | None,
        FieldWords(
            "top-1 at which training stops, epochs permitting",
            unit="%",
            heading="until top-1 %",
            phrase="until top-1 {} %",
        ),
        FieldOption(
            "--until-top1",
            f"train until validation top-1 (%) is reached, {MOST_EPOCHS} epochs or --epochs at most",
        ),
        FieldRules(in_run=True, rivals=("window", "steps"), added=True, pace=False),
    ] = None
    breakdown: Annotated[
        bool,
        FieldWords(
            "whether the parts of steps were timed, which costs a little", phrase="parts of steps timed"
        ),
        FieldOption(
            "--breakdown",
            "Time the parts of steps: copy, forward, backward, communication, optimizer.",
            behind="--pairs",
            is_flag=True,
        ),
        FieldRules(in_run=True, added=True),
    ] = False
    seed: Annotated[
        int,
        Bounds(ge=0, lt=1 << 32),
        FieldWords("seed of weights, order and augmentation"),
        FieldOption("--seed", "seed of weights, order and augmentation"),
        FieldRules(for_commands=True, for_loads=True, in_run=True, repeats=True, memory="keeps", pace=False),
    ] = 0
    repeat: Annotated[
        Count,
        FieldWords("0, 1, …: the same configuration again with seed + repeat", note="`--repeats N` sets it"),
        FieldRules(for_commands=True, for_loads=True, repeats=True, memory="keeps", pace=False),
    ] = 0
    sync_every: Annotated[
        PositiveInt | None,
        FieldWords(
            "under `local`: steps from one mean of the models to the next",
            default=f"{catalog.STRATEGIES['local'].own_fields['sync_every']} under `local`",
            phrase="models averaged every {} step{s}",
        ),
        FieldRules(
            behind="accumulate",
            added=True,
            memory="keeps",
            of_devices=True,
            moves_with=DEVICE_AXES,
            follows=("strategy",),
        ),
    ] = None
    confirm_top1: Annotated[
        bool,
        FieldWords(
            "whether training goes on until a second evaluation in a row is at `until_top1`",
            heading="confirm top-1",
            phrase="confirmed by a second evaluation",
        ),
        FieldRules(in_run=True, added=True, pace=False),
    ] = False
    nodes: Annotated[
        PositiveInt,
        FieldWords(
            "nodes that share the trial's devices equally",
            note="`gpus`, `ranks`, `cpus` and `workers` count over all of them: "
            "[one trial over several nodes](#one-trial-over-several-nodes)",
            phrase="{} node{s}",
        ),
        FieldOption("--nodes", "nodes that one trial runs on: 1,2,4", behind="--ranks"),
        FieldRules(added=True, of_devices=True, moves_with=DEVICE_AXES),
    ] = 1

    window: Annotated[
        Annotated[float, Bounds(gt=0, le=LARGEST_NUMBER)] | None,
        FieldWords(
            "seconds that each process measures the rate of its steps",
            note="`3s` and the like are read, too",
            default=" and ".join(f"{seconds:g} s on {device}" for device, seconds in WINDOW_S.items()),
            unit="s",
            heading="window s",
        ),
        FieldOption("--window", "how long each process measures: 3s", "TIME,…", behind="--repeats"),
        FieldRules(
            for_loads=True,
            in_run=True,
            rivals=("steps", "epochs", "warmup_epochs", "until_top1"),
            added=True,
            memory="keeps",
            pace=False,
            moves_with=("batch_size", *DEVICE_AXES),
        ),
    ] = None
    launch_cpu: Annotated[
        Literal["free", "one"],
        FieldWords(
            "the CPUs of a rank's own threads",
            note="`free`: any of the trial's; `one`: one of its own, and its loaders are on the others",
            heading="launch CPU",
            phrase="launched from {} CPU",
        ),
        FieldRules(added=True, memory="keeps", alternatives=True),
    ] = "free"
    command: Annotated[
        str | None,
        FieldWords(
            "command that is run in place of a training",
            note="[a command of your own](commands.md): what stands behind `--`, as a shell would read it; "
            "`{batch_size}` stands for that field's value",
            default="none: a training",
            phrase="{}",
        ),
        FieldRules(added=True, for_commands=True),
    ] = None
    settings: Annotated[
        str | None,
        FieldWords(
            "values of the command's placeholders that are no fields",
            note="`--set depth=2,4` for a command with `{depth}` fills it",
            default="none",
            phrase="{}",
        ),
        FieldRules(added=True, alternatives=True, for_commands=True),
    ] = None
    epoch_pattern: Annotated[
        str | None,
        FieldWords(
            "pattern in the command's output by which its epochs are told apart",
            default="none: its whole run is one window",
            heading="epoch pattern",
        ),
        FieldRules(added=True, memory="keeps", pace=False, for_commands=True),
    ] = None
    metrics: Annotated[
        str | None,
        FieldWords(
            "patterns of figures in the command's output",
            note="a line each; `--metric` gives them",
            default="none",
        ),
        FieldRules(added=True, memory="keeps", pace=False, for_commands=True),
    ] = None
    until: Annotated[
        str | None,
        FieldWords(
            "figure at which the command is ended", note="`acc=60`: a name of `metrics`", default="none"
        ),
        FieldRules(added=True, memory="keeps", pace=False, for_commands=True),
    ] = None
    power_limit_w: Annotated[
        PositiveInt | None,
        FieldWords(
            "power limit of each of its GPUs",
            note="what was set before is restored: [how, and who may](measuring.md#power-and-clock-limits)",
            default="none: as the card is set",
            unit="W",
            heading="limit W",
            phrase="power limit {} W",
        ),
        FieldRules(added=True, memory="keeps", for_commands=True, for_loads=True),
    ] = None
    sm_clock_limit_mhz: Annotated[
        PositiveInt | None,
        FieldWords(
            "highest clock of the multiprocessors of each of its GPUs",
            note="restored likewise",
            default="none: as the card is set",
            unit="MHz",
            heading="clock limit MHz",
            phrase="clocks up to {} MHz",
        ),
        FieldRules(added=True, memory="keeps", for_commands=True, for_loads=True),
    ] = None


class PlanFields(TrialFields):
    """A trial's fields, and what an experiment may give besides to say what they are."""

    batch_per_gpu: Annotated[
        PositiveInt | None,
        FieldWords("sets `batch_size` to this times the devices"),
        FieldOption("--batch-per-gpu", "batch size of each GPU (weak scaling)", behind="--batch-size"),
        FieldRules(rivals=("batch_size",)),
    ] = None


def _describe_field(name: str, annotation: Any) -> FieldDescription:
    """All that an entry says, with the field's name as its heading where it gives none."""
    parts = typing.get_args(annotation)
    words = next(part for part in parts if isinstance(part, FieldWords))
    rules = next((part for part in parts if isinstance(part, FieldRules)), FieldRules())
    option = next((part for part in parts if isinstance(part, FieldOption)), None)
    described = {
        "heading": name.replace("_", " "),
        **{k: v for k, v in vars(words).items() if v},
        **vars(rules),
    }
    return FieldDescription(**described, option=option)


TYPES: Mapping[str, Any] = typing.get_type_hints(PlanFields, include_extras=True)
"""Field -> its type, with its bounds. Here and below of all fields that an experiment may give."""
ABOUT: Mapping[str, FieldDescription] = {name: _describe_field(name, TYPES[name]) for name in TYPES}
DEFAULTS: Mapping[str, Any] = {name: getattr(PlanFields, name) for name in TYPES}
FIELDS: tuple[str, ...] = tuple(TrialFields.__annotations__)
"""Those of a trial, in the order in which records hold them."""


def select_fields(has: Callable[[FieldDescription], object]) -> tuple[str, ...]:
    """The trial fields of which something is true."""
    return tuple(name for name in FIELDS if has(ABOUT[name]))


def order_names(names: Sequence[str], behind: Mapping[str, str]) -> tuple[str, ...]:
    """The names in their order, but those with a place in `behind` directly behind the name that stands there."""
    ordered = [name for name in names if not behind.get(name)]
    for name in names:
        if other := behind.get(name):
            ordered.insert(ordered.index(other) + 1, name)
    return tuple(ordered)
