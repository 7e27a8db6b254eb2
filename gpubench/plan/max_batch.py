"""The search for the largest batch that fits: what a try is, and which batch size is tried next. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

STEPS = 3
TRY = {
    "steps": STEPS,
    "epochs": None,
    "warmup_epochs": None,
    "window": None,
    "breakdown": False,
    "confirm_top1": False,
    "repeat": 0,
}
"""Fields of a try; all others are those of the configuration."""
_NAME = "-max-batch"
_OF_TRIES = re.compile(rf"{_NAME}(-\d+)?\Z")
FINE = 64
"""The edge is found to about this part of a batch size."""


def make_try_experiment_name(name: str, number: int | None) -> str:
    """The experiment of the tries after one. `number`: of the configuration, where there are several."""
    return f"{name}{_NAME}{'' if number is None else f'-{number}'}"


def is_try_experiment(experiment: str, steps: Iterable[int | None]) -> bool:
    """Whether an experiment's rows, of so many steps, are tries: three first steps, which tell of memory alone."""
    return bool(_OF_TRIES.search(experiment)) and all(known == STEPS for known in steps)


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryEdge:
    """What is known of where memory ends."""

    ran: int = 0
    """The largest batch size that ran; 0: none."""
    full: int | None = None
    """The smallest above it that ran out of memory; None: none."""

    def is_settled(self, multiple: int) -> bool:
        """Whether both lie so near to each other that nothing between them is tried."""
        return self.full is not None and self.full - self.ran <= compute_size_step(self.ran, multiple)


def find_memory_edge(ran: Sequence[int], full: Sequence[int]) -> MemoryEdge:
    """The edge by the batch sizes that ran, and those that ran out of memory."""
    largest = max(ran, default=0)
    return MemoryEdge(ran=largest, full=min((size for size in full if size > largest), default=None))


def compute_size_step(size: int, multiple: int) -> int:
    """By how much two sizes differ that are worth trying: a power of two times the devices' multiple."""
    return multiple << max(0, math.floor(math.log2(max(size, 1) / (multiple * FINE))))


def choose_next_batch_size(
    known: MemoryEdge, guesses: Sequence[float], multiple: int, most: int
) -> int | None:
    """The batch size to try next; None where the edge is found, or cannot be looked for any further.

    `guesses`: where the edge may be, the best first. `multiple`: sizes are multiples of it. `most`: the largest there
    is.
    """
    if known.is_settled(multiple) or (not known.ran and known.full is None):
        return None
    fine, most = compute_size_step(known.ran, multiple), most // multiple * multiple
    below = known.full if known.full is not None else most + multiple
    for guess in guesses:
        size = math.floor(min(guess, most) / fine) * fine
        if known.ran + fine <= size < below:
            return size
    best = guesses[0] if guesses else None
    if known.full is None:
        if known.ran >= most:
            return None
        # Where the line was passed already, by twice as much again; without one, twice as many.
        past = fine * max(1, math.ceil(2 * (known.ran - best) / fine)) if best is not None else known.ran
        return min(known.ran + past, most)
    half = known.ran + fine * max(1, (known.full - known.ran) // 2 // fine)
    if best is None or best < known.full:
        return half
    short = known.full - max(fine, 2 * (best - known.full))
    return max(half, math.floor(short / fine) * fine)
