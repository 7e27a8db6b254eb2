"""What is seen of a GPU before anything of a sweep runs on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpubench.schema.missing import Unmeasured

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


# ---- limits that a sweep sets ----


class NoRightToSetError(Unmeasured):
    """This user may not set limits."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WantedLimits:
    """What the trials of a sweep ask of one GPU."""

    power_w: frozenset[int] = frozenset()
    clock_mhz: frozenset[int] = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True)
class AllowedLimits:
    """What may be set on one GPU, and what it is. None: not told, and `missing` says why, by the field's name."""

    power_w: float | None
    """Its power limit now."""
    power_range_w: tuple[float, float] | None
    clock_range_mhz: tuple[int, int] | None
    missing: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class LeftLimits:
    """What became of a GPU that a sweep left with limits of its own."""

    uuid: str
    power_limit_w: float | None = None
    """Before that sweep, and now again; None: the sweep did not change it, or nobody knows."""
    is_clock_limited: bool = False
    """Whether the sweep limited clocks."""
    trouble: str = ""
    """Why it could not be put back; empty: it was."""

    @property
    def remedy(self) -> str:
        """What an administrator types to put it back."""
        options = [] if self.power_limit_w is None else [f"-pl {self.power_limit_w:g}"]
        options += ["-rgc"] if self.is_clock_limited else []
        commands = [make_setting_command(self.uuid, option) for option in options]
        return (
            " && ".join(commands) or f"nvidia-smi -q -i {self.uuid} shows its limits; then remove that file"
        )


def make_setting_command(uuid: str, option: str) -> str:
    """What an administrator types: `option` is `-pl 200`, for example."""
    return f"sudo nvidia-smi -i {uuid} {option}"
