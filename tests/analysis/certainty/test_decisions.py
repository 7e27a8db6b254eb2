"""Slower, faster, the same or open: of one comparison, and of a table."""

import math

import pytest
from gpubench.analysis.certainty.decision import adjusted, compare, decide
from gpubench.analysis.certainty.interval import ratio
from hypothesis import given
from hypothesis import strategies as st

SLOW = [1.02, 1.05, 0.99, 1.04, 1.01]
FAST = [0.95, 0.98, 1.0, 0.93, 0.96, 0.97]


def test_slower_and_faster():
    """p: 0.00365 by Welch (scipy.stats.ttest_ind); of the noisier side alone 0.00537, which counts."""
    found = compare(SLOW, FAST, 0.02)
    assert (found.word, found.margin, found.family) == ("slower", 0.02, 1)
    assert found.differs == pytest.approx(0.00537021)
    assert found.ratio == ratio(SLOW, FAST)
    assert compare(FAST, SLOW, 0.02).word == "faster"
    assert compare(FAST, SLOW, 0.02).differs == pytest.approx(found.differs)


def test_the_same_inside_a_margin():
    """statsmodels' ttost_ind(logs, logs, -log 1.1, log 1.1, usevar="unequal"): p 0.014998."""
    found = compare(SLOW, FAST, 0.1)
    assert (found.word, found.same) == ("same", pytest.approx(0.01499754)), "though it does differ"
    assert found.differs < 0.05
    assert compare(FAST, SLOW, 0.1).same == pytest.approx(found.same)
    assert compare(SLOW, FAST, 0.1, level=0.01).word == "slower"


def test_open_where_neither_shows():
    found = compare([1.0, 1.1, 1.2], [1.0, 1.15, 1.1], 0.02)
    assert found.word == "open"
    assert min(found.differs, found.same) > 0.05


def test_the_edge_of_the_margin_is_outside():
    assert compare([1.02, 1.02], [1.0, 1.0], 0.02).word == "slower"
    assert compare([1.0199, 1.0199], [1.0, 1.0], 0.02).word == "same"
    assert compare([1.0, 1.0], [1.0199, 1.0199], 0.02).word == "same"
    assert compare([1.0, 1.0], [1.0, 1.0], 0.02).word == "same"
    for margin in (0.0, -0.1, math.nan):
        with pytest.raises(ValueError, match="above 0"):
            compare([1.0, 1.0], [1.0, 1.0], margin)


def test_one_process_decides_nothing():
    assert compare([1.5], [1.0, 1.01], 0.02) is None


def test_a_level_is_that_of_the_interval_too():
    assert compare(SLOW, FAST, 0.02, level=0.1).ratio == ratio(SLOW, FAST, confidence=0.9)


def test_holm_by_hand():
    """statsmodels' multipletests(method="holm")."""
    assert adjusted([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert adjusted([0.6, 0.7]) == [1.0, 1.0]
    assert adjusted([]) == []


def test_a_table_is_corrected_for():
    one = ratio(SLOW, FAST)
    assert [found.word for found in decide([one] * 9, 0.02)] == ["slower"] * 9, "9 × 0.00537 is below 0.05"
    ten = decide([one] * 10, 0.02)
    assert {found.word for found in ten} == {"open"}
    assert ten[0].differs == pytest.approx(0.0537021)
    assert {found.family for found in ten} == {10}
    same = decide([one] * 4, 0.1)
    assert same[0].same == pytest.approx(4 * 0.01499754)
    assert {found.word for found in same} == {"slower"}, "no longer the same, and still a difference"
    assert decide([], 0.02) == []


chances = st.lists(st.floats(0, 1), min_size=1, max_size=12)


@given(chances, st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(found, chance):
    places = chance.sample(range(len(found)), len(found))
    assert adjusted([found[place] for place in places]) == pytest.approx([adjusted(found)[p] for p in places])


@given(chances)
def test_a_correction_only_raises_and_keeps_the_order(found):
    corrected = adjusted(found)
    assert all(one <= other <= 1 for one, other in zip(found, corrected, strict=True))
    by_chance = sorted(zip(found, corrected, strict=True))
    assert [one for _, one in by_chance] == sorted(corrected)
    assert min(corrected) == pytest.approx(min(1, len(found) * min(found)))
