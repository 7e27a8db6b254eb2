"""What a sweep shows while it runs: a live area on a terminal, plain lines elsewhere, or nothing.

All views have the same interface, write to stderr and start no threads: the caller calls `update` a few times a second,
and `close` on every way out (a live terminal has its cursor hidden until then).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from gpubench.basics.encodable import encodable
from gpubench.basics.words import clean, many
from gpubench.core.report import Cell, Report, ReportRow
from gpubench.plan.outlook import place
from gpubench.plan.rounds import ONE, Rounds
from gpubench.render.area import LiveArea, send
from gpubench.render.grid import Grid, GridCell, GridRow, make_grid
from gpubench.render.running import (
    LiveProgress,
    describe_group_end,
    describe_trial_end,
    draw_rounds,
    find_cause,
    find_log,
    format_top1,
    write_progress,
)
from gpubench.render.terminal import Layout, lay_out, render_block, render_row
from gpubench.render.words import write_leader
from gpubench.schema.row import Row

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

MAKING_PART = 20.0
"""Times as long as the last table took to make, no other is made: a sweep of a thousand trials goes on meanwhile."""
FEWEST_ROWS = 2
"""Rows under which no table is shown, unless it has no more."""
_WORD = re.compile(r"\s*\S+(?: %[^\w\s]*(?=\s|$))?\s*")
"""A word with the spaces around it; a number with its per cent is one."""


@dataclass(frozen=True, slots=True)
class LiveReport:
    """The table of a sweep that goes on, from what is measured so far."""

    report: Report
    rows: Mapping[str, int]
    """Trial id -> label of its row."""


class View:
    """What a sweep reports to. This one shows nothing of it; each other shows what it has methods for."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def started(self, number: int, total: int, label: str, trial_id: str) -> None:
        """Unit `number` (from 1) of `total` begins. `trial_id`: of its first job."""

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

    def show_table(self, make: Callable[[], LiveReport], *, at_once: bool = False) -> None:
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


class QuietView(View):
    """Shows nothing."""


class PlainView(View):
    """One plain line for each start and end of a trial or a round, and for each accuracy on the way: for log files."""

    def __init__(self, console: Console, *, tables: bool = True) -> None:
        self.console = console
        self._tables = tables
        self._last_accuracy = (0, 0)
        """Trials done and epochs evaluated when an accuracy was last told."""

    def started(self, number: int, total: int, label: str, trial_id: str) -> None:
        del trial_id
        self.say(f"[{number}/{total}] {label}  started")

    def update(self, progress: LiveProgress) -> None:
        now = (progress.done, progress.evaluated)
        if progress.top1_pct is None or now == self._last_accuracy:
            return
        self._last_accuracy = now
        trial = f"[{progress.done + 1}/{progress.total}] {progress.trial_label}"
        epoch = f"epoch {progress.evaluated}" + (f"/{progress.epochs}" if progress.epochs else "")
        self.say(f"{trial}  {epoch}  {format_top1(progress.top1_pct, progress.top1_target)}")

    def finished(self, number: int, total: int, label: str, row: Row) -> None:
        self._say_end(describe_trial_end(number, total, label, row), row)

    def finished_group(self, number: int, total: int, label: str, rows: Sequence[Row]) -> None:
        self._say_end(describe_group_end(number, total, label, rows), find_cause(rows))

    def began_round(self, number: int, rounds: Rounds) -> None:
        if number > 1:
            self.say(place(number, rounds))

    def ended_round(self, line: str) -> None:
        if self._tables:
            self.say(line)

    def _say_end(self, line: str, row: Row) -> None:
        log = find_log(row)
        self.say(f"{line}  (see {log})" if log else line)

    def say(self, text: str) -> None:
        send(self.console, encodable(clean(text), self.console.encoding) + "\n")


class LiveView(PlainView):
    """Permanent lines, and below them a live area: the table so far, a bar of the rounds, three lines of the trial."""

    def __init__(self, console: Console, *, tables: bool = True) -> None:
        super().__init__(console, tables=tables)
        self.area = LiveArea(console)
        self._last: LiveProgress | None = None
        self._round: tuple[int, Rounds] = (1, ONE)
        self._report: LiveReport | None = None
        self._table: tuple[tuple[object, ...], LiveTable | None] = ((), None)
        """The table as it is laid out, and for what."""
        self._due = 0.0

    def started(self, number: int, total: int, label: str, trial_id: str) -> None:
        begins = LiveProgress(
            done=number - 1, total=total, trial_label=label, trial_id=trial_id, note="starting"
        )
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
        below = list(write_progress(progress, width, self.console.encoding).split("\n"))
        number, rounds = self._round
        if rounds.most > 1:
            bar = draw_rounds(number, rounds, progress.done, progress.total, width)
            bar.plain = encodable(bar.plain, self.console.encoding)
            below = [bar, *below]
        self.area.show([*self._render_table(progress, width, height - 1 - len(below)), *below][-height:])

    def began_round(self, number: int, rounds: Rounds) -> None:
        self._round = (number, rounds)

    def show_table(self, make: Callable[[], LiveReport], *, at_once: bool = False) -> None:
        began = time.monotonic()
        if not self._tables or (began < self._due and not at_once):
            return
        self._report = make()
        now = time.monotonic()
        self._due = now + MAKING_PART * (now - began)

    def _render_table(self, progress: LiveProgress, width: int, height: int) -> list[Text]:
        """Lines of the table, laid out once for each table, size and running trial; and an empty one."""
        from rich.text import Text

        if self._report is None:
            return []
        key = (id(self._report), progress.trial_id, width, height)
        if self._table[0] != key:
            self._table = (key, lay_out_live_table(self._report, progress.trial_id, width, height - 1))
        table = self._table[1]
        if table is None:
            return []
        lines = table.show(progress.part)
        for line in lines:
            line.plain = encodable(line.plain, self.console.encoding)
        return [*lines, Text()]

    def _say_end(self, line: str, row: Row) -> None:
        if row.status == "ok" and self._table[1] is not None:
            return  # the table says it, and hundreds of lines would say no more
        style = {"ok": "", "skipped": "dim", "oom": "yellow"}.get(row.status, "red")
        self._write_line(line, style)
        if log := find_log(row):
            self._write_line(f"  log: {log}", style, whole=True)

    def say(self, text: str) -> None:
        self._write_line(clean(text))

    def _write_line(self, line: str, style: str = "", *, whole: bool = False) -> None:
        """Wraps at spaces. `whole`: nowhere, not even a path with spaces: the terminal does, and it can be copied."""
        from rich.text import Text

        text = Text(encodable(line, self.console.encoding), style)
        for part in [text] if whole else wrap(text, self.console.width):
            self.area.print_above(part)

    def close(self) -> None:
        self.area.close()


