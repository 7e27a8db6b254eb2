"""Which resource was full, alone and together, and the sentence that says so."""

import json

import pytest
from gpubench.analysis import sharing
from gpubench.analysis.sharing import WATCHED, busy, evidence, full_together, not_full, stored_resources
from gpubench.analysis.slowdown import group_verdict
from whole_rows import changed, row_with

from gpubench.schema.columns import BY_NAME
from gpubench.schema.group_facts import GroupFacts, Resource
from gpubench.schema.verdict import Verdict


def sentence(gain, gain_range, resources, slowdowns=()):
    """The headline with the word that these figures give, and what is said after it, as one."""
    found = group_verdict(gain, (), (), [Verdict(gain_range=gain_range)])
    said = "; ".join(sharing.sentences(found, gain, resources, slowdowns))
    return f"{sharing.headline(found, gain)}: {said}"


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
    found = named(evidence(rows(column, below, full), rows(column, below, below), [None] * 2), name)
    assert (found.full_alone, found.full_together) == ((False, True), False)
    assert (found.alone, found.together, found.unit) == ((below, full), (below, below), "%")
    found = named(evidence(rows(column, below, below), rows(column, below, full), [None] * 2), name)
    assert (found.full_alone, found.full_together) == ((False, False), True)


@pytest.mark.parametrize(
    ("name", "column", "below", "reached"),
    [("gpu", "gpu_util_pct", 94.9, 95.0), ("memory bandwidth", "gpu_mem_util_pct", 89.9, 90.0)],
)
def test_a_share_of_time_is_never_full(name, column, below, reached):
    """Two jobs whose kernels ran 97 % of the time lost nothing beside each other."""
    found = evidence(rows(column, below, reached), rows(column, below, reached), [None] * 2)
    one = named(found, name)
    assert (one.full_alone, one.full_together) == ((False, False), False)
    assert (full_together(found), busy(found)) == ((), [one])
    assert busy(evidence(rows(column, 100.0, 100.0), rows(column, below, below), [None] * 2)) == []
    assert not_full(found).startswith("no watched resource is known to have been full; ")


def test_what_earlier_versions_called_a_full_gpu_is_read_as_a_busy_one():
    (stored,) = evidence(rows("gpu_util_pct", 96.0, 96.0), rows("gpu_util_pct", 99.0, 99.0), [None] * 2)[1:2]
    before = stored.as_dict() | {"full_alone": [True, True], "full_together": True}
    assert stored_resources(GroupFacts(resources=(Resource.from_dict(before),))) == [stored]
    cpu = stored.as_dict() | {"name": "cpu", "full_alone": [True, True], "full_together": True}
    (cpu,) = stored_resources(GroupFacts(resources=(Resource.from_dict(cpu),)))
    assert cpu.full_together


def test_memory_of_jobs_on_one_gpu_adds_up():
    mine = rows("gpu_mem_mib", 4000.0, 5600.0)
    found = named(evidence(mine, mine, [10000.0] * 2), "gpu memory")
    assert (found.alone, found.together) == ((40.0, 56.0), (96.0, 96.0))
    assert (found.full_alone, found.full_together) == ((False, False), True)


def test_memory_of_jobs_on_gpus_of_their_own_does_not():
    mine = [row(gpu_mem_mib=4000.0, gpu_ids=[0]), row(gpu_mem_mib=5600.0, gpu_ids=[1, 2], gpus=2)]
    found = named(evidence(mine, mine, [10000.0, 20000.0]), "gpu memory")
    assert (found.alone, found.together, found.full_together) == ((40.0, 28.0), (40.0, 28.0), False)


def test_the_fullest_gpu_of_a_job_counts():
    mine = [
        row(gpu_mem_mib=3000.0, gpu_ids=[0, 1]), row(gpu_mem_mib=4000.0, gpu_ids=[1, 2]),
        row(gpu_mem_mib=1000.0, gpu_ids=[2]),
    ]  # fmt: skip
    found = named(evidence(mine, mine, [10000.0] * 3), "gpu memory")
    assert found.together == (70.0, 70.0, 50.0)


def test_memory_with_something_unknown_is_unknown():
    mine = rows("gpu_mem_mib", 4000.0, None)
    found = named(evidence(mine, mine, [10000.0] * 2), "gpu memory")
    assert (found.alone, found.together) == ((40.0, None), (None, None))
    sizeless = named(evidence(mine, mine, [None] * 2), "gpu memory")
    assert (sizeless.alone, sizeless.full_together) == ((None, None), False)


def test_an_allocator_that_had_to_try_again_ran_short():
    alone, together = rows("gpu_mem_mib", 4000.0, 4000.0), rows("gpu_mem_mib", 4000.0, 4000.0)
    together[1] = changed(together[1], gpu_alloc_retries=3)
    found = evidence(alone, together, [10000.0] * 2)
    assert full_together(found) == ("gpu memory",)
    assert "GPU memory ran short" in sentence(0.3, None, found)


