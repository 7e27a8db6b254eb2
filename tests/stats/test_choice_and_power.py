"""What is chosen, what the bound of a choice is, and how many rounds would settle what is open."""

from __future__ import annotations

import math
from functools import partial

import pytest
from simulated_claims import foretell_rounds, make_claim

from gpubench.core.claims import Claim, Design, Evidence, StudentEstimate
from gpubench.stats.choice import FIRM_BOUND, bound_rival_gain, make_row_choice
from gpubench.stats.distributions import compute_noncentral_t_tail, compute_t_quantile
from gpubench.stats.noise import estimate_noise
from gpubench.stats.power import (
    compute_power,
    find_rounds_for_choice,
    find_rounds_for_claims,
    project_estimate_to_rounds,
)

MANY = 1e9


def evidence_of(center: float, error: float, degrees: float = MANY, processes: int = 3) -> Evidence:
    pairs = StudentEstimate(center=center, error=error, degrees=degrees)
    return Evidence(center=center, processes=(processes, processes), pairs=pairs)


# ---- choice ----


def compare_to(centers: dict[int, float | None]) -> object:
    """Evidence of these logarithms with an error of 0.1; None: of one process."""

    def compare(other: int, row: int) -> Evidence:
        assert other != row
        center = centers[other]
        return Evidence(center=0.0, processes=(1, 1)) if center is None else evidence_of(center, 0.1)

    return compare


def test_the_least_memory_within_five_per_cent_of_the_best_rate() -> None:
    rates = {1: 94.0, 2: 100.0, 3: 105.0, 4: 99.6}
    compare = compare_to({1: 0.0, 2: 0.0, 3: 0.0, 4: 0.0})
    memory = {1: 1.0, 2: 3.0, 3: 5.0, 4: 2.0}
    assert make_row_choice(rates, memory, compare).row == 2  # 105 is 5.0 % faster than 100, 5.4 % than 99.6
    assert make_row_choice(rates, {**memory, 4: None}, compare).row == 2  # 4 is not within
    assert make_row_choice(rates, {**memory, 2: None}, compare).row == 3
    assert make_row_choice(rates, {**memory, 2: math.nan}, compare).row == 3
    assert make_row_choice(rates, {}, compare).row == 3
    assert make_row_choice(rates, dict.fromkeys(rates, 4.0), compare).row == 3  # of equal memory the faster


def test_the_bound_is_that_of_all_others_at_once() -> None:
    choice = make_row_choice({7: 1.0, 8: 2.0, 9: 1.5}, {}, compare_to({7: -0.5, 9: -0.1}))
    highest = -0.1 + 0.1 * compute_t_quantile(1 - 0.05 / 2, MANY)
    assert choice.row == 8
    assert choice.bound == pytest.approx(math.expm1(highest))
    assert choice.gains == {9: pytest.approx(choice.bound)}
    assert choice.series == (7, 8, 9)
    assert choice.is_firm


def test_a_bound_of_a_quarter_is_an_answer() -> None:
    half = 0.1 * compute_t_quantile(0.95, MANY)
    for bound, is_firm in ((0.249, True), (0.251, False)):
        choice = make_row_choice({1: 2.0, 2: 1.0}, {}, compare_to({2: math.log1p(bound) - half}))
        assert choice.bound == pytest.approx(bound)
        assert choice.is_firm is is_firm


def test_slower_rows_leave_a_bound_of_nothing() -> None:
    choice = make_row_choice({1: 2.0, 2: 1.0, 3: 1.0}, {}, compare_to({2: -0.5, 3: -0.6}))
    assert (choice.bound, choice.gains, choice.is_firm) == (0.0, {}, True)


def test_one_process_has_no_bound() -> None:
    choice = make_row_choice({1: 2.0, 2: 1.0, 3: 1.0}, {}, compare_to({2: 0.0, 3: None}))
    assert (choice.bound, choice.is_firm) == (None, False)
    assert choice.gains == {2: pytest.approx(math.expm1(0.1 * compute_t_quantile(0.975, MANY)))}


def test_bounds_on_a_border() -> None:
    """Of processes that do not vary."""

    def compare(other: int, row: int) -> Evidence:
        assert row == 1, "the fastest"
        return {2: evidence_of(center, 0.0), 3: Evidence(center=0.0, processes=(1, 1))}[other]

    center = 0.0
    choice = make_row_choice({1: 2.0, 2: 1.0}, {}, compare)
    assert (choice.bound, choice.gains, choice.is_firm) == (0.0, {}, True)
    center = math.log(1 + FIRM_BOUND)
    assert math.expm1(center) == FIRM_BOUND
    choice = make_row_choice({1: 2.0, 2: 1.0}, {}, compare)
    assert (choice.bound, choice.is_firm) == (FIRM_BOUND, True)
    choice = make_row_choice({1: 2.0, 2: 1.0, 3: 1.0}, {}, compare)  # beside one of whom nothing is known
    assert (choice.bound, choice.gains, choice.is_firm) == (None, {2: pytest.approx(FIRM_BOUND)}, False)


