"""What jobs will do to each other: figures worked out by hand, the published log, and what must hold for any jobs."""

import math
from collections import Counter

import pytest
from gpubench.analysis.gradient_wait import Wait
from gpubench.analysis.prediction import SLICING, Demand, demand, fair_share, predict
from hypothesis import given
from hypothesis import strategies as st
from whole_rows import row_with


def job(epoch, cpu=None, gpu=None, gpus=(), cpus=1.0, cpu_set="all", **more):
    return Demand(epoch_time_s=epoch, cpu_s=cpu, gpu_s=gpu, gpus=gpus, cpus=cpus, cpu_set=cpu_set, **more)


def row(**more):
    return row_with(**{"status": "ok"} | more)


# ---------------------------------------------------------------- the published log


def test_the_log_on_gpus_of_their_own():
    """CPU share × epoch time: 9.56 + 9.39 + 8.66 = 27.6 s. They took 28.5 s together; the shares add up to 1.966."""
    shares = ((16.2, 0.59), (15.4, 0.61), (11.3, 0.766))
    found = predict([job(epoch, cpu=epoch * share) for epoch, share in shares])
    assert found.rounds == {"cpu": pytest.approx(27.6, abs=0.05)}
    assert found.slowdowns == pytest.approx((1.966, 1.966, 1.966))
    together = [epoch * slow for (epoch, _), slow in zip(shares, found.slowdowns, strict=True)]
    assert sum(together) / 3 == pytest.approx(28.5, rel=0.02)
    assert (found.verdict, found.limits, found.unknown) == ("partly parallel", ("cpu",), ())
    assert found.overlap_gain == pytest.approx(0.26, abs=0.005)


def test_the_log_with_crop_and_resize_done_beforehand():
    """The CPU shares add up to 66 %."""
    found = predict([job(t, cpu=t * share) for t, share in ((14.4, 0.205), (13.6, 0.205), (8.7, 0.25))])
    assert found.slowdowns == (1.0, 1.0, 1.0)
    assert (found.verdict, found.overlap_gain, found.limits) == ("parallel", 1.0, ())


# ---------------------------------------------------------------- by hand


def test_equal_jobs_that_fill_a_gpu_take_turns():
    found = predict([job(2.0, gpu=2.0, gpus=(0,)) for _ in range(3)], slicing=0.0)
    assert found.slowdowns == pytest.approx((3.0, 3.0, 3.0))
    assert (found.verdict, found.limits, found.rounds["gpu 0"]) == ("merely concurrent", ("gpu",), 6.0)


def test_turns_on_a_gpu_cost_a_part_of_its_time():
    """Measured on an H200: 0.93 of the GPU alone; two took 2.10, three 3.14 times as long. Alone nothing is lost."""
    full = job(1.0, gpu=0.93, gpus=(0,))
    for copies, measured in ((2, 2.10), (3, 3.14)):
        assert predict([full] * copies).slowdowns == pytest.approx([measured] * copies, rel=0.01)
    elsewhere = job(1.0, gpu=1.0, gpus=(1,))
    assert predict([full, elsewhere]).slowdowns == (1.0, 1.0)
    assert predict([full, job(1.0, gpu=0.0, gpus=(0,))]).slowdowns == (1.0, 1.0)


def test_who_wants_less_than_its_fair_share_of_a_gpu_waits_for_nobody():
    small, large = (job(1.0, gpu=busy, gpus=(0,)) for busy in (0.2, 1.0))
    assert predict([small, large], slicing=0.0).slowdowns == pytest.approx((1.0, 1 / 0.8))
    assert predict([small, large, large], slicing=0.0).slowdowns == pytest.approx((1.0, 1 / 0.4, 1 / 0.4))


def test_jobs_on_full_cpus_slow_down_alike():
    """Whoever needs most of them: 0.2 + 1 + 1 of what there is."""
    small, large = job(1.0, cpu=0.2), job(1.0, cpu=1.0)
    assert predict([small, large, large]).slowdowns == pytest.approx((2.2, 2.2, 2.2))
    assert predict([job(1.0, cpu=0.2), job(1.0, cpu=0.8)]).slowdowns == (1.0, 1.0), "just full"


def test_measured_on_12_cpus_beside_h200s():
    """Three jobs of unequal need all took 1.9 to 2.0 times as long."""
    alone = ((6.30, 34.5), (3.56, 31.2), (2.96, 33.0))
    jobs = [job(t, cpu=cpu, gpu=0.0, gpus=(n,), cpus=12.0) for n, (t, cpu) in enumerate(alone)]
    found = predict(jobs)
    assert found.slowdowns == pytest.approx((1.99, 1.92, 1.87), rel=0.15)
    assert found.rounds["cpu"] == pytest.approx(8.2, abs=0.1)


