"""The table that stands on a terminal while a sweep goes on, in whatever room there is, and the line after a round."""

from __future__ import annotations

import dataclasses
import io
from typing import Any

import pytest
import reports
from rich.console import Console
from screen import Screen
from whole_rows import row_with

from gpubench.core.report import Cell, Report, ReportRow, RowGroup
from gpubench.plan.outlook import TimeLeft
from gpubench.plan.rounds import ONE, RoundLimits
from gpubench.render.live import LiveReport, LiveView, PlainView, QuietView, choose_view, render_live_table
from gpubench.render.running import LiveProgress, describe_round_end, describe_unit_end, draw_round_bars
from gpubench.render.words import format_leader, list_sentences, name_leader

FIVE = RoundLimits(number=5)
SIZES = (16, 32, 64, 128)


def report(*rates: float | None, **changes: Any) -> Report:
    """Batch sizes of which the first were measured; all others are one line, as a table has them."""
    known = [
        ReportRow(
            labels=(n,),
            cells=(
                Cell(value=size),
                Cell(value=rate, bar=rate / 400),
                Cell(value=512 / rate, low=1.0, high=1.1 ** (4 - 2 * n)),
            ),
        )
        for n, (size, rate) in enumerate(zip(SIZES, rates, strict=False))
        if rate
    ]
    left = tuple(range(len(known), len(SIZES)))
    pending = ReportRow(
        labels=left,
        cells=(Cell(value=SIZES[len(known)]), Cell(value=None), Cell(value=None)) if left else (),
        status="missing",
        skipped=tuple(SIZES[n] for n in left[1:]),
    )
    names = ("batch_size", "images_per_s", "epoch_time_s")
    whole = Report(
        name="sizes",
        question="",
        facts=reports.make_facts(processes=(1, 2) if known else (0, 0)),
        columns=tuple(map(reports.make_column, names)),
        groups=(RowGroup(head={}, rows=(*known, *[pending] * bool(left))),),
        findings=(),
        warnings=(),
        labels={n: {"batch_size": size} for n, size in enumerate(SIZES)},
        figures={n: {"images_per_s": rate} for n, rate in enumerate((*rates, *[None] * len(left)))},
        axis="batch_size",
    )
    return dataclasses.replace(whole, **changes)


ROWS = {f"t{size}": n for n, size in enumerate(SIZES)}
AT_FIRST, TWO = LiveReport(report(), ROWS), LiveReport(report(100.0, 200.0), ROWS)


def lines(
    standing: LiveReport, running: str = "", width: int = 80, height: int = 20, part: float = 0.0
) -> list[str]:
    return [line.plain for line in render_live_table(standing, running, part, width, height)]


def test_the_final_table_stands_from_the_start_with_a_line_a_row() -> None:
    assert lines(AT_FIRST) == [
        "batch  images/s  epoch s",
        "────────────────────────",
        *("   16", "   32", "   64", "  128"),
    ]


def test_rows_that_are_left_are_grey_and_the_running_one_has_its_own_bar() -> None:
    assert lines(TWO, "t64", part=0.25) == [
        "batch  images/s                      epoch s",
        "────────────────────────────────────────────",
        "   16       100  ████              5.12 ±21%",
        "   32       200  ████████          2.56 ±10%",
        "   64            ████",
        "  128",
        "so far: 32 leads",
    ]
    table = render_live_table(TWO, "t64", 0.5, 80, 20)
    assert [str(line.style) for line in table[2:6]] == ["", "", "", "dim"]
    assert {span.style for span in table[4].spans if span.style} == {"green"}


def test_a_row_that_is_measured_again_keeps_its_figures_beside_its_bar() -> None:
    assert lines(TWO, "t16", part=1.0)[2] == "   16       100  ████████████████  5.12 ±21%"


@pytest.mark.parametrize("height", [0, 3, 5, 6, 7, 8, 20])
def test_it_is_no_higher_than_there_is_room(height: int) -> None:
    for running in ("", "t16", "t128"):
        assert len(lines(TWO, running, height=height)) <= height


def test_where_it_is_low_the_lines_around_the_running_one_stay_and_the_others_are_counted() -> None:
    many = LiveReport(report(*[100.0] * 4), ROWS)
    wide = dataclasses.replace(many, report=lengthen(many.report))
    assert [line.split()[0] for line in lines(wide, "t128", height=9)][2:-1] == [
        "32",
        "64",
        "128",
        "16",
        "32",
        "3",
    ]


