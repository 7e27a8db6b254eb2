"""Work that is shared with forked processes: each piece comes once, whoever did it, and nobody is left over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from gpubench.basics.helpers import MOST_PIECES, share_out

PIECES = [range(first, first + 10) for first in range(0, 400, 10)]


def slow(piece: range) -> bytes:
    time.sleep(0.002)
    return f"{os.getpid()} {piece.start}".encode()


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if no test before had left a thread behind."""
    monkeypatch.setattr(threading, "active_count", lambda: 1)


def _children() -> set[str]:
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> Callable[[], set[str]]:
    """The processes that were forked since. As if no test before had left a thread behind."""
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    before = _children()
    return lambda: _children() - before


@pytest.mark.parametrize("helpers", [0, 1, 3])
def test_each_piece_comes_once(helpers: int, children: Callable[[], set[str]]) -> None:
    others: Counter[str] = Counter()
    found = []
    for piece, body in share_out(PIECES, slow, helpers):
        if body is None:
            time.sleep(0.002)
        else:
            who, start = body.decode().split()
            assert int(start) == piece.start
            others[who] += 1
        found.append(piece)
    assert sorted(found, key=lambda piece: piece.start) == PIECES
    assert bool(helpers) <= len(others) <= helpers  # on a busy machine some may come too late
    assert str(os.getpid()) not in others
    assert not children()


@pytest.mark.usefixtures("alone")
def test_more_than_a_pipe_holds_is_handed_over() -> None:
    large = os.urandom(1 << 16) * 48
    assert [body for _, body in share_out(PIECES[:3], lambda _: large, 2) if body not in (None, large)] == []


def dies(piece: range) -> bytes:
    if piece.start >= 100:
        os.kill(os.getpid(), signal.SIGKILL)
    return b"done"


def fails(piece: range) -> bytes:
    if piece.start >= 100:
        raise OSError("lost")
    return b"done"


@pytest.mark.parametrize("work", [dies, fails])
def test_what_a_helper_has_lost_is_left_to_the_caller(
    work: Callable[[range], bytes], capfd: pytest.CaptureFixture[str], children: Callable[[], set[str]]
) -> None:
    """Of a helper that was killed, and of one whose work failed: nobody is told but by what the caller meets itself."""
    found = []
    for piece, _ in share_out(PIECES, work, 2):
        time.sleep(0.002)
        found.append(piece)
    assert sorted(found, key=lambda piece: piece.start) == PIECES
    assert capfd.readouterr() == ("", "")
    assert not children()


def test_helpers_end_when_nobody_asks_any_more(children: Callable[[], set[str]]) -> None:
    for _ in share_out(PIECES, slow, 3):
        assert len(children()) == 3
        break
    assert not children()


def test_nobody_is_forked_beside_other_threads() -> None:
    """The lock that one of them holds would never be given back in a forked process."""
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    try:
        assert [body for _, body in share_out(PIECES, slow, 3) if body is not None] == []
    finally:
        over.set()
        thread.join()


@pytest.mark.usefixtures("alone")
def test_the_numbers_of_as_many_pieces_as_there_may_be_fit_into_a_pipe() -> None:
    pieces = [range(0)] * MOST_PIECES
    assert len(list(share_out(pieces, lambda _: b"", 1))) == MOST_PIECES


STOPPED = """
import os, sys, time
from gpubench.basics.helpers import share_out

def work(piece):
    os.write(1, b"%d\\n" % os.getpid())
    time.sleep(60)

try:
    for _ in share_out([range(1)] * 9, work, 2):
        time.sleep(60)
except KeyboardInterrupt:
    print("stopped", file=sys.stderr)
"""


@pytest.mark.parametrize("to_all", [True, False])
def test_an_interrupt_ends_all_of_them_and_is_told_once(to_all: bool) -> None:
    """Ctrl-C goes to helpers, too; a signal to the one process alone does not."""
    process = subprocess.Popen(
        [sys.executable, "-c", STOPPED],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    helpers = [int(process.stdout.readline()) for _ in range(2)]
    (os.killpg if to_all else os.kill)(process.pid, signal.SIGINT)
    assert process.communicate(timeout=20)[1] == "stopped\n"
    assert not any(Path(f"/proc/{one}").exists() for one in helpers)


def test_helpers_end_with_a_process_that_is_killed() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", STOPPED], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    helpers = [int(process.stdout.readline()) for _ in range(2)]
    process.kill()
    process.wait()
    process.stdout.read()  # ends once nobody holds the other end
    process.stdout.close()
    ended = time.monotonic() + 20
    while any(_runs(one) for one in helpers):
        assert time.monotonic() < ended
        time.sleep(0.01)


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False
