"""From an experiment to trials with ids."""

from __future__ import annotations

import dataclasses
import itertools
import re
import tomllib
from typing import Any

import pytest
from fakes import Given, make_facts
from hypothesis import given, settings
from hypothesis import strategies as st

from gpubench.basics.errors import UsageError
from gpubench.plan.experiment import Axis, Experiment
from gpubench.plan.experiment_file import format_experiment, parse_experiment
from gpubench.plan.options import apply_options
from gpubench.plan.plan import MOST_COMBINATIONS, Plan, derive_plan_id, expand_experiment
from gpubench.plan.skips import KnownOutOfMemory, NodeCapacity, find_skip_reason
from gpubench.plan.sweep_options import ExperimentOptions
from gpubench.schema import catalog

PLAIN = Given()


def experiment(
    fixed: dict[str, Any] | None = None,
    excludes: tuple[dict[str, Any], ...] = (),
    repeats: int = 1,
    **axes: Any,
) -> Experiment:
    """Axes by name, their values as lists."""
    return Experiment(
        name="test",
        fixed={"model": "lenet", **(fixed or {})},
        axes=tuple(Axis((name,), tuple((v,) for v in given)) for name, given in axes.items()),
        excludes=excludes,
        variants=catalog.VARIANTS,
        repeats=repeats,
    )


def plan(asked: Experiment, device: str = "cuda", sources: Given = PLAIN, order: str = "given") -> Plan:
    return expand_experiment(asked, device=device, sources=sources, order=order)


def batches(made: Plan) -> list[int]:
    return [unit.trial.batch_size for unit in made.jobs]


def ids(made: Plan) -> list[str]:
    return [unit.trial_id for unit in made.jobs]


# ---- crossing ----


@pytest.mark.parametrize("asked", [{"sync_every": "4"}, {"sync_every": "4,8"}])
def test_a_field_of_one_strategy_drops_no_other_that_it_is_compared_with(asked: dict[str, str]) -> None:
    base = parse_experiment('name = "x"\n[fixed]\nmodel = "lenet"\nranks = 2\nvariant = "synthetic"\n', "x")
    made = plan(apply_options(base, ExperimentOptions(fields={"strategy": "ddp,local", **asked})), "cpu")
    found = [(job.trial.strategy, job.trial.sync_every) for job in made.jobs]
    wanted = [int(value) for value in asked["sync_every"].split(",")]
    assert found == [("ddp", None), *(("local", value) for value in wanted)]
    assert not made.dropped
    with pytest.raises(UsageError, match="sync_every belongs to strategy local: leave it out with ddp"):
        plan(apply_options(base, ExperimentOptions(fields={"strategy": "ddp", **asked})), "cpu")


def test_axes_are_crossed_and_the_last_varies_fastest() -> None:
    made = plan(experiment(workers=[2, 4, 4], batch_size=[16, 32]))  # the same trial is planned once
    assert [(u.trial.workers, u.trial.batch_size) for u in made.jobs] == [(2, 16), (2, 32), (4, 16), (4, 32)]
    assert len({u.trial_id for u in made.jobs}) == len({u.config_id for u in made.jobs}) == 4


