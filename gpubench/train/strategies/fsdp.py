"""`fsdp`: torch's fully_shard (FSDP2). Each rank keeps its part of the weights, gradients and optimizer state.

The model is cut into blocks. A block's weights are gathered from all ranks just before they are used, and dropped
afterwards. Weights lie contiguous, whatever the format of the images: fully_shard takes no others. Lower precisions
come from autocast, as everywhere else: FSDP's own policy would round BatchNorm's weights, too.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

from gpubench.basics.errors import UsageError
from gpubench.train.strategies.contract import Compile
from gpubench.train.strategies.ranks import RanksStrategy, select_float_buffers

LARGEST_BLOCK = 1 / 4
"""Share of the model's parameters: a module with more of them is cut into the modules in it, where it has any."""
SMALLEST_BLOCK = 1 / 100
"""Share of the model's parameters: a module with fewer of them is no block of its own."""


class FullySharded(RanksStrategy):
    """A process for each device. What belongs to no block stays gathered from the forward to the backward pass."""

    def prepare_model(
        self,
        model: nn.Module,
        memory_format: torch.memory_format,  # noqa: ARG002 - of the images alone
        compiled: Compile,
    ) -> nn.Module:
        """Block after block goes to the device and is cut there: beside its parts the device holds one whole block.

        Blocks are compiled one by one, for gathering happens between them. Of the plain model only the form is kept.
        """
        # Each block is gathered and dropped by itself.
        if len(list(model.parameters())) < len(list(model.named_parameters(remove_duplicate=False))):
            raise UsageError(
                "strategy fsdp can't train a model in which layers share weights; use ddp or local"
            )
        self.model = model
        self._sharded = copy.deepcopy(model).to(memory_format=torch.contiguous_format)
        self._drop_weights()
        mesh = init_device_mesh(self.assignment.device.type, (self.assignment.world,))
        cut: list[nn.Module] = []
        for parent, name in list(list_sharded_blocks(self._sharded)):
            block = compiled(getattr(parent, name))
            fully_shard(block, mesh=mesh)
            setattr(parent, name, block)
            cut.append(block)
        fully_shard(self._sharded, mesh=mesh)
        self.exchanged_bytes_per_pass = count_exchanged_bytes(self._sharded, cut, self.assignment.world)
        return self._sharded

    def make_rank_optimizer(
        self, make: Callable[[nn.Module], torch.optim.Optimizer]
    ) -> torch.optim.Optimizer:
        """Updates all weights of a rank at once, as torch by itself does on a GPU with weights that are not sharded."""
        optimizer = make(self._sharded)
        for group in optimizer.param_groups:
            group["foreach"] = True
        return optimizer

    @contextmanager
    def gather_whole_model(self) -> Iterator[nn.Module]:
        """The plain model with gathered weights, and with the mean of the ranks' statistics of BatchNorm.

        FSDP's own modules would hang where ranks evaluate unequal numbers of batches. While it is evaluated the whole
        model lies on each device.
        """
        for name, part in self._sharded.named_parameters(remove_duplicate=False):
            assert isinstance(part, DTensor)
            self._set_weight(name, part.full_tensor())
        buffers = {name: b.clone() for name, b in self._sharded.named_buffers(remove_duplicate=False)}
        self.average_over_ranks(select_float_buffers(buffers.values()))
        for name, buffer in buffers.items():
            owner, leaf = self._find_owner(name)
            owner._buffers[leaf] = buffer
        yield self.model
        self._drop_weights()

    def _drop_weights(self) -> None:
        """Leaves of the plain model's weights only the shapes."""
        for name, weight in list(self.model.named_parameters(remove_duplicate=False)):
            self._set_weight(name, weight.detach().to("meta"))

    def _set_weight(self, name: str, weight: torch.Tensor) -> None:
        owner, leaf = self._find_owner(name)
        trained = getattr(owner, leaf).requires_grad
        owner._parameters[leaf] = nn.Parameter(weight.detach(), requires_grad=trained)

    def _find_owner(self, name: str) -> tuple[nn.Module, str]:
        """The module of the plain model that holds the tensor of this name, and its name in there."""
        path, _, leaf = name.replace("_orig_mod.", "").rpartition(".")  # compiled modules add a floor
        return self.model.get_submodule(path), leaf


def exchanged_bytes(strategy: FullySharded) -> int:
    """What `count_exchanged_bytes` counts, for each micro-batch: gradients are shared out after each of them."""
    return strategy.exchanged_bytes_per_pass * strategy.accumulate


def list_sharded_blocks(model: nn.Module, total: int | None = None) -> Iterator[tuple[nn.Module, str]]:
    """The modules to be cut and gathered by themselves, each as its parent and its name in there.

    They are as large as LARGEST_BLOCK lets them be. A block's weights may be used by its own forward alone: torch's own
    layers, which also use the weights of the layers in them, are never cut further. `total`: weights of the whole
    model, where `model` is a part of it.
    """
    total = total or sum(p.numel() for p in model.parameters())
    for name, child in model.named_children():
        size = sum(p.numel() for p in child.parameters())
        only_holds = type(child).forward is nn.Module.forward  # a ModuleList, say, whose members are called
        can_be_cut = isinstance(child, nn.Sequential) or not type(child).__module__.startswith("torch.nn.")
        if only_holds or (
            size > LARGEST_BLOCK * total and can_be_cut and any(True for _ in child.children())
        ):
            yield from list_sharded_blocks(child, total)
        elif size > SMALLEST_BLOCK * total:
            yield model, name


def count_exchanged_bytes(model: nn.Module, cut: Sequence[nn.Module], ranks: int) -> int:
    """Bytes that one rank hands over in the passes of one micro-batch: what enters the collectives.

    A rank's part of a parameter has ⌈rows / ranks⌉ of its rows (first dimension), filled up where there are fewer.
    Gathering for the forward pass takes the part of every parameter; for the backward pass that of a block's once more;
    then all of the gradient enters the sum that is shared out. Of P bytes in blocks this makes about P + 2 P / ranks.
    """

    def part(parameter: nn.Parameter) -> int:
        rows = parameter.shape[0]
        return -(-rows // ranks) * (parameter.nbytes // rows)

    gathered = sum(part(p) for p in model.parameters())
    gathered_again = sum(part(p) for block in cut for p in block.parameters())
    gradients = sum(ranks * part(p) for p in model.parameters() if p.requires_grad)
    return gathered + gathered_again + gradients
