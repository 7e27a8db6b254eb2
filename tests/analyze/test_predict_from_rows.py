"""What rows alone say of jobs together: the model by hand, and which rows stand for a job."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import committed
import made_up_rows
import pytest
import scripted
from made_up_rows import FAR, READS, TWO, alone, together
from msgspec import structs

from gpubench.analyze import predict
from gpubench.analyze.folder import Folder, read_folder
from gpubench.analyze.grid import to_python_value
from gpubench.analyze.predict import Predictions
from gpubench.core.prediction import NoPrediction, PredictedGroup
from gpubench.plan.sweep_options import ExperimentOptions
from gpubench.schema.record import Record

ALL = frozenset(range(8))
NOWHERE = scripted.computer(gpus=0, cpus=2)


def demand(**changes: Any) -> predict.JobDemand:
    """Half of the CPUs and three quarters of GPU 0."""
    usual = {"epoch_time_s": 4.0, "cpu_s": 16.0, "gpu_s": 3.0, "gpus": (0,), "cpus": 8.0, "cpu_ids": ALL}
    return predict.JobDemand(**usual | changes)


# ---- the model ----


def predict_slowdowns(*demands: predict.JobDemand, slicing: float = predict.SLICING) -> PredictedGroup:
    group = predict.predict_slowdowns("jobs", {str(n): job for n, job in enumerate(demands)}, slicing)
    assert isinstance(group, PredictedGroup)
    return group


def list_slowdowns(group: PredictedGroup) -> list[float]:
    return [job.slowdown for job in group.jobs]


def test_a_shared_gpu_is_divided_less_what_switching_costs() -> None:
    group = predict_slowdowns(demand(cpu_s=1.0), demand(cpu_s=1.0))
    assert list_slowdowns(group) == pytest.approx([0.75 / (0.885 / 2)] * 2)
    assert group.waits_for == ("gpu",)
    assert group.least_s == pytest.approx({"cpu": 0.25, "gpu 0": 6.0})
    under_mps = predict_slowdowns(demand(cpu_s=1.0), demand(cpu_s=1.0), slicing=0.0)
    assert list_slowdowns(under_mps) == pytest.approx([1.5, 1.5])
    by_itself = predict_slowdowns(demand(gpu_s=4.0, cpu_s=1.0), demand(gpus=(1,), cpu_s=1.0))
    assert list_slowdowns(by_itself) == [1.0, 1.0]


def test_what_a_job_leaves_over_is_shared_again() -> None:
    group = predict_slowdowns(demand(gpu_s=0.4, cpu_s=0.0), demand(gpu_s=4.0, cpu_s=0.0), slicing=0.0)
    assert list_slowdowns(group) == pytest.approx([1.0, 1 / 0.9])
    assert predict.compute_fair_share([0.1, 0.2, 0.9]) == pytest.approx(0.7)
    assert predict.compute_fair_share([0.5, 0.5]) == float("inf")


def test_full_cpus_slow_all_jobs_down_alike_and_the_fullest_resource_sets_the_pace() -> None:
    group = predict_slowdowns(demand(cpu_s=32.0, gpus=(0,)), demand(cpu_s=16.0, gpus=(1,)))
    assert list_slowdowns(group) == pytest.approx([1.5, 1.5])
    assert group.waits_for == ("cpu",)
    assert group.least_s == pytest.approx({"cpu": 6.0})
    both = predict_slowdowns(demand(cpu_s=32.0), demand(cpu_s=16.0))
    assert list_slowdowns(both) == pytest.approx([0.75 / (0.885 / 2)] * 2)


def test_jobs_on_cpus_of_their_own_share_nothing_and_those_inside_a_set_count_there() -> None:
    halves = frozenset(range(4)), frozenset(range(4, 8))
    apart = [demand(cpu_s=16.0, cpus=4.0, cpu_ids=ids, gpus=(), gpu_s=None) for ids in halves]
    group = predict_slowdowns(*apart)
    assert (list_slowdowns(group), group.least_s) == ([1.0, 1.0], {})
    inside = predict_slowdowns(apart[0], demand(cpu_s=32.0, gpus=(), gpu_s=None))
    assert list_slowdowns(inside) == pytest.approx([1.5, 1.5])


def test_where_the_need_of_a_shared_resource_is_not_known_nothing_is_predicted() -> None:
    lacking = predict.predict_slowdowns("jobs", {"a": demand(cpu_s=None), "b": demand()})
    assert isinstance(lacking, NoPrediction)
    assert lacking.why[0].figures == {"resources": ("cpu",)}
    assert predict_slowdowns(demand(gpus=(0,), gpu_s=None), demand(gpus=(1,))).waits_for == ()


def test_unmeasured_waits_on_a_full_gpu_make_it_an_upper_bound() -> None:
    ranks = demand(gpus=(0, 1), has_unmeasured_wait=True)
    assert predict_slowdowns(ranks, demand()).is_upper_bound
    assert not predict_slowdowns(ranks, demand(gpus=(2,))).is_upper_bound
    assert not predict_slowdowns(demand(), demand()).is_upper_bound


def with_result(record: Record, **figures: Any) -> Record:
    """The record with these figures."""
    known = {name: value for name, value in record.result.items() if value is not None}
    return structs.replace(record, result=known | figures)


# ---- waiting for gradients ----


def row_alone(batch: int, gpus: int, busy: float, **more: Any) -> Record:
    record = alone(batch, busy=busy, gpus=gpus, strategy="ddp" if gpus > 1 else "single", **more)
    resolved = record.resolved | {"gpus": gpus, "gpu_ids": list(range(gpus))}
    return with_result(structs.replace(record, resolved=resolved), images_per_epoch=4800)


def find_wait(folder: Folder, gpus: int) -> tuple[float, bool]:
    (rows,) = predict.summarize_solo_runs(folder.runs).values()
    label = rows.index[rows["gpus"] == gpus][0]
    return predict.estimate_gradient_wait_share(
        {str(k): to_python_value(v) for k, v in rows.loc[label].items()}, rows
    )


def test_a_rank_is_busy_no_longer_than_rows_on_one_gpu_allow(tmp_path: Path) -> None:
    """Batch 32 on 2 GPUs is 16 a rank, 150 steps. 16 alone takes 300 steps of 15 ms: 2.25 of the 3 s are the rank's."""
    path = made_up_rows.folder(tmp_path, row_alone(32, 2, 6.0), row_alone(16, 1, 4.5))
    assert find_wait(read_folder(path, str), 2) == pytest.approx((0.25, False))


