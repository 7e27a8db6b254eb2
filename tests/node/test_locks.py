"""What one sweep of a host has for itself: GPUs, and the CPUs on which it measures."""

from __future__ import annotations

import os
import secrets
import signal

import pytest

from gpubench.node.locks import SweepLocks


@pytest.fixture
def names() -> list[str]:
    """Of four things that no other test takes."""
    return [f"{secrets.token_hex(8)}-{number}" for number in range(4)]


def test_what_one_has_another_does_not_get_until_it_is_given_up(names: list[str]) -> None:
    first, second = SweepLocks(), SweepLocks()
    assert first.take_free(names[:2]) == []
    assert second.take_free(names[1:3]) == [names[1]]
    assert first.take_free(names[:1]) == [], "its own"
    assert first.take_free(names[2:]) == [names[2]]
    first.release()
    assert second.take_free(names[:2]) == []


def test_all_are_taken_or_none(names: list[str]) -> None:
    first, second = SweepLocks(), SweepLocks()
    assert first.try_take_all(names[:2])
    assert not second.try_take_all(names[1:3])
    assert SweepLocks().take_free(names[2:3]) == [], "not even a part of the refused ones is held"
    assert first.try_take_all(names[:2]), "again, for its next trial"
    assert first.try_take_all(names[3:])
    assert second.try_take_all(names[:2]), "what it had before is free"


def test_what_a_killed_one_held_is_free_at_once(names: list[str]) -> None:
    reads, writes = os.pipe()
    if (pid := os.fork()) == 0:
        lock = SweepLocks()
        os.write(writes, b"1" if lock.try_take_all(names) else b"0")
        signal.pause()
    assert os.read(reads, 1) == b"1"
    assert SweepLocks().take_free(names) == names
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert SweepLocks().take_free(names) == []


def test_where_the_kernel_gives_no_address_nobody_is_refused() -> None:
    longer_than_any_address = "x" * 200
    assert SweepLocks().take_free([longer_than_any_address]) == []