# ---- the table that stands ----


@dataclass(slots=True)
class LiveTable:
    """The table of a sweep as lines, laid out once: while a trial is measured, only the line with its bar is anew."""

    layout: Layout
    block: Sequence[int]
    lines: list[Text]
    running: int | None
    """Place of the line of the running trial."""
    row: GridRow | None
    """Its cells."""
    _eighths: int = -1

    def show(self, part: float) -> list[Text]:
        """All lines, the bar of the running trial `part` of its length."""
        eighths = round(part * 8 * max(self.layout.bars, default=0))
        if self.running is not None and self.row is not None and eighths != self._eighths:
            self._eighths = eighths
            cells = tuple(
                replace(cell, bar=part, tone="running") if self.layout.bars[n] else cell
                for n, cell in enumerate(self.row.cells)
            )
            self.lines[self.running] = render_row(self.layout, replace(self.row, cells=cells), self.block)[-1]
        return self.lines


def lay_out_live_table(live_report: LiveReport, trial_id: str, width: int, height: int) -> LiveTable | None:
    """The table in at most so many cells and lines, with the rows around the running trial's; None where few fit.

    Columns for which there is no room are left out. `trial_id`: of the running trial.
    """
    from rich.text import Text

    report = part_pending(live_report.report)
    grid = make_grid(report)
    label = live_report.rows.get(trial_id)
    running = next((n for n, row in enumerate(report.rows) if label in row.labels), None)
    rows = [
        replace(
            row, ending="" if is_pending(line) else row.ending, is_pending=is_pending(line) and n != running
        )
        for n, (row, line) in enumerate(zip(grid.rows, report.rows, strict=True))
    ]
    if running is not None:  # its bar needs room, whatever it holds
        first_bar = next((n for n, column in enumerate(report.columns) if column.name == "images_per_s"), 0)
        cells = [
            GridCell(cell.text, cell.bar if n != first_bar or not n else cell.bar or 0.0, cell.tone)
            for n, cell in enumerate(rows[running].cells)
        ]
        rows[running] = replace(rows[running], cells=tuple(cells))
    leader = write_leader(report)
    for count in range(len(rows), min(FEWEST_ROWS, len(rows)) - 1, -1):
        begin = min(max(0, (running or 0) - count // 2), len(rows) - count)
        shown = crop_grid(grid, rows, range(begin, begin + count))
        layout = lay_out(shown, width, True)
        block = layout.split()[0]
        placed = render_block(layout, block)
        hidden = len(rows) - count
        ends = [many(hidden, "row") + " not shown"] * bool(hidden) + [leader] * bool(leader)
        if len(placed) + len(ends) > height:
            continue
        lines = [line for _, line in placed]
        lines += [Text(line, "dim") for line in ends]
        row = rows[running] if running is not None else None
        places = [place for place, (line_row, _) in enumerate(placed) if line_row is row and row is not None]
        return LiveTable(layout, block, lines, places[-1] if places else None, row)
    return None


def is_pending(row: ReportRow) -> bool:
    """Whether nothing of a row was measured yet."""
    return row.status == "missing"


def part_pending(report: Report) -> Report:
    """The report with a line for each row that is still to be measured."""
    groups = tuple(
        replace(group, rows=tuple(part for row in group.rows for part in _part_row(report, row)))
        for group in report.groups
    )
    return replace(report, groups=groups)


def _part_row(report: Report, row: ReportRow) -> list[ReportRow]:
    if not is_pending(row) or not row.skipped:
        return [row]
    return [
        ReportRow(
            labels=(label,),
            cells=tuple(Cell(value=report.labels[label].get(column.name)) for column in report.columns),
            status=row.status,
        )
        for label in row.labels
    ]


def crop_grid(grid: Grid, rows: Sequence[GridRow], shown: range) -> Grid:
    """The grid with these rows in place of its own, as far as their places are shown."""
    groups, place = [], 0
    for group in grid.groups:
        places = range(place, place + len(group.rows))
        place += len(group.rows)
        kept = tuple(rows[n] for n in places if n in shown)
        groups += [replace(group, rows=kept)] if kept else []
    return replace(grid, groups=tuple(groups))


def wrap(words: Text, width: int) -> list[Text]:
    """Lines of at most so many cells, broken at spaces alone.

    A path that is wider stays whole: the terminal shows it on two lines, and it can be copied as one.
    """
    from rich.cells import cell_len

    breaks, used = [], 0
    for word in _WORD.finditer(words.plain):
        if used and used + cell_len(word[0].rstrip()) > width:
            breaks.append(word.start())
            used = 0
        used += cell_len(word[0])
    lines = list(words.divide(breaks))
    for line in lines:
        line.rstrip()
    return lines