def test_the_kernels_of_a_smaller_batch_take_no_longer(tmp_path: Path) -> None:
    """64 alone takes 75 steps of 10 ms, and 16 no longer than 64; 8 alone 600 steps of 6 ms, and 16 at most twice."""
    path = made_up_rows.folder(tmp_path, row_alone(32, 2, 6.0), row_alone(64, 1, 0.75), row_alone(8, 1, 3.6))
    assert find_wait(read_folder(path, str), 2) == pytest.approx((0.5, False))


def test_a_row_alone_that_does_not_tell_leaves_no_wait(tmp_path: Path) -> None:
    path = made_up_rows.folder(tmp_path, row_alone(32, 2, 6.0), row_alone(16, 1, 3.0, precision="fp32"))
    assert find_wait(read_folder(path, str), 2) == (0.0, False)


def test_the_breakdown_measures_it(tmp_path: Path) -> None:
    timed = with_result(row_alone(32, 2, 6.0), comm_ms=5.0)
    path = made_up_rows.folder(tmp_path, timed, row_alone(16, 1, 3.0))
    folder = read_folder(path, str)
    assert find_wait(folder, 2) == pytest.approx((0.25, True))
    (rows,) = predict.summarize_solo_runs(folder.runs).values()
    place = SimpleNamespace(gpu_ids=(0, 1), cpus=8, cpu_ids=tuple(range(8)))
    two, one = (
        predict.make_demand(
            {str(k): to_python_value(v) for k, v in rows.loc[rows["gpus"] == gpus].iloc[0].items()}, at, rows
        )
        for gpus, at in ((2, place), (1, SimpleNamespace(gpu_ids=(0,), cpus=8, cpu_ids=tuple(range(8)))))
    )
    assert two is not None
    assert one is not None
    assert (two.gpu_s, two.has_unmeasured_wait) == (pytest.approx(2.25), False)
    assert (one.gpu_s, one.has_unmeasured_wait) == (3.0, False)


