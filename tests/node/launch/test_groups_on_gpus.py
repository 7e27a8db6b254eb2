"""Jobs that share GPUs: figures of their own, estimates that are called so, and nothing left on the GPU."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from family import Onlooker, blamed, left, nobody_left

from gpubench.node import environment
from gpubench.node.watch.nvml import open_nvml
from gpubench.node.watch.nvml_calls import MEMORY, PROCESSES
from gpubench.results.store import Results
from gpubench.schema.record import Record

MODELS = "tests/train/user_models.py:"
ON_ONE = {"device": "cuda", "gpus": 1, "gpu_ids": (0,), "cpus": 2, "workers": 2}
ON_TWO = {**ON_ONE, "gpus": 2, "gpu_ids": (0, 1), "strategy": "ddp"}
MIB_PER_IMAGE = 55
"""What mobilenet_v2 takes in fp32 for an image of 224 pixels, about."""
CONTEXT_MIB = 400
"""Less than one process's CUDA context and libraries take."""


def sweep(folder: Path, *options: str) -> tuple[list[Record], list[Record]]:
    """Records of a sweep of mobilenet_v2 with a resident batch: those of trials alone, and those of the group."""
    command = [sys.executable, "-m", "gpubench", "sweep", "--model", "mobilenet_v2", "--variant", "synthetic"]
    command += ["--rounds", "1"]
    done = subprocess.run(
        [*command, *options, "--out", str(folder), "-q"],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    records = Results(folder).read_records()
    assert records, done.stderr
    group = sorted((r for r in records if r.group_id), key=lambda r: r.job or "")
    return [r for r in records if not r.group_id], group


@pytest.mark.gpu
@pytest.mark.alone
def test_two_jobs_on_one_gpu_have_figures_of_their_own(tmp_path: Path) -> None:
    jobs = ("--job", "batch_size=32,gpu_ids=0", "--job", "batch_size=128,gpu_ids=0")
    options = ("--precision", "bf16", "--set", "train_images=6400", "--window", "4s")
    alone, group = sweep(tmp_path / "r", *jobs, *options)
    assert [record.status for record in (*alone, *group)] == ["ok"] * 4, [r.reason for r in (*alone, *group)]
    solos = {record.trial["batch_size"]: record.result for record in alone}
    for record in group:
        result, missing = record.result, record.missing
        assert result["gpu_mem_source"] == "nvml-process"
        assert result["gpu_mem_allocated_mib"] <= result["gpu_mem_reserved_mib"] <= result["gpu_mem_mib"]
        # Not the sum of both: each has what it has alone.
        assert result["gpu_mem_mib"] == pytest.approx(
            solos[record.trial["batch_size"]]["gpu_mem_mib"], rel=0.15
        )
        assert result["energy_source"] == "estimate"
        assert result["energy_j"] > 0
        assert "an estimate" in record.provenance["energy_j"]["source"]
        assert "gpu_busy_s_per_epoch" not in result
        assert "shared" in missing["gpu_busy_s_per_epoch"]
        assert "other jobs shared" in record.provenance["gpu_util_pct"]["source"]
        assert not [doubt for doubt in record.doubts if "another process" in doubt]
        assert result["slowdown"] > 0.9
        assert "top1_pct" not in result
    assert group[0].result["sharing"] == group[1].result["sharing"]
    # Both are drawn from one GPU in one span: its joules a second are divided, not counted twice.
    watts = sum(record.result["energy_j"] / record.result["epoch_time_s"] for record in group)
    assert watts == pytest.approx(group[0].result["power_w"], rel=0.25)


@pytest.mark.gpu
@pytest.mark.alone
def test_of_two_jobs_that_do_not_fit_together_one_runs_out_of_memory_or_both(tmp_path: Path) -> None:
    card_mib = environment.make_machine(open_nvml()).gpus[0].memory_mib
    batch = int(0.6 * card_mib / MIB_PER_IMAGE)
    job = ("--job", f"batch_size={batch},gpu_ids=0")
    options = ("--precision", "fp32", "--steps", "3", "--set", f"train_images={2 * batch}")
    alone, group = sweep(tmp_path / "r", *job, *job, *options)
    assert [record.status for record in alone] == ["ok"], [record.reason for record in alone]
    assert 0.5 * card_mib < alone[0].result["gpu_mem_mib"] < 0.95 * card_mib
    # Each wants six tenths of the card: whoever comes second runs out, and both where both ask at one moment.
    broken = [record for record in group if record.status == "oom"]
    taken = [record for record in group if record.status == "skipped"]
    assert len(broken) in (1, 2), [(r.status, r.reason) for r in group]
    assert len(taken) == 2 - len(broken), [(r.status, r.reason) for r in group]
    assert all("out of memory" in record.reason for record in broken)
    for record in taken:
        assert record.reason == f"job {broken[0].job} ran out of GPU memory: {broken[0].reason}"
    # It is final: asked again, nothing is run.
    again = sweep(tmp_path / "r", *job, *job, *options)
    assert [len(records) for records in again] == [1, 2]


# ---------------------------------------------------------------- what is left on the GPUs


@pytest.fixture
def gpus_are_given_back(server: Any) -> Any:
    """Calls of it say which processes there were; afterwards the GPUs are as they were before."""
    server.wait_ready()
    nvml = open_nvml()
    uuids = [device.uuid for device in nvml.devices]
    before = {uuid: nvml.ask(MEMORY, uuid) for uuid in uuids}
    seen: list[Any] = []
    yield seen.extend
    assert nobody_left(server)
    assert left(seen, within=1) == []

    def held() -> dict[str, float]:
        now = {uuid: nvml.ask(MEMORY, uuid) - before[uuid] for uuid in uuids}
        return {uuid: mib for uuid, mib in now.items() if mib > CONTEXT_MIB / 2}

    deadline = time.monotonic() + 5  # the driver's account may come a moment late
    while held() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert held() == {}
    pids = {process.pid for process in seen}
    assert not [pid for uuid in uuids for pid, _ in nvml.ask(PROCESSES, uuid) if pid in pids]


ENDLESS = {"model": MODELS + "slow_step", "epochs": 500}


def all_measure(jobs: Any) -> bool:
    return all(job.measured for job in jobs)


@pytest.mark.gpu
def test_a_real_out_of_memory_takes_its_neighbour_along(
    train_together: Any, server: Any, gpus_are_given_back: Any
) -> None:
    onlooker = Onlooker(server, lambda jobs: len(jobs) == 2)
    together = train_together(
        {"model": MODELS + "needs_a_terabyte"}, ENDLESS, look=onlooker, **{**ON_ONE, "timeout_s": 60}
    )
    gpus_are_given_back(onlooker.seen)
    assert [ran.status for ran in together] == ["oom", "skipped"]
    assert "CUDA out of memory" in together[0].reason


@pytest.mark.multigpu
def test_a_killed_rank_of_several_leaves_no_memory_on_either_gpu(
    train_together: Any, server: Any, gpus_are_given_back: Any
) -> None:
    onlooker = Onlooker(server, all_measure, lambda trees: trees[0].ranks[1].kill())
    together = train_together({**ENDLESS, **ON_TWO}, {**ENDLESS, **ON_ONE}, look=onlooker)
    gpus_are_given_back(onlooker.seen)
    assert [ran.done.cut_by for ran in together] == [None, 0]
    assert blamed(together[0].reason) == (1, "SIGKILL")