def test_what_is_known_of_some_rows_is_no_less_a_doubt_beside_others_that_are_not_known() -> None:
    choice = make_row_choice({1: 2.0, 2: 1.0, 3: 1.0}, {}, compare_to({2: 0.5, 3: None}))
    assert choice.bound is not None
    assert choice.bound > math.expm1(0.5)
    assert (choice.is_firm, list(choice.gains)) == (False, [2])
    only = make_row_choice({4: 1.0}, {}, compare_to({}))
    assert (only.row, only.bound, only.series) == (4, None, (4,))


def test_the_bound_is_of_both_tests() -> None:
    welch, pairs = (StudentEstimate(center=0.0, error=error, degrees=MANY) for error in (0.1, 0.2))
    both = Evidence(center=0.0, processes=(5, 5), welch=welch, pairs=pairs)
    assert bound_rival_gain(both, 4) == pytest.approx(
        math.expm1(0.1 * compute_t_quantile(1 - 0.8 * 0.05 / 4, MANY))
    )
    assert bound_rival_gain(evidence_of(800.0, 1.0), 1) == math.inf


# ---- power ----


def test_more_rounds_narrow_an_estimate() -> None:
    estimate = StudentEstimate(center=1.0, error=0.4, degrees=3.0, floors=((0.2, 2.0),))
    grown = project_estimate_to_rounds(estimate, 3, 12)
    assert (grown.center, grown.error, grown.degrees) == (1.0, pytest.approx(0.2), 16.5)
    assert grown.floors == ((pytest.approx(0.1), 11.0),)


def test_the_power_of_one_test() -> None:
    estimate = StudentEstimate(center=0.0, error=0.1, degrees=4.0)
    threshold = compute_t_quantile(0.975, 4)
    assert compute_power([(estimate, 1.0)], 0.3, 0.025) == pytest.approx(
        compute_noncentral_t_tail(threshold, 4, 3.0)
    )
    wide = StudentEstimate(center=0.0, error=9.0, degrees=4.0)
    assert compute_power([(wide, 0.8), (estimate, 0.2)], 0.3, 0.025) == pytest.approx(
        compute_noncentral_t_tail(compute_t_quantile(0.995, 4), 4, 3.0)
    )
    assert compute_power([(estimate, 1.0)], 0.0, 0.025) == 0.0
    exact = StudentEstimate(center=0.0, error=0.0, degrees=4.0)
    assert compute_power([(exact, 1.0)], 0.1, 0.025) == 1.0


def is_enough(claim: Claim, rounds: int, distance: float, tail: float) -> bool:
    """By the normal distribution, which so many degrees of freedom leave."""
    pairs = claim.evidence.pairs
    assert pairs is not None
    error = pairs.error * math.sqrt(claim.evidence.processes[0] / rounds)
    return distance / error >= compute_t_quantile(1 - tail, MANY) + compute_t_quantile(0.8, MANY)


@pytest.mark.parametrize(
    ("design", "limit", "tail", "distance"),
    [
        ("ordered", 0.0, 0.0225, 0.1),
        ("paired", 0.0, 0.025, 0.1),
        ("above", 0.04, 0.05, 0.06),
        ("below", 0.2, 0.05, 0.1),
    ],
)
def test_the_least_rounds_with_eighty_per_cent_power(
    design: Design, limit: float, tail: float, distance: float
) -> None:
    claim = make_claim(evidence_of(0.1, 0.1), design, limit=limit)
    rounds = find_rounds_for_claims([claim], [claim])[0]
    assert rounds is not None
    assert is_enough(claim, rounds, distance, tail)
    assert not is_enough(claim, rounds - 1, distance, tail)


def test_a_claim_of_many_needs_more_rounds() -> None:
    claim, other = (make_claim(evidence_of(center, 0.1), "paired") for center in (-0.1, 0.3))
    rounds = find_rounds_for_claims([claim], [claim, other, other])[0]
    assert rounds is not None
    assert is_enough(claim, rounds, 0.1, 0.025 / 3)
    assert not is_enough(claim, rounds - 1, 0.1, 0.025 / 3)
    step = make_claim(evidence_of(-0.1, 0.1), "ordered", series="a")
    rounds = find_rounds_for_claims([step], [step, make_claim(evidence_of(0.1, 0.1), "ordered", series="b")])[
        0
    ]
    assert rounds is not None
    assert is_enough(step, rounds, 0.1, 0.0225 / 2)
    assert not is_enough(step, rounds - 1, 0.1, 0.0225 / 2)


