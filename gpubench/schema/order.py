"""The order to a trial's processes: all that they are to know of it. Made in `plan/resolve.py`, checked by who gets it.

It holds the trial itself, and beside it what the trial left open: as this machine fills it, on this node.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import devnull
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from gpubench.basics.errors import UsageError
from gpubench.schema.trial import Trial

Kind = Literal["folder", "decoded", "named", "none"]
Transforms = tuple[tuple[str, dict[str, Any]], ...]
"""Name and arguments of each transform, in order."""


class DataSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the images lie and what is done to them on the way to the network."""

    kind: Kind
    """`folder`: image files; `decoded`: a memory map; `named`: torchvision's own; `none`: synthetic."""
    root: str | None = None
    """The folder or the memory map. Of a named data set: the folder that torchvision keeps it in."""
    left_out: str | None = None
    """A JSON list of paths, relative to `root`, of images that are left out; for `folder`. Put in by the node."""
    name: str | None = None
    """Key of `catalog.NAMED_DATA`, for `named`."""
    input_size: int
    """Side of the square input in pixels."""
    num_classes: int
    channels: int = 3
    train_images: int | None = None
    """Use this many training images, spread evenly over the classes; None: all."""
    cpu: Transforms = ()
    """torchvision.transforms.v2 classes, applied to one uint8 image in a loader worker."""
    gpu: Transforms = ()
    """Functions of `on_device.TRANSFORMS`, applied to a batch on the device, drawing per image."""
    seed: int = 0


class Rendezvous(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the ranks of one node stand among those of all nodes, and how they meet them. Put in by the first node."""

    address: str
    """Of the first node: a name or an IP address by which the others reach it."""
    port: int
    """There, where the first rank listens."""
    interface: str
    """The network interface of this node by which its ranks reach the others."""
    first_rank: int
    """The number of this node's first rank among all ranks."""
    world: int
    """Ranks of all nodes."""


class SteadyWindow(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="steady"
):
    """A continuous stream of shuffled passes over the images: a warm-up, then a window that is measured."""

    window_s: float | None
    """Seconds that the window lasts at least; None where its steps are given."""
    steps: int | None = None
    """Steps of the window."""


class WholeEpochs(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="epochs"
):
    """Whole epochs, each timed from iter(loader) on, and top-1 after the last."""

    epochs: int
    """In all; with `until_top1` the most."""
    warmup_epochs: int
    """The first ones of them, which are not measured."""
    until_top1: float | None = None
    """Top-1 in per cent at which training stops."""
    confirm_top1: bool = False


class CommandRun(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="command"
):
    """A user's command: its whole run, or the epochs that its output or its script tells apart."""

    words: tuple[str, ...]
    """The command, its placeholders filled. No shell reads it."""
    folder: str
    """Where it runs."""


Protocol = SteadyWindow | WholeEpochs | CommandRun
"""How a process measures: quantities that are never compared with each other."""


class TrialOrder(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one trial is to run; of one over several nodes, what it is to run on one of them."""

    trial: Trial
    """As it was asked for: what it left to the machine stands below."""
    jobs: int
    """Jobs of the group; 1: the trial runs alone."""
    device: str
    """`cuda` or `cpu`."""
    gpu_uuids: tuple[str, ...]
    ranks: int
    """On this node."""
    workers: int
    """Loader processes, over all ranks of this node."""
    cpu_ids: tuple[int, ...]
    threads_per_rank: int
    protocol: Protocol
    seed: int
    """The seed of this repeat."""
    data: DataSpec
    log: Path
    """Where its processes print to."""
    gmacs_per_image: float | None
    """Multiply-adds, where another trial has counted them; None: it counts them itself."""
    rendezvous: Rendezvous | None = None
    """None: all of its ranks are on one node."""
    scratch: Path = Path(devnull)
    """A folder of its own, which goes with it. The node where it runs makes it and puts it in."""


def parse_transforms(items: Any, input_size: int) -> Transforms:
    """Names and arguments of ["Name", {"Name": {argument: value}}, …]; "$input_size" becomes the number."""
    return tuple(_parse_transform(item, input_size) for item in items)


def _parse_transform(item: Any, input_size: int) -> tuple[str, dict[str, Any]]:
    if isinstance(item, str):
        return item, {}
    if isinstance(item, Mapping) and len(item) == 1:
        ((name, arguments),) = item.items()
        if isinstance(arguments, Mapping):
            return str(name), {key: _fill_input_size(value, input_size) for key, value in arguments.items()}
    raise UsageError(f"a transform reads Name or {{Name = {{argument = value}}}}, not {item!r}")


def _fill_input_size(value: Any, input_size: int) -> Any:
    if value == "$input_size":
        return input_size
    return [_fill_input_size(v, input_size) for v in value] if isinstance(value, (list, tuple)) else value
