"""Claims become verdicts: the only place that knows corrections for many claims and for many looks.

**A question is a family of its own**: what it calls sure is false in at most 5 % of such questions. Inside a family:

- *ordered* claims are steps of series along an axis. A series is taken to fall first and to rise then (memory x time
  over batch sizes, speed-ups over network sizes), so it is tested in a fixed order from both ends, one-sided: from the
  front that a step falls, from the back that it rises, each end at 45 % of the level, until the first that fails. Steps
  that neither end reached share the last 10 %, two-sided, corrected by Holm (1979). That is one error in twenty, as
  every step that an end calls wrongly is the first wrong one of that end, and where no end is wrong all steps without
  an effect are among the rest. Series of one family share its level equally.
- *paired* claims are corrected by Holm; they share the level with the series, if there are both.
- *above*, *below*: words that exclude each other, of which only one can be false at a time, so no correction. Where a
  question holds several figures against limits, each has its own 5 %.
- *equal* claims are corrected by Holm among themselves.

**Tests.** A step of an ordered series has two: Welch's at 80 % of its level and that of pairs of rounds at 20 %, as
nobody knows before whether rounds have something in common. Pairs alone are tested where evidence holds no more, as of
network sizes, and for claims of the other designs; without two common rounds it is Welch's error with the fewest
degrees of freedom (paired), or Welch's as it is.

**Intervals** are the test, inverted: what is sure or likely excludes no change, because it is the same test.

**Looks.** A sweep that stops measuring as soon as its claims are decided looks again and again, and each look is a
further chance to be misled. With `looks`, each p-value is multiplied by LOOK_DIVISOR x j (j + 1) at a claim's j-th
look. As 1 / (j (j + 1)) summed over all j is 1, all looks together spend a twentieth of the level, which comes on top
of what the last decision, without looks, errs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from gpubench.core.claims import Certainty, Claim, Design, Evidence, StudentEstimate, Verdict
from gpubench.stats.estimates import ALPHA, compute_interval_half_width, compute_p_beyond

END_SHARE = 0.45
"""Share of a series' level that each of its ends has; the rest is for steps that no end reached."""
WELCH_SHARE, PAIRS_SHARE = 0.8, 0.2
"""How the two tests of an ordered step share its level."""
LOOK_DIVISOR = 20
"""All looks together spend this part of the level: were it all of it, equal rows would be called different in up to 7 %
of tables."""
FEWEST_PROCESSES = 3
"""Of each side, from which Welch's test goes without floors, and a claim may be decided before its sweep ends."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimTests:
    """A claim's tests, before any correction. In the evidence's unit."""

    less: float
    """One-sided p-value of "it is not less": than no change, the limit, or the upper margin."""
    more: float
    """One-sided p-value of "it is not more": than no change, the limit, or the lower margin."""
    p: float
    """Of the claim by itself."""
    low: float
    high: float

    def adjust_for_look(self, look: int) -> ClaimTests:
        """With p-values as they count at a look."""
        p_values = {name: getattr(self, name) for name in ("less", "more", "p")}
        return replace(self, **{name: adjust_p_for_look(p, look) for name, p in p_values.items()})


_Tested = tuple[int, Claim, ClaimTests]
"""A claim that could be tested, with its place among all."""


def decide_claims(claims: Sequence[Claim], looks: Sequence[int] | None = None) -> list[Claim]:
    """The claims with their verdicts, in their order.

    `looks`: of each claim, where the verdicts decide whether its rows are measured on (`count_looks`).
    """
    outcomes = [make_claim_tests(claim) for claim in claims]
    families: dict[str, list[_Tested]] = {}
    for place, (claim, outcome) in enumerate(zip(claims, outcomes, strict=True)):
        if outcome is not None:
            spent = outcome if looks is None else outcome.adjust_for_look(looks[place])
            families.setdefault(claim.family, []).append((place, claim, spent))
    sure = set().union(*map(_list_sure_in_family, families.values()))
    return [
        replace(claim, verdict=_make_verdict(claim, outcome, is_sure=place in sure))
        for place, (claim, outcome) in enumerate(zip(claims, outcomes, strict=True))
    ]


def count_looks(evidence: Evidence, processes_a_round: int = 1) -> int:
    """Which look at a claim it is, after each round from the first after which FEWEST_PROCESSES a side were there.

    0 where there are fewer: then nothing is decided.
    """
    processes = evidence.processes
    if min(processes) < FEWEST_PROCESSES:
        return 0
    first = math.ceil(FEWEST_PROCESSES / processes_a_round)
    return math.ceil(max(processes) / processes_a_round) - first + 1


def adjust_p_for_look(p: float, look: int) -> float:
    """A p-value as it counts at a claim's `look`-th look, the first being 1; 1 before it."""
    return min(1.0, p * compute_alpha_divisor(look)) if look > 0 else 1.0


