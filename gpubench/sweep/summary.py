"""What a sweep did, in units."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpubench.plan.wall_time import Late


@dataclass(kw_only=True, slots=True)
class Summary:
    """What a sweep did, in units."""

    ran: int = 0
    reused: int = 0
    skipped: int = 0
    failed: int = 0
    """Now or before."""
    timed_out: int = 0
    """Now or before; not among `failed`."""
    interrupted: bool = False
    stale: int = 0
    out_of_budget: bool = False
    """Whether further rounds were left out because the sweep had taken its --budget."""
    longest_s: float = 0.0
    """Seconds of the process that was left out then, where it takes longer than all of the budget."""
    lost: int = 0
    """Skipped because a GPU that they need was lost while the sweep ran; among `skipped`."""

    unsure: int = 0
    """How many are not known as well as --within asks for, though still more rounds would measure them."""
    late: Late = field(default_factory=Late)
    """What was not begun because the batch job ends before."""
    answered: int | None = None
    """Rounds after which every question of the table is answered, where that ends the sweep."""

    elsewhere: int = 0
    """Left in the hands of other sweeps."""

    @property
    def is_resumable(self) -> bool:
        """Whether it was stopped, or out of time, with something left: the same command goes on."""
        return self.interrupted or bool(self.late.waiting)

    @property
    def is_over(self) -> bool:
        """Whether no further round begins."""
        return self.is_resumable or self.out_of_budget

    def include(self, other: Summary) -> None:
        """Counts what another sweep of the same command came to."""
        self.failed += other.failed
        self.timed_out += other.timed_out
        self.interrupted |= other.interrupted
        self.late = other.late or self.late

    def add(self, status: str) -> None:
        """Counts a unit that ended badly."""
        self.failed += status == "failed"
        self.timed_out += status == "timeout"
