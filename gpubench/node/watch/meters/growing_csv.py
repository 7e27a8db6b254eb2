"""A CSV to which another program appends what a meter tells: a line a reading, with its power and perhaps its time."""

from __future__ import annotations

import contextlib
import datetime
import math
import os
import re
import stat
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpubench.basics.errors import UnusableError, UsageError
from gpubench.node.watch.meters.meter import PERIOD_S, Reading, check_watts, choose_power_name
from gpubench.node.watch.pacing import Clock
from gpubench.schema.missing import Unmeasured

_AT_ONCE = 1 << 16
"""Bytes that are read in one look, some thousand lines. No line is longer."""
_TIME_NAMES = frozenset({"t", "ts", "unix", "epoch", "seconds"})
"""Of a column of times, without case, signs and digits; so are all that hold `time` or `date`."""


@dataclass(frozen=True, slots=True)
class _Layout:
    """Which cells of a line are what, from 0."""

    watts: int
    time: int | None
    """None: lines have no time, and are of the moment at which they come."""


class GrowingCsv:
    """The lines that come while it is watched. The file may be cut short, and another one may take its place."""

    metric = "meter_w"
    period_s = PERIOD_S
    is_late = True

    def __init__(self, argument: str, clock: Clock = time.monotonic) -> None:
        """`argument`: the path, and perhaps `#COLUMN` behind it.

        Raises UnusableError for what is no such file, UsageError for a header that does not tell which is the power.
        """
        is_path = Path(argument).exists()
        self._path, _, self._column = (argument, "", "") if is_path else argument.partition("#")
        self.name = f"csv:{self._path}"
        self._clock = clock
        self._layout: _Layout | None = None
        try:
            self._open()
            lines = self._read_lines()
        except OSError as error:
            hint = "; start the program that writes it first" if isinstance(error, FileNotFoundError) else ""
            raise UnusableError(f"--meter {self.name}: {error.strerror}{hint}") from None
        if lines:
            try:
                self._take_layout(_split_cells(lines[0]))
            except ValueError as error:
                raise UsageError(f"--meter {self.name}: {error}") from None

    def start(self) -> None:
        if self._layout is not None:
            # What comes first then is the end of a line, if only its line break.
            os.lseek(self._file, max(0, os.fstat(self._file).st_size - 1), os.SEEK_SET)
            self._rest, self._is_within_line = b"", True

    def read_new(self) -> Sequence[Reading | Unmeasured]:
        try:
            lines = self._read_lines()
        except OSError as error:
            return [Unmeasured(f"{self._path}: {error.strerror}")]
        arrived = self._clock()
        readings: list[Reading | Unmeasured] = []
        for line in filter(None, lines):
            try:
                cells = _split_cells(line)
                if self._layout is not None or not self._take_layout(cells):
                    readings.append(self._parse_reading(cells, arrived))
            except ValueError as error:
                readings.append(Unmeasured(f"{self._path}: {error}"))
            except Unmeasured as reason:
                readings.append(reason)
        return _thin_out(readings)

    # ---- lines ----

    def _open(self) -> None:
        """Raises OSError."""
        # Without O_NONBLOCK to open a FIFO is to wait for its writer.
        self._file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        if not stat.S_ISREG(os.fstat(self._file).st_mode):
            os.close(self._file)
            raise OSError(None, "no regular file")
        self._rest, self._is_within_line, self._layout = b"", False, None

    def _read_lines(self) -> list[str]:
        """The whole lines that have come, some thousand at most. Raises OSError."""
        if os.fstat(self._file).st_size < os.lseek(self._file, 0, os.SEEK_CUR):  # cut short: it begins anew
            os.lseek(self._file, 0, os.SEEK_SET)
            self._rest, self._is_within_line, self._layout = b"", False, None
        data = os.read(self._file, _AT_ONCE)
        if not data and not os.path.samestat(os.fstat(self._file), os.stat(self._path)):  # noqa: PTH116 - no Path a look
            old = self._file
            self._open()
            os.close(old)
            data = os.read(self._file, _AT_ONCE)
        *whole, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _AT_ONCE:
            self._rest, self._is_within_line = b"", True
        if whole and self._is_within_line:
            del whole[0]
            self._is_within_line = False
        return [line.decode(errors="replace").strip() for line in whole]

    # ---- cells ----

    def _take_layout(self, cells: Sequence[str]) -> bool:
        """Learns from the first line which cells are what; whether that is a header. Raises ValueError."""
        if not _is_number(cells[-1]):
            return self._take_header(cells)
        if len(cells) > 2:
            raise ValueError("it has no header, and more columns than time and watts")
        self._layout = _Layout(len(cells) - 1, 0 if len(cells) == 2 else None)
        return False

    def _take_header(self, cells: Sequence[str]) -> bool:
        watts = cells.index(choose_power_name(cells, self._column, "its header"))
        self._layout = _Layout(watts, next(filter(watts.__ne__, _list_time_columns(cells)), None))
        return True

    def _parse_reading(self, cells: Sequence[str], arrived: float) -> Reading:
        """Raises ValueError, Unmeasured."""
        assert self._layout is not None
        if len(cells) <= max(self._layout.watts, self._layout.time or 0):
            raise ValueError("a line has too few cells")
        watts = check_watts(_parse_number(cells[self._layout.watts]))
        at = arrived if self._layout.time is None else _parse_time(cells[self._layout.time])
        return Reading(at, watts, arrived)


def _split_cells(line: str) -> list[str]:
    """Where cells are parted by semicolons or tabs, a number may have a comma for its point."""
    mark = next((mark for mark in ";\t" if mark in line), ",")
    return [cell.strip().strip('"') for cell in line.split(mark)]


def _is_number(cell: str) -> bool:
    try:
        _parse_number(cell)
    except ValueError:
        return False
    return True


def _list_time_columns(header: Sequence[str]) -> list[int]:
    names = [re.sub(r"[^a-z]", "", cell.lower()) for cell in header]
    return [i for i, name in enumerate(names) if name in _TIME_NAMES or "time" in name or "date" in name]


def _parse_number(cell: str) -> float:
    """A number, perhaps with the unit W, as nvidia-smi writes it. Raises ValueError."""
    try:
        return float(re.sub(r"\s*W$", "", cell).replace(",", "."))
    except ValueError:
        raise ValueError(f"no number: {cell[:40]!r}") from None


def _parse_time(cell: str) -> float:
    """Seconds since 1970, or of the meter's own clock. Raises ValueError."""
    with contextlib.suppress(ValueError):
        if math.isfinite(seconds := _parse_number(cell)):
            return seconds
    with contextlib.suppress(ValueError):
        return datetime.datetime.fromisoformat(cell.replace("/", "-")).timestamp()
    raise ValueError(f"no time: {cell[:40]!r}")


def _thin_out(readings: Sequence[Reading | Unmeasured]) -> list[Reading | Unmeasured]:
    """Readings about PERIOD_S apart or more, each the mean of those that have come in it."""
    kept: list[Reading | Unmeasured] = []
    near: list[Reading] = []
    for item in readings:
        if isinstance(item, Unmeasured):
            kept.append(item)
        elif near and item.at - near[0].at >= 0.9 * PERIOD_S:
            kept.append(_average_readings(near))
            near = [item]
        else:
            near.append(item)
    return [*kept, *([_average_readings(near)] if near else [])]


def _average_readings(readings: Sequence[Reading]) -> Reading:
    last = readings[-1]
    return Reading(last.at, sum(reading.watts for reading in readings) / len(readings), last.arrived)
