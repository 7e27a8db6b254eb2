"""What a sweep has in hand while it runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from gpubench.render.live import View
from gpubench.schema.row import Row
from gpubench.sweep.summary import Summary
from gpubench.sweep.sweep import Sweep
from gpubench.sweep.time_left import TimeLeft
from gpubench.sweep.work_queue import WorkQueue

TABLES_PERIOD_S = 5.0
TABLES_PART = 20.0
"""Times as long as the tables took to write last, they are not written again: of thousands of trials that is long."""


@dataclass(kw_only=True, slots=True)
class RunningSweep:
    """A sweep that runs: who looks on, who may stop it, and how far it is."""

    work: Sweep
    view: View
    should_stop: Callable[[], bool]
    emit: Callable[[Row], None]
    """Told of each row as it ends."""
    time: TimeLeft
    queue: WorkQueue
    summary: Summary = field(default_factory=Summary)
    _tables_due: float = 0.0

    @classmethod
    def of(
        cls, work: Sweep, view: View, should_stop: Callable[[], bool], emit: Callable[[Row], None]
    ) -> RunningSweep:
        """It begins now."""
        work.bench.claims.say = view.say
        return cls(
            work=work,
            view=view,
            should_stop=should_stop,
            emit=emit,
            time=TimeLeft(work=work),
            queue=WorkQueue.build(work, work.bench.claims),
        )

    def write_tables_sometimes(self) -> None:
        """Every few seconds, of what is known here."""
        if time.monotonic() < self._tables_due:
            return
        before, began = self.work.unwritten, time.monotonic()
        self.work.write_tables()
        now = time.monotonic()
        self._tables_due = now + max(TABLES_PERIOD_S, TABLES_PART * (now - began))
        if self.work.unwritten and not before:
            self.view.say(f"tables: {self.work.unwritten}; the sweep goes on, and what it measures is kept")
