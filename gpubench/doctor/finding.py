"""What a check found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FindingVerdict = Literal["ok", "doubt", "no"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckResult:
    """One line of the answer."""

    group: str
    """The heading that it stands under."""
    name: str
    """What was looked at."""
    verdict: FindingVerdict
    """`ok`; `doubt`: it works, with something to know; `no`: it does not, and a figure or a feature is lost."""
    found: str
    """What was found, and what it costs where it is not ok."""
    remedy: str = ""
    """What to do about it; empty where nothing is wrong, or nothing can be done."""
    forbids: bool = False
    """Whether no plain `gpubench sweep` could measure anything here and now, on whichever of the GPUs."""
