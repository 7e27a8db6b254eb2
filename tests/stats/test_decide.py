"""Levels, orders, corrections and looks, each at its border. Degrees of freedom are so many that t is normal."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist

import pytest
from simulated_claims import make_claim

from gpubench.core.claims import Claim, Design, Evidence, StudentEstimate, Verdict
from gpubench.stats.decisions import (
    adjust_p_by_holm,
    adjust_p_for_look,
    compute_alpha_per_series,
    compute_interval_bounds,
    count_looks,
    decide_claims,
    list_joint_test_estimates,
    list_test_estimates,
)
from gpubench.stats.distributions import compute_t_tail
from gpubench.stats.estimates import estimate_log_ratio

MANY = 1e9


def estimate(p: float, sign: int, *, error: float = 1.0, degrees: float = MANY) -> StudentEstimate:
    """With this one-sided p-value on the side of its sign."""
    return StudentEstimate(center=sign * error * NormalDist().inv_cdf(1 - p), error=error, degrees=degrees)


def by_pairs(p: float, sign: int = -1, design: Design = "ordered", **options: str) -> Claim:
    pairs = estimate(p, sign)
    return make_claim(Evidence(center=pairs.center, processes=(9, 9), pairs=pairs), design, **options)


def words(claims: list[Claim], looks: list[int] | None = None) -> list[str]:
    return [claim.decided.word for claim in decide_claims(claims, looks)]


def verdict(claim: Claim) -> Verdict:
    return decide_claims([claim])[0].decided


# ---- ordered ----


@pytest.mark.parametrize(
    ("p_values", "decided"),
    [
        # An end has 2.25 %, and the chain goes on until the first that fails: the front shows falls, the back rises.
        ((-0.0224, -0.4), "sure unknown"),
        ((-0.0226, -0.4), "likely unknown"),
        ((-0.4, 0.0224), "unknown sure"),
        ((-0.4, 0.0226), "unknown likely"),
        ((0.02, -0.02), "likely likely"),
        ((-0.02, 0.02), "sure sure"),
        ((-0.02, -0.02, -0.03, -0.02, -0.02), "sure sure unknown likely likely"),
        ((0.02, 0.03, 0.02), "likely unknown sure"),
        # What no end reaches shares 0.5 %, two-sided: of three 0.083 % one-sided, and 0.125 % for the next.
        ((-0.4, -0.00083, -0.4), "unknown sure unknown"),
        ((-0.4, -0.00085, -0.4), "unknown likely unknown"),
        ((-0.4, -0.0008, 0.00124, -0.4), "unknown likely likely unknown"),
        ((-0.4, -0.0006, 0.0008, -0.4), "unknown sure sure unknown"),
        # What an end has reached is not among them.
        ((-0.02, -0.4, -0.0012, -0.4), "sure unknown likely unknown"),
        ((-0.02, -0.4, -0.0008, -0.4), "sure unknown sure unknown"),
    ],
)
def test_steps_along_an_axis(p_values: tuple[float, ...], decided: str) -> None:
    """Each with its one-sided p-value: below 0 of a step that falls."""
    assert words([by_pairs(abs(p), 1 if p > 0 else -1) for p in p_values]) == decided.split()


def test_a_claim_shows_a_direction() -> None:
    unknown, likely = decide_claims([by_pairs(0.4, +1), by_pairs(0.0226, +1)])
    assert (likely.shows("more"), likely.shows("less"), unknown.shows("more")) == (True, False, False)


def test_series_of_a_question_share_its_level() -> None:
    apart = [by_pairs(0.0112, series="a"), by_pairs(0.0113, series="b")]
    assert words(apart) == ["sure", "likely"]
    assert compute_alpha_per_series(apart) == 0.025
    assert compute_alpha_per_series(apart[:1]) == 0.05
    assert compute_alpha_per_series([*apart, by_pairs(0.5, design="paired")]) == pytest.approx(0.05 / 3)
    assert compute_alpha_per_series([by_pairs(0.5, design="above")]) == 0.05


def test_what_can_not_be_tested_takes_no_share_and_breaks_no_chain() -> None:
    untested = make_claim(Evidence(center=-1.0, processes=(1, 1)), "ordered", series="b")
    assert words([by_pairs(0.0224, series="a"), untested]) == ["sure", "unknown"]
    untested = make_claim(Evidence(center=-1.0, processes=(1, 3)), "ordered")
    steps = [by_pairs(0.02), untested, by_pairs(0.02), by_pairs(0.4)]
    assert words(steps) == ["sure", "unknown", "sure", "unknown"]


def test_questions_are_decided_apart() -> None:
    claims = [by_pairs(0.02, design="paired", family="a"), by_pairs(0.02, design="paired", family="b")]
    assert words(claims) == ["sure", "sure"]
    assert words([by_pairs(0.02, design="paired"), by_pairs(0.02, design="paired")]) == ["likely", "likely"]
    assert decide_claims([]) == []


def test_verdicts_stand_in_the_order_of_their_claims() -> None:
    claims = [
        by_pairs(0.001, -1, "paired", family="b"),
        by_pairs(0.4, family="a"),
        by_pairs(0.002, +1, family="b"),
    ]
    decided = decide_claims(claims)
    assert [claim.evidence for claim in decided] == [claim.evidence for claim in claims]
    assert [claim.decided.direction for claim in decided] == ["less", "less", "more"]


def joint(welch: float, pairs: float, processes: int = 9) -> Claim:
    by_welch, by_rounds = estimate(welch, -1, error=2.0), estimate(pairs, -1, error=2.0)
    return make_claim(
        Evidence(center=by_welch.center, processes=(processes, processes), welch=by_welch, pairs=by_rounds),
        "ordered",
    )


def test_a_step_has_welchs_test_and_that_of_pairs() -> None:
    assert verdict(joint(0.008, 0.3)).p == pytest.approx(2 * 0.008 / 0.8)
    assert verdict(joint(0.3, 0.002)).p == pytest.approx(2 * 0.002 / 0.2)
    assert verdict(joint(0.4, 0.4)).p == 1.0
    assert verdict(joint(0.0179, 0.3)).word == "sure"  # 0.8 x 2.25 %
    assert verdict(joint(0.0181, 0.3)).word == "likely"
    evidence = joint(0.018, 0.3).evidence
    alone = make_claim(Evidence(center=-1.0, processes=(9, 9), welch=evidence.welch), "ordered")
    assert verdict(alone).p == pytest.approx(2 * 0.018)


def test_a_pair_of_tests_goes_without_floors_from_three_processes_on() -> None:
    floors = ((0.9, 1.0), (0.4, 1.0))
    both = StudentEstimate(center=-1.0, error=1.0, degrees=2.0, floors=floors)
    for processes, left in ((2, floors), (3, ())):
        evidence = Evidence(center=-1.0, processes=(5, processes), welch=both, pairs=both)
        assert list_joint_test_estimates(evidence)[0][0].floors == left
    evidence = Evidence(center=-1.0, processes=(5, 5), welch=both)
    assert list_joint_test_estimates(evidence) == [(both, 1.0)]
    assert list_joint_test_estimates(Evidence(center=0.0, processes=(1, 1))) == []


# ---- intervals ----


@pytest.mark.parametrize("design", ["ordered", "paired"])
def test_what_is_claimed_excludes_no_change(design: Design) -> None:
    claimed = verdict(by_pairs(0.0249, +1, design))
    assert claimed.word != "unknown"
    assert claimed.low == pytest.approx(1, abs=0.01)
    assert claimed.low is not None
    assert claimed.low > 1
    unclaimed = verdict(by_pairs(0.0251, +1, design))
    assert unclaimed.word == "unknown"
    assert unclaimed.low is not None
    assert unclaimed.low < 1


def test_the_interval_is_what_neither_test_rejects() -> None:
    welch, pairs = (StudentEstimate(center=1.0, error=error, degrees=MANY) for error in (1.0, 0.5))
    low, high = compute_interval_bounds(1.0, [(welch, 0.8), (pairs, 0.2)], 0.025)
    half = 0.5 * NormalDist().inv_cdf(1 - 0.005)
    assert (low, high) == (pytest.approx(1 - half), pytest.approx(1 + half))
    low, high = compute_interval_bounds(1.0, [(welch, 0.8)], 0.025)
    assert high == pytest.approx(1 + NormalDist().inv_cdf(1 - 0.02))


def test_the_interval_holds_the_figure_that_is_printed() -> None:
    pairs = StudentEstimate(center=1.0, error=0.1, degrees=MANY)
    assert compute_interval_bounds(2.0, [(pairs, 1.0)], 0.025)[1] == 2.0
    assert compute_interval_bounds(0.5, [(pairs, 1.0)], 0.025)[0] == 0.5
    # So what contradicts it is not claimed, however clear the pairs are.
    claim = make_claim(Evidence(center=-0.1, processes=(9, 9), pairs=pairs), "paired")
    assert verdict(claim).word == "unknown"


def test_ratios_and_differences() -> None:
    pairs = StudentEstimate(center=0.5, error=0.1, degrees=MANY)
    half = 0.1 * NormalDist().inv_cdf(0.975)
    evidence = Evidence(center=0.5, processes=(9, 9), pairs=pairs)
    ratio = verdict(make_claim(evidence, "paired"))
    assert [ratio.low, ratio.high] == pytest.approx([math.exp(0.5 - half), math.exp(0.5 + half)])
    points = verdict(make_claim(replace(evidence, is_log=False), "paired"))
    assert [points.low, points.high] == pytest.approx([0.5 - half, 0.5 + half])
    wide = verdict(make_claim(estimate_log_ratio({1: 1.0, 2: 1e300}, {1: 1.0, 2: 1.0}), "paired"))
    assert (wide.low, wide.high, wide.word) == (0.0, math.inf, "unknown")


def test_where_nothing_varies_a_difference_is_sure_and_none_is_unknown() -> None:
    different = verdict(make_claim(estimate_log_ratio({1: 2.0, 2: 2.0}, {1: 1.0, 2: 1.0}), "paired"))
    assert (different.word, different.p, different.low, different.high) == ("sure", 0.0, 2.0, 2.0)
    same = verdict(make_claim(estimate_log_ratio({1: 2.0, 2: 2.0}, {1: 2.0, 2: 2.0}), "paired"))
    assert (same.word, same.direction, same.p) == ("unknown", "same", 1.0)


# ---- unordered ----


def test_holm() -> None:
    adjusted = adjust_p_by_holm({5: 0.01, 3: 0.04, 8: 0.03})
    assert adjusted == pytest.approx({5: 0.03, 8: 0.06, 3: 0.06})
    assert adjust_p_by_holm({1: 0.7, 2: 0.6}) == {2: 1.0, 1: 1.0}
    # 5 % / 3 and 5 % / 2, two-sided.
    for first, second, expected in (
        (0.0083, 0.0124, ["sure", "sure"]),
        (0.0083, 0.0126, ["sure", "likely"]),
        (0.0084, 0.0124, ["likely", "likely"]),
    ):
        claims = [by_pairs(p, design="paired") for p in (0.3, first, second)]
        assert words(claims) == ["unknown", *expected]


def test_pairs_decide_where_there_are_some() -> None:
    evidence = joint(0.001, 0.2).evidence
    assert list_test_estimates(make_claim(evidence, "paired")) == [(evidence.pairs, 1.0)]
    assert verdict(make_claim(evidence, "paired")).p == pytest.approx(0.4)


def test_without_common_rounds_the_fewest_degrees_count() -> None:
    welch = StudentEstimate(center=3.0, error=1.0, degrees=5.0, floors=((0.9, 2.0), (0.4, 4.0)))
    evidence = Evidence(center=3.0, processes=(5, 3), welch=welch)
    assert verdict(make_claim(evidence, "paired")).p == pytest.approx(2 * compute_t_tail(3.0, 2))
    # Against a limit: Welch's degrees, no less than a sample alone leaves.
    assert verdict(make_claim(evidence, "above")).p == pytest.approx(
        max(compute_t_tail(3.0, 5), compute_t_tail(3.0 / 0.9, 2))
    )


# ---- limits and margins ----


def against(design: Design, limit: float, center: float = 0.0, error: float = 0.1) -> Verdict:
    pairs = StudentEstimate(center=center, error=error, degrees=MANY)
    return verdict(make_claim(Evidence(center=center, processes=(9, 9), pairs=pairs), design, limit=limit))


def test_a_limit_is_tested_on_one_side_without_a_correction() -> None:
    """A regression beyond a threshold is one: 5 % are 1.645 standard errors."""
    above = against("above", math.log(1.1), math.log(1.1) + 0.1646)
    assert (above.word, above.direction, above.high) == ("sure", "more", None)
    assert above.p == pytest.approx(0.05, abs=2e-4)
    assert above.low == pytest.approx(1.1, abs=1e-3)
    short = against("above", math.log(1.1), math.log(1.1) + 0.1644)
    assert (short.word, short.direction) == ("unknown", "more")
    below = against("below", math.log(1.1), math.log(1.1) - 0.1646)
    assert (below.word, below.direction, below.low) == ("sure", "less", None)
    assert below.high == pytest.approx(1.1, abs=1e-3)
    assert against("below", math.log(1.1), math.log(1.1) - 0.1644).word == "unknown"
    far = against("above", 0.0, -5.0)
    assert (far.word, far.direction, far.p) == ("unknown", "less", pytest.approx(1.0))


@pytest.mark.parametrize(
    ("design", "limit", "center", "direction"),
    [
        ("above", 1.0, 0.5, "less"), ("above", -1.0, -0.5, "more"), ("below", 1.0, 0.5, "less"),
        ("below", -1.0, -0.5, "more"), ("equal", 1.0, 0.99, "more"),
    ],
)  # fmt: skip
def test_directions_are_against_the_limit(
    design: Design, limit: float, center: float, direction: str
) -> None:
    assert against(design, limit, center).direction == direction


def test_limits_of_a_question_are_not_corrected() -> None:
    claims = [by_pairs(0.049, +1, "above"), by_pairs(0.049, -1, "below"), by_pairs(0.4, -1, "below")]
    assert words(claims) == ["sure", "sure", "unknown"]


def test_equal_lies_inside_the_margin_on_both_sides() -> None:
    equal = against("equal", 0.165, 0.0)
    assert (equal.word, equal.direction) == ("sure", "same")
    assert equal.high == pytest.approx(math.exp(0.1645), abs=1e-4)
    assert against("equal", 0.164, 0.0).word == "unknown"
    assert against("equal", 0.3, 0.135).word == "sure"
    assert against("equal", 0.3, 0.136).word == "unknown"
    assert against("equal", 0.3, -0.136).direction == "less"
    assert against("equal", 0.3, 0.0).p == pytest.approx(NormalDist().cdf(-3), rel=1e-3)


@pytest.mark.parametrize("sign", [-1, 1])
def test_of_the_two_margins_the_nearer_one_decides(sign: int) -> None:
    assert against("equal", 0.3, sign * 0.1).p == pytest.approx(NormalDist().cdf(-2), rel=1e-3)
    outside = against("equal", 0.3, sign * 0.4)
    assert outside.p == pytest.approx(NormalDist().cdf(1), rel=1e-3)
    assert (outside.word, outside.high is None) == ("unknown", False)


@pytest.mark.parametrize("sign", [-1, 1])
def test_equal_rows_are_corrected_by_holm(sign: int) -> None:
    def claim(distance: float) -> Claim:
        """With so many standard errors between it and the nearer margin."""
        pairs = StudentEstimate(center=sign * 5.0, error=1.0, degrees=MANY)
        evidence = Evidence(center=pairs.center, processes=(9, 9), pairs=pairs)
        return make_claim(evidence, "equal", limit=5 + distance)

    border = -NormalDist().inv_cdf(0.025)
    assert words([claim(border - 0.01)]) == ["sure"]
    assert words([claim(border - 0.01)] * 2) == ["likely"] * 2
    assert words([claim(border + 0.01)] * 2) == ["sure"] * 2
    assert verdict(claim(border)).high == pytest.approx(
        math.exp(sign * 5.0 - NormalDist().inv_cdf(0.05)), rel=1e-3
    )


def test_a_claim_is_read_after_it_is_decided_and_held_against_no_difference() -> None:
    claim = Claim(
        metric="m", candidate=1, baseline=0, evidence=Evidence(center=0.1, processes=(1, 1)), design="above"
    )
    assert claim.limit == 0
    with pytest.raises(ValueError, match="decided"):
        _ = claim.decided


# ---- one process ----


@pytest.mark.parametrize(
    ("design", "limit", "likely", "unknown"),
    [
        ("ordered", 0.0, -0.41, -0.39),
        ("paired", 0.0, 0.41, 0.39),
        ("above", 0.1, 0.51, 0.49),
        ("below", 0.1, -0.31, -0.29),
        ("equal", 0.5, 0.09, -0.11),
    ],
)
def test_one_process_is_likely_at_most(design: Design, limit: float, likely: float, unknown: float) -> None:
    for center, word in ((likely, "likely"), (unknown, "unknown")):
        decided = verdict(
            make_claim(Evidence(center=center, processes=(1, 1), noise=0.4), design, limit=limit)
        )
        assert (decided.word, decided.p, decided.low, decided.high) == (word, None, None, None)
    assert verdict(make_claim(Evidence(center=9.0, processes=(1, 1)), design, limit=limit)).word == "unknown"


# ---- looks ----


def test_looks_spend_a_twentieth_of_the_level_together() -> None:
    assert adjust_p_for_look(0.001, 0) == 1.0
    assert adjust_p_for_look(0.001, 1) == pytest.approx(0.001 * 20 * 2)
    assert adjust_p_for_look(0.0001, 3) == pytest.approx(0.0001 * 20 * 12)
    assert adjust_p_for_look(0.1, 2) == 1.0
    assert sum(0.05 / adjust_p_for_look(1e-12, look) * 1e-12 for look in range(1, 10_000)) == pytest.approx(
        0.0025, rel=1e-3
    )


@pytest.mark.parametrize(
    ("processes", "each", "look"),
    [
        ((2, 9), 1, 0),
        ((3, 3), 1, 1),
        ((3, 4), 1, 2),
        ((7, 5, 6), 1, 5),
        ((4, 4), 2, 1),
        ((5, 5), 2, 2),
        ((6, 6), 2, 2),
        ((9, 9), 4, 3),
    ],
)
def test_a_look_is_a_round_after_three_processes(processes: tuple[int, ...], each: int, look: int) -> None:
    assert count_looks(Evidence(center=0.0, processes=processes), each) == look
    if each == 1:
        assert count_looks(Evidence(center=0.0, processes=processes)) == look


@pytest.mark.parametrize(
    ("design", "sign", "p"),
    [
        ("ordered", -1, 0.0225),
        ("ordered", +1, 0.0225),
        ("paired", -1, 0.025),
        ("above", +1, 0.05),
        ("below", -1, 0.05),
    ],
)
def test_a_look_is_stricter_and_changes_no_figure(design: Design, sign: int, p: float) -> None:
    first, second = p / 40, p / 120
    assert words([by_pairs(first * 0.98, sign, design)], [1]) == ["sure"]
    assert words([by_pairs(first * 1.02, sign, design)], [1]) == ["likely"]
    assert words([by_pairs(second * 0.98, sign, design)], [2]) == ["sure"]
    assert words([by_pairs(second * 1.02, sign, design)], [2]) == ["likely"]
    assert words([by_pairs(second, sign, design)], [0]) == ["likely"]
    claim = by_pairs(second, sign, design)
    looked, seen = (decide_claims([claim], looks)[0].decided for looks in ([2], None))
    assert (looked.p, looked.low, looked.high) == (seen.p, seen.low, seen.high)


def test_each_claim_has_its_own_look() -> None:
    claims = [by_pairs(0.0001, design="above", sign=+1), by_pairs(0.0001, design="above", sign=+1)]
    assert words(claims, [1, 30]) == ["sure", "likely"]


def test_where_nothing_varies_no_look_decides_before_its_first() -> None:
    claim = make_claim(estimate_log_ratio({1: 2.0, 2: 2.0}, {1: 1.0, 2: 1.0}), "paired")
    assert words([claim], [0]) == ["likely"]
