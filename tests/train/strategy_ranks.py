"""The ranks of the tests of strategies: each trains small networks in float64, and tells what came of it.

Run as `python tests/train/strategy_ranks.py RANKS FOLDER DEVICE`. Rank 0 prints a JSON object: name of a case -> what
was found. Weights are compared by the largest absolute difference.
"""

from __future__ import annotations

import json
import os
import pkgutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from gpubench.basics.linux import die_with_parent
from gpubench.schema import catalog
from gpubench.train.device_assignment import DeviceAssignment
from gpubench.train.step import TrainStep, make_optimizer
from gpubench.train.strategies.contract import Strategy
from gpubench.train.strategies.ddp import DistributedDataParallel
from gpubench.train.strategies.fsdp import FullySharded, list_sharded_blocks
from gpubench.train.strategies.local import Local

STEPS = 3
BATCH = 8
OPTIMIZERS = ("momentum", "adamw")
"""With state as large as a weight, and with a count of steps besides."""
Weights = dict[str, torch.Tensor]


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images + torch.relu(self.norm(self.conv(images)))


class Network(nn.Module):
    """Rows that two ranks can't share equally, a frozen weight, BatchNorm; no weight whose true gradient is zero."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 7, 3, bias=False)
        self.stages = nn.ModuleList([Block(7) for _ in range(4)])
        self.scale = nn.Parameter(torch.full((1, 7, 1, 1), 0.9))
        self.frozen = nn.Parameter(torch.full((7,), 1.1), requires_grad=False)
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.Linear(63, 5))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        images = self.stem(images)
        for stage in self.stages:
            images = stage(images)
        out: torch.Tensor = self.head(images * self.scale * self.frozen[:, None, None])
        return out


def batches(device: torch.device) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    draw = torch.Generator().manual_seed(1)
    for _ in range(STEPS):
        images = torch.randn(BATCH, 3, 8, 8, generator=draw, dtype=torch.float64)
        labels = torch.randint(5, (BATCH,), generator=draw)
        images = images.to(device).contiguous(memory_format=torch.channels_last)
        yield images, labels.to(device)


class Run:
    """A network under a strategy, ready to be trained."""

    def __init__(
        self,
        kind: type[Strategy],
        assignment: DeviceAssignment,
        *,
        optimizer: str = "sgd",
        accumulate: int = 1,
        sync_every: int = 1,
        compiled: Callable[[nn.Module], nn.Module] = lambda module: module,
    ) -> None:
        torch.manual_seed(0)
        self.strategy = kind(assignment, accumulate=accumulate, sync_every=sync_every)
        self.trained = self.strategy.prepare_model(Network().double().train(), torch.channels_last, compiled)
        made = self.strategy.make_rank_optimizer(
            lambda module: make_optimizer(optimizer, 0.01, module, graph=False)
        )
        self.step = TrainStep(self.trained, made, self.strategy, precision="fp32")

    def take(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        rank, world = self.strategy.assignment.rank, self.strategy.assignment.world
        self.step(images.chunk(world)[rank], labels.chunk(world)[rank])

    def train(self) -> Run:
        for images, labels in batches(self.strategy.assignment.device):
            self.take(images, labels)
        return self

    def weights(self, *, buffers: bool = False) -> Weights:
        with self.strategy.gather_whole_model() as model:
            found = dict(model.named_parameters()) | (dict(model.named_buffers()) if buffers else {})
            return {name: tensor.detach().double().cpu().clone() for name, tensor in found.items()}


def apart(one: Weights, other: Weights) -> float:
    assert one.keys() == other.keys()
    return max((one[name] - other[name]).abs().max().item() for name in one)


SETTINGS: tuple[dict[str, int], ...] = ({}, {"accumulate": 2}, {"sync_every": 3})
"""Under which the bytes of each strategy are counted."""


class Collectives(TorchDispatchMode):
    """Bytes that entered collectives, also those that autograd's hooks began."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes: dict[str, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.namespace == "c10d":
            name = func._opname
            entered = args[0] if name in ("allreduce_", "broadcast_") else args[1]
            entered = entered if isinstance(entered, (list, tuple)) else [entered]
            self.bytes[name] = self.bytes.get(name, 0) + sum(tensor.nbytes for tensor in entered)
        return func(*args, **(kwargs or {}))


def everywhere(value: float) -> float:
    """The largest over the ranks."""
    told: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(told, value)
    return max(told)


