"""What a sweep shows while it runs: a live area on a terminal, plain lines elsewhere, or nothing.

All three views have the same interface, write to stderr and start no threads: the caller calls `update` a few
times a second, and `close` on every way out (a live terminal has its cursor hidden until then).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, Self

from gpubench.analysis.sharing import verdict_words
from gpubench.basics import words
from gpubench.basics.encodable import encodable
from gpubench.basics.rounding import half_up
from gpubench.basics.words import LOGGED, WORDS, clean, listed
from gpubench.plan.outlook import place
from gpubench.plan.rounds import ONE, Rounds
from gpubench.report.area import Area
from gpubench.report.standing import standing
from gpubench.report.table import Table
from gpubench.report.terminal import wrapped
from gpubench.schema.row import Row
from gpubench.schema.verdict import Verdict

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

BAR = 40
"""Cells of a bar, at most; SHORTEST_BAR at least, or none is drawn; each of several has more than SHORTEST_PART."""
SHORTEST_BAR = 8
SHORTEST_PART = 3
MAKING_PART = 20.0
"""Times as long as the last table took to make, no other is made: a sweep of a thousand trials goes on meanwhile."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LiveProgress:
    """What is going on now. None: not known (yet)."""

    done: int
    """Trials finished, skipped or reused so far; the running one is number `done + 1`."""
    total: int
    trial_label: str
    epoch: int | None = None
    """From 1, warm-up included."""
    epochs: int | None = None
    step: int | None = None
    """Steps finished in this epoch."""
    steps: int | None = None
    evaluated: int = 0
    """Epochs that were evaluated, where training goes on until an accuracy is reached."""
    top1_pct: float | None = None
    """What the last of these evaluations gave."""
    top1_target: float | None = None
    """The accuracy asked for, in per cent."""
    gpu_mem_mib: float | None = None
    gpu_util_pct: float | None = None
    cpu_util_pct: float | None = None
    elapsed_s: float = 0.0
    """Since the sweep began."""
    left_s: float | None = None
    """Until it ends, estimated."""
    until: str = ""
    """What ends it, where that is not its last round: "to ± 2 %"."""
    at_least: bool = False
    """Whether nobody knows yet how much more than `left_s` it may be."""
    at_most: bool = False
    """Whether it may end earlier, when no question of the table is open any more."""
    note: str = ""
    """What else there is to say: "warm-up", "evaluating", "waiting for the other jobs"."""


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
        self.say(f"{trial}  {epoch}  {_top1(progress.top1_pct, progress.top1_target)}")

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


def finished_line(number: int, total: int, label: str, row: Row) -> str:
    """`[3/12] batch_size=64 strategy=ddp  ok  epoch 3.21 s  2,435 MiB`, or how it ended and why."""
    status = str(row.status)
    parts = [f"[{number}/{total}] {label}", WORDS.get(status, status)]
    if status == "ok":
        parts += [f"epoch {half_up(row.epoch_time_s, 2)} s"] if row.epoch_time_s is not None else []
        parts += [f"{half_up(row.gpu_mem_mib):,} MiB"] if row.gpu_mem_mib is not None else []
        if row.until_top1 is not None and row.top1_pct is not None:
            parts.append(_top1(row.top1_pct, row.until_top1))
    elif status != "oom" and row.reason:
        parts.append(row.reason.strip().splitlines()[0])
    return clean("  ".join(parts))


def group_line(number: int, total: int, label: str, rows: Sequence[Row]) -> str:
    """`[4/6] 3 copies  ok  2.61 s, 2.60 s, 2.62 s (2.01, 2.00 and 2.02 times alone): partly parallel, overlap gain …`.

    Of a group that ended otherwise: how, which job was the first cause, and why.
    """
    cause = first_cause(rows)
    status = str(cause.status)
    parts = [f"[{number}/{total}] {label}", WORDS.get(status, status)]
    if status == "ok":
        parts.append(_times(rows))
    else:
        reason = [line.strip() for line in (cause.reason or "").strip().splitlines()[:1]]
        job = [f"job {cause.job}"] if status != "skipped" and cause.job else []
        parts.append(": ".join([*job, *reason]))
    return clean("  ".join(part for part in parts if part))


def log_of(row: Row) -> str:
    """The file with the output of processes that failed; empty for what ended otherwise."""
    return clean(row.log) if row.status in LOGGED and row.log else ""


def first_cause(rows: Sequence[Row]) -> Row:
    """The first job that ended badly by itself: others are skipped because of it. The first job where all are ok."""
    bad = [row for row in rows if row.status != "ok"]
    return next((row for row in bad if row.status != "skipped"), (bad or rows)[0])