def test_rows_without_figures_are_not_full():
    found = evidence([row()] * 2, [row()] * 2, [None] * 2)
    assert [one.name for one in found] == [one.name for one in WATCHED]
    assert full_together(found) == ()
    assert all(one.together == (None, None) and one.full_alone == (False, False) for one in found)


def test_jobs_on_a_cpu_have_no_resources_of_gpus():
    mine = [row(gpus=0, gpu_ids=None, cpu_util_pct=50.0, data_wait_pct=30.0)] * 2
    found = evidence(mine, mine, [None] * 2)
    assert [one.name for one in found] == ["cpu", "input"]
    said = sentence(0.5, None, found)
    assert "the jobs waited for images" in said
    assert "GPU" not in said


def test_there_and_back_through_json():
    found = evidence(rows("cpu_util_pct", 58.0, None), rows("cpu_util_pct", 98.0, 98.0), [None] * 2)
    assert [Resource.from_dict(json.loads(json.dumps(one.as_dict()))) for one in found] == found


# ---------------------------------------------------------------- sentences


def case(**columns):
    """Column -> (figures alone, figures together)."""
    jobs = max(len(alone) for alone, _ in columns.values())
    sides = [[row(gpu_ids=[n]) for n in range(jobs)] for _ in range(2)]
    for column, figures in columns.items():
        sides = [
            [changed(one, **{column: value}) for one, value in zip(side, values, strict=True)]
            for side, values in zip(sides, figures, strict=True)
        ]
    return evidence(*sides, [1000.0] * jobs)


CPU = {"cpu_util_pct": ((58.0, 61.0, 77.0), (98.0, 98.0, 98.0))}
BUSY = {"cpu_util_pct": ((20.0,) * 2, (45.0,) * 2), "gpu_util_pct": ((97.0,) * 2, (99.0,) * 2)}
WAIT = {"data_wait_pct": ((3.0, 2.0, 9.0), (41.0, 41.0, 41.0))}


def test_what_was_full_is_said_with_its_figures():
    assert sentence(0.25, (0.22, 0.29), case(**CPU, **WAIT)) == (
        "partly parallel (overlap gain 0.25, 0.22 to 0.29): the CPUs were full together "
        "(98 %; alone 58, 61 and 77 %), and the GPUs waited for images "
        "(41 % of the epoch instead of 3, 2 and 9 %)"
    )


def test_what_was_full_already_alone_is_said():
    full = case(cpu_util_pct=((95.0, 93.0), (99.0, 99.0)), data_wait_pct=((30.0, 2.0), (60.0, 40.0)))
    said = sentence(0.05, None, full)
    assert said.startswith("perhaps merely concurrent (overlap gain 0.05): ")
    assert "alone 95 and 93 %; each of the jobs filled them alone, too)" in said
    assert "(60 and 40 % of the epoch instead of 30 and 2 %; one of the jobs waited alone, too)" in said


def test_of_three_jobs_two_are_counted():
    said = sentence(0.05, None, case(cpu_util_pct=((95.0, 93.0, 60.0), (99.0,) * 3)))
    assert "alone 95, 93 and 60 %; 2 of the jobs filled them alone, too)" in said


def test_a_busy_gpu_is_not_called_a_full_one():
    said = sentence(
        -0.04, None, case(gpu_util_pct=((99.0, 60.0), (100.0, 100.0)), data_wait_pct=((2.0,) * 2,) * 2)
    )
    assert said.startswith(
        "perhaps merely concurrent, perhaps slower than one after the other (overlap gain −0.04): what they waited for "
        "is not known; a kernel ran nearly all the time (100 %; alone 99 and 60 %; one of the jobs did so alone, too), "
        "which does not tell whether the GPUs were full; none of the other watched resources was full (waiting for "
        "images 2 %); kernel launches"
    )


def test_where_the_jobs_may_be_parallel_it_is_open_whether_they_waited():
    said = sentence(0.98, (0.86, 1.1), case(gpu_util_pct=((28.0,) * 2, (97.0,) * 2)))
    assert said.startswith(
        "between partly parallel and parallel (overlap gain 0.98, 0.86 to 1.10): whether they waited is not known; a "
    )


def test_what_was_full_comes_before_what_does_not_tell():
    said = sentence(0.25, None, case(**CPU, gpu_util_pct=((50.0,) * 3, (99.0,) * 3)))
    assert "and 77 %); a kernel ran nearly all the time (99 %; alone 50 %), which does not tell" in said
    assert "not known" not in said


def test_where_nothing_was_full_the_unwatched_is_named():
    said = sentence(
        0.25, None, case(cpu_util_pct=((20.0, 20.0), (38.5, 38.5)), gpu_util_pct=((50.0,) * 2, (80.0, 90.0)))
    )
    assert said == (
        "perhaps partly parallel (overlap gain 0.25): none of the watched resources was full "
        "(CPUs 39 %, GPU time 80 and 90 %); kernel launches, PCIe and caches are not watched, "
        "and not known: GPU memory, memory bandwidth, waiting for images and clocks lowered"
    )


