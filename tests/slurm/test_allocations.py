"""What a job of a real SLURM sees of its node: the CPUs, the memory and the GPUs that it was given."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from jobs import GPUBENCH, SWEEP, Workplace

pytestmark = pytest.mark.slurm
TESTS = Path(__file__).resolve().parents[1]
SEES = f"""
import json, os, sys
sys.path.insert(0, {str(TESTS)!r})
import fake_nvml
from gpubench.node.environment import make_machine
seen = make_machine(fake_nvml.FakeNvml())
print(json.dumps({{
    "gpus": [gpu.uuid for gpu in seen.gpus], "cpus": seen.cpu_count, "memory": seen.memory_mib,
    "node": seen.allocation.node, "partition": seen.allocation.partition, "job": seen.allocation.job_id,
}}))
"""
"""A node with two GPUs, GPU-00 and GPU-11, as its driver would list them to every process."""


def looks(work: Workplace, *options: str, before: str = "", until: Path | None = None) -> str:
    """A job that prints what it sees, and stays for as long as a file is there."""
    stays = f"\nwhile [ -e {shlex.quote(str(until))} ]; do sleep 0.1; done" if until else ""
    return work.submit(f"{before}{sys.executable} -c {shlex.quote(SEES)}{stays}", *options)


def seen(work: Workplace, job: str) -> dict[str, object]:
    work.cluster.wait(lambda: "{" in work.cluster.told(job), lambda: f"{job}: {work.cluster.told(job)}")
    lines = [line for line in work.cluster.told(job).splitlines() if line.startswith("{")]
    found: dict[str, object] = json.loads(lines[-1])
    return found


def test_two_jobs_on_one_node_see_a_gpu_each(work: Workplace) -> None:
    hold = work.home / "hold"
    hold.touch()
    ask = ("--nodelist=n1", "--gres=gpu:1", "--cpus-per-task=1", "--mem=500")
    one, other = looks(work, *ask, until=hold), looks(work, *ask, until=hold)
    found, beside = seen(work, one), seen(work, other)
    assert sorted([found["gpus"], beside["gpus"]]) == [["GPU-00"], ["GPU-11"]]
    assert found | {"gpus": []} == {
        "gpus": [], "cpus": 1, "memory": 500, "node": "n1", "partition": "test", "job": one
    }  # fmt: skip
    hold.unlink()


def test_each_task_of_an_array_knows_how_long_it_may_run(work: Workplace) -> None:
    """The last one has the array's own number, by which SLURM tells of all that run."""
    asks = (
        "import sys; from gpubench.node.allocation import find_job_time_limit; "
        "print(find_job_time_limit({}, sys.argv[1]).whole_s)"
    )
    lines = [
        "touch begun$SLURM_ARRAY_TASK_ID",
        "while [ $(ls begun* | wc -l) -lt 2 ]; do sleep 0.1; done",
        f'{sys.executable} -c {shlex.quote(asks)} "$SLURM_JOB_ID" > told$SLURM_ARRAY_TASK_ID',
        "touch ended$SLURM_ARRAY_TASK_ID",
        "while [ $(ls ended* | wc -l) -lt 2 ]; do sleep 0.1; done",
    ]
    job = work.submit("\n".join(lines), "--array=1-2", "--time=7")
    assert work.cluster.await_end(job) == "COMPLETED,COMPLETED"
    assert [(work.home / f"told{task}").read_text() for task in (1, 2)] == ["420.0\n", "420.0\n"]


def test_more_gpus_than_the_job_has_are_skipped_with_the_reason(work: Workplace) -> None:
    asked = SWEEP.replace("--device cpu ", "")
    job = work.submit(f"{asked} --batch-size 8 --gpus 2 -n; echo exit code $?", "--gres=gpu:1")
    assert work.cluster.await_end(job) == "COMPLETED"
    assert f"needs 2 GPUs, SLURM job {job} was given 0" in work.cluster.told(job), work.cluster.told(job)


def test_gpus_that_it_was_given_and_does_not_see_are_not_replaced_by_the_cpu_unasked(work: Workplace) -> None:
    (work.home / "auto.toml").write_text(
        'name = "auto"\n[fixed]\nmodel = "lenet"\ninput_size = 28\nvariant = "synthetic"\ntrain_images = 64\n'
        "[axes]\nbatch_size = [8]\n[run]\nepochs = 2\nrounds = 1\n"
    )
    built_in, file = f"{GPUBENCH} sweep --yes", f"{GPUBENCH} sweep auto.toml --yes"
    job = work.submit(
        f"{built_in}; echo built-in $?\n{file}; echo file $?\n{file} --device cpu -n; echo asked $?",
        "--gres=gpu:1",
    )
    assert work.cluster.await_end(job) == "COMPLETED"
    told = work.cluster.told(job)
    assert {"built-in 4", "file 4", "asked 0"} <= set(told.splitlines()), told
    assert told.count(f"SLURM job {job} was given GPUs (SLURM_JOB_GPUS=0") == 2, told
