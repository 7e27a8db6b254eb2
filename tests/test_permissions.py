"""What stays is readable for whom the umask lets read; what is temporary is this user's alone."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpubench.node.launch import leader, shared_memory
from gpubench.node.launch.scratch import open_scratch_folder
from gpubench.results.store import Results
from gpubench.results.whole_file import write_whole
from gpubench.store.work_claims import WorkClaims, WorkItem


@pytest.fixture(params=[0o022, 0o077, 0o002], ids=["022", "077", "002"])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    """Of `folder` and all that is in it."""
    return {str(p.relative_to(folder)): stat.S_IMODE(p.stat().st_mode) for p in (folder, *folder.rglob("*"))}


def by_umask(folder: Path, umask: int) -> None:
    """Everything has the rights that the umask leaves."""
    found = modes(folder)
    wanted = {name: (0o777 if (folder / name).is_dir() else 0o666) & ~umask for name in found}
    assert len(found) > 1
    assert found == wanted


def test_results_and_their_claims_have_the_umask_s_rights(tmp_path: Path, umask: int) -> None:
    results = Results(tmp_path / "results")
    results.create_folder()
    WorkClaims(results.folder).claim_item(WorkItem("t0123456789ab", 1, "a machine"))
    results.ensure_folder_id([])
    write_whole(results.make_attempt_file_path("records", "t0123456789ab", "1", "json"), "{}\n")
    results.write_table("trials.csv", "a\n")
    results.write_table("trials.csv", "b\n")  # in place of an older one
    pid = os.fork()
    if pid == 0:  # the log of a trial, as its processes open it
        leader.redirect_output(results.folder / "trial.log")
        os._exit(0)
    os.waitpid(pid, 0)
    by_umask(results.folder, umask)


def test_a_trial_s_temporary_files_are_nobody_else_s(umask: int) -> None:  # noqa: ARG001 - under each of them
    with open_scratch_folder() as folder:
        (folder / "0").mkdir()
        pid = os.fork()
        if pid == 0:  # a leader, and one of its ranks
            shared_memory.note_future_forks(folder / "0")
            rank = os.fork()
            if rank:
                os.waitpid(rank, 0)
            os._exit(0)
        os.waitpid(pid, 0)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_IMODE((folder / "0" / shared_memory.NOTES).stat().st_mode) == 0o600
