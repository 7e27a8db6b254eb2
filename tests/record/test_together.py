"""Jobs of a group against the same trials alone: made-up epochs, what is not known, whose energy is whose."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from fakes import Given, record
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from gpubench.plan.experiment import Experiment
from gpubench.plan.groups import Group
from gpubench.plan.plan import Unit, expand_experiment
from gpubench.plan.resolve import ResolvedTrial
from gpubench.record.together import (
    ENERGY,
    GroupJob,
    GroupPrediction,
    Shares,
    compare_group_with_solos,
    divide_energy,
    find_shared_gpus,
)
from gpubench.run.announce import format_group_prediction
from gpubench.run.predicting import predict_group_slowdowns
from gpubench.schema import catalog
from gpubench.schema.codes import REASONS, format_reason
from gpubench.schema.columns import OF_GROUPS
from gpubench.schema.record import Record

COLUMNS = (*OF_GROUPS, *ENERGY, "energy_source", "gpu_busy_s_per_epoch")


def resolved(*gpus: int, cpu_ids: Sequence[int] = (0, 1), device: str = "cuda") -> ResolvedTrial:
    return ResolvedTrial(
        device=device,
        gpu_ids=gpus,
        gpu_uuids=tuple(f"GPU-{number}" for number in gpus),
        processes=max(1, len(gpus)),
        cpu_ids=tuple(cpu_ids),
        cpus=len(cpu_ids),
        workers=1,
        input_size=28,
        num_classes=4,
        train_images=100,
    )


def ran(
    time: float | None,
    *gpus: int,
    joules: dict[int, float] | None = None,
    status: str = "ok",
    **figures: Any,
) -> GroupJob:
    """A job of so many seconds per epoch; `joules`: an epoch's, of each whole GPU."""
    by_gpu = {f"GPU-{number}": value for number, value in (joules or {}).items()}
    return GroupJob(
        status=status,
        resolved=resolved(*gpus) if gpus else resolved(device="cpu"),
        result={} if time is None else {"epoch_time_s": time, **figures},
        missing={},
        joules_by_gpu={"energy_j": by_gpu, "energy_sampled_j": {k: 1.1 * v for k, v in by_gpu.items()}},
    )


def epochs(*times: float) -> list[dict[str, Any]]:
    return [{"epoch_time_s": time, "warmup": False} for time in times]


def solo(time: float | None, times: Sequence[float] = (), **figures: Any) -> Record:
    found = {"epoch_time_s": time, **figures}
    known = {k: v for k, v in found.items() if v is not None}
    return record(result=known, trial_id="t" + 12 * "0", epochs=epochs(*times))


def known(*alone: Record | None) -> GroupPrediction:
    return GroupPrediction(solos=alone, why_not="nobody asked")


@dataclass
class Compared:
    """What each job got, None where it has no figure; and what was found out about the group."""

    result: list[Mapping[str, Any]]
    missing: list[dict[str, str]]
    shares: Sequence[Shares]
    facts: dict[str, Any]


def compared(
    jobs: Sequence[GroupJob], alone: Sequence[Record | None], mib: float | None = 1000.0
) -> Compared:
    shares, facts = compare_group_with_solos(
        jobs, known(*alone), [mib] * len(jobs), "g1", [f"t{n}" for n, _ in enumerate(jobs)]
    )
    return Compared(
        result=[defaultdict(lambda: None, job.result) for job in jobs],
        missing=[job.missing for job in jobs],
        shares=shares,
        facts=facts,
    )


# ---- slowdowns ----


def test_made_up_epochs() -> None:
    found = compared([ran(4.0, 0), ran(3.0, 0)], [solo(2.0), solo(2.0)])
    for number, (mine, slow) in enumerate(zip(found.result, (2.0, 1.5), strict=True)):
        assert mine["slowdown"] == slow
        assert mine["solo_epoch_time_s"] == 2.0
        assert mine["overlap_gain"] == pytest.approx(1 / 2 + 1 / 1.5 - 1)
        assert mine["sharing"] == "some"
        assert (mine["group_id"], mine["solo_id"]) == ("g1", f"t{number}")
    assert found.facts["jobs"] == 2
    assert found.facts["solos"] == [{"trial_id": "t000000000000", "attempt": 1}] * 2