# ---- answers ----


def ask(*folders: Path, here: Any = FAR, **options: Any) -> Predictions:
    jobs, fields = tuple(options.pop("jobs", ())), READS | options
    return predict.predict_experiment_slowdowns(
        [read_folder(path, str) for path in folders], ExperimentOptions(fields=fields, jobs=jobs), here
    )


def answer(*folders: Path, jobs: Any = TWO, **options: Any) -> PredictedGroup:
    (group,) = ask(*folders, jobs=jobs, **options).groups
    assert isinstance(group, PredictedGroup)
    return group


def refusal(*folders: Path, jobs: Any = TWO, **options: Any) -> NoPrediction:
    (group,) = ask(*folders, jobs=jobs, **options).groups
    assert isinstance(group, NoPrediction)
    return group


def test_two_jobs_on_one_gpu(tmp_path: Path) -> None:
    """Each needs 0.75 of the GPU, of which 0.885 is left to two: 1.69 times as long."""
    group = answer(made_up_rows.folder(tmp_path, alone(16), alone(32)))
    assert group.name == "16 workers=4 & 32 workers=4"
    assert [job.name.split(": ") for job in group.jobs] == [
        [f"{place} of 2", f"resnet34 crop-resize {batch}"] for place, batch in ((1, 16), (2, 32))
    ]
    assert [job.slowdown for job in group.jobs] == pytest.approx([1.6949] * 2, abs=1e-4)
    assert [job.alone_s for job in group.jobs] == [4.0, 4.0]
    assert (group.overlap, round(group.overlap_gain, 2)) == ("some", 0.18)
    assert (group.word, group.waits_for) == ("unknown", ("gpu",))


def test_one_job_without_mps_takes_turns_with_the_other(tmp_path: Path) -> None:
    on = [
        structs.replace(record, environment=record.environment | {"mps": "on"})
        for record in (alone(16), alone(32))
    ]
    mixed = answer(made_up_rows.folder(tmp_path / "mixed", on[0], alone(32)))
    assert mixed.jobs[0].slowdown == pytest.approx(1.6949, abs=1e-4)
    assert answer(made_up_rows.folder(tmp_path / "on", *on)).jobs[0].slowdown == pytest.approx(1.5)


def test_several_processes_without_doubts_are_likely(tmp_path: Path) -> None:
    runs = [structs.replace(alone(batch, epoch=epoch, attempt=n), round=n) for batch in (16, 32)
            for n, epoch in ((1, 4.0), (2, 4.0))]  # fmt: skip
    path = made_up_rows.folder(tmp_path, *([run] for run in runs))
    assert answer(path).word == "likely"
    doubted = made_up_rows.folder(
        tmp_path / "doubted", *([structs.replace(run, doubts={"throttled": "why"})] for run in runs)
    )
    group = answer(doubted)
    assert group.word == "unknown"
    assert {note.code for job in group.jobs for note in job.notes} == {"doubts"}
    # Of three processes one was disturbed.
    third = structs.replace(alone(16), round=3, attempt=3, doubts={"other-load": "why"})
    assert (
        answer(made_up_rows.folder(tmp_path / "third", *([run] for run in [*runs, third]))).word == "unknown"
    )


def test_copies_that_lack_the_same_row_are_told_once(tmp_path: Path) -> None:
    path = made_up_rows.folder(tmp_path, alone(16, precision="fp32"))
    lacking = refusal(path, jobs=("batch_size=64", "batch_size=64"), precision="fp32")
    assert [note.code for note in lacking.why] == ["not-measured"]


def test_a_folder_of_groups_alone_predicts_nothing(tmp_path: Path) -> None:
    path = made_up_rows.folder(tmp_path, together(16, [2.0, 1.6], [1.5, 2.0], "10:00"))
    lacking = refusal(path, jobs=("batch_size=16", "batch_size=16"))
    assert [note.code for note in lacking.why] == ["not-measured"]


