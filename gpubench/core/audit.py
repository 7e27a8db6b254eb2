"""What the rules on the honesty of a results folder observe. Codes and figures, no English."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

RuleVerdict = Literal["kept", "broken", "not decidable"]
VERDICTS: tuple[RuleVerdict, ...] = ("kept", "broken", "not decidable")


@dataclass(frozen=True, slots=True)
class RowShare:
    """So many rows of so many."""

    count: int
    whole: int


@dataclass(frozen=True, slots=True)
class Observation:
    """One thing that the data show."""

    verdict: RuleVerdict
    """What the rule comes to by this alone."""
    code: str
    """A key of `render.audit.SENTENCES`."""
    figures: Mapping[str, Any] = field(default_factory=dict)
    """What the sentence names: counts, shares of rows, values (tuples), rows by their fields (mappings)."""


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """What one rule finds."""

    number: int
    """From 1: a key of `render.audit.RULES`."""
    verdict: RuleVerdict
    observations: tuple[Observation, ...]
    """Those that the verdict rests on."""
