"""The live view at 80 columns, and its plain stand-ins."""

import dataclasses
import io
import threading

import pytest
from rich.console import Console
from whole_rows import changed, row_with

from gpubench.basics.quoted import ANSI
from gpubench.plan.outlook import TimeLeft
from gpubench.render.live import LiveView, PlainView, QuietView, choose_view
from gpubench.render.running import (
    LiveProgress,
    describe_unit_end,
    format_clock,
    render_progress,
)

OK = row_with(status="ok", epoch_time_s=3.214, gpu_mem_mib=2435.0)
FAILED = row_with(status="failed", reason="\x1b[31mkilled\x1b[0m by signal 9\nmore")

FULL = LiveProgress(
    done=2, total=12, trial_label="batch_size=64 strategy=ddp", epoch=2, epochs=3, step=80, steps=160,
    gpu_mem_mib=2435, gpu_util_pct=97, cpu_util_pct=61, elapsed_s=72, left=TimeLeft(seconds=270),
)  # fmt: skip


def terminal(width=80):
    return Console(file=io.StringIO(), force_terminal=True, width=width, height=20, _environ={})


def test_the_frame_says_all_there_is_to_know():
    title, bar, usage = render_progress(FULL, 80).plain.splitlines()
    assert title == f"[3/12] {FULL.trial_label}"
    assert bar == "  epoch 2/3  " + "━" * 20 + "─" * 20 + "  step 80/160"
    assert usage.strip().split("  ") == [
        "GPU 2,435 MiB", "GPU 97 %", "CPU 61 %", "about 4 min left", "1:12 elapsed",
    ]  # fmt: skip


def test_what_is_not_known_is_left_out():
    early = LiveProgress(done=0, total=3, trial_label="batch_size=16", note="starting")
    assert render_progress(early, 80).plain.splitlines() == [
        "[1/3] batch_size=16",
        "  starting",
        "  0:00 elapsed",
    ]


REACHED = row_with(status="ok", epoch_time_s=3.214, top1_pct=60.94, until_top1=60.0)


@pytest.mark.parametrize(
    ("row", "parts"),
    [
        (OK, ["ok", "epoch 3.21 s", "2,435 MiB"]),
        (REACHED, ["ok", "epoch 3.21 s", "top-1 60.9 of 60 %"]),
        (changed(REACHED, until_top1=None), ["ok", "epoch 3.21 s"]),
        (row_with(status="oom"), ["out of memory"]),
        (FAILED, ["failed", "killed by signal 9"]),
    ],
)
def test_a_finished_line(row, parts):
    assert describe_unit_end(3, 12, "b=64 s=ddp", [row]).split("  ") == ["[3/12] b=64 s=ddp", *parts]


def test_a_path_is_never_broken_over_lines_so_that_it_can_be_copied():
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


def test_the_live_view_keeps_finished_lines_and_gives_the_terminal_back():
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


def test_without_a_terminal_a_line_a_start_and_an_end_and_nothing_else():
    console = Console(file=io.StringIO(), force_terminal=False)
    with choose_view(console) as plain:
        plain.say("2 trials")
        plain.show_unit_start(1, 2, "batch_size=64", "t0")
        for _ in range(5):
            plain.update(FULL)
        plain.show_unit_end(1, 2, "batch_size=64", [OK])
        plain.show_unit_end(2, 2, "batch_size=128", [FAILED])
    assert console.file.getvalue().splitlines() == [
        "2 trials",
        "[1/2] batch_size=64  started",
        describe_unit_end(1, 2, "batch_size=64", [OK]),
        describe_unit_end(2, 2, "batch_size=128", [FAILED]),
    ]


def test_on_the_way_to_an_accuracy_the_frame_shows_how_far_it_is():
    on_the_way = dataclasses.replace(FULL, top1_pct=34.14, top1_target=60.0, note="evaluating")
    bar = render_progress(on_the_way, 80).plain.splitlines()[1]
    assert bar.split("  ")[-3:] == ["step 80/160", "top-1 34.1 of 60 %", "evaluating"]
    assert "top-1" not in render_progress(dataclasses.replace(FULL, top1_target=60.0), 80).plain, (
        "none is known yet"
    )


def test_the_view_suits_the_console():
    assert isinstance(choose_view(terminal()), LiveView)
    assert isinstance(choose_view(Console(file=io.StringIO())), PlainView)
    assert isinstance(
        choose_view(Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "dumb"})), PlainView
    )
    quiet = choose_view(terminal(), quiet=True)
    assert type(quiet) is QuietView


def test_clock():
    assert [format_clock(s) for s in (0, 7.4, 270, 3870)] == ["0:00", "0:07", "4:30", "1:04:30"]


def jobs(*statuses, reason="no room\nmore"):
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
def test_a_group_that_has_ended_is_one_line(rows, parts):
    assert describe_unit_end(4, 6, "g", rows).split("  ") == ["[4/6] g", *parts]


def test_every_view_tells_of_a_finished_group_in_its_way():
    console = Console(file=io.StringIO(), force_terminal=False)
    bad = jobs("skipped", "oom")
    for view_of_group in (QuietView(), PlainView(console)):
        view_of_group.show_unit_end(1, 2, "g", bad)
    assert console.file.getvalue() == describe_unit_end(1, 2, "g", bad) + "\n"
    live = terminal()
    with LiveView(live) as shown:
        shown.show_unit_start(1, 2, "g", "t0")
        shown.show_unit_end(1, 2, "g", jobs("ok", "ok"))
    assert TIMES in live.file.getvalue()
