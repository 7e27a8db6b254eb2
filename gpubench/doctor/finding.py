"""What a check found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FindingVerdict = Literal["ok", "doubt", "no"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckResult:
    """One line of the answer."""

    group: str = ""
    """The heading that it stands under; checks leave it to their registry."""
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


def ok(name: str, found: str) -> CheckResult:
    """It is as it should be."""
    return CheckResult(name=name, verdict="ok", found=found)


def doubt(name: str, found: str, remedy: str) -> CheckResult:
    """It works, with something to know."""
    return CheckResult(name=name, verdict="doubt", found=found, remedy=remedy)


def no(name: str, found: str, remedy: str = "", *, forbids: bool = False) -> CheckResult:
    """It does not work, and a figure or a feature is lost."""
    return CheckResult(name=name, verdict="no", found=found, remedy=remedy, forbids=forbids)
