"""`gpubench data make`, and who waits for images."""

from __future__ import annotations

import contextlib
import fcntl
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from place import LIMIT_S, Place, until

from gpubench.schema import catalog


def test_the_list_names_every_model(place: Place) -> None:
    ended = place.run("data", "list")
    assert ended.returncode == 0
    names = ended.stdout.partition("models (--model):")[2].replace(",", " ").split()
    assert set(catalog.list_model_names()) <= set(names)


@pytest.mark.slow
def test_making_images_that_is_stopped_leaves_nothing_and_says_so(place: Place) -> None:
    made = place.start("data", "make", "images/own", "--images", "20000")
    until(lambda: any(place.home.glob("images/.own.partial-*/train/*/*.jpg")), "the first image")
    made.send_signal(signal.SIGHUP)
    out, err = made.communicate(timeout=LIMIT_S)
    assert (made.returncode, out) == (75, "")
    begun, told = err.splitlines()
    assert "images/own (22,000 in all)" in begun
    assert told.startswith("gpubench: stopped; ")
    assert place.files() - {"images/.own.lock"} == {"images"}


def test_who_waits_for_another_s_images_hears_a_signal(place: Place) -> None:
    (place.home / "images").mkdir()
    lock = place.home / "images" / ".own.lock"
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        waits = place.start("data", "make", "images/own", "--images", "40")
        # It has opened the lock, and nothing else is there to be seen.
        until(lambda: any(_opens(waits.pid, lock)), "the lock to be opened")
        waits.send_signal(signal.SIGTERM)
        _, err = waits.communicate(timeout=LIMIT_S)
    assert (waits.returncode, len(err.splitlines())) == (75, 2)
    assert place.files() == {"images", "images/.own.lock"}, "the lock is another's"


def _opens(pid: int, path: Path) -> Iterator[bool]:
    """Of each file that a process has open, whether it is this one."""
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            yield file.samefile(path)