def test_without_any_figure_nothing_is_guessed():
    said = sentence(0.5, None, evidence([row()] * 2, [row()] * 2, [None] * 2))
    assert "no figure tells why; kernel launches, PCIe and caches are not watched" in said


def test_a_parallel_verdict_names_no_culprit_but_the_room_that_was_left():
    said = sentence(0.98, (0.95, 1.01), case(cpu_util_pct=((20.0, 25.0), (45.0, 45.0))))
    assert said == "parallel (overlap gain 0.98, 0.95 to 1.01): there was room left (CPUs 45 %)"
    ran = sentence(0.98, (0.95, 1.01), case(**BUSY), slowdowns=(1.0, 1.04))
    assert "there was room left (CPUs 45 %); a kernel ran nearly all the time (99 %" in ran
    waits = sentence(0.98, (0.95, 1.01), case(**WAIT), slowdowns=(1.0, 1.04, 1.0))
    assert "each job was about as fast as alone although the GPUs waited for images" in waits
    blind = case(cpu_util_pct=((None,) * 2,) * 2)
    unknown = "parallel (overlap gain 1.00, 0.95 to 1.05): how much room was left is not known"
    assert sentence(1.0, (0.95, 1.05), blind) == unknown
    still = group_verdict(1.0, (), (), [Verdict(gain_range=(0.998, 1.002))])
    assert sharing.headline(still, 1.0) == "parallel (overlap gain 1.00)", "the range reads the same"
    assert sharing.sentences(still, 1.0, []) == []


def test_a_verdict_that_is_perhaps_parallel_names_the_room_that_was_left_too():
    """What the figures say is the same; how sure the word is, is not."""
    said = sentence(0.98, None, case(cpu_util_pct=((20.0, 25.0), (45.0, 45.0))))
    assert said == "perhaps parallel (overlap gain 0.98): there was room left (CPUs 45 %)"
    waits = sentence(0.98, None, case(**WAIT), slowdowns=(1.0, 1.04, 1.0))
    assert waits.startswith("perhaps parallel (overlap gain 0.98): each job was about as fast as alone")
    assert "not watched" not in said + waits


@pytest.mark.parametrize(
    ("gain", "told"), [(0.89, "whether they waited"), (0.8, "whether they waited"), (0.79, "")]
)
def test_where_a_gain_without_a_spread_lies_near_parallel_it_is_open_whether_they_waited(gain, told):
    quiet = sentence(gain, None, case(cpu_util_pct=((20.0, 25.0), (45.0, 45.0))))
    unclear = f"{told} is not known; " if told else ""
    assert quiet.startswith(
        f"perhaps partly parallel (overlap gain {gain:.2f}): {unclear}none of the watched resources was full"
    )
    ran = sentence(gain, None, case(**BUSY))
    assert f"): {told or 'what they waited for'} is not known; a kernel ran" in ran
    known = sentence(gain, (gain, gain), case(**BUSY))
    assert "): what they waited for is not known; a kernel ran" in known


def test_where_no_job_was_slower_than_alone_nobody_asks_what_they_waited_for():
    """Whatever the range leaves possible: three copies took 0.94, 0.93 and 0.90 times as long as alone."""
    for figures in (case(**BUSY), case(**CPU)):
        said = sentence(1.12, (0.87, 1.43), figures, slowdowns=(0.94, 0.93, 1.004))
        assert "1.43): none of the jobs was slower than alone; " in said
        assert "waited" not in said
        assert "times as long as alone" not in said
    slower = sentence(1.12, (0.87, 1.43), case(**BUSY), slowdowns=(0.94, 0.93, 1.006))
    assert "1.43): whether they waited is not known; " in slower


@pytest.mark.parametrize(
    ("gain", "slowdowns", "told"),
    [
        (2.46, (0.33, 2.18), "0.33 to 2.18"),
        (0.95, (1.0, 1.0, 1.12), "1.00 to 1.12"),
        (2.3, (0.5, 1.01), "0.50 to 1.01"),
    ],
)
def test_where_one_job_outweighs_another_none_is_called_as_fast_as_alone(gain, slowdowns, told):
    for figures in (case(**BUSY), case(cpu_util_pct=BUSY["cpu_util_pct"])):
        said = sentence(gain, None, figures, slowdowns=slowdowns)
        assert f"room left (CPUs 45 %); the jobs took {told} times as long as alone" in said
        assert "as fast as alone" not in said
    assert "; a kernel ran nearly all the time" in sentence(gain, None, case(**BUSY), slowdowns=slowdowns)


def test_without_slowdowns_nothing_is_said_of_how_fast_each_job_was():
    said = sentence(0.98, None, case(**BUSY))
    assert "as alone" not in said
    assert "there was room left (CPUs 45 %); a kernel ran nearly all the time" in said


def test_a_range_over_two_verdicts_names_both():
    said = sentence(0.12, (0.05, 0.19), case(**CPU))
    assert said.startswith(
        "between merely concurrent and partly parallel (overlap gain 0.12, 0.05 to 0.19): the CPUs"
    )