def lengthen(whole: Report) -> Report:
    """Its rows once more, as those of another group."""
    (group,) = whole.groups
    others = tuple(dataclasses.replace(row, labels=(row.labels[0] + 10,)) for row in group.rows)
    return dataclasses.replace(whole, groups=(RowGroup(head={}, rows=(*group.rows, *others)),))


@pytest.mark.parametrize(
    ("shown", "leader"),
    [
        (report(), ""),
        (report(100.0), ""),
        (report(100.0, 200.0, 150.0), "32"),
        (reports.batch_sizes(), "batch 128 on 2 GPUs (ddp)"),  # the choice; 256 is the fastest
        (reports.target(), "128"),
        (reports.pairs(), "mobilenet_v2 16 & resnet50 64"),
    ],
)
def test_what_leads_is_the_choice_else_the_fastest_of_several(shown: Report, leader: str) -> None:
    assert name_leader(shown) == leader
    assert format_leader(shown) == (f"so far: {leader} leads" if leader else "")


SEVERAL = reports.make_facts(processes=(2, 2))
ANSWER = dataclasses.replace(reports.sharing().findings[0], groups=reports.sharing().findings[0].groups[:1])
ANSWERED = dataclasses.replace(reports.sharing(), facts=SEVERAL, columns=(), findings=(ANSWER,))


@pytest.mark.parametrize(
    ("number", "shown", "seconds", "parts"),
    [
        (2, TWO.report, 200, ["32 leads", "widest interval ±21 % (batch 16)", "about 3 min left"]),
        (5, report(100.0), 0, ["widest interval ±21 % (batch 16)"]),
        (1, report(), 0, ["no row has a time"]),
        (5, dataclasses.replace(report(), facts=SEVERAL), 0, []),
        (5, ANSWERED, 0, [list_sentences(ANSWERED)[0].text.rstrip(".")]),
        (1, reports.one_process(), 0, ["batch 128 with ddp leads", "each row is of one process"]),
    ],
)
def test_a_round_ends_with_what_leads_the_widest_interval_and_what_is_left(
    number: int, shown: Report, seconds: int, parts: list[str]
) -> None:
    line = describe_round_end(number, FIVE, shown, TimeLeft(seconds=seconds))
    assert line == ": ".join(filter(None, [f"round {number} of 5", "; ".join(parts)]))


def bar(number: int, rounds: RoundLimits, done: int, total: int, width: int = 80) -> str:
    return draw_round_bars(number, rounds, done, total, width).plain


@pytest.mark.parametrize(
    ("rounds", "number", "done", "total", "width", "parts"),
    [
        (FIVE, 2, 3, 6, 80, ["round 2 of 5", "━━━━━━━ ━━━──── ─────── ─────── ───────", "3 of 6 done"]),
        (RoundLimits(within_pct=2.0), 7, 1, 4, 80, ["round 7", "━" * 10 + "─" * 30, "1 of 4 done"]),
        (RoundLimits(number=30), 2, 1, 2, 80, ["round 2 of 30", "━" * 20 + "─" * 20, "1 of 2 done"]),
        (FIVE, 2, 3, 6, 30, ["round 2 of 5", "3 of 6 done"]),
    ],
)
def test_a_bar_for_each_round(
    rounds: RoundLimits, number: int, done: int, total: int, width: int, parts: list[str]
) -> None:
    assert bar(number, rounds, done, total, width).split("  ") == parts


PROGRESS = LiveProgress(
    done=2, total=5, trial_label="batch_size=64", trial_id="t64", epoch=1, epochs=1, step=80, steps=160, elapsed_s=72,
    left=TimeLeft(seconds=270),
)  # fmt: skip


class Shown:
    """A live view on a screen."""

    def __init__(self, width: int = 80, height: int = 24, *, tables: bool = True) -> None:
        self.file = io.StringIO()
        self.console = Console(
            file=self.file, force_terminal=True, width=width, height=height, color_system=None, _environ={}
        )
        self.view = LiveView(self.console, tables=tables)
        self.screen = Screen(width, height)
        self._read = 0

    @property
    def lines(self) -> list[str]:
        self.screen.feed(self.file.getvalue()[self._read :])
        self._read = len(self.file.getvalue())
        return self.screen.lines


