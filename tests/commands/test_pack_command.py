"""`gpubench pack` and `gpubench unpack`, as users run them."""

from __future__ import annotations

import os

import pytest
from place import Place
from swept import swept

from gpubench.store.work_claims import WorkClaims, WorkItem


def test_a_folder_is_packed_read_and_unpacked(place: Place) -> None:
    swept(place.home / "a", "one", "16,32")
    before = place.run("table", "a").stdout
    ended = place.run("pack", "a")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("a: 4 files packed")
    assert not (place.home / "a" / "logs").exists()
    assert place.run("table", "a").stdout == before
    assert place.run("unpack", "a").stdout.startswith("a: 4 files unpacked")
    assert len(list((place.home / "a").glob("logs/*/*.log"))) == 2


@pytest.mark.parametrize("command", ["pack", "unpack"])
def test_a_folder_in_which_a_sweep_measures_is_refused(place: Place, command: str) -> None:
    swept(place.home / "a", "one", "16")
    WorkClaims(place.home / "a").claim_item(WorkItem("t0123456789a", 1, "a machine"))
    ended = place.run(command, "a")
    assert (ended.returncode, ended.stdout) == (4, "")
    assert f"process {os.getpid()} on " in ended.stderr
    assert " measures into a: " in ended.stderr
    assert place.run(command, "nowhere").returncode == 4
