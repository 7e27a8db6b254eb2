"""Shards of a plan: each unit in one of them, the same everywhere, what belongs together in one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes import Given

from gpubench.basics.errors import UsageError
from gpubench.plan.experiment_file import parse_experiment
from gpubench.plan.plan import Plan, Unit, expand_experiment
from gpubench.plan.shards import (
    MOST,
    Shard,
    describe_shard,
    group_inseparable_units,
    join_shards,
    parse_shards,
    select_shards,
)
from gpubench.plan.skips import make_memory_chain_key

BASE = 'name = "x"\n[fixed]\nmodel = "lenet"\nvariant = "synthetic"\n'
GRID = f"""{BASE}[axes]
batch_size = [16, 32, 64]
precision = ["fp32", "bf16"]
width = [1, 2, 4]
"""
GROUPS = GRID + "[[group]]\njobs = [{}, { lr = 0.1 }]\n[[group]]\njobs = [{ lr = 0.2 }, { lr = 0.3 }]\n"
PAIRS = f"""{BASE}[axes]
batch_size = [16, 32]
[[group]]
jobs = [{{width = 1}}, {{width = 2}}]
[[group]]
jobs = [{{width = 2}}, {{width = 3}}]
[[group]]
jobs = [{{width = 4}}, {{width = 5}}]
"""


def plan(text: str, device: str = "cuda", cpus: int = 4) -> Plan:
    return expand_experiment(parse_experiment(text, "x"), device=device, sources=Given(), cpus=cpus)


def deal(whole: Plan, count: int) -> list[list[Unit]]:
    """The units of each shard."""
    return [list(select_shards(whole, (Shard(number, count),)).units) for number in range(1, count + 1)]


PLANS = {"grid": plan(GRID), "groups": plan(GROUPS), "cpu": plan(GRID, "cpu")}


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("count", [1, 5, 50])
def test_the_shards_together_are_the_plan_and_what_belongs_together_stays_together(
    name: str, count: int
) -> None:
    whole = PLANS[name]
    shares = deal(whole, count)
    ids = [unit.unit_id for units in shares for unit in units]
    assert sorted(ids) == sorted(unit.unit_id for unit in whole.units)
    place = {unit.unit_id: number for number, unit in enumerate(whole.units)}
    shards_of: dict[object, set[int]] = {}
    for number, units in enumerate(shares):
        assert units == sorted(units, key=lambda unit: place[unit.unit_id]), "in the plan's order"
        for job in (job for unit in units for job in unit.jobs):
            alone = job.membership.solo if job.membership else job
            shards_of.setdefault(alone.trial_id, set()).add(number)
            if whole.device == "cuda":
                chain = make_memory_chain_key(alone.trial, alone.variant.make_definition())
                shards_of.setdefault(chain, set()).add(number)
    assert {len(numbers) for numbers in shards_of.values()} == {1}


def test_a_folder_is_asked_for_all_parts_that_were_asked_for_there() -> None:
    first, second, third = (parse_shards(f"{number}/3") for number in (1, 2, 3))
    assert join_shards([]) == ()
    assert join_shards([third, first, third]) == parse_shards("1/3,3/3")
    by_count = join_shards([parse_shards("2/3,1/4"), parse_shards("3/4"), first])
    assert list(map(str, by_count)) == ["1/3", "2/3", "1/4", "3/4"]
    assert join_shards([first, parse_shards("")]) == (), "the whole plan"
    assert join_shards([first, second, third]) == join_shards([parse_shards("1/1")]) == ()
    assert join_shards([parse_shards("1/4"), first, second, third]) == ()


def test_parts_are_chosen_together_in_the_plans_order() -> None:
    whole = PLANS["cpu"]
    chosen = select_shards(whole, (Shard(1, 6), Shard(2, 9)))
    assert [whole.units.index(unit) for unit in chosen.units] == [0, 1, 6, 10, 12]
    assert select_shards(whole, ()) is whole


def test_a_grid_on_gpus_is_dealt_out_by_chains_and_on_cpus_by_trials_like_cards() -> None:
    assert [len(units) for units in group_inseparable_units(PLANS["grid"])] == [3] * 6
    assert [len(units) for units in group_inseparable_units(PLANS["grid"], by_memory=False)] == [1] * 18
    assert [len(units) for units in group_inseparable_units(PLANS["cpu"])] == [1] * 18
    assert sorted(map(len, deal(PLANS["grid"], 9))) == [0, 0, 0, 3, 3, 3, 3, 3, 3]
    assert [units for (units,) in deal(PLANS["cpu"], 18)] == list(PLANS["cpu"].units)
    by_rate = plan(f"{BASE}[axes]\nbatch_size = [16, 32]\nlr = [0.1, 0.2, 0.3]\n")
    assert [len(units) for units in group_inseparable_units(by_rate)] == [6], "lr takes no memory"


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


OPEN = """name = "x"
[fixed]
model = "lenet"
variant = "crop-resize"
[axes]
copies = [1, 2, 4]
workers = [2, 4]
batch_size = [16, 32, 64]
"""
LEFT_OPEN = {
    "workers": OPEN.replace("workers = [2, 4]\n", ""),
    "cpus": OPEN.replace("workers", "lr").replace("[axes]", 'cpu_sharing = "pinned"\n[axes]'),
    "nothing": OPEN,
    "alone, too": OPEN.replace("copies = [1, 2, 4]\n", "")
    + "[[group]]\njobs = [{ lr = 0.1 }, { lr = 0.2 }]\n",
}


@pytest.mark.parametrize("device", ["cuda", "cpu"])
@pytest.mark.parametrize("name", LEFT_OPEN)
def test_machines_with_other_numbers_of_cpus_work_out_the_same_deal(name: str, device: str) -> None:
    """Which trial alone a group is compared with depends on them, and so do its ids: what was asked for does not."""
    for count in (2, 7):
        deals = [
            [{unit.unit_id for unit in units if not unit.baseline} for units in deal(whole, count)]
            for whole in (plan(LEFT_OPEN[name], device, cpus) for cpus in (1, 3, 64))
        ]
        assert deals[0] == deals[1] == deals[2]


def test_a_shard_says_how_much_of_the_plan_it_is_and_an_empty_one_into_how_many_parts_that_falls() -> None:
    whole = PLANS["cpu"]
    mine = select_shards(whole, (Shard(1, 4),))
    assert describe_shard(whole, mine, Shard(1, 4)) == "shard 1/4: 5 of the plan's 18 trials and groups"
    empty = describe_shard(whole, replace(whole, units=()), Shard(20, 20))
    assert empty.startswith("shard 20/20 has nothing to do: the plan falls into 18 parts")


@pytest.mark.parametrize(
    ("text", "number", "count"), [("1/1", 1, 1), (" 2/8 ", 2, 8), (f"{MOST}/{MOST}", MOST, MOST)]
)
def test_a_shard_is_read(text: str, number: int, count: int) -> None:
    assert Shard.parse(text) == Shard(number, count)
    assert str(Shard.parse(text)) == text.strip()


@pytest.mark.parametrize("text", ["", "0/8", "9/8", "2", "a/b", "2/0", "1/2/3", "\u0661/\u0662", "1/100001"])
def test_what_is_no_shard_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--shard .*: which part of how many, from 1: 1/8 to 8/8.*$"):
        Shard.parse(text)
    assert MOST == 100_000
