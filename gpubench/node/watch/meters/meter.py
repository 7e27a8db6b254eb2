"""What a meter is to those who watch a trial, and how the power is found in what it says."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from gpubench.schema.missing import Unmeasured

PERIOD_S = 0.1
"""No meter has more readings than one in this time."""
_LARGEST_W = 1e7
"""A reading beyond it is none."""
_POWER_NAMES = frozenset({
    "w", "watt", "watts", "power", "powerw", "powerwatts", "powerdraw", "powerdraww",  # CSVs, nvidia-smi's among them
    "apower", "actpower", "totalactpower",  # Shelly; Tasmota says Power
    "activepower", "activepowerw",  # HomeWizard
})  # fmt: skip
"""How power is named, without case, signs and digits, where nobody says by which name."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a meter has told once."""

    at: float
    """Seconds on the meter's clock; where it has none that it tells, `arrived`."""
    watts: float
    """The mean since the reading before, or over whatever the meter averages."""
    arrived: float
    """Seconds on the host's monotonic clock."""


class Meter(Protocol):
    """One meter. It is read from one thread, and none of its methods waits for it."""

    @property
    def name(self) -> str:
        """By which results call it. Holds no secrets."""

    @property
    def metric(self) -> str:
        """Of its samples; columns begin with what stands before `_w`."""

    @property
    def period_s(self) -> float:
        """How often it is looked at."""

    @property
    def is_late(self) -> bool:
        """Whether its readings tell of an earlier time than they come at."""

    def start(self) -> None:
        """Forgets what it has told so far: a trial begins."""

    def read_new(self) -> Sequence[Reading | Unmeasured]:
        """What it has told since it was asked last, in order; or why something that it told is no reading."""


def choose_power_name(names: Sequence[str], wanted: str, where: str) -> str:
    """The one of these names that is the power's. `wanted`: the name, or its end after a dot; empty: none was given.

    Raises ValueError, with what `where` holds, where none or several could be meant.
    """
    if wanted:
        exact = [name for name in names if name.lower() == wanted.lower()]
        fitting = exact or [name for name in names if name.lower().endswith(f".{wanted.lower()}")]
    else:
        fitting = [name for name in names if _is_power_name(name) or _is_power_name(name.rpartition(".")[2])]
    if len(fitting) == 1:
        return fitting[0]
    which = "several powers" if fitting else f"no {wanted or 'power that is known'}"
    raise ValueError(
        f"{where} has {which} (it has {', '.join(name[:40] for name in names[:12]) or 'nothing'}); say which behind #"
    )


def _is_power_name(name: str) -> bool:
    return re.sub(r"[^a-z]", "", name.lower()) in _POWER_NAMES


def check_watts(watts: float) -> float:
    """The same, where it can be a power. Raises Unmeasured."""
    if not math.isfinite(watts) or abs(watts) > _LARGEST_W:
        raise Unmeasured(f"the meter told {watts:g} W")
    return watts
