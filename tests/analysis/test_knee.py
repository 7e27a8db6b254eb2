"""Where a larger batch stops paying."""

import itertools

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gpubench import result
from gpubench.analysis.knee import knees


def rows(memory, times, **others):
    """Batch sizes 16, 32, 64 …; a time of None is out of memory, a memory of None was not measured."""
    base = dict.fromkeys(result.BY_NAME) | {"model": "resnet34"}
    return [
        base
        | {"batch_size": 16 << n, "gpu_mem_mib": m, "epoch_time_s": t, "status": "ok" if t else "oom"}
        | {"config_id": f"c{n}{others}"}
        | others
        for n, (m, t) in enumerate(zip(memory, times, strict=True))
    ]


def test_resnet34_of_the_published_log():
    (knee,) = knees(rows([1259, 1539, 2047, 3233, 5527, 9905], [29.1, 16.7, 12.3, 11.4, 11.4, 12.8]))
    assert (knee.verdict, knee.best, knee.refused) == ("stops", 64, 128)
    assert knee.sentence == (
        "A larger batch stops paying after 64: "
        "from 64 to 128 memory grows 58 % while time per image falls 7 %."
    )


def test_a_time_that_stays_or_rises_is_said_so():
    (stays,) = knees(rows([10, 11, 20], [9, 5, 5]))
    assert stays.sentence.endswith("from 32 to 64 memory grows 82 % while time per image stays the same.")
    (rises,) = knees(rows([10, 11, 20], [9, 5, 6]))
    assert rises.sentence.endswith("while time per image grows 20 %.")


def test_never_and_always():
    (never,) = knees(rows([2361, 4175, 7627], [18.1, 16.2, 15.4]))
    assert never.verdict == "never"
    assert never.sentence.startswith("A larger batch never pays: already from 16 to 32 memory grows 77 %")
    (always,) = knees(rows([100, 110, 120, None], [40, 20, 10, None]))
    assert (always.verdict, always.best) == ("always", 64)
    assert always.sentence == "Every larger batch pays, up to 64; 128 ran out of memory."


def test_a_later_batch_that_pays_after_all_is_named():
    (knee,) = knees(rows([100, 150, 160], [10, 9, 2]))
    assert knee.verdict == "never"
    assert knee.sentence.endswith(", though from 16 straight to 64 would pay.")


def test_without_memory_only_time_is_judged_and_the_missing_figure_named():
    (knee,) = knees(rows([None] * 3, [10, 5, 6]))
    assert (knee.verdict, knee.best) == ("time-only", 32)
    assert knee.sentence == (
        "Time per image is least at 32, of 16 to 64; "
        "whether a larger batch pays is open: GPU memory was not measured."
    )


def test_a_wobble_on_the_way_does_not_hide_the_least_time():
    (knee,) = knees(rows([None] * 4, [4.72, 5.0, 3.07, 2.49]))
    assert "least at 128, of 16 to 128" in knee.sentence


def test_memory_of_two_sources_is_not_weighed():
    mixed = rows([100, 100], [10, 5])
    mixed[0]["gpu_mem_source"], mixed[1]["gpu_mem_source"] = "nvml-process", "torch-reserved"
    assert "different sources" in knees(mixed)[0].sentence


def test_too_few():
    (knee,) = knees(rows([100, None], [10, None]))
    assert knee.verdict == "too-few"
    assert "only 16 has an epoch time" in knee.sentence
    assert knees(rows([100], [10])) == []


def test_one_sentence_a_series_and_none_across_gpu_counts():
    both = rows([100, 110], [10, 5], variant="crop-resize") + rows([100, 200], [10, 9], variant="cached")
    first, second = knees(both)
    assert first.sentence.startswith("variant=crop-resize: every larger batch pays")
    assert second.sentence.startswith("variant=cached: a larger batch never pays")
    zipped = rows([100, 110, 60], [10, 5, 1])
    for row, gpus in zip(zipped, (1, 1, 2), strict=True):
        row["gpus"] = gpus
    (knee,) = knees(zipped, tied=("gpus",))
    assert knee.best == 32