def test_each_resource_is_divided_by_what_jobs_want_alone():
    """A and B share the CPUs, B and C a GPU. That the CPUs hold B to a half leaves C no more of the GPU here."""
    a = job(1.0, cpu=1.0)
    b = job(1.0, cpu=1.0, gpu=0.5, gpus=(0,))
    c = job(1.0, cpu=0.0, gpu=1.0, gpus=(0,))
    found = predict([a, b, c], slicing=0.0)
    assert found.slowdowns == pytest.approx((2.0, 2.0, 2.0))
    assert found.limits == ("cpu", "gpu")


def test_who_shares_two_resources_waits_for_the_fuller_one():
    jobs = [job(1.0, cpu=1.0, gpu=0.5, gpus=(0,)), job(1.0, cpu=0.2, gpu=1.0, gpus=(0,))]
    found = predict(jobs, slicing=0.0)
    assert found.slowdowns == pytest.approx((1.2, 2.0))
    assert found.limits == ("cpu", "gpu")


def test_a_job_on_two_gpus_runs_at_the_pace_of_the_fuller_one():
    wide, narrow = job(1.0, gpu=0.8, gpus=(0, 1)), job(1.0, gpu=0.6, gpus=(1,))
    found = predict([wide, narrow], slicing=0.0)
    assert found.slowdowns == pytest.approx((0.8 / 0.5, 0.6 / 0.5))
    assert found.rounds == {"gpu 1": pytest.approx(1.4)}


def test_pinned_jobs_do_not_share_cpus():
    jobs = [job(1.0, cpu=4.0, cpus=4.0, cpu_set=n) for n in range(2)]
    found = predict(jobs)
    assert (found.slowdowns, found.rounds) == ((1.0, 1.0), {})
    both = predict([*jobs, job(2.0, cpu=4.0, cpus=4.0, cpu_set=1)])
    assert both.slowdowns == pytest.approx((1.0, 1.5, 1.5))
    assert both.rounds == {"cpu": 2.0}


def test_a_resource_over_full_by_rounding_is_full():
    found = predict([job(1.0, cpu=1.03), job(1.0, gpu=1.02, gpus=(0,), cpu=0.0)])
    assert found.slowdowns == (1.0, 1.0)


def test_cpus_within_others_are_shared_with_them():
    """Two jobs bound to CPUs 0 and 1, which both fill; a third may use 0 to 7."""

    def on(cpus, seconds):
        return job(1.0, cpu=seconds, cpus=cpus, cpu_set=frozenset(range(cpus)))

    assert predict([on(2, 2.0), on(2, 2.0)]).slowdowns == pytest.approx((2.0, 2.0))
    light = predict([on(2, 2.0), on(2, 2.0), on(8, 0.5)])
    assert light.slowdowns == pytest.approx((2.0, 2.0, 1.0))
    assert light.rounds == {"cpu 0": pytest.approx(2.0), "cpu 1": pytest.approx(4.5 / 8)}
    assert predict([on(2, 2.0), on(2, 2.0), on(8, 8.0)]).slowdowns == pytest.approx((2.0, 2.0, 1.5))


def test_waiting_for_other_ranks_keeps_a_gpu_busy():
    wide = job(1.0, gpu=0.8, gpus=(0, 1), ranks=2)
    assert predict([wide, wide]).at_most
    assert not predict([wide, job(1.0, gpu=0.8, gpus=(2,))]).at_most, "no GPU is shared"
    assert not predict([job(1.0, gpu=0.8, gpus=(0,))] * 2).at_most, "one rank waits for none"
    full = job(1.0, gpu=1.0, gpus=(2,))
    assert not predict([wide, full, full]).at_most, "the GPU that is waited for has no ranks that wait"
    light = job(1.0, gpu=0.2, gpus=(0, 1), ranks=2)
    assert not predict([light, light]).at_most, "nobody waits for the GPU"


def test_waiting_for_gradients_leaves_the_gpu_to_the_others():
    """Half of 0.8 is left: 2 × 0.4 fits; with 0.25 left out it is 2 × 0.6."""
    measured, estimated = (
        job(1.0, gpu=0.8, gpus=(0, 1), ranks=2, wait=Wait(part=part, measured=known))
        for part, known in ((0.5, True), (0.25, False))
    )
    free = predict([measured, measured], slicing=0.0)
    assert (free.slowdowns, free.rounds["gpu 1"]) == ((1.0, 1.0), pytest.approx(0.8))
    full = predict([estimated, estimated], slicing=0.0)
    assert full.slowdowns == pytest.approx((1.2, 1.2))
    assert full.rounds == {"gpu 0": pytest.approx(1.2), "gpu 1": pytest.approx(1.2)}
    assert full.waits == (estimated.wait,) * 2