def test_unlike_kinds_of_time_are_never_mixed(tmp_path: Path) -> None:
    """One job was measured as a rate, the other as whole epochs: no row stands beside one of another kind."""
    epochs = with_result(alone(32, epoch=9.0), epoch_time_source="measured")
    path = made_up_rows.folder(tmp_path / "one", alone(16), epochs)
    lacking = refusal(path)
    assert [note.code for note in lacking.why] == ["not-measured"]
    both = made_up_rows.folder(tmp_path / "both", alone(16), epochs, alone(32, epoch=3.0))
    assert [job.alone_s for job in answer(both).jobs] == [4.0, 3.0]


def test_what_is_lacking_is_told(tmp_path: Path) -> None:
    path = made_up_rows.folder(tmp_path, alone(16, precision="fp32"), alone(32, precision="bf16"))
    lacking = refusal(path, precision="fp32")
    (note,) = lacking.why
    assert (note.code, note.figures) == ("not-measured", {"job": "resnet34 crop-resize 32"})
    ended = refusal(made_up_rows.folder(tmp_path / "ended", alone(16), alone(32, status="failed")))
    assert (ended.why[0].code, ended.why[0].figures["status"]) == ("ended", "failed")


def test_unknown_needs_and_times_are_refused(tmp_path: Path) -> None:
    no_cpu = refusal(made_up_rows.folder(tmp_path / "a", alone(16, cpu=None), alone(32)))
    assert (no_cpu.why[0].code, no_cpu.why[0].figures["resources"]) == ("unknown-needs", ("cpu",))


def test_another_allowance_is_noted_and_the_same_one_preferred(tmp_path: Path) -> None:
    few = alone(16, resolved={"cpus": 4}, started_at="2026-11-22 09:00:00", epoch=5.0)
    group = answer(made_up_rows.folder(tmp_path / "few", few, alone(32)))
    (note,) = group.jobs[0].notes
    assert (note.code, note.figures) == ("another-allowance", {"field": "cpus", "wanted": 8, "value": 4})
    silent = made_up_rows.folder(tmp_path / "silent", alone(16, resolved={"cpus": None}), alone(32))
    assert answer(silent).jobs[0].notes == ()
    both = made_up_rows.folder(tmp_path / "both", few, alone(16), alone(32))
    assert answer(both).jobs[0].alone_s == 4.0


def test_fields_that_nobody_gave_are_those_of_the_rows(tmp_path: Path) -> None:
    path = made_up_rows.folder(tmp_path, alone(16), alone(32))
    found = predict.predict_experiment_slowdowns(
        [read_folder(path, str)], ExperimentOptions(fields={"copies": "2"}), FAR
    )
    assert found.filled == {"variant": "crop-resize", "data": "procedural:5120", "batch_size": "16,32"}
    assert [group.name for group in found.groups] == ["2 copies (batch_size=16)", "2 copies (batch_size=32)"]


# ---- beside what was measured ----


def test_errors_stand_beside_measured_groups(tmp_path: Path) -> None:
    unpredicted = together(32, [2.0, 1.6], [1.5, math.nan], "11:00")
    path = made_up_rows.folder(
        tmp_path, alone(16), together(16, [2.0, 1.6], [1.5, 2.0], "10:00"), unpredicted
    )
    (group,) = predict.collect_past_predictions([read_folder(path, str)], FAR).groups
    assert isinstance(group, PredictedGroup)
    assert [(job.slowdown, job.measured) for job in group.jobs] == [(1.5, 2.0), (2.0, 1.6)]
    assert [job.error_pct for job in group.jobs] == pytest.approx([-25.0, 25.0])
    assert group.word is None


def test_a_group_of_a_committed_folder_and_its_errors() -> None:
    folder = committed.load("h200-copies-rounds-2026")
    options = ExperimentOptions(fields={"copies": "2", "batch_size": "128"})
    (group,) = predict.predict_experiment_slowdowns([folder], options, NOWHERE).groups
    assert isinstance(group, PredictedGroup)
    assert [round(job.slowdown, 3) for job in group.jobs] == [2.003, 2.003]
    assert [round(job.measured or 0, 2) for job in group.jobs] == [2.0, 2.0]
    assert (group.overlap, group.word) == ("none", "likely")
    measured = predict.collect_past_predictions([folder], NOWHERE).groups
    worst = max(abs(job.error_pct or 0) for group in measured for job in group.jobs)  # type: ignore[union-attr]
    assert (len(measured), round(worst)) == (4, 5)
