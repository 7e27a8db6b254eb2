"""A straight line through memory over the batch size, and where it reaches what a GPU holds. Pure.

Weights, their gradients, the optimizer's state and CUDA's context take the same at every batch size, activations grow
in step with it: so memory is a line. What bends it are the workspaces of cuDNN, which chooses other algorithms at other
sizes, most of all at small ones. Sizes at the small end that lie off the line are left out; where others do, there is
no line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gpubench.stats.distributions import compute_t_quantile
from gpubench.stats.estimates import ALPHA, mean

FEWEST_SIZES = 3
"""Sizes from which a line tells its own doubt."""
OFF_PCT = 3.0
"""Per cent of its memory by which a size may lie off the line."""
LEAST_ERROR_MIB = 20.0
"""Torch's allocator asks for memory in blocks of this size: no line is surer than that."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryLine:
    """A least-squares line through points."""

    count: int
    middle: float
    """Mean batch size."""
    height: float
    """Mean memory, in MiB."""
    slope: float
    """MiB an image."""
    spread: float
    """Sum of squares of the batch sizes about their mean."""
    error: float
    """Standard deviation of the points about the line, in MiB."""

    def predict_mib(self, batch: float) -> float:
        """The memory that the line says of a batch size, in MiB."""
        return self.height + self.slope * (batch - self.middle)

    def solve_batch_size(self, room: float) -> tuple[float, float, float] | None:
        """The batch size whose memory is `room`, and the ends of its 95 % interval.

        Those between which the 95 % interval of a trial's memory holds `room` (Fieller). None where memory is not shown
        to grow.
        """
        known = (float(compute_t_quantile(1 - ALPHA / 2, self.count - 2)) * self.error) ** 2
        above = room - self.height
        steep = self.slope**2 - known / self.spread
        if self.slope <= 0 or steep <= 0:
            return None
        root = math.sqrt(known * (above**2 / self.spread + steep * (1 + 1 / self.count)))
        low, high = (self.middle + (above * self.slope + sign * root) / steep for sign in (-1, 1))
        return self.middle + above / self.slope, low, high


def fit_memory_line(points: Sequence[tuple[float, float]]) -> MemoryLine | None:
    """The line through (batch size, MiB); None of fewer than FEWEST_SIZES sizes."""
    if len({batch for batch, _ in points}) < FEWEST_SIZES:
        return None
    middle, height = (mean(values) for values in zip(*points, strict=True))
    spread = math.fsum((batch - middle) ** 2 for batch, _ in points)
    slope = math.fsum((batch - middle) * (mib - height) for batch, mib in points) / spread
    off = math.fsum((mib - height - slope * (batch - middle)) ** 2 for batch, mib in points)
    error = max(math.sqrt(off / (len(points) - 2)), LEAST_ERROR_MIB)
    return MemoryLine(
        count=len(points), middle=middle, height=height, slope=slope, spread=spread, error=error
    )


def fit_line_to_largest_sizes(points: Sequence[tuple[float, float]]) -> MemoryLine | None:
    """The line through as many of the largest sizes as lie on one; None where not even FEWEST_SIZES do."""
    left = sorted(points)
    while line := fit_memory_line(left):
        if all(100 * abs(mib - line.predict_mib(batch)) / mib <= OFF_PCT for batch, mib in left):
            return line
        left = left[1:]
    return None