@pytest.mark.parametrize(
    ("times", "alone", "gain", "word"),
    [
        ((2.0, 2.0), (2.0, 2.0), 1.0, "full"),
        ((4.0, 4.0), (2.0, 2.0), 0.0, "none"),
        ((6.0, 6.0, 6.0), (2.0, 2.0, 2.0), 0.0, "none"),
        ((51.0, 28.0, 22.5), (19.6, 12.8, 11.3), 0.17, "some"),
        ((28.5, 28.5, 28.5), (16.2, 15.4, 11.3), 0.25, "some"),
        ((32.5, 23.1), (21.5, 13.6), 0.25, "some"),
    ],
)
def test_figures_of_the_log(
    times: tuple[float, ...], alone: tuple[float, ...], gain: float, word: str
) -> None:
    found = compared([ran(time) for time in times], [solo(time) for time in alone])
    assert [round(mine["overlap_gain"], 2) for mine in found.result] == [gain] * len(times)
    assert {mine["sharing"] for mine in found.result} == {word}


def test_what_was_full_is_named() -> None:
    jobs = [
        ran(4.0, 0, cpu_util_pct=97.0, gpu_util_pct=99.0),
        ran(4.0, 0, cpu_util_pct=97.0, gpu_util_pct=99.0),
    ]
    found = compared(jobs, [solo(2.0, cpu_util_pct=60.0), solo(2.0, cpu_util_pct=61.0)])
    # That a kernel always ran tells nothing of how full the GPU was.
    assert found.result[0]["full_together"] == "cpu"
    (cpu,) = [one for one in found.facts["resources"] if one["name"] == "cpu"]
    assert (cpu["alone"], cpu["together"]) == ((60.0, 61.0), (97.0, 97.0))
    nothing = compared([ran(4.0), ran(4.0)], [solo(2.0), solo(2.0)])
    assert nothing.result[0]["full_together"] is None
    assert nothing.missing[0]["full_together"] == REASONS["none-full"]


def test_names_of_two_words_stay_one_word_in_the_cell() -> None:
    jobs = [ran(4.0, 0, gpu_mem_mib=480.0), ran(4.0, 0, gpu_mem_mib=490.0)]
    found = compared(jobs, [solo(2.0, gpu_mem_mib=480.0), solo(2.0, gpu_mem_mib=490.0)])
    assert found.result[0]["full_together"] == "gpu-memory"


# ---- what is not known ----


def test_a_job_without_its_trial_alone() -> None:
    found = compared([ran(4.0), ran(3.0)], [solo(2.0), None])
    assert found.result[0]["slowdown"] == 2.0
    for column in ("slowdown", "solo_epoch_time_s"):
        assert found.result[1][column] is None
        assert found.missing[1][column] == REASONS["no-solo"]
    for mine, why in zip(found.result, found.missing, strict=True):
        assert mine["overlap_gain"] is None
        assert why["overlap_gain"] == why["sharing"] == why["full_together"]
        assert why["overlap_gain"] == REASONS["no-slowdown-solo"]
        assert why["predicted_slowdown"] == "nobody asked"
    assert "resources" not in found.facts


@pytest.mark.parametrize("status", ["oom", "failed", "skipped", "timeout"])
def test_a_job_that_did_not_end_well_leaves_no_verdict(status: str) -> None:
    found = compared([ran(4.0), ran(None, status=status)], [solo(2.0), solo(2.0)])
    assert found.result[0]["slowdown"] == 2.0, "it had measured its own"
    assert found.result[1]["slowdown"] is None
    assert found.result[1]["solo_epoch_time_s"] == 2.0
    assert found.missing[0]["overlap_gain"] == format_reason("no-slowdown", 2, 2, status)


# ---- predicted ----


def unit(*jobs: dict[str, Any], **fixed: Any) -> Unit:
    asked = Experiment(
        name="t",
        fixed={"model": "lenet", "variant": "synthetic", **fixed},
        groups=(Group(jobs=jobs),) if jobs else (),
        variants=catalog.VARIANTS,
    )
    return expand_experiment(asked, device="cuda", sources=Given(), cpus=2).units[-1]


def solos_of(group: Unit, *stored: Record) -> dict[str, Record]:
    return {
        job.membership.solo.trial_id: one
        for job, one in zip(group.jobs, stored, strict=False)
        if job.membership
    }


TWO = ({"batch_size": 16}, {"batch_size": 32})