def test_it_may_be_less_unless_the_wait_was_measured():
    busy = job(1.0, gpu=1.0, gpus=(0,))
    wide = {"gpu": 0.8, "gpus": (0, 1), "ranks": 2}
    measured = job(1.0, **wide, wait=Wait(part=0.1, measured=True))
    estimated = job(1.0, **wide, wait=Wait(part=0.1, measured=False))
    assert not predict([measured, busy]).at_most
    assert predict([measured, busy]).limits == ("gpu",)
    assert predict([estimated, busy]).at_most
    assert predict([measured, estimated]).at_most


def test_the_wait_of_a_job_that_shares_no_gpu_is_not_told():
    wide = job(1.0, gpu=0.8, gpus=(0, 1), ranks=2, wait=Wait(part=0.1, measured=True))
    alone = job(1.0, gpu=0.8, gpus=(2,))
    assert predict([wide, alone]).waits == (None, None)
    assert predict([wide, wide, alone]).waits == (wide.wait, wide.wait, None)


def test_what_is_not_known_is_said_where_it_is_shared():
    on_one = [job(1.0, cpu=0.4, gpus=(0,)), job(1.0, cpu=0.4, gpu=1.0, gpus=(0,))]
    found = predict(on_one)
    assert (found.unknown, found.slowdowns) == (("GPU seconds an epoch",), (1.0, 1.0))
    assert found.rounds == {"cpu": pytest.approx(0.8)}
    apart = [job(1.0, gpus=(0,)), job(1.0, cpu=1.0, gpus=(1,))]
    assert predict(apart).unknown == ("CPU seconds an epoch",)


def test_nothing_is_predicted_of_a_job_that_is_not_known_nor_of_one_alone():
    assert predict([job(1.0, cpu=1.0), None]) is None
    assert predict([job(1.0, cpu=1.0)]) is None
    assert predict([]) is None


# ---------------------------------------------------------------- what a row says


def ddp(**more):
    """80 steps of 64 images, 0.05 s busy in each on both of its GPUs."""
    return row(**{
        "epoch_time_s": 8.0, "cpu_s_per_epoch": 12.0, "gpu_busy_s_per_epoch": 8.0, "images_per_epoch": 5120,
        "batch_size": 64, "gpus": 2, "strategy": "ddp",
    } | more)  # fmt: skip


def test_the_demand_of_a_row():
    found = demand(ddp(), gpus=[2, 3], cpus=8, cpu_set="shared")
    where = {"gpus": (2, 3), "cpus": 8, "cpu_set": "shared"}
    assert found == job(8.0, cpu=12.0, gpu=4.0, **where, ranks=2)


def test_the_demand_of_a_row_whose_ranks_wait():
    where = {"gpus": [2, 3], "cpus": 8, "cpu_set": "shared"}
    found = demand(ddp(comm_ms=10.0), **where)
    assert found.wait == Wait(part=pytest.approx(0.2), measured=True)
    assert (found.gpu_s, found.gpu_work_s) == (4.0, pytest.approx(3.2))
    broken_down = ddp(comm_ms=20.0, breakdown=True)
    assert demand(ddp(), **where, others=[broken_down]).wait == Wait(part=pytest.approx(0.4), measured=True)
    single = ddp(comm_ms=10.0, strategy="dp")
    assert demand(single, **where).wait is None, "one process waits for nobody"


@pytest.mark.parametrize(
    ("strategy", "gpus", "ranks", "found"),
    [("single", [0], None, 1), ("dp", [0, 1], None, 1), ("ddp", [0, 1], None, 2), ("ddp", [], 3, 3)],
)
def test_ranks(strategy, gpus, ranks, found):
    alone = row(epoch_time_s=1.0, strategy=strategy, ranks=ranks, workers=0)
    assert demand(alone, gpus=gpus, cpus=1, cpu_set=0).ranks == found


def test_a_demand_without_figures():
    assert demand(row(), gpus=[0], cpus=1, cpu_set=0) is None
    found = demand(row(epoch_time_s=1.0), gpus=[0], cpus=1, cpu_set=0)
    assert (found.cpu_s, found.gpu_s) == (None, None)
    assert demand(row(epoch_time_s=1.0, gpu_busy_s_per_epoch=1.0), gpus=[], cpus=1, cpu_set=0).gpu_s is None