def _times(rows: Sequence[Row]) -> str:
    times = [row.epoch_time_s for row in rows if row.epoch_time_s is not None]
    slowdowns = [row.slowdown for row in rows if row.slowdown is not None]
    gain = rows[0].overlap_gain
    said = ", ".join(f"{half_up(time, 2)} s" for time in times)
    if len(slowdowns) == len(rows):
        said += f" ({listed([words.number(value, 2) for value in slowdowns])} times alone)"
    if gain is not None:
        found: Verdict = rows[0].verdict or Verdict()
        verdict = verdict_words(found, gain) if found.words else "no verdict"
        said += f": {verdict}, overlap gain {words.number(gain, 2)}, from one process each"
    return said


def frame(progress: LiveProgress, width: int, encoding: str = "utf-8") -> Text:
    """What is told of the trial under way: three lines, each at most `width` cells wide."""
    from rich.text import Text

    head = f"[{progress.done + 1}/{progress.total}] {clean(progress.trial_label)}"
    lines = [Text(_fit(head, width), "bold"), _bar(progress, width), Text(_vitals(progress, width), "dim")]
    for line in lines:
        line.plain = encodable(line.plain, encoding)
    return Text("\n", no_wrap=True, overflow="ellipsis").join(lines)


def _bar(progress: LiveProgress, width: int) -> Text:
    from rich.text import Text

    before, after = _epochs(progress), _steps(progress)
    room = min(40, width - len(before) - len(after))
    if not progress.steps or progress.step is None or room < 8:
        return Text(_fit(f"{before.rstrip()}{after}", width))
    full = min(room, room * progress.step // progress.steps)
    return Text.assemble(before, ("━" * full, "green"), ("─" * (room - full), "dim"), after)


def _epochs(progress: LiveProgress) -> str:
    if progress.epoch is None:
        return "  "
    of = f"/{progress.epochs}" if progress.epochs else ""
    return f"  epoch {progress.epoch}{of}  "


def _steps(progress: LiveProgress) -> str:
    parts = [f"step {progress.step}/{progress.steps}"] if progress.steps and progress.step is not None else []
    if progress.top1_pct is not None:
        parts.append(_top1(progress.top1_pct, progress.top1_target))
    parts += [clean(progress.note)] if progress.note else []
    return "".join(f"  {part}" for part in parts)


def _top1(top1_pct: float, target: float | None) -> str:
    of = f" of {target:g}" if target is not None else ""
    return f"top-1 {half_up(top1_pct, 1)}{of} %"


def _vitals(progress: LiveProgress, width: int) -> str:
    parts = [
        f"GPU {progress.gpu_mem_mib:,.0f} MiB" if progress.gpu_mem_mib is not None else "",
        f"GPU {progress.gpu_util_pct:.0f} %" if progress.gpu_util_pct is not None else "",
        f"CPU {progress.cpu_util_pct:.0f} %" if progress.cpu_util_pct is not None else "",
        _left(progress),
        f"{clock(progress.elapsed_s)} elapsed",
    ]
    return _fit("  " + "  ".join(part for part in parts if part), width)


def _left(progress: LiveProgress) -> str:
    if progress.left_s is None:
        return ""
    about = "at least " if progress.at_least else "at most " if progress.at_most else "~"
    return f"{about}{clock(progress.left_s)} left{f' {progress.until}' if progress.until else ''}"


def rounds_bar(number: int, rounds: Rounds, done: int, total: int, width: int) -> Text:
    """`round 2 of 5  ━━━━━━ ━━──── ────── ────── ──────  2 of 6 done`, at most `width` cells wide.

    A bar for each round; one bar, of this round, where nobody knows how many they will be, or they are too many.
    """
    from rich.text import Text

    before, after = f"{place(number, rounds)}  ", f"  {done} of {total} done"
    room = min(BAR, width - len(before) - len(after))
    if room < SHORTEST_BAR or not total:
        return Text(_fit(f"{before.rstrip()}{after}", width))
    count = rounds.most if room // rounds.most > SHORTEST_PART else 1
    each = (room + 1) // count - 1
    full = [each if one < number else 0 for one in range(1, count + 1)]
    full[number - 1 if count > 1 else 0] = each * done // total
    parts = [part for one in full for part in (("━" * one, "green"), ("─" * (each - one), "dim"), " ")]
    return Text.assemble(before, *parts[:-1], after)


def _fit(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"


def clock(seconds: float) -> str:
    """`0:07`, `4:30`, `1:04:30`."""
    whole = max(0, round(seconds))
    hours, rest = divmod(whole, 3600)
    minutes, seconds = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
