"""A meter that tests put in place of a real one."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpubench.node.watch.meters.meter import Reading
from gpubench.schema.missing import Unmeasured


@dataclass
class RecordedMeter:
    """Tells what it is given, each thing once in a trial."""

    readings: list[Reading | Unmeasured] = field(default_factory=list)
    name: str = "http://plug/status"
    metric: str = "meter_w"
    period_s: float = 0.5
    is_late: bool = True
    looks: int = 0
    """How often it was asked in the trial under way."""
    _told: int = 0

    def start(self) -> None:
        self._told = self.looks = 0

    def read_new(self) -> list[Reading | Unmeasured]:
        self.looks += 1
        new = self.readings[self._told :]
        self._told = len(self.readings)
        return new
