"""What is seen of a GPU before anything of a sweep runs on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

PERIOD_S = 0.1
"""How often each GPU is read."""

IN_USE_PCT = 10.0
"""Mean utilisation from which a GPU is busy. A desktop that shows a still picture stays below."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuProcess:
    """Somebody's process on a GPU."""

    pid: int
    name: str
    """`?` where it can't be seen: it has ended, or lives in another pid namespace."""
    mib: float | None
    """GPU memory; None: the driver does not say how much."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuLook:
    """One GPU. None: not told, and `missing` says why, by the field's name."""

    power_w: float | None
    """Mean of the look's last part, in which power did not fall any more."""
    util_pct: float | None
    """Mean share of the time in which a kernel ran, in the look's last part, too; where a process was seen at work, in
    the part in which it was."""
    compute: tuple[GpuProcess, ...] | None
    desktop: tuple[GpuProcess, ...] | None
    readings: tuple[int, int] = (0, 0)
    """How many `power_w` is the mean of, and how many failed."""
    missing: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class IdlePower:
    """What GPUs take before a sweep, by their UUIDs."""

    watts: Mapping[str, float] = field(default_factory=dict)
    """Of GPUs that were idle and tell."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """Of others why they are not among them."""
    readings: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """How many readings are behind the watts, and how many failed."""
