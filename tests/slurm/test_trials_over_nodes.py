"""One trial over the two nodes of a job of a real SLURM."""

from __future__ import annotations

import json
import shlex
from typing import Any

import jobs
import pytest
from telling_model import write

pytestmark = pytest.mark.slurm

TWO = ("--nodes=2", "--ntasks-per-node=1", "--cpus-per-task=2")
TELLS = 'print("TRAINS", flush=True) if self.steps == 3 and self.training else None'


def sweep(work: Any, *more: str, trick: str) -> str:
    asked = (
        "--device", "cpu", "--ranks", "2", "--set", "input_size=28", "--data", "procedural:64x32", "--batch-size", "16",
        "--rounds", "1", "--yes", "--model", write(work.home, trick), "--out", "out",
    )  # fmt: skip
    network = () if work.cluster.has_host_names else ("--network", "127.0.0.1")
    return f"{jobs.GPUBENCH} sweep {shlex.join([*asked, *network, *more])}"


def records(work: Any) -> dict[int, dict[str, Any]]:
    """By the number of nodes."""
    found = [json.loads(path.read_text()) for path in (work.home / "out").rglob("records/*/*.json")]
    return {record["trial"]["nodes"]: record for record in found}


def test_a_node_set_down_in_mid_trial_fails_the_trial_and_not_the_sweep(work: Any) -> None:
    cluster = work.cluster
    asked = sweep(work, "--nodes", "2,1", "--order", "given", "--epochs", "300", trick=TELLS)
    job = work.submit(asked, *TWO, "--no-kill", "--no-requeue")

    def trains() -> bool:
        return any("TRAINS" in path.read_text() for path in (work.home / "out").rglob("logs/*/*.log"))

    cluster.wait(trains, lambda: f"no trial trains: {cluster.told(job)}")
    for state in ("DOWN", "DRAIN"):  # the second, or it comes back by itself
        cluster.run("scontrol", "update", "NodeName=n2", f"State={state}", "Reason=test")
    try:
        assert cluster.await_end(job) == "FAILED", cluster.told(job)
    finally:
        cluster.run("scontrol", "update", "NodeName=n2", "State=RESUME")
    found = records(work)
    assert found[2]["status"] == "failed"
    assert found[2]["reason"].startswith("node n2" if cluster.has_host_names else "node "), found[2]["reason"]
    assert "was lost" in found[2]["reason"]
    assert found[1]["status"] == "ok", "the sweep goes on"
