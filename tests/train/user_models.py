"""Models as a user would write them, good and bad, named as `tests/train/user_models.py:function`.

What they print lands in the trial's log, which is how the tests look inside a rank.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import torch
import torch.distributed as dist
from torch import nn

from gpubench.train.data.folder_source import FolderSource

SLOW_STEP_S = 0.1


def say(**facts: object) -> None:
    """One line of JSON in the log, from rank 0."""
    if rank() == 0:
        print(json.dumps(facts), flush=True)


def rank() -> int:
    return dist.get_rank() if dist.is_initialized() else 0


class Tiny(nn.Module):
    """Colours in, classes out. Calls `act` with the number of the training step, from 0, or `judge`."""

    def __init__(
        self,
        num_classes: int,
        act: Callable[[int], None] = lambda _: None,
        judge: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(48, num_classes))
        self._act = act
        self._judge = judge
        self._steps = 0

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        if self.training:
            self._act(self._steps)
            self._steps += 1
        else:
            self._judge()
        out: torch.Tensor = self.layers(images)
        return out


def _at_step_three(act: Callable[[], object]) -> Callable[[int], None]:
    def words() -> None:
        print("step three begins", flush=True)
        act()

    return _at_step(3, words)


def _at_step(number: int, act: Callable[[], object]) -> Callable[[int], None]:
    return lambda step: act() if step == number else None  # type: ignore[return-value]


def _raise(error: BaseException) -> None:
    raise error


def _run_out(gib: int = 2) -> None:
    raise torch.OutOfMemoryError(f"CUDA out of memory. Tried to allocate {gib}.00 GiB.")


def raises_when_built(num_classes: int) -> nn.Module:
    raise ValueError(f"{num_classes} classes are too many")


def _block() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))
    ctypes.CDLL(None).sleep(1000)


LATE_STEP = 11
"""In the second of epochs of 8 steps."""
FILLING_STEP = 30
"""After two of them."""


class Uncountable(Tiny):
    """Trains, and can't be counted afterwards: its trial breaks at the very end, a while after the others'."""

    def parameters(self, recurse: bool = True) -> Iterator[nn.Parameter]:
        if self._steps:
            time.sleep(2)
            raise ValueError("too many to count")
        return super().parameters(recurse)


ECC_ERROR = """CUDA error: uncorrectable ECC error encountered
Search for `cudaErrorECCUncorrectable' in https://docs.nvidia.com/cuda/ for more information.
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.
For debugging consider passing CUDA_LAUNCH_BLOCKING=1"""


def second_rank_is_killed_and_first_is_stuck(num_classes: int) -> nn.Module:
    """In a call in C, as in a kernel of NCCL that waits for a dead rank: deaf to every signal but SIGKILL."""
    end = partial(os.kill, os.getpid(), signal.SIGKILL)
    return Tiny(num_classes, _at_step_three(lambda: end() if rank() else _block()))


def raises_and_does_not_end(num_classes: int) -> nn.Module:
    """As where the driver does not let go of a process."""

    def act() -> None:
        os._exit = lambda _: _block()  # type: ignore[assignment, return-value]
        raise torch.AcceleratorError(ECC_ERROR)

    return Tiny(num_classes, _at_step_three(act))


class Astray(Tiny):
    """One rank looks, at step three, for an image that the batch does not have."""

    def __init__(self, num_classes: int, in_rank: int) -> None:
        super().__init__(num_classes)
        self._in_rank = in_rank

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        if self.training and self._steps == 3 and rank() == self._in_rank:
            images = images[torch.full((len(images),), 1 << 20, device=images.device)]
        return super().forward(images)


def leaves_a_daemon(num_classes: int) -> nn.Module:
    """Starts a process that leaves the session, outlives its parent and says its id."""
    script = "sleep 1000 & echo '{\"daemon\": '$!'}'"
    subprocess.run(["setsid", "sh", "-c", script], check=True)
    return Tiny(num_classes)


def leaves_a_daemon_and_dies(num_classes: int) -> nn.Module:
    leaves_a_daemon(num_classes)
    os._exit(3)


def leaves_a_daemon_and_is_slow(num_classes: int) -> nn.Module:
    leaves_a_daemon(num_classes)
    return slow_step(num_classes)


def _tell(**facts: object) -> None:
    os.write(
        1, f"{json.dumps(facts)}\n".encode()
    )  # in one go: between print's line and its end another may write


def _tell_step(step: int) -> None:
    _tell(rank=rank(), step=step, at=time.monotonic())


def slow_and_tells_steps(num_classes: int) -> nn.Module:
    def act(step: int) -> None:
        _tell_step(step)
        time.sleep(SLOW_STEP_S)

    return Tiny(num_classes, act)


class Telling(Tiny):
    """Says, when it is first evaluated, what `tell` finds."""

    def __init__(self, num_classes: int, tell: Callable[[nn.Module], dict[str, object]]) -> None:
        super().__init__(num_classes)
        self._tell: Callable[[nn.Module], dict[str, object]] | None = tell

    def train(self, mode: bool = True) -> Telling:
        if not mode and self._tell is not None:
            say(**self._tell(self))
            self._tell = None
        super().train(mode)
        return self


class TellsCpus(Tiny):
    """Every rank says on which CPUs its threads may run, every loader worker, too, and how many of these are left."""

    def parameters(self, recurse: bool = True) -> Iterator[nn.Parameter]:
        if self._steps:  # they are counted when training is over
            _tell(left=rank(), workers=len(psutil.Process().children()))
        return super().parameters(recurse)


def tells_cpus(num_classes: int) -> nn.Module:
    read = FolderSource.load_image
    told: set[int] = set()

    def telling(source: FolderSource, index: int) -> torch.Tensor:
        if os.getpid() not in told:
            told.add(os.getpid())
            _tell(worker=os.getpid(), on=sorted(os.sched_getaffinity(0)))
        return read(source, index)

    def tell() -> None:
        threads = [os.sched_getaffinity(int(thread.name)) for thread in Path("/proc/self/task").iterdir()]
        _tell(rank=rank(), threads_on=sorted(set().union(*threads)))

    FolderSource.load_image = telling  # type: ignore[method-assign]
    return TellsCpus(num_classes, _at_step(3, tell))


SLOW_IMAGE_S = 0.03
SLOW_PASS_S = 0.2
SLOW_PASS_CYCLES = 400_000_000
"""0.2 s of a GPU at 2 GHz."""


def slow_images(num_classes: int) -> nn.Module:
    """Every image takes long to read: the loader's workers, which are forked later, have it so."""
    read = FolderSource.load_image

    def slowly(source: FolderSource, index: int) -> torch.Tensor:
        time.sleep(SLOW_IMAGE_S)
        return read(source, index)

    FolderSource.load_image = slowly  # type: ignore[method-assign]
    return Tiny(num_classes)


def second_rank_starves(num_classes: int) -> nn.Module:
    """The images of one rank of two take long to read."""
    return slow_images(num_classes) if rank() == 1 else Tiny(num_classes)


def _slow_pass() -> None:
    if torch.cuda.is_initialized():
        torch.cuda._sleep(SLOW_PASS_CYCLES)
    else:
        time.sleep(SLOW_PASS_S)


def slow_images_and_first_step(num_classes: int) -> nn.Module:
    slow_images(num_classes)
    return Tiny(num_classes, _at_step(0, lambda: time.sleep(2)))


class Sleeper(torch.autograd.Function):
    """Passes everything through, and sleeps in one direction or both."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, forward_s: float, backward_s: float) -> torch.Tensor:
        time.sleep(forward_s)
        ctx.backward_s = backward_s
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:  # type: ignore[override]
        time.sleep(ctx.backward_s)
        return gradient, None, None


class Sleepy(nn.Module):
    """Two layers, and between them a rest on the way there and on the way back."""

    def __init__(self, num_classes: int, *, forward_s: float = 0.0, backward_s: float = 0.0) -> None:
        super().__init__()
        self.first = nn.Linear(3 * 28 * 28, 600)
        self.last = nn.Sequential(nn.Linear(600, 600), nn.ReLU(), nn.Linear(600, num_classes))
        self._rest = (forward_s, backward_s)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        middle = self.first(images.flatten(1))
        if self.training:
            middle = Sleeper.apply(middle, *self._rest)
        out: torch.Tensor = self.last(middle)
        return out


def images_never_come(num_classes: int) -> nn.Module:
    """After a few, reading one never ends: loaders' workers, which are forked later, have it so."""
    read = FolderSource.load_image

    def never_stop(source: FolderSource, index: int) -> torch.Tensor:
        if index % 8 == 3:
            time.sleep(1000)
        return read(source, index)

    FolderSource.load_image = never_stop  # type: ignore[method-assign]
    return Tiny(num_classes)


# ---- the models ----

tiny = Tiny
runs_out_of_gpu_memory = partial(Tiny, act=_at_step_three(_run_out))
raises = partial(Tiny, act=_at_step_three(lambda: _raise(ValueError("the moon is full"))))
exits = partial(Tiny, act=_at_step_three(lambda: os._exit(3)))
is_killed = partial(Tiny, act=_at_step_three(lambda: os.kill(os.getpid(), signal.SIGKILL)))
segfaults = partial(Tiny, act=_at_step_three(lambda: ctypes.string_at(0)))
aborts = partial(Tiny, act=_at_step_three(os.abort))
hangs = partial(Tiny, act=_at_step_three(_block))
"""And is deaf to every signal but SIGKILL."""
hangs_late = partial(Tiny, act=_at_step(LATE_STEP, _block))
is_killed_late = partial(Tiny, act=_at_step(LATE_STEP, lambda: os.kill(os.getpid(), signal.SIGKILL)))
raises_late = partial(Tiny, act=_at_step(LATE_STEP, lambda: _raise(ValueError("the moon is new"))))
runs_out_of_gpu_memory_late = partial(Tiny, act=_at_step(LATE_STEP, lambda: _run_out(3)))
raises_as_a_filler = partial(Tiny, act=_at_step(FILLING_STEP, lambda: _raise(ValueError("no more to give"))))
breaks_at_the_end = Uncountable
second_rank_is_killed = partial(
    Tiny, act=_at_step_three(lambda: os.kill(os.getpid(), signal.SIGKILL) if rank() else None)
)
second_rank_raises = partial(
    Tiny, act=_at_step_three(lambda: _raise(ValueError("only rank one")) if rank() else None)
)
second_rank_has_a_faulty_gpu = partial(
    Tiny, act=_at_step_three(lambda: _raise(torch.AcceleratorError(ECC_ERROR)) if rank() else None)
)
"""Says so in torch's words, while rank 0 waits for its gradients."""
rank_0_goes_astray = partial(Astray, in_rank=0)
rank_1_goes_astray = partial(Astray, in_rank=1)
second_rank_runs_out_of_gpu_memory = partial(Tiny, act=_at_step_three(lambda: _run_out() if rank() else None))
slow_step = partial(Tiny, act=lambda _: time.sleep(SLOW_STEP_S))
tells_steps = partial(Tiny, act=_tell_step)
"""Every rank says of each training step when it begins."""
slow_second_rank = partial(Tiny, act=lambda _: time.sleep(SLOW_STEP_S * rank()))
"""Rank 1 needs longer than rank 0 after the last gradient of an epoch has been exchanged."""
slow_evaluation = partial(Tiny, judge=lambda: time.sleep(SLOW_STEP_S))
"""Takes its time over every batch of the validation split."""
tells_modules = partial(Telling, tell=lambda _: {"modules": sorted(sys.modules)})
tells_threads = partial(
    Telling,
    tell=lambda _: {
        "threads": torch.get_num_threads(),
        "cpus": sorted(os.sched_getaffinity(0)),
        "session": os.getsid(0),
        "group": os.getpgid(0),
    },
)
needs_a_terabyte = partial(
    Tiny, act=_at_step_three(lambda: torch.empty(2**40, device="cuda", dtype=torch.uint8))
)
slow_pass = partial(Tiny, act=lambda _: _slow_pass(), judge=_slow_pass)
"""A forward pass that keeps the device busy for 0.2 s: a GPU by spinning, while the host goes on."""
slow_forward = partial(Sleepy, forward_s=SLOW_STEP_S)
slow_backward = partial(Sleepy, backward_s=SLOW_STEP_S)
"""The last layers' gradients, more than DDP's first bucket holds, are ready long before the first layer's."""
busy_forward = partial(Tiny, act=lambda _: torch.cuda._sleep(20_000_000))
"""Keeps the GPU busy in the forward pass, while the host goes on."""
second_rank_leaves = partial(Tiny, act=_at_step_three(lambda: os._exit(0) if rank() else _block()))
"""As if all were well, while the first rank waits for ever."""
