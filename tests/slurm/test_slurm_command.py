"""`gpubench slurm`: scripts that a real SLURM runs to their end."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from jobs import Workplace
from place import HELD, SMALL, TINY

pytestmark = pytest.mark.slurm


def slurm(work: Workplace, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gpubench", "slurm", *words],
        cwd=work.home, env={**work.cluster.environ, "GPUBENCH_DATA": str(work.images), "COLUMNS": "300"},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def submitted(work: Workplace, *words: str) -> str:
    """The id of the jobs that sweep."""
    done = slurm(work, *words[: words.index("--")], "--submit", *words[words.index("--") :])
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def told(work: Workplace) -> str:
    """What all jobs have said, each behind its file's name."""
    return "\n".join(f"== {file.name}\n{file.read_text()}" for file in sorted(work.home.glob("*.out")))


def test_tasks_of_an_array_share_a_plan(work: Workplace) -> None:
    # Three tasks, so that more than one is on a node.
    array = submitted(
        work, "--tasks", "3", "--cpus-per-task", "2", "--partition", "low",
        "--", *TINY, "--variant", "synthetic", "--batch-size", "4,8,16,32",
    )  # fmt: skip
    assert set(work.cluster.await_end(array).split(",")) == {"COMPLETED"}, told(work)
    assert "Which batch size?" in told(work)
    rows = work.trials()
    assert list(rows.index) == [4, 8, 16, 32]
    assert set(rows["status"]) == {"ok"}
    assert (rows["epoch_time_s"] > 0).all()
    assert set(rows["slurm_partition"]) == {"low"}
    assert set(rows["cpu_count"]) == {2}, "what a task was given, not the node's four"
    records = list((work.home / "results" / "batch-size" / "records").rglob("*.json"))
    assert len(records) == 4, "nothing was measured twice"


MARKED = """
import sys, time, gpubench
for _ in range(3):
    with gpubench.epoch():
        time.sleep(0.1 * int(sys.argv[1]))
"""


def test_tasks_share_the_plan_of_a_command_that_tells_of_its_epochs(work: Workplace) -> None:
    (work.home / "marked.py").write_text(MARKED)
    job = submitted(
        work, "--tasks", "3", "--cpus-per-task", "2",
        "--", "--device", "cpu", "--rounds", "1", "--batch-size", "1,2,3,4",
        "--", sys.executable, "marked.py", "{batch_size}",
    )  # fmt: skip
    assert set(work.cluster.await_end(job).split(",")) == {"COMPLETED"}, told(work)
    rows = work.trials("marked")
    assert list(rows["status"]) == ["ok"] * 4
    assert set(rows["epoch_time_source"]) == {"measured"}, "its epochs were not heard"
    records = list((work.home / "results" / "marked" / "records").rglob("*.json"))
    assert len(records) == 4, "nothing was measured twice"


def test_exit_75_becomes_a_requeue_that_goes_on(work: Workplace) -> None:
    hold = work.home / "hold"
    hold.touch()
    (work.home / "nets.py").write_text(HELD.format(hold=str(hold)))
    job = submitted(
        work, "--tasks", "2", "--cpus-per-task", "2", "--time", "5",
        "--", *SMALL, "--model", "nets.py:net", "--batch-size", "8",
    )  # fmt: skip
    work.cluster.wait(lambda: "batch_size=8  started" in told(work), lambda: told(work))
    work.cluster.wait(lambda: bool(list(work.home.glob("results/*/logs/*/*"))), lambda: told(work))
    work.cluster.wait(
        lambda: sorted(work.cluster.state(job).split(",")) == ["COMPLETED", "RUNNING"], lambda: told(work)
    )  # the other task finds nothing to do
    work.cluster.run("scancel", "--signal=USR1", job)
    work.cluster.wait(lambda: "Exited with exit code 75" in told(work), lambda: told(work))
    hold.unlink()
    assert set(work.cluster.await_end(job).split(",")) == {"COMPLETED"}, told(work)
    facts = work.cluster.run("scontrol", "-o", "show", "job", job)
    # The task that had ended stays so.
    assert sorted(re.findall(r"Restarts=(\d+)", facts)) == ["0", "1"]
    assert list(work.trials()["status"]) == ["ok"]


def test_what_sbatch_does_not_take_is_said_in_its_words(work: Workplace) -> None:
    done = slurm(work, "--partition", "nowhere", "--submit", "--", *TINY)
    assert (done.returncode, done.stdout) == (4, "")
    assert "gpubench: sbatch refused it: " in done.stderr
    assert "invalid partition specified: nowhere" in done.stderr
