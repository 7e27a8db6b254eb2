"""Two rows are equal where neither margin is passed: of the two one-sided tests that of the nearer margin decides."""

from __future__ import annotations

import math
from statistics import NormalDist

import pytest
from simulated_claims import make_claim

from gpubench.core.claims import Claim, Evidence, StudentEstimate
from gpubench.stats.decisions import decide_claims


def claim_equal(center: float, margin: float) -> Claim:
    """With a standard error of 1 and so many degrees of freedom that t is normal."""
    pairs = StudentEstimate(center=center, error=1.0, degrees=1e9)
    return make_claim(Evidence(center=center, processes=(9, 9), pairs=pairs), "equal", limit=margin)


@pytest.mark.parametrize("sign", [-1, 1])
def test_the_p_value_is_that_of_the_nearer_margin(sign: int) -> None:
    (claim,) = decide_claims([claim_equal(sign * 1.0, 3.0)])
    assert claim.decided.p == pytest.approx(NormalDist().cdf(-2.0), rel=1e-3)
    (outside,) = decide_claims([claim_equal(sign * 4.0, 3.0)])
    assert outside.decided.p == pytest.approx(NormalDist().cdf(1.0), rel=1e-3)
    assert (outside.decided.word, outside.decided.high is None) == ("unknown", False)


@pytest.mark.parametrize("sign", [-1, 1])
def test_of_two_pairs_off_the_middle_holm_asks_for_half_the_level(sign: int) -> None:
    border = -NormalDist().inv_cdf(0.025)
    for distance, word in ((border - 0.01, "likely"), (border + 0.01, "sure")):
        claims = decide_claims(
            [claim_equal(sign * 5.0, 5.0 + distance), claim_equal(sign * 5.0, 5.0 + distance)]
        )
        assert [claim.decided.word for claim in claims] == [word, word]
        assert [claim.decided.high for claim in claims] == pytest.approx(
            [math.exp(sign * 5.0 - NormalDist().inv_cdf(0.05))] * 2, rel=1e-3
        )
