"""Jobs side by side in a plan: what is crossed, what runs alone before them, and what they are called by."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from fakes import Given
from hypothesis import given, settings
from hypothesis import strategies as st

from gpubench.basics.errors import UsageError
from gpubench.plan.experiment import Experiment
from gpubench.plan.experiment_file import parse_experiment
from gpubench.plan.options import apply_options
from gpubench.plan.plan import Plan, Unit, expand_experiment
from gpubench.plan.sweep_options import ExperimentOptions

CPUS = 16

PINNED = (
    "CPUs are pinned only among jobs that run together: leave cpu_sharing (--cpu-sharing) out, or give copies "
    "(--copies) or jobs (--job)"
)


def asked(
    *jobs: str, pairs: bool = False, text: str = "", repeats: int | None = None, **fields: Any
) -> Experiment:
    """A file and options, as text."""
    base = parse_experiment(f'name = "test"\n[fixed]\nmodel = "lenet"\n{text}', "test.toml")
    return apply_options(base, ExperimentOptions(fields=fields, jobs=jobs, pairs=pairs, repeats=repeats))


def plan(experiment: Experiment, *, cpus: int = CPUS, device: str = "cuda", order: str = "given") -> Plan:
    return expand_experiment(experiment, device=device, sources=Given(), order=order, cpus=cpus)


def groups(made: Plan) -> list[Unit]:
    return [unit for unit in made.units if unit.is_group]


def ids(made: Plan) -> list[str]:
    return [unit.unit_id for unit in made.units]


def told(unit: Unit) -> tuple[str, list[int]]:
    """A unit by its name and batch sizes."""
    return unit.group, [job.trial.batch_size for job in unit.jobs]


# ---- what runs together ----


def test_jobs_of_the_command_line() -> None:
    made = plan(asked("batch_size=32,gpu_ids=0", "batch_size=64,gpu_ids=1", "batch_size=128,gpu_ids=2+3"))
    name = "32@0 & 64@1 & 128@2+3"
    assert [told(u) for u in made.units] == [("", [32]), ("", [64]), ("", [128]), (name, [32, 64, 128])]
    jobs = made.units[-1].jobs
    assert [job.membership.name for job in jobs if job.membership] == ["1 of 3", "2 of 3", "3 of 3"]
    assert [job.trial.strategy for job in jobs] == ["single", "single", "ddp"]
    assert [job.trial.gpus for job in jobs] == [1, 1, 2]
    assert [len(unit.jobs) for unit in made.units] == [1, 1, 1, 3]
    assert made.jobs == [job for unit in made.units for job in unit.jobs]


def test_groups_cross_with_the_axes() -> None:
    text = """
    [axes]
    variant = ["crop-resize", "pre-resized"]
    [[group]]
    name = "two"
    jobs = [ { batch_size = 16 }, { batch_size = 32 } ]
    [[group]]
    name = "mixed"
    jobs = [ { batch_size = 64 }, { model = "mlp", batch_size = 8 } ]
    """
    made = plan(asked(text=text))
    found = [(unit.group, unit.jobs[0].trial.variant) for unit in groups(made)]
    variants = ("crop-resize", "pre-resized")
    assert found == [(name, variant) for variant in variants for name in ("two", "mixed")]
    assert len(made.units) == 4 + 8
    assert [job.trial.model for job in groups(made)[1].jobs] == ["lenet", "mlp"]


def test_copies_are_an_axis_and_one_copy_is_the_plain_trial() -> None:
    made = plan(asked(copies="1,2,3", batch_size="16"))
    assert [(unit.group, len(unit.jobs)) for unit in made.units] == [
        ("", 1),  # copies = 1
        ("", 1),  # what two are compared with: half the loaders
        ("2 copies", 2),
        ("", 1),  # what three are compared with: a third
        ("3 copies", 3),
    ]
    assert [unit.jobs[0].trial.workers for unit in made.units if not unit.is_group] == [None, 8, 5]
    assert {job.trial.copies for job in made.units[2].jobs} == {2}
    (plain,) = plan(asked(batch_size="16")).units
    assert made.units[0] == plain, "measured earlier, it is reused"


def test_copies_that_load_nothing_have_one_baseline() -> None:
    made = plan(asked(copies="1,2,3", variant="synthetic"))
    assert [len(unit.jobs) for unit in made.units] == [1, 2, 3]
    plain = made.units[0].jobs[0]
    assert {job.membership.solo for unit in groups(made) for job in unit.jobs if job.membership} == {plain}


def test_pairs() -> None:
    made = plan(asked("batch_size=16", "batch_size=32", "batch_size=16", pairs=True))
    assert [told(unit) for unit in made.units] == [
        ("", [16]), ("", [32]), ("16 & 32", [16, 32]), ("16 & 16", [16, 16]),
    ]  # fmt: skip


def test_a_group_planned_twice_runs_once() -> None:
    text = "[[group]]\nname = 'a'\njobs = [{}, {}]\n[[group]]\nname = 'b'\njobs = [{}, {}]"
    (only,) = groups(plan(asked(text=text)))
    assert only.group == "a"
    assert len(groups(plan(asked(text=text, copies="2")))) == 1


def test_repeats_of_a_group() -> None:
    made = plan(asked("batch_size=16", "batch_size=32", repeats=2))
    assert [(told(unit)[1], unit.jobs[0].trial.repeat) for unit in made.units] == [
        ([16], 0), ([32], 0), ([16, 32], 0), ([16], 1), ([32], 1), ([16, 32], 1),
    ]  # fmt: skip
    first, second = groups(made)
    assert first.unit_id != second.unit_id
    assert [job.config_id for job in first.jobs] == [job.config_id for job in second.jobs]
    assert {job.trial_id for job in first.jobs}.isdisjoint(job.trial_id for job in second.jobs)


def _check_solos(made: Plan) -> None:
    """Each before its group, each once, and each job's own."""
    assert len(set(ids(made))) == len(made.units)
    before: set[str] = set()
    for unit in made.units:
        for job in unit.jobs:
            if job.membership is not None:
                assert job.membership.solo.trial_id in before
                assert job.membership.solo.membership is None
        before.add(unit.unit_id)


