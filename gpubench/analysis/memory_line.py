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
from gpubench.analysis.growth import gpu_mem
from gpubench.basics.words import number
from gpubench.schema.row import Row
from gpubench.stats.memory_line import FEWEST_SIZES, fit_largest

FAR = 1.5
"""From so many times the largest size that ran on, it is said how far a line through smaller ones leads."""
WIDE = 2.0
"""An interval that reaches so many times as far as its value, or so small a part of it, tells nothing."""
BY_DRIVER = ("nvml-process", "nvml-device-delta", "published-log")
"""Sources of memory that hold all that a card must have; the allocator's own count leaves CUDA's context out."""


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
    found = fit_largest([(_batch(row), gpu_mem(row) or 0.0) for row in known])
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
