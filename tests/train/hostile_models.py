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
from functools import partial
from pathlib import Path

import user_models
from torch import nn

PTRACE_ATTACH = 16


def Tiny(num_classes: int, act: Callable[[], object]) -> user_models.Tiny:  # noqa: N802
    """Calls `act` in its third training step."""
    return user_models.Tiny(num_classes, lambda step: act() if step == 3 else None)  # type: ignore[arg-type]


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


def _write_megabytes() -> None:
    block = b"x" * 100_000
    for _ in range(1000):
        write_to_all(block)


def _flood() -> None:
    word = event(event="progress", epoch=0, step=1)
    while True:
        for descriptor in list(descriptors()):
            with contextlib.suppress(OSError):
                os.write(descriptor, word)


def _ask_without_end() -> None:
    word = event(event="ask-memory")
    while True:
        for descriptor in list(descriptors()):
            with contextlib.suppress(OSError):
                os.write(descriptor, word)


def _send_files() -> None:
    for descriptor in list(descriptors()):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as sock:
            for _ in range(50):
                socket.send_fds(sock, [event(event="progress", epoch=0, step=1)], [0] * 20)


def _patch_clocks() -> None:
    time.monotonic = lambda: 0.0
    time.time = lambda: float("nan")
    time.perf_counter = time.monotonic


def _hang_up() -> None:
    for descriptor in list(descriptors()):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as sock:
            sock.shutdown(socket.SHUT_RDWR)


def _change_all() -> None:
    os.chdir("/")
    os.umask(0o777)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)
    for limit in (resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC, resource.RLIMIT_CORE):
        resource.setrlimit(limit, (0, 0))


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


def kills_its_leader(num_classes: int) -> nn.Module:
    # Else a rank may have its result before the end of its leader reaches it.
    return Tiny(num_classes, lambda: (os.kill(os.getppid(), signal.SIGKILL), time.sleep(10)))


def dies_in_a_thread(num_classes: int) -> nn.Module:
    def act() -> None:
        threading.Thread(target=lambda: os._exit(9)).start()
        time.sleep(1000)

    return Tiny(num_classes, act)


# ---- the models ----

writes_binary = partial(Tiny, act=lambda: write_to_all(bytes(range(256))))
writes_a_hundred_megabytes = partial(Tiny, act=_write_megabytes)
never_stops_telling = partial(Tiny, act=_flood)
never_stops_asking = partial(Tiny, act=_ask_without_end)
sends_open_files = partial(Tiny, act=_send_files)
patches_the_clocks = partial(Tiny, act=_patch_clocks)
closes_all = partial(Tiny, act=lambda: os.closerange(0, 4096))
hangs_up = partial(Tiny, act=_hang_up)
changes_its_surroundings = partial(Tiny, act=_change_all)
raises_the_unspeakable = partial(Tiny, act=lambda: _raise(UnspeakableError()))
raises_megabytes = partial(Tiny, act=lambda: _raise(ValueError("m" * 10_000_000)))
raises_in_colour = partial(
    Tiny, act=lambda: _raise(ValueError("\x1b[31mred\x1b[0m \udcff\ud800 \x07 \x9b2J end"))
)
leaves_as_if_all_were_well = partial(Tiny, act=lambda: os._exit(0))
stops_itself = partial(Tiny, act=lambda: os.kill(os.getpid(), signal.SIGSTOP))
traces_its_leader = partial(Tiny, act=lambda: ctypes.CDLL(None).ptrace(PTRACE_ATTACH, os.getppid(), 0, 0))
"""As a debugger that a model starts: the leader is stopped until its tracer ends."""
