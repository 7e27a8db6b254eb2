"""The largest batch that fits: a straight line through GPU memory over the batch size, up to what the card holds. Pure.

Weights, their gradients, the optimizer's state and CUDA's context take the same at every batch size, activations grow
in step with it: so memory is a line. What bends it are the workspaces of cuDNN, which chooses other algorithms at other
sizes, most of all at small ones. Sizes at the small end that lie off the line are left out; where others do, there is
no line, and no answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gpubench.analysis.alike import devices
from gpubench.analysis.certainty.distributions import t_quantile
from gpubench.analysis.certainty.mean_estimate import LEVEL, mean
from gpubench.analysis.growth import gpu_mem
from gpubench.basics.words import number
from gpubench.schema.row import Row

FEWEST_SIZES = 3
"""Sizes from which a line tells its own doubt."""
FAR = 1.5
"""From so many times the largest size that ran on, it is said how far a line through smaller ones leads."""
OFF_PCT = 3.0
"""Per cent of its memory by which a size may lie off the line."""
WIDE = 2.0
"""An interval that reaches so many times as far as its value, or so small a part of it, tells nothing."""
LEAST_ERROR_MIB = 20.0
"""Torch's allocator asks for memory in blocks of this size: no line is surer than that."""
BY_DRIVER = ("nvml-process", "nvml-device-delta", "published-log")
"""Sources of memory that hold all that a card must have; the allocator's own count leaves CUDA's context out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
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

    def at(self, batch: float) -> float:
        """The memory that the line says of a batch size, in MiB."""
        return self.height + self.slope * (batch - self.middle)

    def half_width(self, batch: float) -> float:
        """Half the width of the 95 % interval in which the memory of a trial with this batch size lies."""
        apart = (batch - self.middle) ** 2 / self.spread
        return self._quantile * self.error * math.sqrt(1 + 1 / self.count + apart)

    def reaches(self, room: float) -> tuple[float, float, float] | None:
        """The batch size whose memory is `room`, and the ends of its 95 % interval.

        Those between which the interval of `half_width` holds `room` (Fieller). None where memory is not shown to grow.
        """
        known = (self._quantile * self.error) ** 2
        above = room - self.height
        steep = self.slope**2 - known / self.spread
        if self.slope <= 0 or steep <= 0:
            return None
        root = math.sqrt(known * (above**2 / self.spread + steep * (1 + 1 / self.count)))
        low, high = (self.middle + (above * self.slope + sign * root) / steep for sign in (-1, 1))
        return self.middle + above / self.slope, low, high

    @property
    def _quantile(self) -> float:
        return t_quantile(1 - LEVEL / 2, self.count - 2)


def line(points: Sequence[tuple[float, float]]) -> Line | None:
    """The line through (batch size, MiB); None of fewer than FEWEST_SIZES sizes."""
    if len({batch for batch, _ in points}) < FEWEST_SIZES:
        return None
    middle, height = (mean([point[place] for point in points]) for place in (0, 1))
    spread = math.fsum((batch - middle) ** 2 for batch, _ in points)
    slope = math.fsum((batch - middle) * (mib - height) for batch, mib in points) / spread
    off = math.fsum((mib - height - slope * (batch - middle)) ** 2 for batch, mib in points)
    error = math.sqrt(off / (len(points) - 2))
    return Line(
        count=len(points),
        middle=middle,
        height=height,
        slope=slope,
        spread=spread,
        error=max(error, LEAST_ERROR_MIB),
    )


def straight(points: Sequence[tuple[float, float]]) -> Line | None:
    """The line through as many of the largest sizes as lie on one; None where not even FEWEST_SIZES do."""
    ordered = sorted(points)
    for first in range(len(ordered) - FEWEST_SIZES + 1):
        found = line(ordered[first:])
        if found is not None and _off_pct(found, ordered[first:]) <= OFF_PCT:
            return found
    return None


def _off_pct(found: Line, points: Sequence[tuple[float, float]]) -> float:
    """By how much the point that lies farthest off the line does, in per cent of its memory."""
    return max(100 * abs(mib - found.at(batch)) / mib for batch, mib in points)


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryRoom:
    """How much memory a trial may take of each GPU."""

    mib: float
    words: str


def room_of(row: Row) -> MemoryRoom | None:
    """The cap where one was set, else what the driver leaves of the card; None where no record tells."""
    cap, total, kept = row.gpu_mem_cap_mib, row.gpu_total_mib, row.gpu_reserved_mib
    if total is not None and (cap is None or total - (kept or 0) < cap):
        if kept is None:
            return MemoryRoom(
                mib=total, words=f"a GPU's {number(total)} MiB, of which the driver may keep some"
            )
        return MemoryRoom(
            mib=total - kept, words=f"the {number(total - kept)} MiB that the driver leaves of a GPU"
        )
    return None if cap is None else MemoryRoom(mib=cap, words=f"the cap of {number(cap)} MiB")


def guesses(rows: Sequence[Row], each: int) -> list[float]:
    """Batch sizes at which memory may end by the line through these rows, the best first; none where there is no line.

    `each`: batch sizes are multiples of it.
    """
    known, room = _weighed(rows)
    found = straight([(_batch(row), gpu_mem(row) or 0.0) for row in known]) if room else None
    reached = found.reaches(room.mib) if found and room else None
    return [math.floor(one / each) * each for one in reached] if reached and _is_narrow(reached) else []


def _weighed(rows: Sequence[Row]) -> tuple[list[Row], MemoryRoom | None]:
    """The rows with memory by the driver, and the room that they have; None where that is not one, or not known."""
    known = [row for row in rows if row.batch_size and gpu_mem(row) is not None]
    rooms = {room for row in known if (room := room_of(row)) is not None}
    sources = {row.gpu_mem_source for row in known}
    if len(known) < FEWEST_SIZES or len(rooms) != 1 or len(sources) > 1 or not sources & {*BY_DRIVER}:
        return known, None
    return known, rooms.pop()


def _is_narrow(reached: tuple[float, float, float]) -> bool:
    """Whether an interval tells anything."""
    value, low, high = reached
    return high <= WIDE * value and low * WIDE >= value


def largest_that_fits(rows: Sequence[Row]) -> str:
    """How many images fit by the line through these rows' memory, in one sentence; empty where nobody can know.

    `rows`: of one series, of which each batch size has one. What ran and what ran out of memory bound the answer.
    """
    known, room = _weighed(rows)
    if room is None:
        return ""
    ran = max(_batch(row) for row in rows if row.status == "ok")
    full = min((_batch(row) for row in rows if row.status == "oom" and _batch(row) > ran), default=None)
    tried = f"{ran:,} ran, {full:,} ran out of memory" if full else ""
    found = straight([(_batch(row), gpu_mem(row) or 0.0) for row in known])
    reached = found.reaches(room.mib) if found else None
    if found is None or reached is None or not _is_narrow(reached):
        return (
            f"How many images fit can't be told{f' more closely ({tried})' if tried else ''}: memory is no straight "
            "line over these sizes."
        )
    each = devices(known[0])
    value, low, high = (each * math.floor(one / each) for one in reached)
    sizes = f"{found.count} sizes" if found.count == len(known) else f"the {found.count} largest sizes"
    by = f"the line through {sizes}"
    over = f" over {each} GPUs" if each > 1 else ""
    if high < ran or (full is not None and low >= full):
        return (
            f"How many images fit can't be told{f' more closely ({tried})' if tried else ''}: {by} says about "
            f"{_told(value, each)}, though {f'{ran:,} ran' if high < ran else f'{full:,} ran out of memory'}."
        )
    most = math.inf if full is None else full - each
    value, low, high = (int(min(max(one, ran), most)) for one in (value, low, high))
    far = value / ran
    if tried:
        end = f", which agrees with what was tried: {tried}"
    elif far >= FAR:
        end = (
            f"; not tried here: it leads to {number(far, 1)} times the largest that ran ({ran:,}), and the interval "
            "holds only if memory goes on growing as it did up to there"
        )
    else:
        end = f"; not tried here, where the largest that ran is {ran:,}"
    return (
        f"About {_told(value, each)} images{over} fit into {room.words} (95 %: {_told(low, each)} to "
        f"{_told(high, each, up=high < most)}), by {by}{end}."
    )


def _batch(row: Row) -> int:
    return row.batch_size or 0


def _told(batch: int, each: int, *, up: bool = False) -> str:
    """A batch size to three digits or so, still a multiple of the devices."""
    step = each * 10 ** max(0, math.floor(math.log10(max(1.0, batch / each / 100))))
    return f"{step * (-(-batch // step) if up else batch // step):,}"
