"""One job of a real SLURM that sweeps."""

from __future__ import annotations

import pytest
from jobs import SWEEP, Workplace

pytestmark = pytest.mark.slurm


def test_a_job_leaves_a_whole_table(work: Workplace) -> None:
    job = work.submit(f"{SWEEP} --batch-size 8,16", "--cpus-per-task=2")
    assert work.cluster.await_end(job) == "COMPLETED", work.cluster.told(job)
    assert "1 process a row" in work.cluster.told(job)
    table = work.trials()
    assert list(table["status"]) == ["ok", "ok"]
    assert (table["epoch_time_s"] > 0).all()
    # What the job was given, not the node's four.
    assert list(table["cpu_count"]) == [2, 2]
