"""`gpubench merge`, as users run it."""

from __future__ import annotations

import os
import socket

import pytest
from place import Place
from swept import swept

from gpubench.store.work_claims import WorkClaims, WorkItem


def test_where_several_go_must_be_said_and_an_input_is_no_place_unless_it_is_the_first(place: Place) -> None:
    for name in "ab":
        swept(place.home / name, name, "16")
    ended = place.run("merge", "a", "b")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.endswith(": --out FOLDER\n")
    ended = place.run("merge", "a", "b", "--out", "b")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("gpubench: --out b is one ")
    assert place.run("merge", "a", "b", "--out", "a").returncode == 0
    assert place.run("merge", "a", "nowhere", "--out", "a").returncode == 4


@pytest.mark.slow
def test_of_a_folder_in_which_a_sweep_measures_what_is_there_is_copied_and_it_is_told(place: Place) -> None:
    for name in "ab":
        swept(place.home / name, name, "16")
    claims = WorkClaims(place.home / "b")
    claims.claim_item(WorkItem("t0123456789a", 1, "a machine"))
    ended = place.run("merge", "a", "b", "--out", "c")
    assert ended.returncode == 0
    assert ended.stdout.startswith("c: 2 attempts added")
    assert ended.stderr.startswith(
        f"gpubench: process {os.getpid()} on {socket.gethostname()} measures into b"
    )
    assert ended.stderr.count("\n") == 1
    claims.give_back()
    assert place.run("merge", "a", "b", "--out", "c").stderr == ""
