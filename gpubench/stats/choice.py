"""Which row of a series to take, and what it can cost to be wrong. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from gpubench.core.claims import Evidence
from gpubench.core.findings import Choice
from gpubench.stats.decisions import compute_interval_bounds, list_joint_test_estimates
from gpubench.stats.estimates import ALPHA

TOLERANCE = 0.05
"""How much faster the fastest row may be than one that is taken for its memory."""
FIRM_BOUND = 0.25
"""A bound up to which a choice is an answer."""


def make_row_choice(
    rates: Mapping[int, float], memory: Mapping[int, float | None], compare: Callable[[int, int], Evidence]
) -> Choice:
    """The row of one series that takes the least memory among those within TOLERANCE of the best rate, by estimates.

    `rates`: of each row, in the order of the axis; one or more. `memory`: of each row; where that of a row within the
    tolerance is not known, the fastest is taken. `compare`: the evidence of the logarithm of a row's rate by that of
    the chosen one.

    The bound is that of the other K - 1 rows at once, each at 5 % / (K - 1), one-sided. It holds for any way to choose:
    only the row that is truly the fastest can break it, and that is compared with at most K - 1 others.
    """
    best = max(rates.values())
    close = [row for row, rate in rates.items() if best <= rate * (1 + TOLERANCE)]
    known_mib = {row: mib for row in close if (mib := memory.get(row)) is not None and not math.isnan(mib)}
    if len(known_mib) == len(close):
        row = min(close, key=lambda row: (known_mib[row], -rates[row]))
    else:
        row = max(close, key=rates.__getitem__)
    rivals = {other: compare(other, row) for other in rates if other != row}
    bounds = {other: bound_rival_gain(evidence, len(rivals)) for other, evidence in rivals.items()}
    known = {other: bound for other, bound in bounds.items() if bound is not None}
    bound = max(0.0, *known.values()) if known else None
    if bound is not None and bound <= FIRM_BOUND and len(known) < len(rivals):
        bound = None  # nobody knows the rivals, which may be faster than that
    return Choice(
        row=row,
        bound=bound,
        gains={other: gain for other, gain in known.items() if gain > 0},
        series=tuple(rates),
        is_firm=bound is not None and bound <= FIRM_BOUND,
    )


def bound_rival_gain(evidence: Evidence, rivals: int) -> float | None:
    """How much faster a row is at most than the chosen one (0.15: 15 %), 95 % for `rivals` rows at once.

    None where no test is possible.
    """
    tests = list_joint_test_estimates(evidence)
    if not tests:
        return None
    _, high = compute_interval_bounds(evidence.center, tests, ALPHA / rivals)
    try:
        return math.expm1(high)
    except OverflowError:
        return math.inf
