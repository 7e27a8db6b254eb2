"""What a sweep shows while it runs: a live area on a terminal, plain lines elsewhere, or nothing.

All three views have the same interface, write to stderr and start no threads: the caller calls `update` a few
times a second, and `close` on every way out (a live terminal has its cursor hidden until then).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, Self

from gpubench.basics.encodable import encodable
from gpubench.basics.words import clean
from gpubench.plan.outlook import place
from gpubench.plan.rounds import ONE, Rounds
from gpubench.report.area import Area
from gpubench.report.ending_lines import finished_line, first_cause, group_line, log_of
from gpubench.report.live_progress import LiveProgress, frame, rounds_bar, top1_so_far
from gpubench.report.standing import standing
from gpubench.report.table import Table
from gpubench.report.terminal import wrapped
from gpubench.schema.row import Row

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

MAKING_PART = 20.0
"""Times as long as the last table took to make, no other is made: a sweep of a thousand trials goes on meanwhile."""


class View(Protocol):
    """What the runner reports to."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...

    def started(self, number: int, total: int, label: str) -> None:
        """Trial `number` (from 1) of `total` begins."""

    def update(self, progress: LiveProgress) -> None:
        """Called a few times a second while a trial runs."""

    def finished(self, number: int, total: int, label: str, row: Row) -> None:
        """Trial `number` has ended; `row` is its row of trials.csv, with the path of its `log`."""

    def finished_group(self, number: int, total: int, label: str, rows: Sequence[Row]) -> None:
        """Unit `number`, a group, has ended; `rows` are those of its jobs, in their order."""

    def began_round(self, number: int, rounds: Rounds) -> None:
        """Round `number` (from 1) begins, and has something to run."""

    def ended_round(self, line: str) -> None:
        """A round is over; `line` says how sure the figures are now."""

    def stands(self, make: Callable[[], Table | None], *, at_once: bool = False) -> None:
        """The table that `make` gives stands from now on. A view that shows none, or not so soon again, makes none.

        `at_once`: it is shown now, however long the last one took.
        """

    def say(self, text: str) -> None:
        """One line that stays: what the sweep will do, a warning."""

    def close(self) -> None:
        """Give the terminal back. May be called more than once."""


def view(console: Console, *, quiet: bool = False, tables: bool = True) -> View:
    """The view that suits `console` (of stderr). `tables`: whether it tells between rounds what is known so far."""
    if quiet:
        return QuietView()
    suits = LiveView if console.is_terminal and not console.is_dumb_terminal else PlainView
    return suits(console, tables=tables)


