"""What is told of files that another user keeps to itself. Only root can make such files here."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import pytest
from as_user import as_user

from gpubench.datasets import built
from gpubench.node.locks import SweepLocks

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can be two users")
ONE, OTHER = 61001, 61002


def test_a_gpu_is_held_against_another_user() -> None:
    gpu, locks = f"GPU-{secrets.token_hex(8)}", SweepLocks()
    assert locks.take_free([gpu]) == []
    assert as_user(OTHER, lambda: SweepLocks().take_free([gpu])) == f"['{gpu}']"
    locks.release()
    assert as_user(OTHER, lambda: SweepLocks().take_free([gpu])) == "[]"


def test_images_that_another_user_makes_are_waited_for(room: Path) -> None:
    lock = room / ".images.lock"
    as_user(ONE, lambda: lock.touch())
    lock.chmod(0o644)
    assert as_user(OTHER, lambda: os.fstat(built._open_lock(lock)).st_uid) == str(ONE)
    lock.chmod(0o600)
    told = as_user(OTHER, lambda: built._open_lock(lock))
    assert told.startswith(f"UnusableError: can't lock {lock}: Permission denied")
    assert "GPUBENCH_DATA" in told
