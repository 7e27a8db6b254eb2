"""The attacker's own tools: faults of the file system come and go, and nobody but its own processes is found."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
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


def test_a_machine_without_user_namespaces_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "unshare"
    fake.write_text("#!/bin/sh\necho 'unshare failed: Operation not permitted' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(NoNamespacesError, match="Operation not permitted"):
        Room("results")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NoNamespacesError, match="No such file"):
        Room("results")


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


def test_a_process_has_the_role_of_its_place_in_the_tree() -> None:
    nested = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])"
    parent = subprocess.Popen([sys.executable, "-c", nested], start_new_session=True)
    try:
        own = psutil.Process(parent.pid)
        assert roles.of_role(own, "parent") == [own]
        # Its child is none of ours.
        assert roles.of_role(own, "server") == roles.of_role(own, "rank") == []
    finally:
        for process in [*own.children(recursive=True), own]:
            process.kill()
        parent.wait()
    assert roles.of_role(own, "leader") == [], "it has gone"
