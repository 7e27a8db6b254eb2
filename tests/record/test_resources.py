"""Which resource was full, alone and together."""

import pytest
from whole_rows import changed, row_with

from gpubench.record.resources import (
    WATCHED,
    compute_resource_fullness,
    explain_none_full,
    list_full_resources,
)
from gpubench.schema.codes import REASONS
from gpubench.schema.columns import BY_NAME


def row(**more):
    return row_with(**{"status": "ok", "gpus": 1, "gpu_ids": [0]} | more)


def rows(column, *values, **more):
    return [row(**{column: value}, **more) for value in values]


def named(resources, name):
    (found,) = (one for one in resources if one.name == name)
    return found


def test_every_column_that_is_watched_is_one():
    assert {one.column for one in WATCHED} <= set(BY_NAME)


@pytest.mark.parametrize(
    ("name", "column", "below", "full"),
    [
        ("cpu", "cpu_util_pct", 89.9, 90.0),
        ("input", "data_wait_pct", 19.9, 20.0),
        ("power", "throttled_pct", 4.9, 5.0),
    ],
)
def test_lines_of_full(name, column, below, full):
    found = named(
        compute_resource_fullness(rows(column, below, full), rows(column, below, below), [None] * 2), name
    )
    assert (found.full_alone, found.full_together) == ((False, True), False)
    assert (found.alone, found.together, found.unit) == ((below, full), (below, below), "%")
    found = named(
        compute_resource_fullness(rows(column, below, below), rows(column, below, full), [None] * 2), name
    )
    assert (found.full_alone, found.full_together) == ((False, False), True)


@pytest.mark.parametrize(
    ("name", "column", "below", "reached"),
    [("gpu", "gpu_util_pct", 94.9, 95.0), ("memory bandwidth", "gpu_mem_util_pct", 89.9, 90.0)],
)
def test_a_share_of_time_is_never_full(name, column, below, reached):
    """Two jobs whose kernels ran 97 % of the time lost nothing beside each other."""
    found = compute_resource_fullness(rows(column, below, reached), rows(column, below, reached), [None] * 2)
    one = named(found, name)
    assert (one.full_alone, one.full_together) == ((False, False), False)
    assert list_full_resources(found) == ()
    before = compute_resource_fullness(rows(column, 100.0, 100.0), rows(column, below, below), [None] * 2)
    assert explain_none_full(before) == REASONS["none-full"]
    label = "GPU time" if name == "gpu" else name
    assert explain_none_full(found).endswith(f"; {label} can't tell")


def test_memory_of_jobs_on_one_gpu_adds_up():
    mine = rows("gpu_mem_mib", 4000.0, 5600.0)
    found = named(compute_resource_fullness(mine, mine, [10000.0] * 2), "gpu memory")
    assert (found.alone, found.together) == ((40.0, 56.0), (96.0, 96.0))
    assert (found.full_alone, found.full_together) == ((False, False), True)


def test_memory_of_jobs_on_gpus_of_their_own_does_not():
    mine = [row(gpu_mem_mib=4000.0, gpu_ids=[0]), row(gpu_mem_mib=5600.0, gpu_ids=[1, 2], gpus=2)]
    found = named(compute_resource_fullness(mine, mine, [10000.0, 20000.0]), "gpu memory")
    assert (found.alone, found.together, found.full_together) == ((40.0, 28.0), (40.0, 28.0), False)


def test_the_fullest_gpu_of_a_job_counts():
    mine = [
        row(gpu_mem_mib=3000.0, gpu_ids=[0, 1]), row(gpu_mem_mib=4000.0, gpu_ids=[1, 2]),
        row(gpu_mem_mib=1000.0, gpu_ids=[2]),
    ]  # fmt: skip
    found = named(compute_resource_fullness(mine, mine, [10000.0] * 3), "gpu memory")
    assert found.together == (70.0, 70.0, 50.0)


def test_memory_with_something_unknown_is_unknown():
    mine = rows("gpu_mem_mib", 4000.0, None)
    found = named(compute_resource_fullness(mine, mine, [10000.0] * 2), "gpu memory")
    assert (found.alone, found.together) == ((40.0, None), (None, None))
    sizeless = named(compute_resource_fullness(mine, mine, [None] * 2), "gpu memory")
    assert (sizeless.alone, sizeless.full_together) == ((None, None), False)


def test_an_allocator_that_had_to_try_again_ran_short():
    alone, together = rows("gpu_mem_mib", 4000.0, 4000.0), rows("gpu_mem_mib", 4000.0, 4000.0)
    together[1] = changed(together[1], gpu_alloc_retries=3)
    found = compute_resource_fullness(alone, together, [10000.0] * 2)
    assert list_full_resources(found) == ("gpu memory",)


def test_rows_without_figures_are_write_not_full():
    found = compute_resource_fullness([row()] * 2, [row()] * 2, [None] * 2)
    assert [one.name for one in found] == [one.name for one in WATCHED]
    assert list_full_resources(found) == ()
    assert all(one.together == (None, None) and one.full_alone == (False, False) for one in found)


def test_jobs_on_a_cpu_have_no_resources_of_gpus():
    mine = [row(gpus=0, gpu_ids=None, cpu_util_pct=50.0, data_wait_pct=30.0)] * 2
    found = compute_resource_fullness(mine, mine, [None] * 2)
    assert [one.name for one in found] == ["cpu", "input"]
