"""Models that get in gpubench's way, by mistake or on purpose, named as `tests/train/hostile_models.py:function`.

Each does so in its third training step, in a rank; whoever launched it must get one row with a reason all the same.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import nn

PTRACE_TRACEME, PTRACE_ATTACH = 0, 16


class Tiny(nn.Module):
    """Colours in, classes out. Calls `act` in its third training step."""

    def __init__(self, num_classes: int, act: Callable[[], object]) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(48, num_classes))
        self._act = act
        self._steps = 0

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        if self.training:
            if self._steps == 3:
                self._act()
            self._steps += 1
        out: torch.Tensor = self.layers(images)
        return out


def descriptors() -> Iterator[int]:
    """All that are open but the three standard ones."""
    for name in sorted(int(path.name) for path in Path("/proc/self/fd").iterdir()):
        if name > 2:
            with contextlib.suppress(OSError):
                os.fstat(name)
                yield name


def write_to_all(*messages: bytes) -> None:
    for descriptor in list(descriptors()):
        for message in messages:
            with contextlib.suppress(OSError):
                if select.select([], [descriptor], [], 0)[1]:
                    os.write(descriptor, message)


def event(**fields: object) -> bytes:
    return json.dumps({"rank": 0, **fields}).encode()


def writes_binary(num_classes: int) -> nn.Module:
    return Tiny(num_classes, lambda: write_to_all(bytes(range(256))))


def writes_an_end_of_no_number(num_classes: int) -> nn.Module:
    end = {
        "event": "end",
        "epoch": 0,
        "measured": False,
        "steps": 8,
        "first_batch_s": -1.0,
        "train_loss": 1.0,
    }
    return Tiny(num_classes, lambda: write_to_all(event(**end, t0=float("nan"), t1=1.0)))


def _write_megabytes() -> None:
    block = b"x" * 100_000
    for _ in range(1000):
        write_to_all(block)


def writes_a_hundred_megabytes(num_classes: int) -> nn.Module:
    return Tiny(num_classes, _write_megabytes)


def _flood() -> None:
    word = event(event="progress", epoch=0, step=1)
    while True:
        for descriptor in list(descriptors()):
            with contextlib.suppress(OSError):
                os.write(descriptor, word)


def never_stops_telling(num_classes: int) -> nn.Module:
    return Tiny(num_classes, _flood)


def _ask_without_end() -> None:
    word = event(event="ask-memory")
    while True:
        for descriptor in list(descriptors()):
            with contextlib.suppress(OSError):
                os.write(descriptor, word)


def never_stops_asking(num_classes: int) -> nn.Module:
    return Tiny(num_classes, _ask_without_end)


def _send_files() -> None:
    for descriptor in list(descriptors()):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as sock:
            for _ in range(50):
                socket.send_fds(sock, [event(event="progress", epoch=0, step=1)], [0] * 20)


def sends_open_files(num_classes: int) -> nn.Module:
    return Tiny(num_classes, _send_files)


def _patch_clocks() -> None:
    time.monotonic = lambda: 0.0
    time.time = lambda: float("nan")
    time.perf_counter = time.monotonic


def patches_the_clocks(num_classes: int) -> nn.Module:
    return Tiny(num_classes, _patch_clocks)


def closes_all(num_classes: int) -> nn.Module:
    return Tiny(num_classes, lambda: os.closerange(0, 4096))


def _hang_up() -> None:
    for descriptor in list(descriptors()):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as sock:
            sock.shutdown(socket.SHUT_RDWR)


def hangs_up(num_classes: int) -> nn.Module:
    return Tiny(num_classes, _hang_up)


def _change_all() -> None:
    os.chdir("/")
    os.umask(0o777)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)
    for limit in (resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC, resource.RLIMIT_CORE):
        resource.setrlimit(limit, (0, 0))


def changes_its_surroundings(num_classes: int) -> nn.Module:
    return Tiny(num_classes, _change_all)


def spends_its_cpu_time(num_classes: int) -> nn.Module:
    def act() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (1, 1))
        while True:
            pass

    return Tiny(num_classes, act)


class UnspeakableError(Exception):
    """Can't even say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


def _raise(error: BaseException) -> None:
    raise error


def raises_the_unspeakable(num_classes: int) -> nn.Module:
    return Tiny(num_classes, lambda: _raise(UnspeakableError()))


def raises_megabytes(num_classes: int) -> nn.Module:
    return Tiny(num_classes, lambda: _raise(ValueError("m" * 10_000_000)))


def raises_in_colour(num_classes: int) -> nn.Module:
    return Tiny(num_classes, lambda: _raise(ValueError("\x1b[31mred\x1b[0m \udcff\ud800 \x07 \x9b2J end")))


def kills_its_leader(num_classes: int) -> nn.Module:
    # Else a rank may have its result before the end of its leader reaches it.
    return Tiny(num_classes, lambda: (os.kill(os.getppid(), signal.SIGKILL), time.sleep(10)))


def kills_its_group(num_classes: int) -> nn.Module:
    return Tiny(num_classes, lambda: os.killpg(0, signal.SIGKILL))


def leaves_as_if_all_were_well(num_classes: int) -> nn.Module:
    return Tiny(num_classes, lambda: os._exit(0))


def stops_itself(num_classes: int) -> nn.Module:
    return Tiny(num_classes, lambda: os.kill(os.getpid(), signal.SIGSTOP))


def dies_in_a_thread(num_classes: int) -> nn.Module:
    def act() -> None:
        threading.Thread(target=lambda: os._exit(9)).start()
        time.sleep(1000)

    return Tiny(num_classes, act)


def traces_its_leader(num_classes: int) -> nn.Module:
    """As a debugger that a model starts: the leader is stopped until its tracer ends."""
    return Tiny(num_classes, lambda: ctypes.CDLL(None).ptrace(PTRACE_ATTACH, os.getppid(), 0, 0))


def has_itself_traced(num_classes: int) -> nn.Module:
    """As what a debugger starts: from then on its parent, the leader, is asked about each of its signals."""

    def act() -> None:
        ctypes.CDLL(None).ptrace(PTRACE_TRACEME, 0, 0, 0)
        os.kill(os.getpid(), signal.SIGWINCH)

    return Tiny(num_classes, act)
