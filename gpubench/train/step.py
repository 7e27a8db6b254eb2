"""One optimizer step: forward, backward, update, for every precision and execution."""

from __future__ import annotations

import inspect
import pkgutil
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import nn

from gpubench.schema import catalog
from gpubench.train.strategies.contract import Strategy

AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}
EAGER_STEPS_BEFORE_CAPTURE = 3
"""Steps on a side stream before a graph is captured, so that libraries and optimizer have set themselves up."""


def set_tf32_mode(precision: str) -> None:
    """fp32 is strict: torch would otherwise use TF32 in cuDNN's convolutions."""
    mode = "tf32" if precision == "tf32" else "ieee"
    torch.backends.cuda.matmul.fp32_precision = mode
    torch.backends.cudnn.conv.fp32_precision = mode  # type: ignore[attr-defined]
    torch.backends.cudnn.rnn.fp32_precision = mode  # type: ignore[attr-defined]


def make_optimizer(name: str, lr: float, model: nn.Module, *, graph: bool) -> torch.optim.Optimizer:
    """The optimizer of the catalogue under that name."""
    known = catalog.OPTIMIZERS[name]
    factory = pkgutil.resolve_name(known.target)
    kwargs: dict[str, Any] = dict(known.kwargs)
    if graph and "capturable" in inspect.signature(factory).parameters:
        kwargs["capturable"] = True
    parameters = [p for p in model.parameters() if p.requires_grad]
    return factory(parameters, lr=lr, **kwargs)  # type: ignore[no-any-return]


class Step(Protocol):
    """One step of what is timed."""

    loss_sum: torch.Tensor
    """Grows by the batch's mean loss in every call; stays 0 where there is no loss."""

    def __call__(self, images: torch.Tensor, labels: torch.Tensor, /) -> None:
        """The step, on a batch on the device. Nothing in it synchronises."""


class TrainStep:
    """Call it with a batch on the device: images (N, C, H, W) and labels (N,). Nothing in it synchronises.

    The strategy says what happens in it, moment by moment; this class knows how passes and updates are made.
    `loss_sum` (one float on the device) grows by the batch's mean loss in every call.
    """

    def __init__(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, strategy: Strategy, *, precision: str
    ) -> None:
        """`model` as it is trained."""
        assignment = strategy.assignment
        self.model = model
        self.optimizer = optimizer
        self.loss_sum = torch.zeros((), device=assignment.device)
        self._strategy = strategy
        self._device_type = assignment.device.type
        self._dtype = AUTOCAST.get(precision)
        # The scaler looks at gradients on the host once a step; that is what fp16 costs its users, too.
        self._scaler = torch.amp.GradScaler(self._device_type) if precision == "fp16" else None

    def forward(self, images: torch.Tensor, labels: torch.Tensor, micro_batches: int) -> torch.Tensor:
        """The loss of one of `micro_batches` micro-batches, as its share of the batch's."""
        with torch.autocast(self._device_type, dtype=self._dtype, enabled=self._dtype is not None):
            loss = F.cross_entropy(self.model(images), labels) / micro_batches
        self.loss_sum += loss.detach()
        return loss

    def backward(self, loss: torch.Tensor) -> None:
        """Adds the loss's gradients to those that are there."""
        (self._scaler.scale(loss) if self._scaler else loss).backward()  # type: ignore[no-untyped-call]

    def update(self) -> None:
        """The optimizer's step on the gradients."""
        if self._scaler:
            self._scaler.step(self.optimizer)
            self._scaler.update()
        else:
            self.optimizer.step()

    def __call__(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        strategy = self._strategy
        strategy.before_step()
        self.optimizer.zero_grad(set_to_none=True)
        strategy.compute_gradients(self.forward, self.backward, images, labels)
        strategy.apply_update(self.update)
        strategy.after_step()


class GraphStep(TrainStep):
    """A step as one CUDA graph: captured after a few eager ones, then replayed.

    With fp16 the scaler's step stays outside, because it decides on the host.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._calls = 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._side = torch.cuda.Stream()  # type: ignore[no-untyped-call]

    def __call__(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        self._calls += 1
        if self._graph is None:
            if self._calls <= EAGER_STEPS_BEFORE_CAPTURE:
                self._side.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(self._side):
                    super().__call__(images, labels)
                torch.cuda.current_stream().wait_stream(self._side)
                return
            self._capture(images, labels)
        # A resident batch is the captured one itself; any other is copied over it.
        if images.data_ptr() != self._images.data_ptr():
            self._images.copy_(images)
            self._labels.copy_(labels)
        assert self._graph is not None
        self._strategy.before_step()
        self._graph.replay()
        if self._scaler:
            self._strategy.apply_update(self.update)
        self._strategy.after_step()

    def _capture(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        self._images, self._labels = images, labels
        self.optimizer.zero_grad(set_to_none=True)
        self._graph = torch.cuda.CUDAGraph()
        # thread_local: the loader's pinning thread goes on allocating meanwhile. Gradients are None here, so a
        # replay writes them anew instead of adding to the last step's.
        with torch.cuda.graph(self._graph, capture_error_mode="thread_local"):
            self._strategy.compute_gradients(self.forward, self.backward, images, labels)
            if not self._scaler:
                self._strategy.apply_update(self.update)