@pytest.mark.parametrize("repeats", [MOST_COMBINATIONS // 6 + 1, 10**15])
def test_more_combinations_than_anybody_runs_are_refused_at_once(repeats: int) -> None:
    asked = experiment(repeats=repeats, workers=[2, 4], batch_size=[16, 32, 64])
    with pytest.raises(UsageError, match=r"combinations of values are too many; 100,000 is the most"):
        plan(asked)


def test_zipped_fields_move_together() -> None:
    asked = apply_options(
        experiment(workers=[2, 4]), ExperimentOptions(zips=("batch_size,lr=16/0.1,32/0.2",))
    )
    found = [(u.trial.workers, u.trial.batch_size, u.trial.lr) for u in plan(asked).jobs]
    assert found == [(2, 16, 0.1), (2, 32, 0.2), (4, 16, 0.1), (4, 32, 0.2)]


def test_a_batch_for_each_gpu_is_the_global_batch() -> None:
    made = plan(experiment({"batch_per_gpu": 8}, gpus=[1, 2, 4]))
    assert batches(made) == [8, 16, 32]
    same = plan(experiment({"batch_size": 32, "gpus": 4}))
    assert made.jobs[-1].trial_id == same.jobs[0].trial_id
    assert batches(plan(experiment({"batch_per_gpu": 8}, gpu_ids=[(0,), (1, 3)]))) == [8, 16]
    assert batches(plan(experiment({"batch_per_gpu": 8}, ranks=[1, 2]), "cpu")) == [8, 16]


def test_repeats_are_trials_of_one_configuration() -> None:
    made = plan(experiment(batch_size=[16, 32], repeats=3))
    assert [(u.trial.batch_size, u.trial.repeat) for u in made.jobs] == [
        (16, 0), (32, 0), (16, 1), (32, 1), (16, 2), (32, 2)
    ]  # fmt: skip
    assert len(set(ids(made))) == 6
    assert len({u.config_id for u in made.jobs}) == 2
    assert ids(plan(experiment(batch_size=[16, 32]))) == ids(made)[:2]


def test_random_order_is_drawn_from_the_seed() -> None:
    asked = experiment(batch_size=[8, 16, 32, 64], repeats=3)
    ordered, shuffled = plan(asked), plan(asked, order="random")
    assert ids(shuffled) != ids(ordered)
    assert sorted(ids(shuffled)) == sorted(ids(ordered))
    assert ids(shuffled) == ids(plan(asked, order="random"))
    assert (
        derive_plan_id(plan(asked).units) == derive_plan_id(ordered.units) != derive_plan_id(shuffled.units)
    )
    other = plan(experiment({"seed": 1}, batch_size=[8, 16, 32, 64], repeats=3), order="random")
    assert [(u.trial.batch_size, u.trial.repeat) for u in other.jobs] != [
        (u.trial.batch_size, u.trial.repeat) for u in shuffled.jobs
    ]


# ---- leaving out ----


def test_excludes_are_counted() -> None:
    made = plan(experiment(excludes=({"batch_size": 16, "workers": 2},), workers=[2, 4], batch_size=[16, 32]))
    assert [(u.trial.workers, u.trial.batch_size) for u in made.jobs] == [(2, 32), (4, 16), (4, 32)]
    assert made.dropped == {"excluded": 1}


def test_excludes_see_values_that_were_not_given() -> None:
    made = plan(
        experiment(excludes=({"strategy": "single"}, {"lr": 0.001}), gpus=[1, 2], optimizer=["sgd", "adam"])
    )
    assert [(u.trial.strategy, u.trial.optimizer) for u in made.jobs] == [("ddp", "sgd")]
    made = plan(experiment({"batch_per_gpu": 8}, excludes=({"batch_size": 16},), gpus=[1, 2, 4]))
    assert batches(made) == [8, 32]
    made = plan(experiment(excludes=({"batch_per_gpu": 8},), batch_per_gpu=[4, 8]))
    assert batches(made) == [4]


def test_senseless_combinations_are_dropped_and_counted_by_reason() -> None:
    made = plan(experiment(strategy=["single", "dp", "ddp"], gpus=[1, 2], batch_size=[3, 4]))
    found = [(u.trial.strategy, u.trial.gpus, u.trial.batch_size) for u in made.jobs]
    assert found == [
        ("single", 1, 3), ("single", 1, 4), ("dp", 2, 4), ("ddp", 1, 3), ("ddp", 1, 4), ("ddp", 2, 4)
    ]  # fmt: skip
    # Single on two GPUs, dp on one, and a batch of three on two.
    assert list(made.dropped.values()) == [2, 2, 2]
    assert made.dropped.total() + len(made.units) == 12


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (experiment({"strategy": "dp", "gpus": 1}), "no trial is left: strategy dp needs at least 2 GPUs"),
        (experiment(excludes=({"model": "lenet"},)), "no trial is left: excluded"),
        (experiment({"batch_size": 0}), "batch_size must be at least 1, not 0"),
        (experiment(batch_size=[16, 0]), "batch_size"),
        (experiment({"model": "resnet35"}), "unknown model 'resnet35': did you mean resnet"),
        (experiment({"variant": "crop"}), "unknown variant 'crop'"),
        (experiment(strategy=["single", "dpd"]), "unknown strategy 'dpd'"),
        (experiment(excludes=({"strategy": "dpp"},)), "unknown strategy 'dpp'"),
    ],
)
def test_what_can_not_be_is_refused(asked: Experiment, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan(asked)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


# ---- identity ----


def test_data_go_by_content() -> None:
    sources = Given(images={"b": make_facts(), "c": make_facts(fingerprint="images-2")})
    a, b, c = (plan(experiment({"data": name}), sources=sources) for name in "abc")
    assert ids(a) == ids(b)
    assert ids(a) != ids(c)


def test_a_variants_own_data_count() -> None:
    own = {**catalog.VARIANTS, "mine": catalog.InputVariant(files="full", data="elsewhere")}
    asked = dataclasses.replace(experiment({"variant": "mine"}), variants=own)
    (unit,) = plan(asked).jobs
    assert unit.trial.data == "elsewhere"
    other = plan(asked, sources=Given(images={"elsewhere": make_facts(fingerprint="images-2")}))
    assert ids(other) != [unit.trial_id]


def test_synthetic_images_take_their_shape_from_the_data() -> None:
    """They read no image, but sizes and classes that are left open come from the data all the same."""
    shapes = {
        "same": make_facts(fingerprint="other"),
        "small": make_facts(size=32),
        "few": make_facts(num_classes=10),
    }
    asked = {name: experiment({"variant": "synthetic", "data": name}) for name in ("plain", *shapes)}
    found = {name: ids(plan(each, sources=Given(images=shapes)))[0] for name, each in asked.items()}
    assert found["plain"] == found["same"]
    assert len(set(found.values())) == 3


def test_a_users_model_goes_by_its_file() -> None:
    asked = experiment({"model": "nets.py:small"})
    one, two = (
        ids(plan(asked, sources=Given(models={"nets.py:small": h}))) for h in ("h1:small", "h2:small")
    )
    assert one != two


AXES = st.fixed_dictionaries(
    {},
    optional={
        "batch_size": st.lists(st.integers(1, 64), min_size=1, max_size=4, unique=True),
        "gpus": st.lists(st.integers(1, 4), min_size=1, max_size=3, unique=True),
        "workers": st.lists(st.none() | st.integers(0, 8), min_size=1, max_size=3, unique=True),
        "lr": st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=3, unique=True),
        "precision": st.lists(
            st.sampled_from(["fp32", "tf32", "bf16", "fp16"]), min_size=1, max_size=3, unique=True
        ),
        "variant": st.lists(st.sampled_from(sorted(catalog.VARIANTS)), min_size=1, max_size=3, unique=True),
        "cudnn_benchmark": st.lists(st.booleans(), min_size=1, max_size=2, unique=True),
    },
)