def test_the_prediction_rests_on_the_stored_rows() -> None:
    group = unit(*TWO)
    full = [solo(2.0, cpu_s_per_epoch=4.0, gpu_busy_s_per_epoch=0.0)] * 2  # both CPUs all the time
    found = predict_group_slowdowns(group, [resolved(0), resolved(1)], solos_of(group, *full))
    assert found.solos == tuple(full)
    assert found.why_not is None
    assert found.prediction
    assert [job.slowdown for job in found.prediction.jobs] == pytest.approx([2.0, 2.0])
    assert (found.prediction.overlap, found.prediction.waits_for) == ("none", ("cpu",))
    jobs = [ran(4.0, 0), ran(4.0, 1)]
    _, facts = compare_group_with_solos(jobs, found, [None] * 2, "g1", ["t0", "t1"])
    assert facts["predicted"] == {
        "slowdowns": pytest.approx((2.0, 2.0)),
        "overlap_gain": pytest.approx(0.0),
        "verdict": "none",
        "limits": ("cpu",),
        "rounds": {"cpu": pytest.approx(4.0)},
        "unknown": (),
        "at_most": False,
        "waits": (None, None),
    }
    assert [job.result["predicted_slowdown"] for job in jobs] == pytest.approx([2.0, 2.0])
    pinned = predict_group_slowdowns(
        group, [resolved(0, cpu_ids=(0,)), resolved(1, cpu_ids=(1,))], solos_of(group, *full)
    ).prediction
    assert pinned
    assert pinned.overlap == "full"


def test_waiting_for_gradients_is_left_out_by_rows_of_one_gpu_or_by_a_breakdown() -> None:
    """Two ranks of 8 images each, busy for 0.1 s a step; alone, 16 images take 0.06 s: so 0.04 s of waiting."""
    group = unit({"batch_size": 16}, {"batch_size": 16, "lr": 0.2}, gpus=2, strategy="ddp")

    def steps(busy: float, **more: Any) -> Record:
        return solo(2.0, cpu_s_per_epoch=0.5, gpu_busy_s_per_epoch=busy, images_per_epoch=160, **more)

    def of(found: Record, trial_id: str, **trial: Any) -> Record:
        given = {"batch_size": 16, "gpus": 2, "strategy": "ddp", **trial}
        return structs.replace(found, trial_id=trial_id, trial={**found.trial, **given})

    stored = solos_of(group, of(steps(2.0), "t1"), of(steps(2.0), "t2"))
    places = [resolved(0, 1), resolved(0, 1)]

    def line(*more: Record) -> tuple[GroupPrediction, str]:
        found = predict_group_slowdowns(group, places, {**stored, **{one.trial_id: one for one in more}})
        return found, format_group_prediction(found)

    unknown, said = line()
    assert unknown.prediction
    assert unknown.prediction.least_s["gpu 0"] == pytest.approx(2.0)
    assert "predicted at most 1.13, 1.13 times as long" in said
    assert unknown.waits == (None, None)
    one_gpu = of(steps(0.6), "t3", gpus=1, strategy="single")
    estimated, said = line(one_gpu)
    assert estimated.prediction
    assert estimated.prediction.least_s["gpu 0"] == pytest.approx(2 * 0.6)
    assert estimated.waits == ({"part": pytest.approx(0.4), "measured": False},) * 2
    # The jobs ask for less than there is.
    assert said.endswith("wait for nothing that they share")
    for lost in ({"status": "failed"}, {"group": "2 copies"}):
        assert line(structs.replace(one_gpu, **lost))[0].prediction == unknown.prediction
    measured, said = line(one_gpu, of(steps(2.0, comm_ms=50.0), "t4", breakdown=True))
    assert measured.prediction
    assert measured.prediction.least_s["gpu 0"] == pytest.approx(1.0)
    assert measured.waits == ({"part": pytest.approx(0.5), "measured": True},) * 2


def test_jobs_whose_cpus_overlap_through_anothers_share_them() -> None:
    group = unit({"batch_size": 16}, {"batch_size": 32}, {"batch_size": 64})
    busy = [solo(2.0, cpu_s_per_epoch=2.0)] * 3
    places = [resolved(0, cpu_ids=(0,)), resolved(1, cpu_ids=(1,)), resolved(2, cpu_ids=(0, 1))]
    found = predict_group_slowdowns(group, places, solos_of(group, *busy)).prediction
    assert found
    assert set(found.least_s) == {"cpu"}
    assert max(job.slowdown for job in found.jobs) > 1


def test_what_nobody_measured_alone_is_not_predicted() -> None:
    group = unit(*TWO)
    places = [resolved(0), resolved(0)]
    fine = solo(2.0, cpu_s_per_epoch=1.0, gpu_busy_s_per_epoch=1.0)
    lacking = predict_group_slowdowns(group, places, solos_of(group, fine))
    assert (lacking.solos, lacking.prediction) == ((fine, None), None)
    assert lacking.why_not == "no figures of job 2 of 2 alone"
    failed = structs.replace(fine, status="failed")
    assert predict_group_slowdowns(group, places, solos_of(group, failed, fine)).solos == (None, fine)
    assert predict_group_slowdowns(group, places, {}).why_not == "no figures of job 1 of 2 and 2 of 2 alone"