@pytest.mark.parametrize("others", [0, 2])
def test_equality_needs_both_sides(others: int) -> None:
    claim = make_claim(evidence_of(0.02, 0.02), "equal", limit=0.05)
    untested = make_claim(Evidence(center=0.0, processes=(1, 1)), "equal", limit=0.05)
    different = make_claim(evidence_of(0.1, 0.02), "paired")
    rounds = find_rounds_for_claims([claim], [claim, untested, different, *[claim] * others])[0]
    assert rounds is not None

    def power(count: int) -> float:
        error, tail = 0.02 * math.sqrt(3 / count), 0.05 / (1 + others)
        tails = [
            compute_noncentral_t_tail(compute_t_quantile(1 - tail, MANY), MANY, room / error)
            for room in (0.03, 0.07)
        ]
        return sum(tails) - 1

    assert power(rounds) >= 0.8 > power(rounds - 1)


def test_what_no_rounds_would_settle() -> None:
    for evidence in (evidence_of(0.001, 0.1), evidence_of(0.0, 0.1), Evidence(center=1.0, processes=(1, 1))):
        claim = make_claim(evidence, "paired")
        assert find_rounds_for_claims([claim], [claim])[0] is None
    wrong_side = make_claim(evidence_of(-0.1, 0.1), "above")
    assert find_rounds_for_claims([wrong_side], [wrong_side])[0] is None
    many = make_claim(evidence_of(1.0, 0.01, processes=100), "paired")
    assert find_rounds_for_claims([many], [many])[0] is None


def test_rounds_are_counted_by_the_side_with_fewer_processes() -> None:
    pairs = evidence_of(0.1, 0.1).pairs
    claims = [make_claim(Evidence(center=0.1, processes=(3, n), pairs=pairs), "paired") for n in (3, 5)]
    assert find_rounds_for_claims(claims[:1], claims[:1]) == find_rounds_for_claims(claims[1:], claims[1:])


def test_rounds_are_more_than_there_are() -> None:
    claim = make_claim(evidence_of(9.0, 0.1), "paired")
    assert find_rounds_for_claims([claim], [claim]) == [4]


def test_rounds_until_a_choice_is_told_to_an_eighth() -> None:
    near, far = evidence_of(0.0, 0.1), evidence_of(-0.5, 0.1)
    rounds = find_rounds_for_choice([near, far])
    assert rounds is not None
    claim = make_claim(near, "below")
    assert is_enough(claim, rounds, math.log(1.125), 0.025)
    assert not is_enough(claim, rounds - 1, math.log(1.125), 0.025)
    assert find_rounds_for_choice([near, Evidence(center=0.0, processes=(1, 1))]) is None
    assert find_rounds_for_choice([evidence_of(0.2, 0.1)]) is None
    assert find_rounds_for_choice([]) is None


def test_three_rounds_foretell_what_their_degrees_leave() -> None:
    """A noise of 5 %: what simulated sweeps then decided in 80 % (tests/benchmarks/decisions.py)."""
    assert [foretell_rounds("ordered", 0.05, effect) for effect in (0.03, 0.05, 0.10)] == [50, 19, 6]
    assert [foretell_rounds("paired", 0.05, effect) for effect in (0.03, 0.05, 0.10)] == [46, 18, 7]


# ---- noise ----


@pytest.mark.parametrize(
    ("gpus", "utilization", "growth", "noise"),
    [
        (1, 97.0, 1.3, 1.05),
        (4, 97.0, 1.3, 1.1),
        (1, 96.9, 2.0, 1.4),
        (1, 99.0, 1.29, 1.4),
        (1, 99.0, None, 1.4),
        (1, None, 2.0, 1.4),
        (0, 99.0, 2.0, 1.4),
    ],
)
def test_what_sets_the_pace_says_the_noise(
    gpus: int, utilization: float | None, growth: float | None, noise: float
) -> None:
    logarithm = estimate_noise(gpus=gpus, utilization_pct=utilization, step_growth=growth)
    assert math.exp(logarithm) == pytest.approx(noise)


def test_noise_of_loaders_and_shared_machines() -> None:
    estimate = partial(estimate_noise, gpus=1, utilization_pct=99.0, step_growth=2.0)
    noises = [
        estimate(is_loader_bound=True), estimate(is_loader_bound=True, is_shared=True), estimate(strategy="dp"),
        estimate(strategy="ddp"),
    ]  # fmt: skip
    assert list(map(math.exp, noises)) == pytest.approx([1.15, 1.4, 1.4, 1.05])
