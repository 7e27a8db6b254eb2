"""Student's distribution, and the noncentral one of power. The only place that asks scipy.

`scipy.special` takes a third of a second to import (`scipy.stats` twice as long), so it waits until a number is asked
for: `--help` and a table of one process a row go without. All arguments are numbers, or arrays of one shape.
"""

from __future__ import annotations

import math
from typing import Any


def compute_t_tail(t: float, degrees: float) -> float:
    """The probability of a value above `t` under Student's distribution with so many degrees of freedom."""
    from scipy.special import stdtr

    return float(stdtr(degrees, -t))


def compute_t_quantile(probability: Any, degrees: Any) -> Any:
    """The value below which Student's distribution has this probability."""
    from scipy.special import stdtrit

    return stdtrit(degrees, probability)


def compute_noncentral_t_tail(t: float, degrees: float, shift: float) -> float:
    """The probability of a value above `t` where the truth lies `shift` standard errors above what is tested."""
    from scipy.special import nctdtr

    below = float(nctdtr(degrees, shift, t))
    # scipy 1.17 gives nan where the probability is too small for a float.
    return float(shift > t) if math.isnan(below) else 1.0 - below
