"""Two users' jobs on one node of a real SLURM at the same time, and two users who work in one folder."""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import psutil
import pytest
from cluster import Cluster
from jobs import GPUBENCH, HELD_SWEEP, SWEEP
from place import HELD
from users import GROUP_ID, User

pytestmark = pytest.mark.slurm
ON_ONE_NODE = ("--nodelist=n1", "--cpus-per-task=2")
GPU = f"GPU-{secrets.token_hex(8)}"
"""One that no sweep of this machine has."""
HOLDS = f"""
import pathlib, sys, time
from gpubench.node.locks import SweepLocks
hold = SweepLocks()
print("taken:", hold.take_free([{GPU!r}]), flush=True)
while pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.05)
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Two:
    """Two users of one cluster, and a folder that both may write."""

    cluster: Cluster
    ada: User
    bo: User
    room: Path

    def submit(
        self, user: User, script: str, *options: str, umask: str = "077", images: Path | None = None
    ) -> str:
        """A user's job on the node of all. Temporary files lie where everybody's do."""
        data = "unset GPUBENCH_DATA" if images is None else f"export GPUBENCH_DATA={images}"
        setting = (
            f"umask {umask}\nexport COLUMNS=300 TMPDIR={self.room}/tmp\nunset GPUBENCH_OUT XDG_CACHE_HOME"
        )
        return self.cluster.submit_as(user, f"{setting}\n{data}\n{script}", *ON_ONE_NODE, *options)

    def ends(self, *ids: str) -> list[str]:
        return [self.cluster.await_end(one) for one in ids]

    def scratch(self, user: User) -> list[Path]:
        """A user's folders of temporary files."""
        found = (self.room / "tmp").glob("gpubench-*")
        return [one for one in found if one.stat().st_uid == user.uid]


@pytest.fixture
def two(cluster: Cluster) -> Iterator[Two]:
    if not cluster.users:
        pytest.skip(
            "two users can be had only where root runs the tests and may make mount namespaces (unshare)"
        )
    ada, bo = cluster.users
    room = cluster.folder / f"room-{secrets.token_hex(4)}"
    for folder, mode in ((room, 0o2775), (room / "tmp", 0o1777)):
        folder.mkdir()
        os.chown(folder, 0, GROUP_ID)
        folder.chmod(mode)
    yield Two(cluster=cluster, ada=ada, bo=bo, room=room)
    cluster.clear()
    shutil.rmtree(room, ignore_errors=True)
    for user in (ada, bo):
        for left in [*user.home.iterdir()]:
            shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink()


def held(user: User) -> Path:
    """A model of the user's own that waits for as long as this file is there."""
    file = user.home / "hold"
    file.touch()
    (user.home / "nets.py").write_text(HELD.format(hold=str(file)))
    return file


def in_training(two: Two, job: str, user: User) -> None:
    """Waits until a trial runs: the sweep, its fork server, a leader, a rank."""
    two.cluster.wait(
        lambda: (
            "batch_size=8  started" in two.cluster.told(job)
            and bool(two.scratch(user))
            and len(processes(user)) >= 4
        ),
        lambda: f"job {job} is {two.cluster.state(job)}:\n{two.cluster.told(job)}",
    )


def rows(folder: Path) -> pd.DataFrame:
    return pd.read_csv(folder / "trials.csv").set_index("batch_size").sort_index()


def processes(user: User) -> list[psutil.Process]:
    """Of a user's sweep: all that run Python."""
    found = psutil.process_iter(["uids", "cmdline"])
    return [
        one
        for one in found
        if one.info["uids"].real == user.uid and "gpubench" in " ".join(one.info["cmdline"] or ())
    ]


