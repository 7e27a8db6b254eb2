"""Trials of further rounds on real GPUs: made ready ahead, measured as ever, and nothing left of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpubench.node import environment
from gpubench.node.node import Node, this_machine
from gpubench.node.watch.nvml_calls import PROCESSES
from gpubench.record.recording import step_samples
from gpubench.schema.events import End


def sweep(folder: Path, *options: str) -> dict[int, list[dict[str, Any]]]:
    """Records of a short sweep in two rounds, by round."""
    command = [sys.executable, "-m", "gpubench", "sweep", "--model", "resnet18", "--variant", "synthetic"]
    command += ["--set", "train_images=6400", "--epochs", "2", "--rounds", "2", "--ahead"]
    done = subprocess.run(
        [*command, *options, "--out", str(folder), "-q"],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[int, list[dict[str, Any]]] = {}
    for path in sorted((folder / "records").glob("*/*.json")):
        record = json.loads(path.read_text())
        found.setdefault(record.get("round", 1), []).append(record)
    return found


def check(found: dict[int, list[dict[str, Any]]]) -> None:
    """The second round was made ready ahead, and tells of itself alone."""
    assert [record["status"] for round_ in found.values() for record in round_] == ["ok"] * 4
    first = {record["config_id"]: record for record in found[1]}
    for record in found[2]:
        result, phases = record["result"], record["phases"]
        assert {"ahead_context", "ahead_rehearsal", "ahead_wait"} <= phases.keys()
        assert "context" not in phases
        assert phases["first_step"] < first[record["config_id"]]["phases"]["first_step"]
        assert not any("stranger" in doubt for doubt in record["doubts"]), record["doubts"]
        assert result["gpu_mem_source"] == "nvml-process"
        before = first[record["config_id"]]["result"]["gpu_mem_mib"]
        assert 0.6 * before < result["gpu_mem_mib"] < 1.2 * before, "that of its own processes alone"


@pytest.mark.gpu
@pytest.mark.parametrize(
    "options", [("--precision", "bf16"), ("--set", "execution=compile"), ("--precision", "fp16")], ids=str
)
def test_two_batch_sizes_are_made_ready_side_by_side(tmp_path: Path, options: tuple[str, ...]) -> None:
    if "execution=compile" in options and (os.cpu_count() or 1) < 16:
        pytest.skip("torch.compile of two trials side by side wants 16 CPUs")
    check(sweep(tmp_path / "r", "--batch-size", "32,64", "--gpus", "1", *options))


@pytest.mark.multigpu
@pytest.mark.parametrize("strategy", ["ddp", "fsdp", "local", "dp"])
def test_strategies_of_two_gpus_are_made_ready_too(tmp_path: Path, strategy: str) -> None:
    check(sweep(tmp_path / "r", "--batch-size", "32,64", "--gpus", "2", "--strategy", strategy))


@pytest.mark.gpu
def test_its_peak_of_memory_counts_from_its_turn(tmp_path: Path, ask: Any) -> None:
    """Neither the rehearsal's cache is held while it waits, nor is its peak told."""
    from gpubench.plan import resolve as resolving

    node: Node = this_machine()
    one = ask(
        data=None, model="resnet18", device="cuda", gpus=1, batch_size=512, input_size=128, train_images=5120
    )
    resolved = resolving.resolve(one.job, environment.machine(node.nvml), one.facts, "cuda")
    order = one.order(resolved, tmp_path, 0.0)
    node.start()
    try:
        node.wait_ready(lambda: False)
        (ticket,) = node.prepare([order], [()], should_stop=lambda: False, look=lambda _: None)
        assert ticket is not None
        own = node._waiting_pids()
        held = sum(mib or 0 for pid, mib in node.nvml.ask(PROCESSES, order.gpu_uuids[0]) if pid in own)
        (done,) = node.run(
            [order], [()], timeout_s=200, should_stop=lambda: False, look=lambda _: None, ticket=ticket
        )
    finally:
        node.close()
    ran = one.ran(resolved, order, done)
    assert ran.status == "ok", ran.reason
    assert held < 0.6 * ran.outcome.result["gpu_mem_reserved_mib"], "what waits holds its weights alone"
    assert ran.outcome.result["gpu_mem_allocated_mib"] > 0
    assert [event for event in done.events if isinstance(event, End)]
    assert step_samples(done.events, done.launched)
