"""The largest number of shards, what ties units to each other, and what a shard is called."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes import Given

from gpubench.basics.errors import UsageError
from gpubench.plan.experiment_file import parse_experiment
from gpubench.plan.plan import Plan, expand_experiment
from gpubench.plan.shards import (
    MOST,
    Shard,
    describe_shard,
    group_inseparable_units,
    join_shards,
    parse_shards,
    select_shards,
)

GRID = """name = "x"
[fixed]
model = "lenet"
variant = "synthetic"
[axes]
batch_size = [16, 32]
lr = [0.1, 0.2, 0.3]
"""


def plan(text: str, device: str = "cuda") -> Plan:
    return expand_experiment(parse_experiment(text, "x"), device=device, sources=Given(), cpus=4)


def test_there_are_at_most_as_many_shards_as_combinations() -> None:
    assert Shard.parse("100000/100000") == Shard(100_000, 100_000)
    for text in ("1/100001", "100001/100001", "2/1"):
        with pytest.raises(UsageError):
            Shard.parse(text)
    assert MOST == 100_000


def test_parts_are_sorted_by_how_many_there_are_and_by_number() -> None:
    asked = join_shards([parse_shards("2/3,1/4"), parse_shards("3/4"), parse_shards("1/3")])
    assert list(map(str, asked)) == ["1/3", "2/3", "1/4", "3/4"]
    assert join_shards([]) == ()
    assert join_shards([parse_shards("1/1")]) == ()


def test_trials_that_differ_in_what_takes_no_memory_are_one_lot_on_gpus_and_apart_on_cpus() -> None:
    assert [len(units) for units in group_inseparable_units(plan(GRID))] == [6]
    assert [len(units) for units in group_inseparable_units(plan(GRID), by_memory=False)] == [1] * 6
    assert [len(units) for units in group_inseparable_units(plan(GRID, "cpu"))] == [1] * 6


PAIRS = """name = "x"
[fixed]
model = "lenet"
variant = "synthetic"
[axes]
batch_size = [16, 32]
[[group]]
jobs = [{width = 1}, {width = 2}]
[[group]]
jobs = [{width = 2}, {width = 3}]
[[group]]
jobs = [{width = 4}, {width = 5}]
"""


@pytest.mark.parametrize("by_memory", [True, False])
@pytest.mark.parametrize(("device", "count"), [("cuda", 2), ("cpu", 4)])
def test_groups_and_the_trials_they_are_compared_with_are_one_lot(
    device: str, count: int, by_memory: bool
) -> None:
    """So are groups that share one of these, and on GPUs those of all batch sizes."""
    whole = plan(PAIRS, device)
    lots = group_inseparable_units(whole, by_memory=by_memory)
    of_groups = [lot for lot in lots if any(unit.is_group for unit in lot)]
    assert len(lots) == len(of_groups) == count
    for lot in of_groups:
        needed = {job.membership.solo.trial_id for unit in lot for job in unit.jobs if job.membership}
        assert needed <= {unit.unit_id for unit in lot}
    first_places = [min(whole.units.index(unit) for unit in lot) for lot in lots]
    assert first_places == sorted(first_places)
    assert sorted(unit.unit_id for lot in lots for unit in lot) == sorted(u.unit_id for u in whole.units)


def test_parts_of_other_counts_are_chosen_together() -> None:
    whole = plan(GRID, "cpu")
    chosen = select_shards(whole, (Shard(1, 2), Shard(2, 3)))
    assert [whole.units.index(unit) for unit in chosen.units] == [0, 1, 2, 4]


def test_a_shard_says_how_much_of_the_plan_it_is_and_an_empty_one_into_how_many_parts_the_plan_falls() -> (
    None
):
    whole = plan(GRID, "cpu")
    assert (
        describe_shard(whole, select_shards(whole, (Shard(1, 4),)), Shard(1, 4))
        == "shard 1/4: 2 of the plan's 6 trials and groups"
    )
    empty = describe_shard(whole, replace(whole, units=()), Shard(7, 7))
    assert empty.startswith("shard 7/7 has nothing to do: the plan falls into 6 parts")
