"""Which units of a further round are made ready together, ahead of their turns."""

from __future__ import annotations

from typing import Any

import pytest
import scripted
from fakes import record

from gpubench.plan.ahead import Need, need, together
from gpubench.plan.command_line import make_plan
from gpubench.plan.experiment_file import parse
from gpubench.plan.options import Options, with_options
from gpubench.plan.plan import Unit
from gpubench.plan.resolve import resolve_unit
from gpubench.plan.sources import Disk
from gpubench.schema.record import Record


def needs(*mib: float, gpus: tuple[int, ...] = (0,), cpus: int = 2) -> list[Need | None]:
    return [Need(gpus=gpus, mib=one, cpus=cpus, processes=1) for one in mib]


@pytest.mark.parametrize(
    ("asked", "gpu_mib", "cpus", "count"),
    [
        (needs(100, 100, 100), {0: 1000}, 16, 3),
        (needs(300, 300, 200, 1), {0: 1000}, 16, 3),
        (needs(300, 300, 300, 1), {0: 1000}, 16, 2),
        (needs(100, 100, 100), {0: 1000}, 5, 2),
        (needs(100, 100, 100), {0: 1000}, 4, 2),
        (needs(700, 300), {0: 1000}, 16, 0),
        (needs(100), {0: 1000}, 16, 0),
        (needs(100, 100), {0: 1000}, 3, 0),
        ([*needs(100, 100), None, *needs(100)], {0: 1000}, 16, 2),
        ([None, *needs(100, 100)], {0: 1000}, 16, 0),
        (needs(500, 500, gpus=(0,)) , {0: 1000, 1: 1000}, 16, 0),
        ([*needs(500), *needs(500, gpus=(1,)), *needs(300, gpus=(0, 1))], {0: 1000, 1: 1000}, 16, 3),
        ([*needs(500), *needs(500, gpus=(1,)), *needs(301, gpus=(0, 1))], {0: 1000, 1: 1000}, 16, 2),
        ([], {0: 1000}, 16, 0),
    ],
    ids=[
        "all", "as much as there may be", "one MiB too much", "CPUs for two and a half", "CPUs for two",
        "the second does not fit", "one alone gains nothing", "CPUs for one", "until one that can't",
        "the next one can't", "one GPU is full", "two GPUs", "one of two GPUs is full", "nothing",
    ],
)  # fmt: skip
def test_as_many_as_have_room_on_their_gpus_and_cpus(
    asked: list[Need | None], gpu_mib: dict[int, int], cpus: int, count: int
) -> None:
    assert together(asked, gpu_mib, cpus) == count


def units(*jobs: str, **fields: str) -> list[Unit]:
    base = 'name = "t"\n[fixed]\nmodel = "lenet"\nvariant = "synthetic"\ninput_size = 28\nbatch_size = 16\n'
    experiment = with_options(parse(base, "t"), Options(fields=fields, jobs=jobs))
    return list(make_plan(experiment, scripted.computer(2, cpus=8), Disk(), "given").units)


def needed(unit: Unit, **first: Any) -> Need | None:
    """What a unit takes, if its first round told so."""
    machine, sources = scripted.computer(2, cpus=8), Disk()
    told = {"status": "ok", "gpu_mem_mib": 700.0, "gpu_mem_source": "nvml-process", **first}
    status = told.pop("status")
    found: Record = record(status=status, result=told)
    resolved = resolve_unit(unit, machine, lambda job: sources.data(job.trial.data), "cuda")
    return need(unit, resolved, {job.trial_id: found for job in unit.jobs})


def test_a_trial_takes_what_it_took_at_most_in_the_first_round() -> None:
    (single,) = units(gpu_ids="1")
    assert needed(single) == Need(gpus=(1,), mib=700.0, cpus=2, processes=1)
    (spread,) = units(gpus="2", strategy="ddp")
    assert needed(spread) == Need(gpus=(0, 1), mib=700.0, cpus=4, processes=2)


@pytest.mark.parametrize(
    "fields",
    [
        {"execution": "graph"}, {"until_top1": "50", "variant": "pre-resized"}, {"gpu_mem_cap_mib": "2000"},
        {"cudnn_benchmark": "true"}, {"device": "cpu"},
    ],
    ids=lambda fields: next(iter(fields)),
)  # fmt: skip
def test_some_are_not_made_ready(fields: dict[str, str]) -> None:
    assert needed(units(**fields)[0]) is None


@pytest.mark.parametrize(
    "first",
    [{"status": "failed"}, {"gpu_mem_mib": None}, {"gpu_mem_source": "nvml-device-delta"}],
    ids=["failed", "not told", "of the whole GPU"],
)
def test_nor_is_one_whose_memory_is_not_known(first: dict[str, Any]) -> None:
    (unit,) = units()
    assert needed(unit) is not None
    assert needed(unit, **first) is None


def test_nor_is_a_group() -> None:
    found = {unit.is_group: needed(unit) for unit in units("batch_size=16", "batch_size=32")}
    assert found[True] is None
    assert found[False] is not None