@settings(max_examples=50)
@given(AXES, st.integers(1, 2))
def test_nothing_is_lost_without_a_reason(axes: Any, repeats: int) -> None:
    asked = experiment(repeats=repeats, **axes)
    wanted = repeats * len(list(itertools.product(*axes.values())))
    try:
        made = plan(asked)
    except UsageError:
        return
    assert len(made.units) + made.dropped.total() == wanted
    assert len(set(ids(made))) == len(made.units)


def test_a_stored_plan_keeps_everything() -> None:
    text = """
    name = "whole"
    question = "“Quoted”, with ü and\\nlines?"
    [fixed]
    gpu_ids = [1, 0]
    workers = "auto"
    [axes]
    gpu_mem_cap_mib = ["auto", "12GiB"]
    [[zip]]
    batch_size = [16, 32]
    lr = [0.1, 0.2]
    [[exclude]]
    batch_size = 32
    gpu_mem_cap_mib = "auto"
    [variants.mine]
    files = "resized"
    data = "birds"
    cpu = [ { RandomResizedCrop = { size = 28, antialias = true } }, "RandomHorizontalFlip" ]
    [run]
    repeats = 2
    timeout = "10m"
    window = "7s"
    """
    asked = apply_options(
        parse_experiment(text, "x"), ExperimentOptions(fields={"variant": "mine,cached", "model": "lenet"})
    )
    resolved = {"device": "cuda", "protocol": "steady", "data": {"birds": {"fingerprint": "f"}}}
    stored = format_experiment(asked, resolved)
    again = parse_experiment(stored, "stored")
    assert dataclasses.replace(again, variants={}) == dataclasses.replace(asked, variants={})
    assert {n: v.make_definition() for n, v in again.variants.items()} == {
        n: v.make_definition() for n, v in asked.variants.items()
    }
    assert again.variants["mine"].data == "birds"
    assert tomllib.loads(stored)["plan"] == resolved
    assert ids(plan(again)) == ids(plan(asked))
    assert format_experiment(again, resolved) == stored


