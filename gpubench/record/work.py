"""What the ranks of a trial told of their work, whatever kind of work that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from gpubench.schema.events import Event, Held
from gpubench.schema.watched import Window


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkWindow:
    """A window of a trial's work, from its begin to its end: of a training an epoch, or a stretch of a stream."""

    epoch: int
    """Its number, from 0."""
    warmup: bool
    t0: float
    """Its begin and end, on the monotonic clock of the machine where it ran."""
    t1: float
    epoch_time_s: float

    def as_stored(self) -> dict[str, Any]:
        """The window as a row of a record's `epochs`; its times stand elsewhere."""
        return {name: value for name, value in asdict(self).items() if name not in ("t0", "t1")}


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """What came of a trial's work."""

    epochs: Sequence[WorkWindow] = ()
    """The windows that every rank finished."""
    windows: Sequence[Window] = ()
    """These windows for who watched: which of them figures are of, and what each stands for."""
    result: dict[str, Any] = field(default_factory=dict)
    """Columns that the ranks' figures fill. Empty where the trial did not end ok."""
    missing: dict[str, str] = field(default_factory=dict)
    phases: dict[str, float] = field(default_factory=dict)
    held: dict[str, Held] = field(default_factory=dict)
    """Position among the trial's GPUs -> what torch's allocator held there."""

    @property
    def counted(self) -> list[WorkWindow]:
        """Those that figures are of."""
        return [window for window in self.epochs if not window.warmup]


class WorkKind(Protocol):
    """One kind of work, with what it must know of its trial. `record/kinds.py` names them."""

    def summarize(self, events: Sequence[Event], *, is_done: bool) -> Work:
        """What came of it. `is_done`: every rank has told that it has done its work."""
