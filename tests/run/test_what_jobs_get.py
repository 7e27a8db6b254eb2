"""What each job of a group gets, and what of shared things is its own: CPUs, energy, a place in the live view."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import scripted
from benches import Heard, run_with
from fake_nvml import FakeNvml, gpu, running
from group_desk import TWO, Desk, both_or_neither
from scripted import Scripted

from gpubench.plan.plan import Unit
from gpubench.plan.unit_label import unit_label
from gpubench.record import energy_figures
from gpubench.run.sweep_state import SweepState


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
        assert solo.result.energy_j == pytest.approx(100 * solo.result.epoch_time_s, rel=1e-3)
        assert solo.result.energy_source == "nvml-power-integral"
    for column in ("energy_j", "energy_sampled_j"):
        a, b = (vars(r.result)[column] / r.result.epoch_time_s for r in (one, other))
        assert a + b == pytest.approx(100, rel=1e-3), column
        assert a / b == pytest.approx(2, rel=0.2), "equal work, half as often"
    for record in (one, other):
        assert record.result.energy_source == "estimate"
        assert "an estimate" in record.provenance["energy_j"]["source"]
        assert record.result.power_w == pytest.approx(100, rel=1e-3), "the whole GPU's"
        assert record.missing["gpu_busy_s_per_epoch"]
        assert record.epochs[-1]["energy_j"] == pytest.approx(record.result.energy_j)
        # Nobody knows its part of what went while it warmed up.
        assert record.epochs[0]["energy_j"] is None
        assert "shared-gpu" in record.doubts
        assert both_or_neither(record) == []


@pytest.mark.usefixtures("_over_short_times")
def test_energy_of_gpus_of_their_own_is_each_jobs_own(desk: Desk) -> None:
    nvml = FakeNvml(
        answers={
            "power_w": {gpu(0).uuid: 100.0, gpu(1).uuid: 300.0},
            "utilisation": running({gpu(0).uuid: 80.0}),
        }
    )
    desk.gpus, desk.nvml, desk.cpus = 2, nvml, None
    desk.sweep(
        "batch_size=16,gpu_ids=0",
        "batch_size=32,gpu_ids=1",
        by=Scripted(lambda _: scripted.lasts(0.3)),
        epochs="2",
    )
    for record, watts in zip(desk.jobs(), (100, 300), strict=True):
        assert record.result.energy_j == pytest.approx(watts * record.result.epoch_time_s, rel=1e-3)
        assert record.result.energy_source == "nvml-power-integral"
        assert "shared-gpu" not in record.doubts


def test_the_view_follows_the_job_that_is_the_least_far(desk: Desk) -> None:
    """And nothing breaks while some jobs wait for others."""
    seen: list[Any] = []

    class Watching(Heard):
        def update(self, progress: Any) -> None:
            seen.append(progress)

    work = desk.work(*TWO, epochs="2")
    work.runner.results.create()
    by = Scripted(
        lambda order: scripted.lasts(0.6 if order.jobs > 1 and order.trial.batch_size == 16 else 0.05)
    )
    run_with(by, work, Watching())
    notes = {progress.note for progress in seen if progress.trial_label.startswith("16 & 32")}
    assert ["job 1 of 2", "1 waits for it"] in [note.split(", ") for note in notes]


def test_a_label_of_a_group_is_its_name_and_what_its_jobs_have_in_common(desk: Desk) -> None:
    work = desk.work(*TWO, variant="synthetic,pre-resized", workers="2")
    labels = [unit_label(work.plan, unit) for unit in work.plan.units]
    assert labels[2] == "16 & 32 variant=synthetic"
    assert labels[0] == "batch_size=16 variant=synthetic"
    copies = desk.work(copies="1,2", batch_size="8,16")
    assert [unit_label(copies.plan, unit) for unit in _groups(copies)] == [
        "2 copies batch_size=8",
        "2 copies batch_size=16",
    ]


def test_a_label_says_in_words_which_repeat_it_is(desk: Desk) -> None:
    def labels(**asked: Any) -> list[str]:
        work = desk.work(batch_size="8", **asked)
        return [unit_label(work.plan, unit) for unit in work.plan.units]

    assert labels() == ["model=lenet batch_size=8"]
    assert labels(repeats=2) == [f"model=lenet batch_size=8 repeat {number} of 2" for number in (1, 2)]


def _groups(work: SweepState) -> list[Unit]:
    return [unit for unit in work.plan.units if unit.is_group]
