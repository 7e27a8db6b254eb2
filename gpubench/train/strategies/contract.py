"""The contract: what a strategy does in the life of a trial, moment by moment.

A strategy owns the life of a model over the devices of its trial. There is one object of it in each rank (a process of
the trial). The moments come in the order in which they stand in `Strategy`, and a strategy overrides those that differ.
What a strategy can't do at all is no moment: `schema/catalog.STRATEGIES` says so, and the plan refuses it. That entry
also names the function beside the strategy that says how many bytes of gradients and weights one rank hands over to the
others in a step, on average over the steps: what enters a collective counts, once for each collective.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import nn

from gpubench.schema.codes import REASONS
from gpubench.train.device_assignment import DeviceAssignment

Compile = Callable[[nn.Module], nn.Module]
"""Gives a module as the trial's execution wants it: by torch.compile, or the module itself."""


class Strategy:
    """The life of a model over the devices of one trial. As it stands it trains in one process, on one device.

    Nothing in a step (`before_step` to `after_step`) may wait for the device.
    """

    model: nn.Module
    """The model as it was built, without any wrapper. Set by `prepare_model`. Its weights may lie elsewhere: see
    `gather_whole_model`."""

    def __init__(self, assignment: DeviceAssignment, *, accumulate: int = 1, sync_every: int = 1) -> None:
        """`accumulate`: micro-batches of a step. `sync_every`: steps from one averaging of the weights to the next."""
        self.assignment = assignment
        self.accumulate = accumulate
        self.sync_every = sync_every

    # ---- before training ----

    def connect_ranks(self) -> None:
        """Meets the other ranks, where there are any. Raises what torch raises when they can't be met."""

    def prepare_model(
        self, model: nn.Module, memory_format: torch.memory_format, compiled: Compile
    ) -> nn.Module:
        """The model as it is trained: on the rank's devices, and wrapped.

        `model` was built on the CPU, with the same weights in every rank; the whole of it need not fit on a device.
        `memory_format` is that of the images, and of weights where the strategy can keep it. `compiled` is called of
        the whole model, or of its parts.
        """
        return compiled(self.move_to_device(model, memory_format))

    def move_to_device(self, model: nn.Module, memory_format: torch.memory_format) -> nn.Module:
        """`model`, kept as `self.model`, with all its weights on the rank's first device."""
        self.model = model.to(self.assignment.device).to(memory_format=memory_format)
        return self.model

    def make_rank_optimizer(
        self, make: Callable[[nn.Module], torch.optim.Optimizer]
    ) -> torch.optim.Optimizer:
        """This rank's optimizer: `make` of a module updates that module's weights."""
        return make(self.model)

    def register_bucket_callback(self, ready: Callable[[], Callable[[], None] | None]) -> None:
        """Calls `ready` for each bucket of gradients when it is, and what that returned once they are averaged.

        To be called between `prepare_model` and the first step. A strategy that can't tell leaves this as it is:
        `ready` is then never called, and the times of the exchange stay empty with that reason.
        """

    # ---- in each step ----

    def before_step(self) -> None:
        """Comes first in a step: a place to wait for slower ranks, or to fetch weights."""

    def compute_gradients(
        self,
        forward: Callable[[torch.Tensor, torch.Tensor, int], torch.Tensor],
        backward: Callable[[torch.Tensor], None],
        images: torch.Tensor,
        labels: torch.Tensor,
    ) -> None:
        """Leaves in the model the gradients of the mean loss over the batch: micro-batches, passes, reduction.

        `forward(images, labels, n)` gives the loss of one of n micro-batches, as its share of the batch's; `backward`
        adds that loss's gradients to those that are there. Both do so as precision and `--breakdown` want it.
        `images` (B, C, S, S) and `labels` (B,) are this rank's share of the batch, on its first device.
        """
        count = self.accumulate
        micro_batches = list(zip(images.chunk(count), labels.chunk(count), strict=True))
        for i, (x, y) in enumerate(micro_batches):
            with nullcontext() if i == len(micro_batches) - 1 else self.pause_synchronization():
                backward(forward(x, y, len(micro_batches)))

    def pause_synchronization(self) -> AbstractContextManager[None]:
        """Around all micro-batches of a step but the last: gradients stay on this rank."""
        return nullcontext()

    def apply_update(self, update: Callable[[], None]) -> None:
        """Calls `update`, which lets the optimizer (and fp16's scaler) use the gradients: under a lock, on one rank."""
        update()

    def after_step(self) -> None:
        """Comes last in a step: a place to average weights, or to hand them on. Counts as the optimizer's part."""

    # ---- evaluation ----

    def gather_whole_model(self) -> AbstractContextManager[nn.Module]:
        """The model to be evaluated: a plain module with all trained weights and buffers, on the rank's first device.

        A context, for it may exist only while it is evaluated. All ranks enter and leave it together. Training goes on
        afterwards as if it had not been.
        """
        return nullcontext(self.model)

    def predict(self, model: nn.Module, images: torch.Tensor) -> torch.Tensor:
        """What is evaluated for `images` (B, C, S, S): logits (B, classes), or logarithms of probabilities.

        `model`: of `gather_whole_model`. Ranks may see unequal numbers of batches, unless all read the same ones.
        """
        logits: torch.Tensor = model(images)
        return logits

    # ---- over all ranks ----

    def barrier(self) -> None:
        """Returns when every rank has come here and its devices are idle."""

    def sum_over_ranks(self, values: torch.Tensor) -> torch.Tensor:
        """`values` (any shape, on the rank's first device) summed over the ranks, in place."""
        return values

    # ---- at the end ----

    def wait_before_exit(self) -> None:
        """Returns when this rank may end without harm to the others. Nothing is exchanged afterwards."""

    def explain_no_exchange(self) -> str | None:
        """Why the ranks exchange nothing, or nothing that could be told; None where they exchange something."""
        return None if self.assignment.world > 1 else REASONS["one-process"]
