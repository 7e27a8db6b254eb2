"""Shards of a plan: each unit in one of them, the same everywhere, what belongs together in one."""

from __future__ import annotations

import pytest
from fakes import Given

from gpubench.basics.errors import UsageError
from gpubench.plan import shards
from gpubench.plan.experiment_file import parse_experiment
from gpubench.plan.plan import Plan, Unit, expand_experiment
from gpubench.plan.shards import Shard, group_inseparable_units, select_shards
from gpubench.plan.skips import make_memory_chain_key

SOURCES = Given()
GRID = """name = "x"
[fixed]
model = "lenet"
variant = "synthetic"
[axes]
batch_size = [16, 32, 64]
precision = ["fp32", "bf16"]
width = [1, 2, 4]
"""
GROUPS = GRID + "[[group]]\njobs = [{}, { lr = 0.1 }]\n[[group]]\njobs = [{ lr = 0.2 }, { lr = 0.3 }]\n"


def plan(text: str, device: str = "cuda") -> Plan:
    return expand_experiment(parse_experiment(text, "x"), device=device, sources=SOURCES, cpus=4)


def deal(whole: Plan, count: int) -> list[list[Unit]]:
    """The units of each shard."""
    return [list(select_shards(whole, (Shard(number, count),)).units) for number in range(1, count + 1)]


PLANS = {"grid": plan(GRID), "groups": plan(GROUPS), "cpu": plan(GRID, "cpu")}


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("count", [1, 2, 5, 18, 50])
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
    assert select_shards(whole, (Shard(1, count),)).experiment == whole.experiment


def test_a_folder_is_asked_for_all_parts_that_were_asked_for_there() -> None:
    first, second, third = (shards.parse_shards(f"{number}/3") for number in (1, 2, 3))
    assert shards.join_shards([first]) == first
    assert shards.join_shards([third, first, third]) == shards.parse_shards("1/3,3/3")
    assert shards.join_shards([first, shards.parse_shards("2/2")]) == shards.parse_shards("2/2,1/3")
    assert shards.join_shards([first, shards.parse_shards("")]) == (), "the whole plan"
    assert shards.join_shards([first, second, third]) == ()
    whole = PLANS["grid"]
    both = select_shards(whole, shards.parse_shards("1/3,3/3"))
    mine = {unit.unit_id for number in (1, 3) for unit in select_shards(whole, (Shard(number, 3),)).units}
    assert [unit.unit_id for unit in both.units] == [u.unit_id for u in whole.units if u.unit_id in mine]
    assert select_shards(whole, ()) is whole


def test_a_grid_on_gpus_is_dealt_out_by_chains_and_on_cpus_by_trials() -> None:
    assert len(PLANS["grid"].units) == len(PLANS["cpu"].units) == 18
    assert [len(units) for units in group_inseparable_units(PLANS["grid"])] == [3] * 6
    assert [len(units) for units in group_inseparable_units(PLANS["cpu"])] == [1] * 18


def test_the_deal_does_not_depend_on_who_asks() -> None:
    """Another plan object, made anew, as another task of an array makes it."""
    first, again = (select_shards(plan(GROUPS), (Shard(3, 7),)) for _ in range(2))
    assert [unit.unit_id for unit in first.units] == [unit.unit_id for unit in again.units]


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
@pytest.mark.parametrize("count", [2, 7])
def test_machines_with_other_numbers_of_cpus_work_out_the_same_deal(
    name: str, device: str, count: int
) -> None:
    """Which trial alone a group is compared with depends on them, and so do its ids: what was asked for does not."""
    deals = set()
    for cpus in (1, 3, 64):
        whole = expand_experiment(
            parse_experiment(LEFT_OPEN[name], "x"), device=device, sources=SOURCES, cpus=cpus
        )
        deals.add(
            tuple(
                frozenset(unit.unit_id for unit in units if not unit.baseline) for units in deal(whole, count)
            )
        )
    assert len(deals) == 1


def test_more_shards_than_lots_leave_some_empty() -> None:
    sizes = [len(select_shards(PLANS["grid"], (Shard(number, 9),)).units) for number in range(1, 10)]
    assert sorted(sizes) == [0, 0, 0, 3, 3, 3, 3, 3, 3]


def test_lots_are_dealt_like_cards() -> None:
    first = [select_shards(PLANS["cpu"], (Shard(number, 18),)).units[0].unit_id for number in range(1, 19)]
    assert first == [unit.unit_id for unit in PLANS["cpu"].units]


@pytest.mark.parametrize(("text", "found"), [("1/1", (1, 1)), ("2/8", (2, 8)), (" 8/8 ", (8, 8))])
def test_a_shard_is_read(text: str, found: tuple[int, int]) -> None:
    shard = Shard.parse(text)
    assert (shard.number, shard.count) == found
    assert str(shard) == text.strip()


@pytest.mark.parametrize(
    "text",
    ["", "0/8", "9/8", "2", "a/b", "2/0", "1/2/3", "\u0661/\u0662", "1/9999999"],
)
def test_what_is_no_shard_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(
        UsageError, match=r"--shard .*: which part of how many, from 1: 1/8 to 8/8"
    ) as refused:
        Shard.parse(text)
    assert "\n" not in str(refused.value)