# ---------------------------------------------------------------- what must hold for any jobs

shares = st.one_of(st.just(0.0), st.floats(1e-3, 1.05))
anywhere = st.builds(
    lambda epoch, cpu, gpu, gpus, cpu_set: job(
        epoch, cpu=epoch * cpu * 4, gpu=epoch * gpu, gpus=tuple(gpus), cpus=4.0, cpu_set=cpu_set
    ),
    st.floats(0.01, 1e3), shares, shares, st.sets(st.integers(0, 2), max_size=3), st.integers(0, 1),
)  # fmt: skip


def used(jobs, slowdowns):
    """How full every resource is when the jobs run at these slowdowns."""
    found = {}
    for one, slow in zip(jobs, slowdowns, strict=True):
        for gpu in one.gpus:
            found["gpu", gpu] = found.get(("gpu", gpu), 0) + min(1, one.gpu_s / one.epoch_time_s) / slow
        key = ("cpu", one.cpu_set)
        found[key] = found.get(key, 0) + min(1, one.cpu_s / one.epoch_time_s / one.cpus) / slow
    return found


@given(st.lists(anywhere, min_size=2, max_size=6))
def test_no_resource_over_full_and_no_job_faster_than_alone(jobs):
    found = predict(jobs)
    assert all(slow >= 1 and math.isfinite(slow) for slow in found.slowdowns)
    assert all(part <= 1 + 1e-6 for part in used(jobs, found.slowdowns).values())


@given(st.lists(anywhere, min_size=2, max_size=6))
def test_who_waits_waits_for_something_of_which_more_is_wanted_than_there_is(jobs):
    found = predict(jobs)
    wanted = used(jobs, [1.0] * len(jobs))
    sharers = Counter(gpu for one in jobs for gpu in one.gpus if one.gpu_s)
    full = {
        key
        for key, part in wanted.items()
        if part > (1 - SLICING if key[0] == "gpu" and sharers[key[1]] > 1 else 1) - 1e-6
    }
    for one, slow in zip(jobs, found.slowdowns, strict=True):
        if slow > 1.001:
            mine = {("cpu", one.cpu_set), *(("gpu", gpu) for gpu in one.gpus)}
            assert mine & full
    assert bool(found.limits) == (max(found.slowdowns) > 1 + 1e-5) or max(found.slowdowns) < 1.001


@given(st.lists(anywhere, min_size=2, max_size=6), anywhere)
def test_another_job_speeds_none_up(jobs, newcomer):
    before, after = predict(jobs).slowdowns, predict([*jobs, newcomer]).slowdowns
    assert all(b <= a + 1e-9 for b, a in zip(before, after, strict=False))


@given(st.lists(anywhere, min_size=1, max_size=4), st.integers(0, 3))
def test_equal_jobs_fare_equally(jobs, place):
    twin = jobs[place % len(jobs)]
    slowdowns = predict([*jobs, twin]).slowdowns
    assert slowdowns[-1] == pytest.approx(slowdowns[place % len(jobs)], rel=1e-6)


@given(st.lists(anywhere, min_size=2, max_size=6), st.randoms(use_true_random=False))
def test_the_order_of_the_jobs_does_not_matter(jobs, random):
    order = list(range(len(jobs)))
    random.shuffle(order)
    before, after = predict(jobs).slowdowns, predict([jobs[i] for i in order]).slowdowns
    assert after == pytest.approx(tuple(before[i] for i in order), rel=1e-6)


@given(st.lists(shares, min_size=2, max_size=5))
def test_jobs_that_share_nothing_run_as_alone(parts):
    jobs = [job(1.0, cpu=p, gpu=p, gpus=(n,), cpu_set=n) for n, p in enumerate(parts)]
    found = predict(jobs)
    assert set(found.slowdowns) == {1.0}
    assert (found.overlap_gain, found.verdict, found.limits, found.rounds) == (1.0, "parallel", (), {})


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6), st.sampled_from([1.0, 0.885]))
def test_a_fair_share_gives_everything_away_or_all_that_is_wanted(wants, available):
    share = fair_share(wants, available)
    given_away = sum(min(want, share) for want in wants)
    assert given_away == pytest.approx(min(available, sum(wants)))


def test_a_fair_share_by_hand():
    assert fair_share([0.5, 0.5]) == math.inf, "all get what they want"
    assert fair_share([0.8, 0.8]) == pytest.approx(0.5)
    assert fair_share([0.9, 0.1, 0.9]) == pytest.approx(0.45), "in any order: 0.1 is left to the others"
    assert fair_share([0.9, 0.9], 0.8) == pytest.approx(0.4)