@pytest.mark.parametrize(
    ("figures", "why"),
    [
        ({}, "not known of the trials alone: CPU seconds an epoch, GPU seconds an epoch"),
        ({"cpu_s_per_epoch": 1.0}, "not known of the trials alone: GPU seconds an epoch"),
        ({"gpu_busy_s_per_epoch": 1.0}, "not known of the trials alone: CPU seconds an epoch"),
    ],
)
def test_half_a_prediction_is_none(figures: dict[str, float], why: str) -> None:
    """What is not known would be taken for nothing."""
    group = unit(*TWO)
    found = predict_group_slowdowns(
        group, [resolved(0), resolved(0)], solos_of(group, *[solo(2.0, **figures)] * 2)
    )
    assert (found.prediction, found.why_not) == (None, why)


def test_without_an_epoch_time_alone() -> None:
    group = unit(*TWO)
    found = predict_group_slowdowns(
        group, [resolved(0), resolved(0)], solos_of(group, *[solo(None, cpu_s_per_epoch=1.0)] * 2)
    )
    assert (found.prediction, found.why_not) == (None, "an epoch time alone is not known")


# ---- shared GPUs ----


def test_which_gpus_are_shared() -> None:
    places = [resolved(0, 1), resolved(1, 2), resolved(3)]
    found = [find_shared_gpus(places, number) for number in range(3)]
    assert found == [frozenset({"GPU-1"}), frozenset({"GPU-1"}), frozenset()]
    assert find_shared_gpus([resolved(device="cpu")] * 2, 0) == frozenset()


def test_energy_goes_by_the_busy_time_of_each_jobs_work() -> None:
    """Alone, A is busy for 1 s and B for 3 s per epoch. Together, epochs of 4 and 6 s: a quarter to a half."""
    jobs = [ran(4.0, 0, joules={0: 400.0}), ran(6.0, 0, joules={0: 600.0})]
    found = compared(jobs, [solo(2.0, gpu_busy_s_per_epoch=1.0), solo(3.5, gpu_busy_s_per_epoch=3.0)])
    assert [shares["GPU-0"] for shares in found.shares] == pytest.approx([1 / 3, 2 / 3])
    a, b = found.result
    assert (a["energy_j"], b["energy_j"]) == (pytest.approx(400 / 3), pytest.approx(400))
    assert a["energy_sampled_j"] == pytest.approx(1.1 * a["energy_j"])
    assert a["energy_j"] / 4 + b["energy_j"] / 6 == pytest.approx(100), "the GPU's 100 W"
    assert {a["energy_source"], b["energy_source"]} == {"estimate"}
    assert a["gpu_busy_s_per_epoch"] is None
    assert "whose its busy time was" in found.missing[0]["gpu_busy_s_per_epoch"]


def test_a_gpu_of_its_own_is_its_own() -> None:
    """B shares one of its two GPUs: all of the other one's energy is its."""
    jobs = [ran(4.0, 0, joules={0: 400.0}), ran(4.0, 0, 1, joules={0: 400.0, 1: 800.0})]
    alone = [solo(2.0, gpu_busy_s_per_epoch=1.0), solo(2.0, gpu_busy_s_per_epoch=2.0)]
    found = compared(jobs, alone)
    assert found.shares[1] == {"GPU-0": pytest.approx(0.5), "GPU-1": pytest.approx(1.0)}
    assert found.result[1]["energy_j"] == pytest.approx(200 + 800)


def test_jobs_that_share_no_gpu_keep_what_was_measured() -> None:
    jobs = [ran(4.0, 0, joules={0: 400.0}), ran(4.0, 1, joules={1: 400.0})]
    found = compared(jobs, [solo(2.0, gpu_busy_s_per_epoch=1.0)] * 2)
    assert found.shares == [{}, {}]
    assert not {"energy_j", "energy_source", "gpu_busy_s_per_epoch"} & set(found.result[0])


@pytest.mark.parametrize("lacking", [None, solo(2.0)])
def test_where_one_jobs_work_is_not_known_nobodys_energy_is(lacking: Record | None) -> None:
    jobs = [ran(4.0, 0, joules={0: 400.0}), ran(4.0, 0, joules={0: 400.0})]
    found = compared(jobs, [solo(2.0, gpu_busy_s_per_epoch=1.0), lacking])
    for mine, why in zip(found.result, found.missing, strict=True):
        for column in (*ENERGY, "energy_source"):
            assert mine[column] is None
            assert why[column] == REASONS["shared-gpu-work"]