def compute_alpha_divisor(look: int) -> int:
    """By how much the level of a claim is divided at its `look`-th look, the first being 1."""
    return LOOK_DIVISOR * look * (look + 1)


def adjust_p_by_holm(p_values: Mapping[int, float]) -> dict[int, float]:
    """p-values corrected by Holm: those at a level or below may be rejected together, with that level for them all."""
    adjusted: dict[int, float] = {}
    worst = 0.0
    for rank, place in enumerate(sorted(p_values, key=p_values.__getitem__)):
        worst = max(worst, min(1.0, p_values[place] * (len(p_values) - rank)))
        adjusted[place] = worst
    return adjusted


def compute_alpha_per_series(claims: Sequence[Claim]) -> float:
    """What each ordered series of a family, and its paired claims together, have of its 5 %."""
    series = {claim.series for claim in claims if claim.design == "ordered" and list_test_estimates(claim)}
    is_paired = any(claim.design == "paired" and list_test_estimates(claim) for claim in claims)
    return ALPHA / max(1, len(series) + is_paired)


# ---- one claim ----


def list_test_estimates(claim: Claim) -> list[tuple[StudentEstimate, float]]:
    """The estimates that a claim is tested by, each with its share of the level; none where none is possible."""
    evidence = claim.evidence
    if claim.design == "ordered":
        return list_joint_test_estimates(evidence)
    if evidence.pairs is not None:
        return [(evidence.pairs, 1.0)]
    if evidence.welch is None:
        return []
    if claim.design == "paired":
        fewest = float(min(evidence.processes) - 1)
        return [(replace(evidence.welch, degrees=fewest, floors=()), 1.0)]
    return [(evidence.welch, 1.0)]


def list_joint_test_estimates(evidence: Evidence) -> list[tuple[StudentEstimate, float]]:
    """Welch's test and that of pairs, sharing the level; one alone where there is only that.

    Together both reject less than their shares add up to. From three processes a side on, that is room enough for what
    Welch's degrees of freedom err by, so its floors, which would cost a third of the power, are left out: 1 to 5 % of
    questions are false for rows whose noises are 1:1 to 1:30.
    """
    welch, pairs = evidence.welch, evidence.pairs
    if welch is None or pairs is None:
        return [(estimate, 1.0) for estimate in (welch, pairs) if estimate is not None]
    if min(evidence.processes) >= FEWEST_PROCESSES:
        welch = replace(welch, floors=())
    return [(welch, WELCH_SHARE), (pairs, PAIRS_SHARE)]


def make_claim_tests(claim: Claim) -> ClaimTests | None:
    """A claim's tests by itself; None where none is possible, as of one process."""
    tests = list_test_estimates(claim)
    if not tests:
        return None
    is_two_sided = claim.design in ("ordered", "paired")
    limit = 0.0 if is_two_sided else claim.limit
    less = _combine_p_values(tests, -1, limit)
    more = _combine_p_values(tests, 1, -limit if claim.design == "equal" else limit)
    p = {"above": more, "below": less, "equal": max(less, more)}.get(claim.design, 2 * min(less, more))
    low, high = compute_interval_bounds(claim.evidence.center, tests, ALPHA / 2 if is_two_sided else ALPHA)
    return ClaimTests(less=less, more=more, p=min(1.0, p), low=low, high=high)


