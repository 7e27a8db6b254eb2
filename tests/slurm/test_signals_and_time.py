"""Jobs of a real SLURM that are told to end, run out of time, or lose their node: the next start goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jobs import HELD_SWEEP, SWEEP, Workplace
from place import HELD

pytestmark = pytest.mark.slurm
STEP = 'srun --cpus-per-task="$SLURM_CPUS_PER_TASK" '
REQUEUED = (
    '\ncode=$?\necho "exit code $code"\n[ $code -eq 75 ] && scontrol requeue "$SLURM_JOB_ID"\nexit $code'
)


@pytest.fixture
def hold(work: Workplace) -> Path:
    """A model waits for as long as this file is there."""
    file = work.home / "hold"
    file.touch()
    (work.home / "nets.py").write_text(HELD.format(hold=str(file)))
    return file


def in_training(work: Workplace, job: str) -> None:
    """Waits until a trial has been started."""
    work.cluster.wait(
        lambda: (
            "] model=nets.py:net batch_size=8  started" in work.cluster.told(job)
            and any(work.home.glob("results/*/logs/*/*"))
        ),
        lambda: f"job {job} is {work.cluster.state(job)}:\n{work.cluster.told(job)}",
    )


def statuses(work: Workplace) -> dict[str, str]:
    """Attempt -> how it ended."""
    found = {}
    for file in work.home.glob("results/*/records/*/*.json"):
        record = json.loads(file.read_text())
        found[f"{record['trial']['batch_size']}/{record['attempt']}"] = record["status"]
    return found


def test_usr1_before_the_time_limit_ends_it_cleanly_and_a_requeue_goes_on(
    work: Workplace, hold: Path
) -> None:
    job = work.submit(
        f"{STEP}{HELD_SWEEP} --batch-size 8{REQUEUED}",
        "--cpus-per-task=2", "--time=3", "--signal=USR1@60", "--requeue",
    )  # fmt: skip  # sbatch(1): the signal may come 60 s earlier than that, so 60 s after the start at the earliest
    # On a busy machine the first warning may come before the trial has begun, and the next start is warned, too.
    work.cluster.wait(lambda: statuses(work) == {"8/1": "interrupted"}, lambda: work.cluster.told(job))
    work.cluster.wait(lambda: "exit code 75" in work.cluster.told(job), lambda: work.cluster.told(job))
    # From here on a start has time enough for its trial.
    work.cluster.wait(lambda: work.cluster.is_given_time(job, minutes=20), lambda: work.cluster.told(job))
    hold.unlink()
    assert work.cluster.await_end(job) == "COMPLETED", work.cluster.told(job)
    assert list(statuses(work).values()).count("ok") == 1
    assert list(work.trials()["status"]) == ["ok"]


def test_a_job_that_is_preempted_goes_on_later(work: Workplace, hold: Path) -> None:
    job = work.submit(
        f"{STEP}{HELD_SWEEP} --batch-size 8{REQUEUED}", "--partition=low", "--cpus-per-task=4", "--requeue"
    )
    in_training(work, job)
    taken = work.submit("true", "--partition=test", "--nodes=2", "--exclusive")
    assert work.cluster.await_end(taken) == "COMPLETED"
    work.cluster.wait(
        lambda: statuses(work) == {"8/1": "interrupted"},
        lambda: f"{statuses(work)}\n{work.cluster.told(job)}",
    )
    hold.unlink()
    assert work.cluster.await_end(job) == "COMPLETED", work.cluster.told(job)
    assert statuses(work) == {"8/1": "interrupted", "8/2": "ok"}


def test_what_can_t_end_in_time_is_not_begun(work: Workplace) -> None:
    first = f"{SWEEP} --batch-size 8 --out all"
    # 20,000 epochs take longer than the job may, by what 2 took; a batch of 16 is measured all the same.
    long = f"{SWEEP} --zip batch_size,epochs=8/20000,16/2 --out all --order given".replace("--epochs 2", "")
    job = work.submit(f"{first} && {STEP}{long}; echo exit code $?", "--cpus-per-task=2", "--time=3")
    assert work.cluster.await_end(job) == "COMPLETED"
    told = work.cluster.told(job)
    assert "exit code 4" in told, told
    assert (
        f"the time limit of SLURM job {job} is too short for 1 trial, of which the longest takes about"
        in told
    )
    assert "(sbatch --time)" in told
    records = [json.loads(file.read_text()) for file in work.home.glob("all/records/*/*.json")]
    assert sorted((one["trial"]["batch_size"], one["trial"]["epochs"]) for one in records) == [
        (8, 2),
        (16, 2),
    ]


@pytest.mark.usefixtures("hold")
def test_a_cancelled_job_stays_cancelled(work: Workplace) -> None:
    job = work.submit(f"{STEP}{HELD_SWEEP} --batch-size 8{REQUEUED}", "--cpus-per-task=2", "--requeue")
    in_training(work, job)
    work.cluster.run("scancel", job)
    assert work.cluster.await_end(job) == "CANCELLED"
    work.cluster.wait(
        lambda: statuses(work) == {"8/1": "interrupted"},
        lambda: f"{statuses(work)}\n{work.cluster.told(job)}",
    )
    assert work.cluster.state(job) == "CANCELLED"
