"""How late a power meter shows what is drawn, found by the edges of a load that both it and a reference show. Pure.

A meter averages, its readings travel, and its clock is its own: what it says at a time was drawn some time before. The
reference (a GPU's own power, the CPUs' busy time) is on the right clock and has the same edges. A reading is taken for
`base + gain × the mean of the reference over some width, some time before`; the time and the width that leave the least
squares are the meter's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

MOST_S = 6.0
"""No meter is taken to be later."""
_WIDTHS_S = (0.1, 0.25, 0.5, 1.0, 2.0, 3.0)
"""Means over these are tried."""
_COARSE_S, _FINE_S = 0.1, 0.01
"""From one delay that is tried to the next: of all, and of those around the best."""
_LEAST_ERROR_S = 0.05
"""The edges of a reference that is sampled ten times a second are known no better."""
_SURE = 20.0
"""So many times what is left of a reading's variance, a degree of freedom, the load must explain: less is seen where a
meter shows something else."""
_LIKELY = 4.0
"""Delays that explain at most so many times that less than the best one may be the true one: of about 95 %."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class StepCurve:
    """A quantity over time: each value is the mean since the time before it, and the first one's time has no length."""

    times: Floats
    """Seconds, rising; two or more."""
    values: Floats

    @cached_property
    def step_s(self) -> float:
        """The usual time between two values."""
        return float(np.median(np.diff(self.times)))

    @cached_property
    def _totals(self) -> Floats:
        return np.concatenate(([0.0], np.cumsum(self.values[1:] * np.diff(self.times))))

    def integrate_to(self, t: Floats) -> Floats:
        """Value × seconds from the first time to each of these. Before the first time it is at its least."""
        before, after = np.minimum(t - self.times[0], 0.0), np.maximum(t - self.times[-1], 0.0)
        inside = np.interp(t, self.times, self._totals)
        return np.asarray(inside + before * self.values[1:].min() + after * self.values[-1])


@dataclass(frozen=True, slots=True)
class Alignment:
    """How a meter's readings lie to a reference."""

    share: float
    """Of the readings' variance, that which the reference explains."""
    delay_s: float
    """A reading at t stands for the time since the one before it, both less this. It may be a little below 0."""
    error_s: float
    """By how much that may be off, in about 95 % of such records."""
    gain: float
    """What the meter shows more where the reference shows 1 more."""
    rest: StepCurve
    """What of the readings the reference does not explain, on the reference's clock."""
    reference: StepCurve

    def compute_joules(self, t0: float, t1: float) -> float:
        """What the meter tells of the time between two moments, in its unit × seconds.

        What it averages over an edge is put where the reference has that edge; the rest is integrated as it is.
        """
        ends = np.array([t0, t1])
        return float(np.diff(self.rest.integrate_to(ends) + self.gain * self.reference.integrate_to(ends))[0])


def align_meter(meter: StepCurve, reference: StepCurve) -> Alignment | None:
    """The delay of a meter; None where it does not follow the reference: no edge, too flat, or another load."""
    step_s = meter.step_s
    fits: list[tuple[float, float, float]] = []
    for width in _WIDTHS_S:
        delays = np.arange(-step_s, MOST_S + _COARSE_S, _COARSE_S)
        coarse = [(_compute_fit(meter, reference, delay, width), delay, width) for delay in delays]
        best = max(coarse)[1]
        delays = np.arange(best - _COARSE_S, best + _COARSE_S, _FINE_S)
        fits += coarse + [(_compute_fit(meter, reference, delay, width), delay, width) for delay in delays]
    share, delay_s, width_s = max(fits)
    # Means over several steps overlap, and tell as much as fewer readings.
    freedom = len(meter.times) * step_s / max(step_s, width_s) - 4
    if freedom < 1 or delay_s > MOST_S:
        return None
    left = (1 - share) / freedom
    if share < _SURE * left:
        return None
    likely = [delay for other, delay, _ in fits if other >= share - _LIKELY * left]
    explained = _average_reference(meter, reference, delay_s, width_s)
    gain = float(np.cov(explained, meter.values)[0, 1] / np.var(explained, ddof=1))
    rest = StepCurve(meter.times - delay_s, meter.values - gain * explained)
    error_s = max(delay_s - min(likely), max(likely) - delay_s, _LEAST_ERROR_S)
    return Alignment(share, float(delay_s), float(error_s), gain, rest, reference)


def _average_reference(meter: StepCurve, reference: StepCurve, delay_s: float, width_s: float) -> Floats:
    """The mean of the reference over what each reading would tell of: so wide, around the middle of its step."""
    ends = meter.times - delay_s + (width_s - meter.step_s) / 2
    return (reference.integrate_to(ends) - reference.integrate_to(ends - width_s)) / width_s


def _compute_fit(meter: StepCurve, reference: StepCurve, delay_s: float, width_s: float) -> float:
    """The share of the readings' variance that the reference explains; 0 where they fall as it rises."""
    shown = _average_reference(meter, reference, delay_s, width_s)
    if np.ptp(shown) == 0 or np.ptp(meter.values) == 0:
        return 0.0
    return max(0.0, float(np.corrcoef(shown, meter.values)[0, 1])) ** 2