def compute_interval_bounds(
    center: float, tests: Sequence[tuple[StudentEstimate, float]], tail: float
) -> tuple[float, float]:
    """The ends beyond which the truth lies with probability `tail` each: what none of the tests rejects.

    Pairs may be of fewer rounds than the center that is printed: the interval holds that, too.
    """
    ends = [
        (estimate.center, compute_interval_half_width(estimate, tail * share)) for estimate, share in tests
    ]
    low = max(middle - half for middle, half in ends)
    high = min(middle + half for middle, half in ends)
    return min(low, center), max(high, center)


def _combine_p_values(
    tests: Sequence[tuple[StudentEstimate, float]], sign: Literal[-1, 1], value: float
) -> float:
    """The p-value, of tests that share a level, of "the truth is not above `value`"; with sign -1, not below it."""
    return min(1.0, *(compute_p_beyond(test, sign * (test.center - value)) / share for test, share in tests))


# ---- one family ----


def _list_sure_in_family(family: Sequence[_Tested]) -> set[int]:
    """The places of claims of one family that are sure."""
    alpha = compute_alpha_per_series([claim for _, claim, _ in family])
    series: dict[str, list[_Tested]] = {}
    p_values: dict[Design, dict[int, float]] = {design: {} for design in get_args(Design)}
    for place, claim, outcome in family:
        p_values[claim.design][place] = outcome.p
        if claim.design == "ordered":
            series.setdefault(claim.series, []).append((place, claim, outcome))
    sure = set().union(*(_list_sure_in_series(steps, alpha) for steps in series.values()))
    sure |= _list_rejected(adjust_p_by_holm(p_values["paired"]), alpha)
    sure |= _list_rejected(adjust_p_by_holm(p_values["equal"]), ALPHA)
    return sure | _list_rejected({**p_values["above"], **p_values["below"]}, ALPHA)


def _list_sure_in_series(steps: Sequence[_Tested], alpha: float) -> set[int]:
    """The places of one ordered series' steps that a chain from either end reaches, or that Holm leaves of the rest."""
    falling = itertools.takewhile(lambda step: step[2].less <= END_SHARE * alpha, steps)
    rising = itertools.takewhile(lambda step: step[2].more <= END_SHARE * alpha, reversed(steps))
    reached = {place for place, *_ in (*falling, *rising)}
    rest = {place: outcome.p for place, _, outcome in steps if place not in reached}
    return reached | _list_rejected(adjust_p_by_holm(rest), (1 - 2 * END_SHARE) * alpha)


def _list_rejected(p_values: Mapping[int, float], alpha: float) -> set[int]:
    return {place for place, p in p_values.items() if p <= alpha}


# ---- one verdict ----


def _make_verdict(claim: Claim, outcome: ClaimTests | None, *, is_sure: bool) -> Verdict:
    evidence, limit = claim.evidence, claim.limit
    if outcome is None:
        noise = math.inf if evidence.noise is None else evidence.noise
        low, high = evidence.center - noise, evidence.center + noise
    else:
        low, high = outcome.low, outcome.high
    # What is claimed is what is printed: the interval excludes the contrary.
    is_shown = {"above": low > limit, "below": high < limit, "equal": -limit < low and high < limit}.get(
        claim.design, low > 0 or high < 0
    )
    word: Certainty = "unknown" if not is_shown else "sure" if is_sure else "likely"
    distance = evidence.center - (limit if claim.design in ("above", "below") else 0.0)
    if claim.design == "equal" and is_shown:
        distance = 0.0
    return Verdict(
        word=word,
        direction="more" if distance > 0 else "less" if distance < 0 else "same",
        p=None if outcome is None else outcome.p,
        low=None if outcome is None or claim.design == "below" else _convert_to_figure(evidence, low),
        high=None if outcome is None or claim.design == "above" else _convert_to_figure(evidence, high),
    )


def _convert_to_figure(evidence: Evidence, value: float) -> float:
    """A value of the evidence in the unit of the figure: the ratio of its logarithm."""
    if not evidence.is_log:
        return value
    try:
        return math.exp(value)
    except OverflowError:  # of two processes that differ much nothing is known upwards
        return math.inf
