"""What a sweep shows while it runs: lines, the live view and the table that stands in it, in whatever room there is."""

from __future__ import annotations

import dataclasses
import io
import threading
from typing import Any

import pytest
import reports
from rich.console import Console
from screen import Screen
from whole_rows import changed, row_with

from gpubench.basics.quoted import ANSI
from gpubench.core.report import Cell, Report, ReportRow, RowGroup
from gpubench.plan.outlook import TimeLeft
from gpubench.plan.rounds import ONE, RoundLimits
from gpubench.render.live import LiveReport, LiveView, PlainView, QuietView, choose_view, render_live_table
from gpubench.render.running import (
    LiveProgress,
    describe_round_end,
    describe_unit_end,
    draw_round_bars,
    format_clock,
    render_progress,
)
from gpubench.render.words import format_leader, list_sentences, name_leader
from gpubench.schema.codes import REASONS
from gpubench.schema.row import Row

OK = row_with(status="ok", epoch_time_s=3.214, gpu_mem_mib=2435.0)
FAILED = row_with(status="failed", reason="\x1b[31mkilled\x1b[0m by signal 9\nmore")

FULL = LiveProgress(
    done=2, total=12, trial_label="batch_size=64 strategy=ddp", epoch=2, epochs=3, step=80, steps=160,
    gpu_mem_mib=2435, gpu_util_pct=97, cpu_util_pct=61, elapsed_s=72, left=TimeLeft(seconds=270),
)  # fmt: skip


def terminal(width: int = 80) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=width, height=20, _environ={})


def test_the_frame_says_all_there_is_to_know() -> None:
    title, bar, usage = render_progress(FULL, 80).plain.splitlines()
    assert title == f"[3/12] {FULL.trial_label}"
    assert bar == "  epoch 2/3  " + "━" * 20 + "─" * 20 + "  step 80/160"
    assert usage.strip().split("  ") == [
        "GPU 2,435 MiB", "GPU 97 %", "CPU 61 %", "about 4 min left", "1:12 elapsed",
    ]  # fmt: skip


def test_what_is_not_known_is_left_out() -> None:
    early = LiveProgress(done=0, total=3, trial_label="batch_size=16", note="starting")
    assert render_progress(early, 80).plain.splitlines() == [
        "[1/3] batch_size=16",
        "  starting",
        "  0:00 elapsed",
    ]


LATE_METER = {"meter_power_w": REASONS["meter-apart"]}
DEAF = "meter: no figure: the meter does not follow the load: that is too small to be seen, or elsewhere"
REACHED = row_with(status="ok", epoch_time_s=3.214, top1_pct=60.94, until_top1=60.0)


@pytest.mark.parametrize(
    ("row", "parts"),
    [
        (OK, ["ok", "epoch 3.21 s", "2,435 MiB"]),
        (REACHED, ["ok", "epoch 3.21 s", "top-1 60.9 of 60 %"]),
        (changed(REACHED, until_top1=None), ["ok", "epoch 3.21 s"]),
        (
            changed(OK, rapl_power_w=87.26, missing=LATE_METER),
            ["ok", "epoch 3.21 s", "2,435 MiB", "RAPL 87.3 W", DEAF],
        ),
        (changed(OK, missing={"meter_power_w": REASONS["no-meter"]}), ["ok", "epoch 3.21 s", "2,435 MiB"]),
        (row_with(status="oom"), ["out of memory"]),
        (FAILED, ["failed", "killed by signal 9"]),
    ],
)
def test_a_finished_line(row: Row, parts: list[str]) -> None:
    assert describe_unit_end(3, 12, "b=64 s=ddp", [row]).split("  ") == ["[3/12] b=64 s=ddp", *parts]


def test_a_path_is_never_broken_over_lines_so_that_it_can_be_copied() -> None:
    log = "/scratch/some one/results/mobilenet_v2-batch-size/logs/3a/t3aefa8e8b477-1.log"
    folder = "/scratch/results/mobilenet_v2-batch-size-of-an-unusually-long-name"
    for width in (20, 40, 80):
        console = terminal(width)
        with LiveView(console) as live:
            live.update(FULL)
            live.show_unit_end(1, 2, "b=8", [changed(FAILED, log=log)])
            live.show_unit_end(2, 2, "g", [changed(FAILED, job="1 of 2", log=log), OK])
            live.say(f"the reasons are below gpubench table {folder}; and so on, and so forth")
        lines = [ANSI.sub("", line).rstrip() for line in console.file.getvalue().splitlines()]
        assert lines.count(f"  log: {log}") == 2
        assert sum(folder in line for line in lines) == 1