# ---- the same trials alone ----


def solos(*jobs: str, of: int = CPUS, device: str = "cuda", **fields: Any) -> list[tuple[Any, Any]]:
    """CPUs and workers of each job's baseline, on a machine of so many CPUs; None is left open."""
    (unit,) = groups(plan(asked(*jobs, **fields), cpus=of, device=device))
    return [
        (job.membership.solo.trial.cpus, job.membership.solo.trial.workers)
        for job in unit.jobs
        if job.membership
    ]


def test_baselines_have_the_workers_and_cpus_that_they_get_in_the_group() -> None:
    assert solos("lr=0.1", "lr=0.2") == [(None, 8)] * 2
    assert solos("workers=3", "lr=0.2") == [(None, 3), (None, 8)]
    assert solos("lr=0.1", "lr=0.2", cpus="4") == [(4, 2)] * 2
    assert solos("lr=0.1", "lr=0.2", cpu_sharing="pinned") == [(8, None)] * 2, "eight loaders for eight CPUs"
    assert solos("cpus=2", "cpus=6,workers=3", cpu_sharing="pinned") == [(2, None), (6, 3)]
    assert solos("lr=0.1", "lr=0.2", variant="synthetic") == [(None, None)] * 2
    assert solos("lr=0.1", "lr=0.2", device="cpu", variant="pre-resized") == [(None, 2)] * 2


def test_a_baseline_that_was_measured_earlier_is_the_same_trial() -> None:
    (earlier,) = plan(asked(batch_size="16", workers="4")).units
    made = plan(asked("batch_size=16", "batch_size=32", workers="4"))
    assert made.units[0] == earlier
    shared_by_two = plan(asked(text="[[group]]\njobs = [{}, {lr = 0.1}]\n[[group]]\njobs = [{}, {lr = 0.2}]"))
    _check_solos(shared_by_two)
    assert len(shared_by_two.units) == 3 + 2


def test_a_baseline_does_not_say_how_cpus_were_shared() -> None:
    made = plan(asked(copies="2", cpu_sharing="shared,pinned", cpus="2", workers="1"))
    shared, pinned = groups(made)
    assert shared.unit_id != pinned.unit_id
    assert len(made.units) == 3  # both are compared with one trial on two CPUs


# ---- identity ----


def test_ids_are_these_for_ever() -> None:
    """Results that are stored are found by them."""
    made = plan(asked("batch_size=32,gpu_ids=0", "batch_size=64,gpu_ids=1", epochs="3"))
    first, second, group = made.units
    assert (first.unit_id, second.unit_id) == ("t37e29d52bc10", "t1c8b6ae06716")
    assert group.unit_id == "g21d3df92c7a8"
    assert [job.trial_id for job in group.jobs] == ["j46f2ae45cbf1", "j4add071e1e1c"]
    assert [job.config_id for job in group.jobs] == ["cadc678c6e2e2", "c51af7d04ccdf"]


def group_id(*jobs: str, **fields: Any) -> str:
    (unit,) = groups(plan(asked(*jobs, **fields)))
    return unit.unit_id


def test_a_group_goes_by_its_jobs_their_order_and_their_seeds() -> None:
    one = group_id("batch_size=16", "batch_size=32")
    others = [
        group_id("batch_size=32", "batch_size=16"),
        group_id("batch_size=16", "batch_size=64"),
        group_id("batch_size=16", "batch_size=32", "batch_size=32"),
        group_id("batch_size=16", "batch_size=32", seed="1"),
        group_id("batch_size=16", "batch_size=32,seed=1"),
        group_id("batch_size=16", "batch_size=32", cpu_sharing="pinned"),
    ]
    assert len({one, *others}) == 7
    assert one == group_id("batch_size=16", "batch_size=32,lr=0.05")  # the default


def test_a_group_does_not_go_by_its_name() -> None:
    text = "[[group]]\nname = '{}'\njobs = [{{ batch_size = 16 }}, {{ batch_size = 32 }}]"
    one, other = (plan(asked(text=text.format(name))) for name in "ab")
    assert ids(one) == ids(other)
    assert ids(one)[-1] == group_id("batch_size=16", "batch_size=32")


