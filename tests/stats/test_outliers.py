"""Outliers by published tables."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize

from gpubench.stats.outliers import find_outliers

ROSNER = """
-0.25 0.68 0.94 1.15 1.20 1.26 1.26 1.34 1.38 1.43 1.49 1.49 1.55 1.56 1.58 1.65 1.69 1.70 1.76 1.77 1.81 1.91 1.94 1.96
1.99 2.06 2.09 2.10 2.14 2.15 2.23 2.24 2.26 2.35 2.37 2.40 2.47 2.54 2.62 2.64 2.90 2.92 2.92 2.93 3.21 3.26 3.30 3.59
3.68 4.30 4.64 5.34 5.42 6.01
"""
"""The example of Rosner (1983), as the handbook of NIST has it (e-Handbook of Statistical Methods, 1.3.5.17.3)."""
GRUBBS = {5: 1.715, 6: 1.887, 7: 2.020, 8: 2.127}
"""Critical values of one outlier at a level of 5 %, two-sided (Grubbs and Beck 1972, table 1)."""


def test_the_published_example_has_its_three_outliers() -> None:
    logs = np.array([float(word) for word in ROSNER.split()])
    assert [logs[place] for place in find_outliers(np.exp(logs))] == [6.01, 5.42, 5.34]


@pytest.mark.parametrize(("count", "limit"), GRUBBS.items())
def test_the_first_outlier_begins_where_the_table_of_grubbs_says(count: int, limit: float) -> None:
    others = np.linspace(-1, 1, count - 1)

    def sample(farthest: float) -> np.ndarray:
        return np.append(others, farthest)

    def distance(farthest: float) -> float:
        values = sample(farthest)
        return float((farthest - values.mean()) / values.std(ddof=1))

    for wanted, places in ((limit - 0.002, []), (limit + 0.002, [count - 1])):
        farthest = optimize.brentq(lambda value, wanted=wanted: distance(value) - wanted, 1, 1e3)
        assert find_outliers(np.exp(sample(farthest))) == places