def test_the_live_view_keeps_finished_lines_and_gives_the_terminal_back() -> None:
    console = terminal()
    threads = threading.active_count()
    with LiveView(console) as live:
        live.show_unit_start(3, 12, "batch_size=64", "t0")
        live.update(FULL)
        assert threading.active_count() == threads
        live.show_unit_end(3, 12, "batch_size=64", [OK])
    written = console.file.getvalue()
    assert describe_unit_end(3, 12, "batch_size=64", [OK]) in written
    assert "━━━" in written
    assert written.rindex("\x1b[?25h") > written.rindex("\x1b[?25l")  # the cursor is back
    live.close()
    assert console.file.getvalue() == written


def test_without_a_terminal_a_line_a_start_and_an_end_and_nothing_else() -> None:
    console = Console(file=io.StringIO(), force_terminal=False)
    with choose_view(console) as plain:
        plain.say("2 trials")
        plain.show_unit_start(1, 2, "batch_size=64", "t0")
        for _ in range(5):
            plain.update(FULL)
        plain.show_unit_end(1, 2, "batch_size=64", [OK])
        plain.show_unit_end(2, 2, "batch_size=128", [changed(FAILED, log="a/b.log")])
    assert console.file.getvalue().splitlines() == [
        "2 trials",
        "[1/2] batch_size=64  started",
        describe_unit_end(1, 2, "batch_size=64", [OK]),
        f"{describe_unit_end(2, 2, 'batch_size=128', [FAILED])}  (see a/b.log)",
    ]


def test_on_the_way_to_an_accuracy_the_frame_shows_how_far_it_is() -> None:
    on_the_way = dataclasses.replace(FULL, top1_pct=34.14, top1_target=60.0, note="evaluating")
    bar = render_progress(on_the_way, 80).plain.splitlines()[1]
    assert bar.split("  ")[-3:] == ["step 80/160", "top-1 34.1 of 60 %", "evaluating"]
    assert "top-1" not in render_progress(dataclasses.replace(FULL, top1_target=60.0), 80).plain, (
        "none is known yet"
    )


def test_the_view_suits_the_console() -> None:
    assert isinstance(choose_view(terminal()), LiveView)
    assert isinstance(choose_view(Console(file=io.StringIO())), PlainView)
    assert isinstance(
        choose_view(Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "dumb"})), PlainView
    )
    quiet = choose_view(terminal(), quiet=True)
    assert type(quiet) is QuietView


def test_clock() -> None:
    assert [format_clock(s) for s in (0, 7.4, 270, 3870)] == ["0:00", "0:07", "4:30", "1:04:30"]


def jobs(*statuses: str, reason: str = "no room\nmore") -> list[Row]:
    times = {"epoch_time_s": 2.614, "slowdown": 2.0, "overlap_gain": 0.25}
    return [
        row_with(
            status=status,
            job=f"{n} of {len(statuses)}",
            **(times if status == "ok" else {"reason": reason}),
        )
        for n, status in enumerate(statuses, 1)
    ]


TIMES = "2.61 s, 2.61 s (2.00 and 2.00 times alone)"
GROUPS = {
    "in times": (jobs("ok", "ok"), ["ok", f"{TIMES}: some overlap (gain 0.25)"]),
    "slower than one after the other": (
        [changed(job, overlap_gain=-0.82) for job in jobs("ok", "ok")],
        ["ok", f"{TIMES}: no overlap (gain −0.82)"],
    ),
    "of which little is known": (
        [row_with(status="ok", job="1 of 2", epoch_time_s=1.0), row_with(status="ok", job="2 of 2")],
        ["ok", "1.00 s"],
    ),
    "by its first cause": (jobs("skipped", "oom", "skipped"), ["out of memory", "job 2 of 3: no room"]),
    "beside a job that was ok": (jobs("ok", "failed"), ["failed", "job 2 of 2: no room"]),
    "that was skipped": (jobs("skipped", "skipped", reason="too big"), ["skipped", "too big"]),
}


@pytest.mark.parametrize(("rows", "parts"), GROUPS.values(), ids=GROUPS)
def test_a_group_that_has_ended_is_one_line(rows: list[Row], parts: list[str]) -> None:
    assert describe_unit_end(4, 6, "g", rows).split("  ") == ["[4/6] g", *parts]


# The table that stands.


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