def test_the_table_stands_above_the_trial_and_goes_in_the_end() -> None:
    seen = Shown()
    seen.view.say("before")
    seen.view.show_round_start(2, FIVE)
    seen.view.show_table(lambda: TWO, at_once=True)
    seen.view.update(PROGRESS)
    found = seen.lines
    assert found[0] == "before"
    assert found[1:8] == lines(TWO, "t64", part=0.5)
    assert found[8:10] == ["", bar(2, FIVE, 2, 5)]
    assert found[10] == "[3/5] batch_size=64"
    assert found[-1] == "  about 4 min left  1:12 elapsed"
    seen.view.update(dataclasses.replace(PROGRESS, step=160))
    assert seen.lines[5] == "   64            ████████████████"
    seen.view.close()
    assert seen.lines == ["before"]


def test_what_the_table_says_is_no_line_of_its_own_and_what_went_wrong_is() -> None:
    seen = Shown()
    ok, failed = row_with(status="ok", epoch_time_s=1.0), row_with(status="failed", reason="why")
    seen.view.update(PROGRESS)
    seen.view.show_unit_end(1, 5, "before there is a table", [ok])
    seen.view.show_table(lambda: TWO, at_once=True)
    seen.view.update(PROGRESS)
    seen.view.show_unit_end(1, 5, "again", [ok])
    seen.view.show_unit_end(2, 5, "other", [failed])
    seen.view.show_round_end("round 2 of 5: so sure")
    seen.view.close()
    assert seen.lines == [
        describe_unit_end(1, 5, "before there is a table", [ok]),
        describe_unit_end(2, 5, "other", [failed]),
        "round 2 of 5: so sure",
    ]


def test_where_no_table_fits_each_trial_is_a_line() -> None:
    seen = Shown(height=8)
    seen.view.show_table(lambda: TWO, at_once=True)
    seen.view.show_round_start(2, FIVE)
    seen.view.update(PROGRESS)
    ok = row_with(status="ok", epoch_time_s=1.0)
    seen.view.show_unit_end(1, 5, "again", [ok])
    assert seen.lines[0] == describe_unit_end(1, 5, "again", [ok])
    assert len(seen.screen.seen) <= 8


def test_a_table_is_made_no_sooner_than_twenty_times_as_long_as_the_last_took(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, made = [100.0], []
    monkeypatch.setattr("gpubench.render.live.time.monotonic", lambda: now[0])

    def make() -> LiveReport:
        made.append(now[0])
        now[0] += 1.0
        return TWO

    seen = Shown()
    for at, at_once in ((100.0, False), (120.0, False), (121.0, False), (125.0, True)):
        now[0] = at
        seen.view.show_table(make, at_once=at_once)
    assert made == [100.0, 121.0, 125.0]


def test_a_certainty_or_a_budget_is_what_the_remaining_time_is_to() -> None:
    seen = Shown()
    seen.view.update(
        LiveProgress(
            done=0,
            total=1,
            trial_label="b",
            left=TimeLeft(seconds=90, until="to ± 2 %", at_least=True),
            elapsed_s=5,
        )
    )
    assert seen.lines[-1].strip().split("  ")[0] == "at least 2 min left to ± 2 %"


def test_nobody_makes_a_table_for_a_view_that_shows_none() -> None:
    def never_stop() -> LiveReport:
        raise AssertionError("a table was made")

    plain = Console(file=io.StringIO())
    for one in (QuietView(), PlainView(plain), Shown(tables=False).view):
        one.show_round_start(1, FIVE)
        one.show_table(never_stop, at_once=True)


def test_without_a_terminal_a_round_is_a_line_before_and_one_after() -> None:
    for tables, said in ((True, "round 2 of 5\nround 2 of 5: so sure\n"), (False, "round 2 of 5\n")):
        console = Console(file=io.StringIO(), force_terminal=False)
        plain = choose_view(console, tables=tables)
        plain.show_round_start(1, ONE)
        plain.show_round_start(2, FIVE)
        plain.show_round_end("round 2 of 5: so sure")
        assert console.file.getvalue() == said  # type: ignore[attr-defined]