def test_a_job_that_keeps_its_gpu_idle_leaves_all_energy_to_the_other() -> None:
    jobs = [ran(4.0, 0, joules={0: 400.0}), ran(4.0, 0, joules={0: 400.0})]
    found = compared(jobs, [solo(2.0, gpu_busy_s_per_epoch=1.0), solo(2.0, gpu_busy_s_per_epoch=0.0)])
    assert [shares["GPU-0"] for shares in found.shares] == [1.0, 0.0]
    assert found.result[0]["energy_j"] == 400.0


def test_where_no_joules_are_known_the_first_reason_stays() -> None:
    jobs = [ran(4.0, 0), ran(4.0, 0)]
    jobs[0].missing["energy_j"] = "no sensor"
    found = compared(jobs, [solo(2.0, gpu_busy_s_per_epoch=1.0)] * 2)
    assert found.result[0]["energy_j"] is None
    assert found.missing[0]["energy_j"] == found.missing[0]["energy_source"] == "no sensor"


def test_of_a_job_that_did_not_end_well_no_energy_is_told_and_the_others_is_not_known() -> None:
    jobs = [ran(4.0, 0, joules={0: 400.0}), ran(None, 0, status="oom")]
    found = compared(jobs, [solo(2.0, gpu_busy_s_per_epoch=1.0)] * 2)
    assert found.shares[1] == {}
    assert "energy_j" not in found.result[1]
    assert found.result[0]["energy_j"] is None


SECONDS = st.floats(0.1, 100)
GPUS = st.sets(st.integers(0, 2), min_size=1)


@given(st.lists(st.tuples(SECONDS, SECONDS, SECONDS, GPUS), min_size=2, max_size=4), st.floats(50, 700))
def test_the_parts_of_all_jobs_add_up_to_the_gpus_energy(
    drawn: list[tuple[float, float, float, set[int]]], watts: float
) -> None:
    """Over one window, whatever the jobs and their GPUs: each GPU draws the same power all the time."""
    jobs = [ran(time, *sorted(gpus), joules=dict.fromkeys(gpus, watts * time)) for time, _, _, gpus in drawn]
    alone = [solo(before, gpu_busy_s_per_epoch=busy) for _, before, busy, _ in drawn]
    found = compared(jobs, alone)
    used = set().union(*(gpus for _, _, _, gpus in drawn))
    own = [
        mine["energy_j"] if "energy_j" in mine else sum(job.joules_by_gpu["energy_j"].values())
        for job, mine in zip(jobs, found.result, strict=True)
    ]
    total = sum(joules / time for joules, (time, *_) in zip(own, drawn, strict=True))
    assert total == pytest.approx(watts * len(used))
    for shares in found.shares:
        assert all(share is not None and 0 < share <= 1 + 1e-9 for share in shares.values())


@given(
    st.lists(
        st.tuples(st.floats(0.1, 1e6), st.lists(st.floats(0.01, 1), min_size=2, max_size=4)),
        min_size=1,
        max_size=4,
    )
)
def test_what_jobs_are_given_adds_up_to_what_the_gpus_drew(gpus: Any) -> None:
    """Each GPU's jobs, with shares that add up to 1."""
    joules = {f"GPU-{i}": drawn for i, (drawn, _) in enumerate(gpus)}
    parts = []
    for i, (_, weights) in enumerate(gpus):
        parts += [
            divide_energy({f"GPU-{i}": joules[f"GPU-{i}"]}, {f"GPU-{i}": w / sum(weights)}) for w in weights
        ]
    assert sum(parts) == pytest.approx(sum(joules.values()))


def test_a_job_gets_its_share_of_each_of_its_gpus() -> None:
    assert divide_energy({"a": 300.0, "b": 200.0}, {"a": 0.25, "b": 1.0, "c": 0.5}) == pytest.approx(275)


@pytest.mark.parametrize(
    ("joules", "shares"),
    [
        ({}, {}),
        ({}, {"a": 1.0}),
        ({"a": 3.0, "b": 2.0}, {"a": 0.5}),
        ({"a": 3.0}, {"a": None}),
        ({"a": 3.0}, {"a": 0.0}),
    ],
)
def test_a_share_that_is_not_known_leaves_nothing_to_divide(joules: Any, shares: Any) -> None:
    assert divide_energy(joules, shares) is None
