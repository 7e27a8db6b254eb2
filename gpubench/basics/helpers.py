"""Work on a long list, shared with processes that are forked for it: what no helper does, the caller does itself.

Not `concurrent.futures`: its pool needs a thread, which would take turns with the caller's own work, and semaphores in
shared memory, which not every container has.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from gpubench.basics.linux import die_with_parent

MOST_HELPERS = 3
"""With more, who hands over to is busy with nothing else."""
MOST_PIECES = 8_192
"""Their numbers fit into a pipe, which nobody reads before all are in it."""
_NUMBER = struct.Struct("=I")
_HEAD = struct.Struct("=II")
"""Of what is handed over: the number of a piece, and how many bytes follow."""
_PIPE_BYTES = 1 << 20
"""Bytes that a pipe may hold, so that a helper goes on while nobody reads."""


@dataclass(frozen=True, slots=True)
class _Helper:
    process: int
    pipe: int
    """The end that is read."""


def share_out(
    pieces: Sequence[range], work: Callable[[range], bytes], helpers: int
) -> Iterator[tuple[range, bytes | None]]:
    """Each of these pieces once, in any order, with what a helper made of it; with None where the caller is to do it.

    `work`: of a piece. It runs in the helpers, where what it raises and prints is lost: that piece is the caller's.
    `helpers`: how many processes help; 0: none. None does where this process has other threads, whose locks a forked
    one would wait for, nor where none can be forked. They end with the last piece, with the caller's interest, and with
    this process.
    """
    if helpers < 1 or len(pieces) > MOST_PIECES or threading.active_count() > 1:
        yield from ((piece, None) for piece in pieces)
        return
    queue = _queue(len(pieces))
    started: list[_Helper] = []
    try:
        for _ in range(min(helpers, MOST_HELPERS)):
            # No more processes, or no memory for one: then fewer help.
            with contextlib.suppress(OSError), _uninterrupted():
                started.append(_fork_helper(pieces, work, queue))
        yield from _collect(pieces, queue, started)
    finally:
        os.close(queue)
        for helper in started:
            os.close(helper.pipe)
            os.kill(helper.process, signal.SIGKILL)
            os.waitpid(helper.process, 0)


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C waits, so that none is forked of which nobody knows."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _queue(count: int) -> int:
    """A pipe with the numbers of all pieces: whoever is free takes the next one. It ends behind the last."""
    queue, all_numbers = os.pipe2(os.O_CLOEXEC)
    os.write(all_numbers, b"".join(map(_NUMBER.pack, range(count))))
    os.close(all_numbers)
    return queue


def _next(queue: int) -> int | None:
    taken = os.read(queue, _NUMBER.size)
    return _NUMBER.unpack(taken)[0] if taken else None


def _fork_helper(pieces: Sequence[range], work: Callable[[range], bytes], queue: int) -> _Helper:
    parent = os.getpid()
    read_end, write_end = os.pipe2(os.O_CLOEXEC)
    try:
        process = os.fork()
    except OSError:
        os.close(read_end)
        os.close(write_end)
        raise
    if process:
        os.close(write_end)
        return _Helper(process, read_end)
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # whoever is helped says that it was stopped
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        die_with_parent(parent)
        with contextlib.suppress(OSError):  # a pipe of the usual size will do
            _enlarge(write_end)
        while (number := _next(queue)) is not None:
            body = work(pieces[number])
            for part in (_HEAD.pack(number, len(body)), body):
                _write(write_end, part)
    finally:
        os._exit(0)


def _collect(
    pieces: Sequence[range], queue: int, helpers: Sequence[_Helper]
) -> Iterator[tuple[range, bytes | None]]:
    """Those that helpers have done, and meanwhile those that are the caller's; in the end those that got lost."""
    poll = select.poll()
    for helper in helpers:
        poll.register(helper.pipe, select.POLLIN)
    undone = set(range(len(pieces)))
    helping, is_queued = len(helpers), True
    while helping or is_queued:
        handed_over = poll.poll(0 if is_queued else None)
        for pipe, _ in handed_over:
            if (result := _receive(pipe)) is None:
                poll.unregister(pipe)
                helping -= 1
            else:
                number, body = result
                undone.discard(number)
                yield pieces[number], body
        if handed_over or not is_queued:
            continue  # what others have done goes first: else they would wait
        if (taken := _next(queue)) is None:
            is_queued = False
        else:
            undone.discard(taken)
            yield pieces[taken], None
    for lost in sorted(undone):
        yield pieces[lost], None


def _receive(pipe: int) -> tuple[int, bytes] | None:
    """What a helper has done; None of one that has ended."""
    head = _read(pipe, _HEAD.size)
    if head is None:
        return None
    number, size = _HEAD.unpack(head)
    body = _read(pipe, size)
    return None if body is None else (number, body)


def _read(pipe: int, size: int) -> bytes | None:
    """So many bytes; None where the pipe ends before."""
    data = bytearray()
    while len(data) < size:
        some = os.read(pipe, size - len(data))
        if not some:
            return None
        data += some
    return bytes(data)


def _write(pipe: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(pipe, rest) :]


def _enlarge(pipe: int) -> None:
    import fcntl

    fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
