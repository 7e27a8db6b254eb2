"""What is told of groups before they run, by published logs' figures and by trials alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benches import counts
from group_desk import TWO, Desk, times


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(folder=tmp_path / "results")


LOG = {
    # alone, together, overlap gain, GPUs (of one process each), batches
    "four GPUs": ((19.6, 12.8, 11.3), (51.0, 28.0, 22.5), 0.17, ("0+1+2+3,strategy=dp",) * 3, (32, 64, 128)),
    "own GPUs": ((16.2, 15.4, 11.3), (28.5, 28.5, 28.5), 0.25, ("0", "1", "2+3,strategy=dp"), (32, 64, 128)),
    "one GPU": ((21.5, 13.6), (32.5, 23.1), 0.25, ("0", "0"), (16, 32)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LOG)
def test_the_logs_figures_through_the_whole_path(desk: Desk, name: str) -> None:
    alone, together, gain, gpus, batches = LOG[name]
    desk.gpus = 4
    by = times(dict(zip(batches, alone, strict=True)), dict(zip(batches, together, strict=True)))
    jobs = [f"batch_size={batch},gpu_ids={ids}" for batch, ids in zip(batches, gpus, strict=True)]
    desk.sweep(*jobs, by=by, epochs="4")
    found = desk.table()
    assert list(found["overlap_gain"].round(2)) == [gain] * len(jobs)
    assert list(found["slowdown"]) == pytest.approx(
        [t / a for t, a in zip(together, alone, strict=True)], rel=1e-5
    )
    assert set(found["sharing"]) == {"some"}
    work = sum(a / t for t, a in zip(together, alone, strict=True))
    assert f" {work:.2f} " in (desk.folder / "table.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_logs_own_group_is_predicted_from_its_rows_alone(desk: Desk) -> None:
    """CPU share × epoch time adds up to 27.6 s; it took 28.5 s."""
    alone, together, _, gpus, batches = LOG["own GPUs"]
    desk.gpus, desk.cpus = 4, 1
    by = times(dict(zip(batches, alone, strict=True)), dict(zip(batches, together, strict=True)))
    jobs = [f"batch_size={batch},gpu_ids={ids}" for batch, ids in zip(batches, gpus, strict=True)]
    for job in jobs:
        fields: dict[str, Any] = dict(part.split("=") for part in job.split(","))
        desk.sweep(by=by, **fields)
    shares = (0.59, 0.61, 0.766)
    desk.measured_alone(
        {
            batch: {"cpu_s_per_epoch": time * share, "data_wait_pct": None}
            for batch, time, share in zip(batches, alone, shares, strict=True)
        }
    )
    assert counts(desk.sweep(*jobs, by=by)) == {"ran": 1, "reused": 3}, "the baselines were there already"
    found = desk.table()
    predicted_s = list(found["predicted_slowdown"] * found["solo_epoch_time_s"])
    assert predicted_s == pytest.approx([31.8, 30.3, 22.2], abs=0.05)
    facts = desk.jobs()[0].together
    assert facts["predicted"]["rounds"]["cpu"] == pytest.approx(27.6, abs=0.05)
    assert facts["predicted"]["limits"] == ["cpu"]
    (line,) = desk.said
    assert line.endswith(
        "predicted 1.97, 1.97, 1.97 times as long as alone: some overlap (gain 0.26); they would wait for the CPUs"
    )


def test_without_figures_of_the_cpus_nothing_is_predicted(desk: Desk) -> None:
    desk.sweep(*TWO)
    (line,) = desk.said
    for record in desk.jobs():
        why_not = record.missing["predicted_slowdown"]
        assert "CPU seconds" in why_not
        assert record.together["no_prediction"] == why_not
        assert line.endswith(f"not predicted: {why_not}")