def cases(assignment: DeviceAssignment) -> dict[str, Any]:
    """Everything that is found, by name."""
    alone = DeviceAssignment(rank=0, world=1, devices=assignment.devices, rendezvous=assignment.rendezvous)
    found: dict[str, Any] = {}

    # ---- weights of one process ----
    for name in OPTIMIZERS:
        expected = Run(Strategy, alone, optimizer=name, accumulate=assignment.world).train().weights()
        found[f"fsdp-{name}"] = apart(
            Run(FullySharded, assignment, optimizer=name).train().weights(), expected
        )
    expected = Run(Strategy, alone, accumulate=2 * assignment.world).train().weights()
    found["fsdp-accumulate"] = apart(Run(FullySharded, assignment, accumulate=2).train().weights(), expected)
    ddp = Run(DistributedDataParallel, assignment).train()
    found["local-ddp"] = apart(Run(Local, assignment).train().weights(), ddp.weights())
    found["moved"] = apart(ddp.weights(), Run(Strategy, alone).weights())
    one = Run(Strategy, alone, accumulate=assignment.world).train()
    found["ddp-single"] = apart(ddp.weights(), one.weights())

    # ---- evaluation ----
    for kind in (FullySharded, Local):
        run = Run(kind, assignment, sync_every=2, optimizer="momentum")
        plain = Run(kind, assignment, sync_every=2, optimizer="momentum").train()
        for images, labels in batches(assignment.device):
            run.take(images, labels)
            with run.strategy.gather_whole_model() as model, torch.no_grad():
                model.eval()
                for _ in range(1 + assignment.rank):  # ranks may evaluate unequal numbers of batches
                    run.strategy.predict(model, images)
                model.train()
        name = kind.__name__
        found[f"{name}-evaluated"] = apart(run.weights(buffers=True), plain.weights(buffers=True))
        evaluated = run.weights(buffers=True)
        means = {f"{n}": b.detach().double().clone() for n, b in run.trained.named_buffers()}
        own = apart({n: b.cpu() for n, b in means.items()}, {n: evaluated[n] for n in means})
        found[f"{name}-own-statistics"] = everywhere(own)
        for mean in means.values():
            dist.all_reduce(mean)
            mean /= assignment.world
        found[f"{name}-statistics"] = apart(
            {n: b.cpu() for n, b in means.items()}, {n: evaluated[n] for n in means}
        )
        same = {n: t.clone().to(assignment.device) for n, t in evaluated.items()}
        for tensor in same.values():
            dist.broadcast(tensor, 0)
        found[f"{name}-ranks"] = everywhere(apart({n: t.cpu() for n, t in same.items()}, evaluated))

    # ---- local: when, and where ----
    run = Run(Local, assignment, sync_every=2)
    places = [(p.data_ptr(), p.stride()) for p in run.trained.parameters()]
    spread = []
    for images, labels in batches(assignment.device):
        run.take(images, labels)
        own = {n: p.detach().clone().cpu() for n, p in run.trained.named_parameters()}
        spread.append(everywhere(apart(own, run.weights())))
    found["spread"] = spread
    found["in-place"] = places == [(p.data_ptr(), p.stride()) for p in run.trained.parameters()]
    found["channels-last"] = run.trained.stem.weight.is_contiguous(memory_format=torch.channels_last)

    # ---- what is handed over ----
    for name, facts in catalog.STRATEGIES.items():
        for settings in SETTINGS if facts.process_per_device else ():
            run = Run(pkgutil.resolve_name(facts.target), assignment, **settings)
            run.train()  # in its first steps DDP agrees on its buckets, too
            with Collectives() as seen:
                run.train()
            seen.bytes.pop("broadcast_", None)  # DDP hands out BatchNorm's buffers, which are no gradients
            stated = pkgutil.resolve_name(facts.exchange)(run.strategy) if facts.exchange else None
            key = "-".join([name, *map(str, settings.values())])
            found[f"bytes-{key}"] = [sum(seen.bytes.values()), stated and STEPS * stated]
    run = Run(FullySharded, assignment)
    found["shard"] = sum(p.to_local().numel() for p in run.trained.parameters())
    found["parameters"] = sum(p.numel() for p in Network().parameters())
    found["blocks"] = [name for _, name in list_sharded_blocks(Network())]

    # ---- fp16's scaler: a gradient that is no number on one rank skips the step on all ----
    run = Run(FullySharded, assignment)
    run.step._scaler = torch.amp.GradScaler(assignment.device.type)
    before = run.weights()
    images, labels = next(batches(assignment.device))
    run.take(images * (float("inf") if assignment.rank == assignment.world - 1 else 1), labels)
    found["skipped"] = apart(run.weights(), before)
    run.take(images, labels)
    found["not-skipped"] = apart(run.weights(), before)

    # ---- compiled, block by block ----
    compiled: list[nn.Module] = []

    def compiling(module: nn.Module) -> nn.Module:
        compiled.append(module)
        return torch.compile(module, backend="eager")

    run = Run(FullySharded, assignment, compiled=compiling).train()
    found["compiled"] = apart(run.weights(), one.weights())
    found["compiled-modules"] = len(compiled)
    return found


def main() -> None:
    ranks, folder, kind = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    parent, others = os.getpid(), []
    for rank in range(ranks - 1, -1, -1):  # torch is imported once; the first rank is the process itself
        if rank and (pid := os.fork()):
            others.append(pid)
            continue
        if rank:
            die_with_parent(parent)
        train_rank(rank, ranks, folder, kind)
        if rank:
            os._exit(0)
    sys.exit(any(os.waitpid(pid, 0)[1] for pid in others))


def train_rank(rank: int, ranks: int, folder: Path, kind: str) -> None:
    torch.set_num_threads(1)
    device = torch.device(kind, rank) if kind == "cuda" else torch.device(kind)
    if kind == "cuda":
        torch.cuda.set_device(device)
        torch.backends.cudnn.deterministic = True
    assignment = DeviceAssignment(rank=rank, world=ranks, devices=(device,), rendezvous=folder / "rendezvous")
    DistributedDataParallel(assignment).connect_ranks()
    found = cases(assignment)
    if rank == 0:
        print(json.dumps(found))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