# ---- skipping ----


ROOM = NodeCapacity(gpus=1, cpus=2)


def test_larger_batches_of_a_chain_are_skipped() -> None:
    small, large = plan(experiment(batch_size=[32, 64])).units
    oom = KnownOutOfMemory()
    oom.add_unit(small)
    assert find_skip_reason(small, oom, ROOM, "cuda") is None
    assert "batch 32 " in (find_skip_reason(large, oom, ROOM, "cuda") or "")
    others: list[dict[str, Any]] = [{"precision": "bf16"}, {"gpus": 2}, {"model": "mlp"}, {"input_size": 64}]
    for field in others:
        (unlike,) = plan(experiment({"batch_size": 64, **field})).units
        assert find_skip_reason(unlike, oom, NodeCapacity(gpus=4, cpus=2), "cuda") is None, field
    same: list[dict[str, Any]] = [{"seed": 5}, {"repeat": 2}, {"lr": 0.5}]
    for field in same:
        (alike,) = plan(experiment({"batch_size": 64, **field})).units
        assert find_skip_reason(alike, oom, ROOM, "cuda"), field


@pytest.mark.parametrize(
    ("fields", "gpus", "cpus", "is_skipped"),
    [
        ({"gpu_ids": (0,)}, 1, 2, False),
        ({"gpu_ids": (2,)}, 2, 2, True),
        ({"gpu_ids": (2,)}, 3, 2, False),
        ({"device": "cpu"}, 0, 2, False),
        ({"device": "cpu", "cpus": 16}, 0, 15, True),
        ({"device": "cpu", "cpus": 16}, 0, 16, False),
        # One that launches has a second CPU for its loaders; of two pinned jobs each has half of all CPUs.
        *(
            ({"launch_cpu": "one", "gpus": gpus}, 4, 2 * gpus - lacks, lacks)
            for gpus in (1, 2)
            for lacks in (0, 1)
        ),
        *(
            (
                {"launch_cpu": "one", "gpus": gpus, "copies": 2, "cpu_sharing": "pinned"},
                4,
                4 * gpus - lacks,
                lacks,
            )
            for gpus in (1, 2)
            for lacks in (0, 2)
        ),
    ],
)
def test_what_wants_more_than_the_machine_has_is_skipped(
    fields: dict[str, Any], gpus: int, cpus: int, is_skipped: bool
) -> None:
    unit = expand_experiment(experiment(fields), device="cuda", sources=PLAIN, cpus=cpus).units[-1]
    room = NodeCapacity(gpus=gpus, cpus=cpus)
    assert bool(find_skip_reason(unit, KnownOutOfMemory(), room, "cuda")) is bool(is_skipped)
    assert find_skip_reason(unit, KnownOutOfMemory(), None, "cuda") is None, "read elsewhere"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"[axes]\nseed = '1:1000:1'\n[[group]]\npairs = true\njobs = [{'{}, ' * 64}]", "4,032,000 jobs in groups"),
        ("[fixed]\ncopies = 64\n[axes]\nbatch_size = '1:10000:1'", "640,000 jobs in groups"),
        (f"[run]\nrepeats = {'9' * 4000}", "more than 10^15 combinations of values"),
    ],
)  # fmt: skip
def test_more_jobs_than_anybody_runs_are_refused_at_once(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(says)} are too many; 100,000 is the most"):
        plan(parse_experiment(f"name = 'x'\n{text}\n", "x"))


def test_the_names_that_a_message_lists_are_cut() -> None:
    long = "v" * 5000
    text = f'name = "x"\n[axes]\nvariant = ["other"]\n[variants.{long}]\nfiles = "full"\n'
    with pytest.raises(UsageError) as caught:
        plan(parse_experiment(text, "x"))
    assert len(str(caught.value)) < 500
