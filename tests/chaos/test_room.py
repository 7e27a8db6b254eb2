"""The attacker's own tools: faults of the file system come and go, and nobody but its own processes is found."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
import roles
from kinds import DAMAGES, Damage
from room import NoNamespacesError, Room

ERRORS = {"full": errno.ENOSPC, "inodes": errno.ENOSPC, "readonly": errno.EROFS, "removed": errno.ENOENT}


@pytest.fixture
def rooms() -> Iterator[list[Room]]:
    made: list[Room] = []
    yield made
    for room in made:
        room.close()
        assert not room.home.exists()


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.name)
def test_a_fault_comes_and_goes(rooms: list[Room], damage: Damage) -> None:
    try:
        rooms.append(Room(damage.place))
    except NoNamespacesError as error:
        pytest.skip(f"user namespaces are not allowed here: {error}")
    (room,) = rooms
    room.results.mkdir()
    folder = room.results if damage.place == "results" else room.seen(damage.place)
    stored = folder / "stored"
    stored.write_text("as it was")

    room.damage(damage)
    with pytest.raises(OSError) as failed:  # noqa: PT011 - its number is looked at below
        (folder / "new").write_text("x")
    assert failed.value.errno == ERRORS[damage.fault]

    room.lift(damage)
    if damage.fault == "removed":
        assert not folder.exists()
    else:
        (folder / "newer").write_text("x")
        assert stored.read_text() == "as it was"
        assert {path.name for path in folder.iterdir()} <= {"stored", "new", "newer", "run"}


ORPHAN = "import os, time; os.fork() and os._exit(0); os.setsid(); time.sleep(60)"


def test_orphans_are_found_by_their_mark_and_strangers_are_not() -> None:
    marked = {**os.environ, roles.MARK: "a-token-of-this-test"}
    subprocess.run([sys.executable, "-c", ORPHAN], env=marked, check=True)
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        (orphan,) = roles.left("a-token-of-this-test", within_s=0)
        assert orphan.pid != stranger.pid
        orphan.suspend()
        roles.end("a-token-of-this-test")
        assert roles.left("a-token-of-this-test", within_s=5) == []
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()
