"""The Pareto front, and that batch sizes tell theirs of time and energy."""

from gpubench.analysis.front import front
from gpubench.analysis.knee import knees
from hypothesis import given
from hypothesis import strategies as st
from whole_rows import row_with

points = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=8)


def test_what_nothing_beats_in_both():
    assert front([(1, 9), (2, 5), (3, 5), (4, 1), (4, 1), (9, 9)]) == [True, True, False, True, True, False]


@given(points, st.randoms(use_true_random=False))
def test_the_front_is_never_empty_and_does_not_depend_on_the_order(found, chance):
    assert any(front(found)) == bool(found)
    best = {one for one, on_it in zip(found, front(found), strict=True) if on_it}
    mixed = list(found)
    chance.shuffle(mixed)
    assert {one for one, on_it in zip(mixed, front(mixed), strict=True) if on_it} == best


def remark(*figures: tuple[float, float | None, float], **more) -> str:
    """Of batch sizes 16, 32, …: memory, energy and time of an epoch."""
    rows = [
        row_with(
            status="ok", batch_size=16 << place, gpu_mem_mib=mib, gpu_mem_source="nvml-process", energy_j=joules,
            energy_source="nvml-counter", epoch_time_s=time, config_id=f"c{place}", device="cuda", gpus=1,
            trial_id=f"t{place}", images_per_epoch=1024, **more,
        )
        for place, (mib, joules, time) in enumerate(figures)
    ]  # fmt: skip
    (found,) = knees(rows)
    return found.remark.partition("; ")[2]


def test_the_front_of_time_and_energy_stands_beside_that_of_time_and_memory():
    assert remark((1000, 900, 20), (1500, 700, 10), (2500, 500, 9), (5000, 600, 8), (6000, 650, 8.5)) == (
        "by these figures on the Pareto front of time and memory, beaten in both by no other: 16, 32, 64 and 128; on "
        "that of time and energy: 64 and 128."
    )
    assert remark((1000, 900, 20), (1500, 950, 10)) == (
        "by these figures each size is on the Pareto front of time and memory: none is beaten in both; on that of time "
        "and energy: each size."
    )


def test_energy_that_one_size_lacks_is_not_compared():
    assert "energy" not in remark((1000, 900, 20), (1500, None, 10), (2500, 500, 9))
