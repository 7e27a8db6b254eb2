"""What a sweep shows while it runs: a live area on a terminal, plain lines elsewhere, or nothing.

All views have the same interface, write to stderr and start no threads: the caller calls `update` a few times a second,
and `close` on every way out (a live terminal has its cursor hidden until then).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from gpubench.basics.encodable import replace_unencodable_signs
from gpubench.basics.quiet_pipe import redirect_all_to_devnull
from gpubench.basics.words import clean_line, format_count
from gpubench.core.report import Cell, Report, ReportRow
from gpubench.plan.outlook import format_round_number
from gpubench.plan.rounds import ONE, RoundLimits
from gpubench.render.grid import GridRow, make_grid
from gpubench.render.running import (
    LiveProgress,
    describe_unit_end,
    draw_round_bars,
    find_failed_row,
    find_failure_log,
    render_progress,
)
from gpubench.render.terminal import make_grid_layout, render_column_block
from gpubench.render.words import format_leader
from gpubench.schema.row import Row

MAKING_PART = 20.0
"""Times as long as the last table took to make, no other is made: a sweep of a thousand trials goes on meanwhile."""
PENDING = "missing"
"""The status of a row of which nothing was measured yet."""
FEWEST_LINES = 4
"""Of rows and what stands below them, under which no table is shown."""


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

    def show_unit_start(self, number: int, total: int, label: str, trial_id: str) -> None:
        """Unit `number` (from 1) of `total` begins. `trial_id`: of its first job."""

    def update(self, progress: LiveProgress) -> None:
        """Called a few times a second while a trial runs."""

    def show_unit_end(self, number: int, total: int, label: str, rows: Sequence[Row]) -> None:
        """Unit `number` has ended; `rows` are those of its jobs, in their order, with the paths of their logs."""

    def show_round_start(self, number: int, rounds: RoundLimits) -> None:
        """Round `number` (from 1) begins, and has something to run."""

    def show_round_end(self, line: str) -> None:
        """A round is over; `line` says how sure the figures are now."""

    def show_table(self, make: Callable[[], LiveReport], *, at_once: bool = False) -> None:
        """The table that `make` gives stands from now on. A view that shows none, or not so soon again, makes none.

        `at_once`: it is shown now, however long the last one took.
        """

    def say(self, text: str) -> None:
        """One line that stays: what the sweep will do, a warning."""

    def close(self) -> None:
        """Give the terminal back. May be called more than once."""


def choose_view(console: Console, *, quiet: bool = False, tables: bool = True) -> View:
    """The view that suits `console` (of stderr). `tables`: whether it tells between rounds what is known so far."""
    if quiet:
        return QuietView()
    suits = LiveView if console.is_terminal and not console.is_dumb_terminal else PlainView
    return suits(console, tables=tables)


class QuietView(View):
    """Shows nothing."""


class PlainView(View):
    """One plain line for each start and end of a trial, and for each round: for log files."""

    def __init__(self, console: Console, *, tables: bool = True) -> None:
        self.console = console
        self._tables = tables

    def show_unit_start(self, number: int, total: int, label: str, trial_id: str) -> None:
        del trial_id
        self.say(f"[{number}/{total}] {label}  started")

    def show_unit_end(self, number: int, total: int, label: str, rows: Sequence[Row]) -> None:
        line, log = describe_unit_end(number, total, label, rows), find_failure_log(find_failed_row(rows))
        self.say(f"{line}  (see {log})" if log else line)

    def show_round_start(self, number: int, rounds: RoundLimits) -> None:
        if number > 1:
            self.say(format_round_number(number, rounds))

    def show_round_end(self, line: str) -> None:
        if self._tables:
            self.say(line)

    def say(self, text: str) -> None:
        with contextlib.suppress(OSError):  # whoever looked on may have gone, and the measuring goes on
            self.console.file.write(replace_unencodable_signs(clean_line(text), self.console.encoding) + "\n")
            self.console.file.flush()


class LiveView(PlainView):
    """Permanent lines, and below them a live area: the table so far, a bar of the rounds, three lines of the trial."""

    def __init__(self, console: Console, *, tables: bool = True) -> None:
        super().__init__(console, tables=tables)
        self._live = Live(
            console=console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
        )
        """Begins with the first look at a trial."""
        self._is_gone = False
        """Whether nobody looks on any more: the terminal hung up."""
        self._last: LiveProgress | None = None
        self._round: tuple[int, RoundLimits] = (1, ONE)
        self._report: LiveReport | None = None
        self._table: tuple[tuple[object, ...], list[Text]] = ((), [])
        """Lines of the table, and for what they were laid out."""
        self._due = 0.0

    def show_unit_start(self, number: int, total: int, label: str, trial_id: str) -> None:
        begins = LiveProgress(
            done=number - 1, total=total, trial_label=label, trial_id=trial_id, note="starting"
        )
        if (last := self._last) is not None:  # what is left is known anew at the first look
            begins = replace(begins, elapsed_s=last.elapsed_s, left=last.left)
        self.update(begins)

    def update(self, progress: LiveProgress) -> None:
        self._last = progress
        width, height = self.console.size
        below = list(render_progress(progress, width).split("\n"))
        number, rounds = self._round
        if rounds.most > 1:
            below.insert(0, draw_round_bars(number, rounds, progress.done, progress.total, width))
        lines = [*self._render_table(progress, width, height - 1 - len(below)), *below][-height:]
        for line in lines:
            line.plain = replace_unencodable_signs(line.plain, self.console.encoding)
        frame = Text("\n", no_wrap=True, overflow="ellipsis").join(lines)

        def draw() -> None:
            self._live.start()
            self._live.update(frame, refresh=True)

        self._draw_unless_terminal_gone(draw)

    def _draw_unless_terminal_gone(self, act: Callable[[], object]) -> None:
        if not self._is_gone:
            try:
                act()
            except OSError:
                self._is_gone = True
                # What it holds back would fail once more at the interpreter's end.
                redirect_all_to_devnull(self.console.file)

    def show_round_start(self, number: int, rounds: RoundLimits) -> None:
        self._round = (number, rounds)

    def show_table(self, make: Callable[[], LiveReport], *, at_once: bool = False) -> None:
        began = time.monotonic()
        if not self._tables or (began < self._due and not at_once):
            return
        self._report = make()
        now = time.monotonic()
        self._due = now + MAKING_PART * (now - began)

    def _render_table(self, progress: LiveProgress, width: int, height: int) -> list[Text]:
        """Lines of the table and an empty one, laid out anew where something of them has changed."""
        if self._report is None:
            return []
        key = (id(self._report), progress.trial_id, width, height, round(16 * progress.part))
        if self._table[0] != key:
            table = render_live_table(self._report, progress.trial_id, progress.part, width, height - 1)
            self._table = (key, [*table, Text()] if table else [])
        return self._table[1]

    def show_unit_end(self, number: int, total: int, label: str, rows: Sequence[Row]) -> None:
        cause = find_failed_row(rows)
        if cause.status == "ok" and self._table[1]:
            return  # the table says it, and hundreds of lines would say no more
        style = {"ok": "", "skipped": "dim", "oom": "yellow"}.get(cause.status, "red")
        self._print_styled_line(describe_unit_end(number, total, label, rows), style)
        if log := find_failure_log(cause):
            self._print_styled_line(f"  log: {log}", style)

    def say(self, text: str) -> None:
        self._print_styled_line(clean_line(text))

    def _print_styled_line(self, line: str, style: str = "") -> None:
        """A line that stays. The terminal wraps it, so that a path in it can be copied."""
        text = Text(replace_unencodable_signs(line, self.console.encoding), style)
        self._draw_unless_terminal_gone(lambda: self.console.print(text, soft_wrap=True, highlight=False))

    def close(self) -> None:
        self._draw_unless_terminal_gone(self._live.stop)


# ---- the table that stands ----


def render_live_table(
    live_report: LiveReport, trial_id: str, part: float, width: int, height: int
) -> list[Text]:
    """Lines of the table, at most so many; of a longer one those around the running trial. Empty where few fit.

    Columns for which there is no room are left out. `trial_id`: of the running trial, `part` of which is over.
    """
    report = expand_pending_rows(live_report.report)
    grid = make_grid(report)
    label = live_report.rows.get(trial_id)
    bar = next((n for n, column in enumerate(report.columns) if column.name == "images_per_s"), 0)
    running: GridRow | None = None
    groups = []
    for group, sources in zip(grid.groups, report.groups, strict=True):
        rows = []
        for row, source in zip(group.rows, sources.rows, strict=True):
            if source.status == PENDING:
                row = replace(row, ending="", is_pending=label not in source.labels)
            if label in source.labels:
                cells = list(row.cells)
                if bar:
                    cells[bar] = replace(cells[bar], bar=part, tone="running")
                row = running = replace(row, cells=tuple(cells))
            rows.append(row)
        groups.append(replace(group, rows=tuple(rows)))
    layout = make_grid_layout(replace(grid, groups=tuple(groups)), width, True)
    placed = render_column_block(layout, layout.split_columns_into_blocks()[0])
    lines = [line for _, line in placed]
    heading = 2 + any(layout.grid.series)
    leader = format_leader(report)
    below = [Text(leader, "dim")] if leader else []
    room = height - heading - len(below)
    hidden = len(lines) - heading - room
    if hidden > 0:
        below.insert(0, Text(f"{format_count(hidden + 1, 'line')} not shown", "dim"))
        room -= 1
        at = next((n for n, (row, _) in enumerate(placed) if row is not None and row is running), heading)
        begin = min(max(heading, at - room // 2), len(lines) - room)
        lines = [*lines[:heading], *lines[begin : begin + room]]
    return [*lines, *below] if room >= min(FEWEST_LINES, len(report.rows)) else []


def expand_pending_rows(report: Report) -> Report:
    """The report with a line for each row that is still to be measured."""

    def expand(row: ReportRow) -> list[ReportRow]:
        if row.status != PENDING or not row.skipped:
            return [row]
        cells = {
            label: tuple(Cell(value=report.labels[label].get(column.name)) for column in report.columns)
            for label in row.labels
        }
        return [ReportRow(labels=(label,), cells=cells[label], status=PENDING) for label in row.labels]

    groups = (replace(group, rows=tuple(chain(*map(expand, group.rows)))) for group in report.groups)
    return replace(report, groups=tuple(groups))
