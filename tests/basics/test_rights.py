"""What is told of files that another user keeps to itself. Only root can make such files here."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import pytest
from as_user import as_user

from gpubench.basics.rights import why
from gpubench.datasets import built
from gpubench.node.locks import Locks

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can be two users")
ONE, OTHER = 61001, 61002


def refused(path: Path) -> str:
    try:
        path.touch()
    except OSError as error:
        return why(error, path.parent)
    return "nothing"


def test_what_another_user_keeps_is_told_with_its_owner_and_what_to_do(room: Path) -> None:
    as_user(ONE, lambda: (room / "a" / "b").mkdir(parents=True))
    told = as_user(OTHER, lambda: refused(room / "a" / "b" / "c"))
    assert (
        f"Permission denied ({room}/a is user {ONE}'s); to work in one folder, have user {ONE} run chmod"
        in told
    )
    (room / "a").chmod(0o777)
    told = as_user(OTHER, lambda: refused(room / "a" / "b" / "c"))
    assert f"({room}/a/b is user {ONE}'s)" in told


def test_one_s_own_files_and_other_troubles_are_told_in_the_system_s_words(room: Path) -> None:
    as_user(ONE, lambda: (room / "a").mkdir(mode=0o500))
    assert as_user(ONE, lambda: refused(room / "a" / "b")) == "'Permission denied'"
    as_user(OTHER, lambda: (room / "file").touch())
    assert as_user(ONE, lambda: refused(room / "file" / "b")) == "'Not a directory'"


def test_a_gpu_is_held_against_another_user() -> None:
    gpu, locks = f"GPU-{secrets.token_hex(8)}", Locks()
    assert locks.take([gpu]) == []
    assert as_user(OTHER, lambda: Locks().take([gpu])) == f"['{gpu}']"
    locks.release()
    assert as_user(OTHER, lambda: Locks().take([gpu])) == "[]"


def test_images_that_another_user_makes_are_waited_for(room: Path) -> None:
    lock = room / ".images.lock"
    as_user(ONE, lambda: lock.touch())
    lock.chmod(0o644)
    assert as_user(OTHER, lambda: os.fstat(built._opened_lock(lock)).st_uid) == str(ONE)
    lock.chmod(0o600)
    told = as_user(OTHER, lambda: built._opened_lock(lock))
    assert told.startswith(f"UnusableError: can't lock {lock}: Permission denied")
    assert "GPUBENCH_DATA" in told