def test_neither_meets_the_other_s_files_or_processes(two: Two) -> None:
    ada, bo = two.ada, two.bo
    holds = {user.name: held(user) for user in (ada, bo)}
    theirs = {user.name: two.submit(user, f"{HELD_SWEEP} --batch-size 8") for user in (ada, bo)}
    for user in (ada, bo):
        in_training(two, theirs[user.name], user)
    family = processes(bo)
    assert two.scratch(ada)
    assert two.scratch(bo)

    # One is killed, and leaves what it has made; the other does not feel it.
    (sweep,) = (one for one in processes(ada) if "sweep" in one.cmdline())
    sweep.kill()
    assert two.ends(theirs["ada"]) == ["FAILED"]
    assert all(one.is_running() for one in family)
    left = two.scratch(ada)
    assert left
    holds["bo"].unlink()
    assert two.ends(theirs["bo"]) == ["COMPLETED"], two.cluster.told(theirs["bo"])
    assert list(rows(bo.home / "results" / "batch-size")["status"]) == ["ok"]

    # What she has left stands in nobody's way, and is hers to take away.
    again = two.submit(bo, f"{HELD_SWEEP} --batch-size 16")
    assert two.ends(again) == ["COMPLETED"], two.cluster.told(again)
    assert list(rows(bo.home / "results" / "batch-size")["status"]) == ["ok", "ok"]
    assert two.scratch(ada) == left
    assert two.scratch(bo) == []
    holds["ada"].unlink()
    after = two.submit(ada, f"{HELD_SWEEP} --batch-size 8")
    assert two.ends(after) == ["COMPLETED"], two.cluster.told(after)
    table = rows(ada.home / "results" / "batch-size")
    assert list(table["status"]) == ["ok"]
    assert (table["epoch_time_s"] > 0).all()
    assert two.scratch(ada) == []


def test_a_gpu_that_both_see_is_held_by_the_first(two: Two) -> None:
    """As where SLURM gives out no GPUs, or two jobs were told the same."""
    hold = two.room / "hold"
    hold.touch()
    takes = f"{sys.executable} -c {shlex.quote(HOLDS)} {hold}"

    def taken(user: User) -> tuple[str, str]:
        job = two.submit(user, takes)
        two.cluster.wait(lambda: "taken:" in two.cluster.told(job), lambda: two.cluster.told(job))
        return job, two.cluster.told(job).strip()

    try:
        first, told = taken(two.ada)
        assert told == "taken: []"
        assert taken(two.bo)[1] == f"taken: {[GPU]}"
        two.cluster.run("scancel", "--full", "--signal=KILL", first)
        two.ends(first)
        assert taken(two.bo)[1] == "taken: []"
    finally:
        hold.unlink()
        Path(f"/dev/shm/gpubench-{GPU}.lock").unlink(missing_ok=True)


def measured_by(folder: Path) -> Sequence[int]:
    """The users of the records, each of another unit."""
    found = sorted((folder / "records").glob("*/*.json"))
    assert len({one.name.partition("-")[0] for one in found}) == len(found), "something was measured twice"
    return [one.stat().st_uid for one in found]


def test_both_work_in_one_folder_of_their_group(two: Two) -> None:
    out = two.room / "shared"
    images = two.room / "images"
    sweep = f"{SWEEP} --out {out} --batch-size"
    together = [two.submit(user, f"{sweep} 2,4,8", umask="002", images=images) for user in (two.ada, two.bo)]
    assert two.ends(*together) == ["COMPLETED", "COMPLETED"], [two.cluster.told(job) for job in together]
    assert set(rows(out)["status"]) == {"ok"}
    assert len(measured_by(out)) == 3

    # Each goes on where the other has stopped, whoever wrote what before.
    for user, sizes in ((two.ada, "2,5"), (two.bo, "5,6")):
        goes_on = f"{sweep} {sizes} && {GPUBENCH} merge {out} && {GPUBENCH} status {out}"
        job = two.submit(user, goes_on, umask="002", images=images)
        assert two.ends(job) == ["COMPLETED"], two.cluster.told(job)
    assert {two.ada.uid, two.bo.uid} <= set(measured_by(out))
    kept = [out, *out.rglob("*")]
    assert not [one for one in kept if one.stat().st_gid != GROUP_ID or not one.stat().st_mode & 0o020], (
        "the group's"
    )
