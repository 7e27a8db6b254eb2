"""What the ranks of a trial told of their work, whatever kind of work that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from gpubench.record.epochs import EpochRow
from gpubench.schema.events import Event, Held
from gpubench.schema.watched import Window


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """What came of a trial's work."""

    epochs: Sequence[EpochRow] = ()
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
    def counted(self) -> list[EpochRow]:
        """Those that figures are of."""
        return [window for window in self.epochs if not window.warmup]


class WorkKind(Protocol):
    """One kind of work, with what it must know of its trial. `KINDS` in `record/recording.py` names them."""

    def summarize(self, events: Sequence[Event], *, is_done: bool) -> Work:
        """What came of it. `is_done`: every rank has told that it has done its work."""
