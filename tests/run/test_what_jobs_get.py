"""What each job of a group gets, and what of shared things is its own: CPUs, energy, a place in the live view."""

from __future__ import annotations

from pathlib import Path

import pytest
import scripted
from fake_nvml import FakeNvml, gpu, running
from group_desk import TWO, Desk, both_or_neither
from scripted import Scripted

from gpubench.record import energy_figures


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(folder=tmp_path / "results")


def test_pinned_jobs_get_cpus_of_their_own_and_shared_ones_the_same(desk: Desk) -> None:
    desk.cpus = 4
    by = Scripted()
    desk.sweep(by=by, copies="2", cpu_sharing="shared,pinned", variant="synthetic")
    cpus = [list(order.cpu_ids) for order in by.launched]
    assert cpus == [[0, 1, 2, 3]] * 3 + [[0, 1]] + [[0, 1], [2, 3]]
    assert [r.resolved["cpus"] for r in desk.jobs()] == [4, 2, 4, 2]


@pytest.fixture
def _over_short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(energy_figures, "SHORTEST_S", 0.2)


@pytest.mark.usefixtures("_over_short_times")
def test_energy_of_a_shared_gpu_is_divided_and_adds_up(desk: Desk) -> None:
    """100 W, whoever works: both jobs' parts of it, a second, are 100 J again."""
    first = gpu(0)
    nvml = FakeNvml(
        devices=(first,), answers={"power_w": {first.uuid: 100.0}, "utilisation": running({first.uuid: 80.0})}
    )
    desk.nvml, desk.cpus = nvml, None
    seconds = {(16, 1): 0.3, (32, 1): 0.3, (16, 2): 0.3, (32, 2): 0.6}
    by = Scripted(lambda order: scripted.lasts(seconds[order.trial.batch_size, order.jobs], warmup_s=0.3))
    desk.sweep(*TWO, by=by, epochs="2")
    one, other = desk.jobs()
    for solo in desk.solos():
        assert solo.epochs[0]["energy_j"] == pytest.approx(100 * 0.3, rel=0.1), "alone it is known"
        assert solo.result["energy_j"] == pytest.approx(100 * solo.result["epoch_time_s"], rel=1e-3)
        assert solo.result["energy_source"] == "nvml-power-integral"
    for column in ("energy_j", "energy_sampled_j"):
        a, b = (r.result[column] / r.result["epoch_time_s"] for r in (one, other))
        assert a + b == pytest.approx(100, rel=1e-3), column
        assert a / b == pytest.approx(2, rel=0.2), "equal work, half as often"
    for record in (one, other):
        assert record.result["energy_source"] == "estimate"
        assert "an estimate" in record.provenance["energy_j"]["source"]
        assert record.result["power_w"] == pytest.approx(100, rel=1e-3), "the whole GPU's"
        assert record.missing["gpu_busy_s_per_epoch"]
        assert record.epochs[-1]["energy_j"] == pytest.approx(record.result["energy_j"])
        # Nobody knows its part of what went while it warmed up.
        assert record.epochs[0]["energy_j"] is None
        assert "shared-gpu" in record.doubts
        assert both_or_neither(record) == []
