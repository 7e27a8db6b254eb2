"""What a command prints, read as it comes: the edges of its epochs, and the figures that are looked for. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from gpubench.schema.command import MOST_EPOCHS, MetricPattern, MetricTarget

LONGEST_LINE = 1 << 16
"""Bytes of a line that are looked at; what stands behind them is passed over."""
_COLORS = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]")
"""What sets colours and moves the cursor: a program that sees a terminal may put it around any figure."""
_WHOLE_TEXT = re.compile(r"\\[AZ]|\(\?[<!=>]|[*+?}]\+")
"""A pattern with these can't be looked for in many lines at once: it may look at what lies beyond its line."""


@dataclass(slots=True)
class LinePattern:
    """A pattern that is looked for line by line. Where many lines hold none of it, they are passed over at once."""

    regex: re.Pattern[str]
    can_skip: bool

    @classmethod
    def compile(cls, regex: str) -> LinePattern:
        return cls(re.compile(regex, re.MULTILINE), _WHOLE_TEXT.search(regex) is None)

    def find_in_lines(self, text: str) -> list[re.Match[str]]:
        """The first match in each line of `text` that has one."""
        if self.can_skip and self.regex.search(text) is None:
            return []
        return [match for line in text.split("\n") if (match := self.regex.search(line))]


@dataclass(slots=True)
class LineSplitter:
    """Makes whole lines of what comes in pieces, without their colours. A carriage return ends a line, too: progress
    bars end theirs so."""

    _rest: bytes = b""

    def split_off_lines(self, piece: bytes) -> str:
        """The lines that have ended by now, with line feeds between them; empty for none."""
        whole = (self._rest + piece).replace(b"\r", b"\n")
        lines, end, self._rest = whole.rpartition(b"\n")
        if len(self._rest) > LONGEST_LINE:
            self._rest = self._rest[:LONGEST_LINE]
        return _COLORS.sub(b"", lines).decode(errors="replace") if end else ""

    def end(self) -> str:
        """The last line, which nothing has ended."""
        last, self._rest = self._rest, b""
        return _COLORS.sub(b"", last).decode(errors="replace")


@dataclass(frozen=True, slots=True)
class EpochSpan:
    """An epoch: its number from 0, and when it began and ended, on the host's monotonic clock."""

    number: int
    t0: float
    t1: float


@dataclass(slots=True)
class EpochEdges:
    """The epochs of a command whose output shows each of them by a line, at its begin or at its end.

    From one such line to the next is an epoch. With a group in the pattern, lines with the same value are of the same
    epoch. What comes before the first line, and after the last one, is none: nobody knows how much of one it is.
    """

    pattern: LinePattern
    _value: str | None = None
    _began: float | None = None
    count: int = 0

    def find_epochs(self, text: str, now: float) -> list[EpochSpan]:
        """The epochs that ended with these lines, which were read at `now`."""
        ended = []
        for match in self.pattern.find_in_lines(text):
            value = match[1] if match.re.groups else None
            if self._began is not None and value is not None and value == self._value:
                continue
            if self._began is not None and self.count < MOST_EPOCHS:
                ended.append(EpochSpan(self.count, self._began, now))
                self.count += 1
            self._value, self._began = value, now
        return ended

    @property
    def has_begun(self) -> bool:
        """Whether a first line was seen."""
        return self._began is not None


@dataclass(slots=True)
class MetricReader:
    """The latest value of each figure that is looked for."""

    patterns: Sequence[MetricPattern]
    latest: dict[str, float | None] = field(default_factory=dict)
    """None: what was printed last is no number."""
    _compiled: dict[str, LinePattern] = field(init=False)

    def __post_init__(self) -> None:
        self._compiled = {pattern.name: LinePattern.compile(pattern.regex) for pattern in self.patterns}

    def find_values(self, text: str) -> list[tuple[str, float]]:
        """Name and value of the figures in these lines, in their order by name; what is no number is passed over."""
        values = []
        for name, pattern in self._compiled.items():
            for match in pattern.find_in_lines(text):
                value = parse_figure(match[1])
                self.latest[name] = value  # a figure that is lost has no earlier one in its place
                if value is not None:
                    values.append((name, value))
        return values

    def cut_behind_target(self, text: str, target: MetricTarget) -> str:
        """The lines up to the first one in which the target is reached; all where none is."""
        pattern, lines = self._compiled[target.name], text.split("\n")
        for count, line in enumerate(lines, 1):
            match = pattern.regex.search(line)
            value = parse_figure(match[1]) if match else None
            if value is not None and value >= target.value:
                return "\n".join(lines[:count])
        return text


def parse_figure(text: str | None) -> float | None:
    """A number as programs print it, with commas between thousands or a sign of per cent; None for anything else."""
    try:
        value = float((text or "").strip().rstrip("%").replace(",", ""))
    except ValueError:
        return None
    return value if abs(value) < float("inf") else None
