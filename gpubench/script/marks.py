"""What `gpubench.epoch()` sends from a script: read whole, or passed over. Pure.

Any process of the command may write to that socket, and several scripts may: what is no epoch of this run, and what
overlaps an earlier one, is passed over.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from gpubench.schema.command import MOST_EPOCHS
from gpubench.schema.events import Finite


class EpochMark(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An epoch has begun, or has ended as well: seconds of the host's monotonic clock."""

    t0: Finite
    t1: Finite | None = None


@dataclass(slots=True)
class MarkedEpochs:
    """The epochs that a script tells of, one after the other."""

    ended: float
    """When the last one ended; before the first, when the command began."""
    count: int = 0
    passed_over: int = 0
    """Marks that overlap earlier ones, or lie outside of the run."""

    def read_mark(self, data: bytes, now: float) -> EpochMark | None:
        """The epoch that has begun or ended; None for anything else. `now`: when `data` were read."""
        try:
            mark = msgspec.json.decode(data, type=EpochMark)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        end = now if mark.t1 is None else mark.t1
        if not self.ended <= mark.t0 <= end <= now or mark.t0 == mark.t1:
            self.passed_over += 1
            return None
        if self.count == MOST_EPOCHS:
            return None
        if mark.t1 is not None:
            self.ended = mark.t1
            self.count += 1
        return mark