def test_a_job_is_another_configuration_than_its_trial_alone() -> None:
    made = plan(asked("batch_size=16", "batch_size=16", "batch_size=32", variant="synthetic"))
    *alone, together = made.units
    own = [job.config_id for job in together.jobs]
    assert len(set(own)) == 3
    assert set(own).isdisjoint(unit.jobs[0].config_id for unit in alone)
    assert len({job.trial_id for job in made.jobs}) == len(made.jobs)


def test_the_machines_cpus_play_no_part_in_a_groups_id() -> None:
    """Its fields as asked are hashed; only what it is compared with depends on the machine."""
    experiment = asked("batch_size=16", "batch_size=32")
    here, there = plan(experiment, cpus=16), plan(experiment, cpus=64)
    assert here.units[-1].unit_id == there.units[-1].unit_id
    assert here.units[0].unit_id != there.units[0].unit_id


JOBS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "batch_size": st.sampled_from([8, 12, 16]),
            "gpus": st.integers(1, 3),
            "workers": st.integers(0, 4),
            "cpus": st.integers(1, 8),
            "copies": st.integers(1, 3),
            "variant": st.sampled_from(["crop-resize", "synthetic"]),
        },
    ),
    min_size=2,
    max_size=4,
)


@settings(max_examples=40)
@given(JOBS, st.sampled_from(["shared", "pinned"]), st.integers(1, 32), st.sampled_from(["given", "random"]))
def test_whatever_the_jobs_their_baselines_come_first(
    jobs: list[dict[str, Any]], sharing: str, cpus: int, order: str
) -> None:
    texts = [",".join(f"{k}={v}" for k, v in {"seed": 0, **job}.items()) for job in jobs]
    try:
        made = plan(asked(*texts, cpu_sharing=sharing, epochs="2,3"), cpus=cpus, order=order)
    except UsageError:
        return  # none of its combinations makes sense
    _check_solos(made)
    assert len(groups(made)) + made.dropped.total() == 2
    assert all(len(unit.jobs) == sum(job.get("copies", 1) for job in jobs) for unit in groups(made))


# ---- what makes no sense ----


@pytest.mark.parametrize(
    ("jobs", "fields", "reason"),
    [
        (("cpu_sharing=pinned", "cpu_sharing=shared"), {}, "jobs that run together have their CPUs all shared or "
         "all pinned"),
        (("lr=0.1", "lr=0.2"), {"breakdown": "true"}, "the parts of steps are timed alone; leave breakdown out "
         "where jobs run together"),
        (("device=cpu,precision=fp16", "lr=0.2"), {}, "precision fp16 needs a GPU: on a CPU take fp32 or bf16"),
        ((), {"copies": "2", "gpus": "2", "strategy": "single"}, "strategy single uses one GPU, not 2"),
        ((), {"cpu_sharing": "pinned"}, PINNED),
    ],
)  # fmt: skip
def test_what_can_not_run_together_is_refused(
    jobs: tuple[str, ...], fields: dict[str, Any], reason: str
) -> None:
    with pytest.raises(UsageError) as caught:
        plan(asked(*jobs, **fields))
    assert str(caught.value) == f"no trial is left: {reason}"


def test_one_senseless_job_drops_its_group_and_its_baselines_and_is_counted() -> None:
    text = """
    [axes]
    batch_size = [15, 16]
    [[group]]
    name = "two GPUs beside one"
    jobs = [ { gpus = 2 }, { gpus = 1 } ]
    """
    made = plan(asked(text=text))
    assert [told(unit)[1] for unit in made.units] == [[16], [16], [16, 16]]
    assert list(made.dropped.values()) == [1]


def test_excludes_drop_groups_too() -> None:
    base = asked("batch_size=16", "batch_size=32", variant="crop-resize,synthetic")
    made = plan(dataclasses.replace(base, excludes=({"batch_size": 32, "variant": "synthetic"},)))
    assert [unit.jobs[0].trial.variant for unit in groups(made)] == ["crop-resize"]
    assert made.dropped == {"excluded": 1}
    by_count = plan(dataclasses.replace(asked(copies="1,2,3"), excludes=({"copies": 2},)))
    assert [len(unit.jobs) for unit in groups(by_count)] == [3]


def test_pinned_and_alone_do_not_cross() -> None:
    """`--copies 1,2 --cpu-sharing shared,pinned` asks for three things, not four."""
    made = plan(asked(copies="1,2", cpu_sharing="shared,pinned", variant="synthetic"))
    assert [unit.group for unit in made.units] == ["", "2 copies", "", "2 copies"]
    assert [unit.jobs[0].trial.cpus for unit in made.units] == [None, None, 8, None]
    assert made.dropped == {PINNED: 1}


def test_names_that_are_not_known_are_found_in_jobs_too() -> None:
    for job, says in (("model=resnet35", "resnet"), ("variant=crop", "crop-resize"), ("strategy=dpp", "dp")):
        with pytest.raises(UsageError, match=f"unknown .*{says}"):
            plan(asked(job, "model=mlp"))
