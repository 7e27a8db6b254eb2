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
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import nn

SLOW_STEP_S = 0.1


def say(**facts: object) -> None:
    """One line of JSON in the log, from rank 0."""
    if rank() == 0:
        print(json.dumps(facts), flush=True)


def rank() -> int:
    return dist.get_rank() if dist.is_initialized() else 0


class Tiny(nn.Module):
    """Colours in, classes out. Calls `act` with the number of the training step, from 0."""

    def __init__(self, num_classes: int, act: Callable[[int], None] = lambda _: None) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(48, num_classes))
        self._act = act
        self._steps = 0

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        if self.training:
            self._act(self._steps)
            self._steps += 1
        out: torch.Tensor = self.layers(images)
        return out


def _at_step_three(act: Callable[[], object]) -> Callable[[int], None]:
    def maybe(step: int) -> None:
        if step == 3:
            print("step three begins", flush=True)
            act()

    return maybe


def _raise(error: BaseException) -> None:
    raise error


def tiny(num_classes: int) -> nn.Module:
    return Tiny(num_classes)


def runs_out_of_gpu_memory(num_classes: int) -> nn.Module:
    error = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
    return Tiny(num_classes, _at_step_three(lambda: _raise(error)))


def raises(num_classes: int) -> nn.Module:
    return Tiny(num_classes, _at_step_three(lambda: _raise(ValueError("the moon is full"))))


def raises_when_built(num_classes: int) -> nn.Module:
    raise ValueError(f"{num_classes} classes are too many")


def asks_to_exit(num_classes: int) -> nn.Module:
    return Tiny(num_classes, _at_step_three(lambda: sys.exit("leaving early")))


def exits(num_classes: int) -> nn.Module:
    return Tiny(num_classes, _at_step_three(lambda: os._exit(3)))


def is_killed(num_classes: int) -> nn.Module:
    return Tiny(num_classes, _at_step_three(lambda: os.kill(os.getpid(), signal.SIGKILL)))


def segfaults(num_classes: int) -> nn.Module:
    return Tiny(num_classes, _at_step_three(lambda: ctypes.string_at(0)))


def aborts(num_classes: int) -> nn.Module:
    return Tiny(num_classes, _at_step_three(os.abort))


def _block() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))
    time.sleep(1000)


def hangs(num_classes: int) -> nn.Module:
    """And is deaf to every signal but SIGKILL."""
    return Tiny(num_classes, _at_step_three(_block))


def second_rank_is_killed(num_classes: int) -> nn.Module:
    return Tiny(num_classes, _at_step_three(lambda: os.kill(os.getpid(), signal.SIGKILL) if rank() else None))


def second_rank_raises(num_classes: int) -> nn.Module:
    return Tiny(num_classes, _at_step_three(lambda: _raise(ValueError("only rank one")) if rank() else None))


def second_rank_runs_out_of_gpu_memory(num_classes: int) -> nn.Module:
    error = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
    return Tiny(num_classes, _at_step_three(lambda: _raise(error) if rank() else None))


def leaves_a_daemon(num_classes: int) -> nn.Module:
    """Starts a process that leaves the session, outlives its parent and says its id."""
    script = "sleep 1000 & echo '{\"daemon\": '$!'}'"
    subprocess.run(["setsid", "sh", "-c", script], check=True)
    return Tiny(num_classes)


def leaves_a_daemon_and_dies(num_classes: int) -> nn.Module:
    leaves_a_daemon(num_classes)
    os._exit(3)


def talks_and_dies(num_classes: int) -> nn.Module:
    print(f"{num_classes} classes" + "x" * 1_000_000, flush=True)
    os._exit(3)


def slow_step(num_classes: int) -> nn.Module:
    return Tiny(num_classes, lambda _: time.sleep(SLOW_STEP_S))


def slow_second_rank(num_classes: int) -> nn.Module:
    """Rank 1 needs longer than rank 0 after the last gradient of an epoch has been exchanged."""
    return Tiny(num_classes, lambda _: time.sleep(SLOW_STEP_S * rank()))


class SlowToJudge(Tiny):
    """Takes its time over every batch of the validation split."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        if not self.training:
            time.sleep(SLOW_STEP_S)
        return super().forward(images)


def slow_evaluation(num_classes: int) -> nn.Module:
    return SlowToJudge(num_classes)


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


def tells_modules(num_classes: int) -> nn.Module:
    return Telling(num_classes, lambda _: {"modules": sorted(sys.modules)})


def tells_threads(num_classes: int) -> nn.Module:
    return Telling(
        num_classes,
        lambda _: {
            "threads": torch.get_num_threads(),
            "cpus": sorted(os.sched_getaffinity(0)),
            "session": os.getsid(0),
            "group": os.getpgid(0),
        },
    )


class FrozenNorms(Telling):
    """A small convolutional network whose BatchNorm layers stay in evaluation mode."""

    def __init__(self, num_classes: int) -> None:
        super().__init__(num_classes, gradients)
        norm = nn.BatchNorm2d(8)
        with torch.no_grad():
            assert norm.running_mean is not None
            assert norm.running_var is not None
            norm.running_mean.uniform_(-0.5, 0.5)
            norm.running_var.uniform_(0.5, 1.5)
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 5, stride=2),
            norm,
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
            nn.Linear(32, num_classes),
        )

    def train(self, mode: bool = True) -> FrozenNorms:
        super().train(mode)
        for module in self.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.training = False
        return self


def gradients(model: nn.Module) -> dict[str, object]:
    """Every parameter's gradient as the last step left it."""
    return {
        "gradients": {
            name: p.grad.flatten().tolist() for name, p in model.named_parameters() if p.grad is not None
        }
    }


def frozen_norms(num_classes: int) -> nn.Module:
    return FrozenNorms(num_classes)


def needs_a_terabyte(num_classes: int) -> nn.Module:
    return Tiny(num_classes, _at_step_three(lambda: torch.empty(2**40, device="cuda", dtype=torch.uint8)))
