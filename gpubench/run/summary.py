"""What a sweep has done, in units."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(kw_only=True, slots=True)
class SweepSummary:
    """Counts of units. What has kept others from being measured, the sweep's limits tell."""

    ran: int = 0
    reused: int = 0
    skipped: int = 0
    failed: int = 0
    """Now or before."""
    timed_out: int = 0
    """Now or before; not among `failed`."""
    stale: int = 0
    elsewhere: int = 0
    """Left in the hands of other sweeps."""

    def count_bad_ending(self, status: str) -> None:
        """Counts a unit that ended badly."""
        self.failed += status == "failed"
        self.timed_out += status == "timeout"
