from __future__ import annotations

import pytest

from gpubench.basics.drift import drift_pct


def test_a_drift_needs_ten_times() -> None:
    assert drift_pct([1.0] * 9) is None
    assert drift_pct([1.5, 1.5, *[1.0] * 8]) == pytest.approx(50)
    assert drift_pct([1.0] * 10) == 0


def test_a_stall_is_no_drift() -> None:
    assert drift_pct([9.0, *[1.0] * 49]) == 0