series = st.lists(st.tuples(st.floats(1, 1e5), st.floats(0.01, 1e3)), min_size=2, max_size=8)


@given(series)
def test_every_step_up_to_the_knee_pays_and_the_next_does_not(points):
    products = [memory * time for memory, time in points]
    assume(all(abs(a / b - 1) > 1e-9 for a, b in itertools.pairwise(products)))
    (knee,) = knees(rows([m for m, _ in points], [t for _, t in points]))
    falls = [b < a for a, b in itertools.pairwise(products)]
    paid = falls.index(False) if False in falls else len(falls)
    assert knee.best == 16 << paid
    assert knee.verdict == ("always" if all(falls) else "stops" if paid else "never")
    assert (knee.refused is None) == all(falls)


@given(series, st.floats(0.01, 100), st.floats(0.01, 100))
def test_units_do_not_matter(points, of_memory, of_time):
    products = [memory * time for memory, time in points]
    assume(all(abs(a / b - 1) > 1e-6 for a, b in itertools.pairwise(products)))
    (one,) = knees(rows([m for m, _ in points], [t for _, t in points]))
    (other,) = knees(rows([m * of_memory for m, _ in points], [t * of_time for _, t in points]))
    assert (one.verdict, one.best) == (other.verdict, other.best)


def test_a_knee_says_the_growth_that_it_rests_on():
    (knee,) = knees(rows([100, 200], [10, 9]))
    assert knee.memory_growth_pct == pytest.approx(100)
    assert knee.time_growth_pct == pytest.approx(-10)


def spread(table, *iqrs):
    return [row | {"epoch_time_iqr_s": iqr} for row, iqr in zip(table, iqrs, strict=True)]


def test_what_noise_cannot_tell_apart_is_open():
    (time,) = knees(spread(rows([None] * 4, [9, 6, 5.0, 5.08]), 0.1, 0.1, 0.1, 0.1))
    assert time.sentence.startswith(
        "Time per image is least at 64, of 16 to 128, but that is open: 64 and 128 lie within each other's spread; "
    )
    (clear,) = knees(spread(rows([None] * 4, [9, 6, 5.0, 5.3]), 0.1, 0.1, 0.1, 0.1))
    assert "each other's" not in clear.sentence
    (stops,) = knees(spread(rows([100, 101, 103], [10, 5, 4.95]), 1.0, 0.2, 0.2))
    assert stops.sentence.endswith("falls 1 %, but that is open: 32 and 64 lie within each other's spread.")
    (always,) = knees(spread(rows([100, 101, 103, None], [10, 5, 4.8, None]), 1.0, 0.2, 0.2, None))
    assert always.sentence == (
        "Every larger batch pays, up to 64, but that is open: 32 and 64 lie within each other's spread; "
        "128 ran out of memory."
    )


def test_a_step_that_its_memory_decides_is_not_open_for_times_alike():
    (knee,) = knees(spread(rows([100, 180], [5.0, 4.9]), 0.3, 0.3))
    assert "each other's" not in knee.sentence


@pytest.mark.parametrize(
    ("doubts", "weak"), [("dp+other-load", True), ("short-window", False), (None, False)]
)
def test_a_verdict_on_doubtful_rows_says_so(doubts, weak):
    for memory in ([100, 180], [100, 50], [None, None]):
        table = rows(memory, [5.0, 4.0])
        table[1]["doubts"] = doubts
        (knee,) = knees(table)
        assert knee.sentence.endswith("; it rests on rows with doubts.") is weak


def test_rows_that_decide_nothing_may_be_doubtful():
    table = rows([100, 110, 300, 500], [10, 5, 4, 3])
    table[3]["doubts"] = "stranger"
    assert "doubts" not in knees(table)[0].sentence