class QuietView:
    """Shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def started(self, number: int, total: int, label: str) -> None:
        pass

    def update(self, progress: LiveProgress) -> None:
        pass

    def finished(self, number: int, total: int, label: str, row: Row) -> None:
        pass

    def finished_group(self, number: int, total: int, label: str, rows: Sequence[Row]) -> None:
        pass

    def began_round(self, number: int, rounds: Rounds) -> None:
        pass

    def ended_round(self, line: str) -> None:
        pass

    def stands(self, make: Callable[[], Table | None], *, at_once: bool = False) -> None:
        pass

    def say(self, text: str) -> None:
        pass

    def close(self) -> None:
        pass


class PlainView(QuietView):
    """One plain line for each start and end of a trial or a round, and for each accuracy on the way: for log files."""

    def __init__(self, console: Console, *, tables: bool = True) -> None:
        self.console = console
        self._tables = tables
        self._told = (0, 0)
        """Trials done and epochs evaluated when an accuracy was last told."""

    def started(self, number: int, total: int, label: str) -> None:
        self.say(f"[{number}/{total}] {label}  started")

    def update(self, progress: LiveProgress) -> None:
        now = (progress.done, progress.evaluated)
        if progress.top1_pct is None or now == self._told:
            return
        self._told = now
        trial = f"[{progress.done + 1}/{progress.total}] {progress.trial_label}"
        epoch = f"epoch {progress.evaluated}" + (f"/{progress.epochs}" if progress.epochs else "")
        self.say(f"{trial}  {epoch}  {top1_so_far(progress.top1_pct, progress.top1_target)}")

    def finished(self, number: int, total: int, label: str, row: Row) -> None:
        self._tell(finished_line(number, total, label, row), row)

    def finished_group(self, number: int, total: int, label: str, rows: Sequence[Row]) -> None:
        self._tell(group_line(number, total, label, rows), first_cause(rows))

    def began_round(self, number: int, rounds: Rounds) -> None:
        if number > 1:
            self.say(place(number, rounds))

    def ended_round(self, line: str) -> None:
        if self._tables:
            self.say(line)

    def _tell(self, line: str, row: Row) -> None:
        log = log_of(row)
        self.say(f"{line}  (see {log})" if log else line)

    def say(self, text: str) -> None:
        self.console.file.write(encodable(clean(text), self.console.encoding) + "\n")
        self.console.file.flush()


class LiveView(QuietView):
    """Permanent lines, and below them a live area: the table so far, a bar of the rounds, three lines of the trial."""

    def __init__(self, console: Console, *, tables: bool = True) -> None:
        self.console = console
        self.area = Area(console)
        self._tables = tables
        self._last: LiveProgress | None = None
        self._round: tuple[int, Rounds] = (1, ONE)
        self._table: Table | None = None
        self._grid: tuple[tuple[object, ...], list[Text]] = ((), [])
        """The table's lines, and for what they were laid out."""
        self._due = 0.0

    def started(self, number: int, total: int, label: str) -> None:
        begins = LiveProgress(done=number - 1, total=total, trial_label=label, note="starting")
        if (
            last := self._last
        ) is not None:  # what is left, and how long it took, is known anew at the first look
            begins = replace(
                begins,
                elapsed_s=last.elapsed_s,
                left_s=last.left_s,
                until=last.until,
                at_least=last.at_least,
                at_most=last.at_most,
            )
        self.update(begins)

    def update(self, progress: LiveProgress) -> None:
        self._last = progress
        width, height = self.console.size
        below = list(frame(progress, width, self.console.encoding).split("\n"))
        number, rounds = self._round
        if rounds.most > 1:
            bar = rounds_bar(number, rounds, progress.done, progress.total, width)
            bar.plain = encodable(bar.plain, self.console.encoding)
            below = [bar, *below]
        self.area.show([*self._standing(width, height - 1 - len(below)), *below][-height:])

    def began_round(self, number: int, rounds: Rounds) -> None:
        self._round = (number, rounds)

    def ended_round(self, line: str) -> None:
        if self._tables:
            self.say(line)

    def stands(self, make: Callable[[], Table | None], *, at_once: bool = False) -> None:
        began = time.monotonic()
        if not self._tables or (began < self._due and not at_once):
            return
        self._table = make()
        now = time.monotonic()
        self._due = now + MAKING_PART * (now - began)

    def _standing(self, width: int, height: int) -> list[Text]:
        """Lines of the table, laid out once for each table and size; and an empty one."""
        from rich.text import Text

        if self._table is None:
            return []
        key = (id(self._table), width, height)
        if self._grid[0] != key:
            lines = standing(self._table, width, height - 1)
            for line in lines:
                line.plain = encodable(line.plain, self.console.encoding)
            self._grid = (key, [*lines, Text()] if lines else [])
        return self._grid[1]

    def finished(self, number: int, total: int, label: str, row: Row) -> None:
        self._tell(finished_line(number, total, label, row), row)

    def finished_group(self, number: int, total: int, label: str, rows: Sequence[Row]) -> None:
        self._tell(group_line(number, total, label, rows), first_cause(rows))

    def _tell(self, line: str, row: Row) -> None:
        if row.status == "ok" and self._round[0] > 1 and self._grid[1]:
            return  # the table says it, and hundreds of lines would say no more
        style = {"ok": "", "skipped": "dim", "oom": "yellow"}.get(row.status, "red")
        self._put(line, style)
        if log := log_of(row):
            self._put(f"  log: {log}", style, whole=True)

    def say(self, text: str) -> None:
        self._put(clean(text))

    def _put(self, line: str, style: str = "", *, whole: bool = False) -> None:
        """Wraps at spaces. `whole`: nowhere, not even a path with spaces: the terminal does, and it can be copied."""
        from rich.text import Text

        text = Text(encodable(line, self.console.encoding), style)
        for part in [text] if whole else wrapped(text, self.console.width):
            self.area.above(part)

    def close(self) -> None:
        self.area.close()
