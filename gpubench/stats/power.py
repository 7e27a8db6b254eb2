"""How many rounds would settle what is open: power analyses at 80 %, from the effect and the scatter that were seen.

A plan and no promise: of three processes the standard deviation is known to a factor of about two either way.
Everything is for the test that `decisions` makes; a round gives each row one process.
"""

from __future__ import annotations

import bisect
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from gpubench.core.claims import Claim, Evidence, StudentEstimate
from gpubench.stats.decisions import (
    END_SHARE,
    compute_alpha_per_series,
    list_joint_test_estimates,
    list_test_estimates,
)
from gpubench.stats.distributions import compute_noncentral_t_tail
from gpubench.stats.estimates import ALPHA, compute_interval_half_width

POWER = 0.8
MOST_ROUNDS = 100
"""As many as a sweep goes over its plan at most."""
AIMED_BOUND = 0.125
"""The bound of a choice that further rounds aim at: half of what is firm."""


def find_rounds_for_claims(claims: Sequence[Claim], family: Sequence[Claim]) -> list[int | None]:
    """Rounds in all with which each of these open claims would be sure, as claims of one family.

    None where it can't be tested, where nobody knows an effect, and for more than MOST_ROUNDS.
    """
    alpha = compute_alpha_per_series(family)
    counts = Counter(claim.design for claim in family if list_test_estimates(claim))
    return [_find_rounds_for_claim(claim, alpha, max(1, counts[claim.design])) for claim in claims]


def _find_rounds_for_claim(claim: Claim, alpha: float, count: int) -> int | None:
    """`alpha`: what each side of an ordered family, or all of a paired one, shares. `count`: claims of its design."""
    center, limit = claim.evidence.center, claim.limit
    if claim.design == "ordered":
        distances, tail = [abs(center)], END_SHARE * alpha
    elif claim.design == "paired":
        distances, tail = [abs(center)], alpha / 2 / count
    elif claim.design == "equal":
        distances, tail = [limit - center, limit + center], ALPHA / count
    else:
        distances, tail = [center - limit if claim.design == "above" else limit - center], ALPHA
    return _find_least_rounds(
        claim.evidence,
        list_test_estimates(claim),
        lambda grown: (
            math.fsum(compute_power(grown, distance, tail) for distance in distances) - (len(distances) - 1)
        ),
    )


def find_rounds_for_choice(evidence: Sequence[Evidence]) -> int | None:
    """Rounds in all with which the bound of a choice would be AIMED_BOUND or less.

    `evidence`: of each other row's rate against the chosen one's. None for more than MOST_ROUNDS, and where a row can't
    be tested.
    """
    if not evidence:
        return None
    bound, tail = math.log1p(AIMED_BOUND), ALPHA / len(evidence)
    rounds = [
        _find_least_rounds(
            row,
            list_joint_test_estimates(row),
            partial(compute_power, distance=bound - row.center, tail=tail),
        )
        for row in evidence
    ]
    known = [count for count in rounds if count is not None]
    return max(known) if len(known) == len(rounds) else None


def compute_power(tests: Sequence[tuple[StudentEstimate, float]], distance: float, tail: float) -> float:
    """The probability that the better of some tests shows a truth that lies `distance` beyond what is tested.

    `tail`: the one-sided level that they share.
    """
    if distance <= 0:
        return 0.0
    powers = []
    for estimate, share in tests:
        if not estimate.error:
            return 1.0
        threshold = compute_interval_half_width(estimate, tail * share) / estimate.error
        powers.append(compute_noncentral_t_tail(threshold, estimate.degrees, distance / estimate.error))
    return max(powers)


def _find_least_rounds(
    evidence: Evidence,
    tests: list[tuple[StudentEstimate, float]],
    power: Callable[[list[tuple[StudentEstimate, float]]], float],
) -> int | None:
    """The least rounds, more than there are, of which the power is enough. More are never less enough."""
    now = min(evidence.processes)

    def is_enough(rounds: int) -> bool:
        grown = [(project_estimate_to_rounds(estimate, now, rounds), share) for estimate, share in tests]
        return power(grown) >= POWER

    further = range(now + 1, MOST_ROUNDS + 1)
    place = bisect.bisect_left(further, True, key=is_enough) if tests else len(further)
    return further[place] if place < len(further) else None


def project_estimate_to_rounds(estimate: StudentEstimate, processes: int, rounds: int) -> StudentEstimate:
    """The estimate as it would be of `rounds` processes in place of `processes`, two or more, with the same scatter."""
    shrink, gain = math.sqrt(processes / rounds), (rounds - 1) / (processes - 1)
    return replace(
        estimate,
        error=estimate.error * shrink,
        degrees=estimate.degrees * gain,
        floors=tuple((error * shrink, degrees * gain) for error, degrees in estimate.floors),
    )
