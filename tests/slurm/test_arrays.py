"""Arrays of a real SLURM that share one results folder, while tasks are killed, requeued and lose their node."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest
from jobs import GPUBENCH, HELD_SWEEP, Workplace
from place import HELD, TINY

pytestmark = pytest.mark.slurm
TASKS = 6
SIZES = range(2, 11)
SWEEP = (
    f"{GPUBENCH} sweep {' '.join(TINY)} --variant synthetic --batch-size {','.join(map(str, SIZES))} --yes"
)
TASK = f"""srun --cpus-per-task="$SLURM_CPUS_PER_TASK" {SWEEP}
code=$?
echo "task $SLURM_ARRAY_TASK_ID ended with $code"
[ "$code" -ne 75 ] || scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID"
exit "$code"
"""


def endings(work: Workplace) -> dict[int, Counter[str]]:
    """Batch size -> how often an attempt at it has ended how."""
    found: dict[int, Counter[str]] = {}
    for file in work.home.glob("results/*/records/*/*.json"):
        record = json.loads(file.read_text())
        found.setdefault(record["trial"]["batch_size"], Counter())[record["status"]] += 1
    return found


def told(work: Workplace, array: str) -> str:
    """The last lines of each task."""
    files = sorted(work.cluster.folder.glob("jobs/*.out"))
    return f"{work.cluster.state(array)}\n" + "\n".join(file.read_text()[-1500:] for file in files)


def tasks(work: Workplace, array: str, state: str) -> list[str]:
    """`12_3`, …: the tasks in that state."""
    lines = work.cluster.run("squeue", "-h", "-r", "-t", "all", "-j", array, "-o", "%i %T").splitlines()
    return [line.split()[0] for line in lines if line.split()[1] == state]


def test_six_tasks_under_kills_and_requeues_lose_nothing_and_measure_nothing_twice(work: Workplace) -> None:
    draw = random.Random(1)
    array = work.submit(TASK, f"--array=1-{TASKS}", "--cpus-per-task=1", "--requeue")
    for strike, least in (("kill", 1), ("requeue", 3), ("kill", 5), ("requeue", 7)):

        def is_time(least: int = least) -> bool:
            return len(endings(work)) >= least and bool(tasks(work, array, "RUNNING"))

        work.cluster.wait(is_time, lambda: told(work, array))
        victim = draw.choice(tasks(work, array, "RUNNING"))
        if strike == "kill":
            work.cluster.run("scancel", "--signal=KILL", victim)
        else:
            work.cluster.run("scontrol", "requeue", victim)
    work.cluster.await_end(array)
    found = endings(work)
    assert sorted(found) == list(SIZES), told(work, array)
    assert {size: ended["ok"] for size, ended in found.items()} == dict.fromkeys(SIZES, 1), told(work, array)
    table = work.trials()
    assert list(table.index) == list(SIZES)
    assert set(table["status"]) == {"ok"}
    # The last task has the array's id, by which squeue names all of them.
    assert "run is not known" not in work.cluster.told(array)


def test_a_node_that_is_set_down_in_mid_trial_loses_that_attempt_alone(work: Workplace) -> None:
    hold = work.home / "hold"
    hold.touch()
    (work.home / "nets.py").write_text(HELD.format(hold=str(hold)))
    job = work.submit(
        f"srun --cpus-per-task=2 {HELD_SWEEP} --batch-size 8",
        "--cpus-per-task=2",
        "--nodelist=n2",
        "--requeue",
    )
    work.cluster.wait(
        lambda: "batch_size=8  started" in work.cluster.told(job), lambda: f"{job}: {work.cluster.told(job)}"
    )
    for state in ("DOWN", "DRAIN"):  # the second, or it comes back by itself
        work.cluster.run("scontrol", "update", "NodeName=n2", f"State={state}", "Reason=test")
    try:
        work.cluster.await_state(job, ("PENDING", "FAILED", "NODE_FAIL", "CANCELLED", "COMPLETED"))
        hold.unlink()
        other = work.submit(
            f"srun --cpus-per-task=2 {HELD_SWEEP} --batch-size 8", "--cpus-per-task=2", "--nodelist=n1"
        )
        assert work.cluster.await_end(other) == "COMPLETED", work.cluster.told(other)
    finally:
        work.cluster.run("scontrol", "update", "NodeName=n2", "State=RESUME")
    row = work.trials().loc[8]
    assert (row["status"], row["slurm_node"]) == ("ok", "n1")
    assert endings(work)[8]["ok"] == 1
