"""What stands below a table: the answer first, then what marks mean and what failed, doubts last."""

import io
import itertools

import pytest
from gpubench.report import terminal
from rich.console import Console
from test_groups_told import group
from test_tables import on_console, row, shown, sweep
from whole_rows import changed

from gpubench.basics.words import stem
from gpubench.render.live import PlainView


def test_the_answer_is_the_first_thing_below_the_rows_and_doubts_are_the_last():
    table = shown(sweep())
    below = terminal.text(table).split("\n\n", 2)[2]
    answer, others = below.split("\n\n")
    assert answer == table.answers[0]
    assert others.splitlines() == [*table.remarks, *table.doubts]
    assert table.notes == (*table.answers, *table.remarks, *table.doubts)
    assert table.doubts[0].startswith("! marks rows with doubts")


def test_what_a_group_came_to_is_an_answer_and_what_scaling_columns_mean_is_none():
    assert shown(group("g")).answers[0].startswith("g: by one process each, partly parallel")
    rows = [row(64, epoch_time_s=8.0), row(64, epoch_time_s=2.5, gpus=4, strategy="ddp", config_id="four")]
    table = shown(rows)
    assert not table.answers, "nothing is made up where there is no answer"
    assert table.remarks[0].startswith("Scaling: strong")
    assert terminal.text(table).split("\n\n")[2].startswith("Scaling")


def test_on_a_terminal_the_answer_s_first_statement_is_bold_and_its_doubts_are_not():
    coloured = on_console(sweep(), force_terminal=True, color_system="standard", width=300)
    (line,) = [one for one in coloured.splitlines() if "a larger batch" in one]
    assert line.startswith("\x1b[1mBy one process each, a larger batch")
    assert "falls 7 %.\x1b[0m Every difference is larger than the epochs of one process spread; " in line
    assert not any("\x1b" in one for one in coloured.splitlines() if one.startswith("Doubt "))


@pytest.mark.parametrize("width", [30, 80])
def test_on_a_terminal_one_sees_where_each_note_begins(width):
    table, out = shown(sweep()), io.StringIO()
    terminal.show([table], Console(file=out, force_terminal=True, color_system=None, width=width))
    seen = out.getvalue().splitlines()
    below = seen[seen.index(next(line for line in seen if line.startswith("By one process each,"))) :]
    begun = [line for line in below if line and not line.startswith(" ")]
    assert [note.startswith(line) for note, line in zip(table.notes, begun, strict=True)] == [True] * len(
        begun
    )
    assert " ".join(below).split() == " ".join(table.notes).split()
    assert max(map(len, below)) <= width


@pytest.mark.parametrize(
    ("answer", "first"),
    [
        ("It pays.", "It pays."),
        ("It pays, up to 1.5 s; it rests on doubts.", "It pays, up to 1.5 s"),
        (
            "g (a; b): parallel (98 %; alone 58 %); predicted: 1. More.",
            "g (a; b): parallel (98 %; alone 58 %)",
        ),
        ("It pays. One process.", "It pays."),
        ("an (open one; still.", "an (open one; still."),
    ],
)
def test_the_first_statement_of_an_answer(answer, first):
    assert stem(answer) == (first, answer[len(first) :])


def failing(batch, log, reason="killed", **values):
    return row(batch, "failed", reason=reason, log=log, **values)


def test_what_failed_names_its_log():
    numbers = itertools.count(1)
    rows = [row(8), *(failing(16 << n, f"logs/aa/taa-{next(numbers)}.log") for n in range(3))]
    (several,) = shown(rows).remarks
    assert several == (
        "failed: killed (batch_size=16; batch_size=32; batch_size=64; log: logs/aa/taa-1.log and 2 more)"
    )
    (one,) = shown([row(8), row(16, "timeout", reason="10 min are over", log="logs/bb/tbb-2.log")]).remarks
    assert one == "timeout: 10 min are over (batch_size=16; log: logs/bb/tbb-2.log)"
    (skipped,) = shown([row(8), row(16, "skipped", reason="too large", log="logs/bb/tbb-2.log")]).remarks
    assert skipped == "skipped: too large (batch_size=16)"


def test_each_repeat_that_failed_gives_its_own_reason_and_log():
    repeats = [
        row(8, repeat=0, config_id="c", epoch_time_s=1.0, log="logs/aa/ok-1.log"),
        failing(8, "logs/aa/x-1.log", "killed", repeat=1, config_id="c"),
        failing(8, "logs/aa/y-1.log", "no weights", repeat=2, config_id="c"),
    ]
    assert shown(repeats).remarks == (
        "failed: killed (the only row; log: logs/aa/x-1.log)",
        "failed: no weights (the only row; log: logs/aa/y-1.log)",
    )


def test_while_a_sweep_runs_what_failed_names_its_log_too():
    out = io.StringIO()
    plain = PlainView(Console(file=out))
    bad = failing(8, "out/x/logs/aa/x-1.log", "killed\nmore")
    plain.finished(1, 2, "b=8", bad)
    jobs = [changed(bad, job="1 of 2"), row(8, "skipped", job="2 of 2", log="out/x/logs/aa/y-1.log")]
    plain.finished_group(2, 3, "g", jobs)
    plain.finished(3, 3, "b=8", row(8, "oom", log="logs/aa/x-1.log"))
    assert out.getvalue().splitlines() == [
        "[1/2] b=8  failed  killed  (see out/x/logs/aa/x-1.log)",
        "[2/3] g  failed  job 1 of 2: killed  (see out/x/logs/aa/x-1.log)",
        "[3/3] b=8  out of memory",
    ]


def test_on_a_terminal_no_line_begins_with_the_per_cent_of_a_number_above():
    found = shown(sweep())
    for width in range(20, 120):
        out = io.StringIO()
        terminal.show([found], Console(file=out, force_terminal=True, color_system=None, width=width))
        below = out.getvalue().partition("By one process")[2]
        assert "75 %" in " ".join(below.split())
        assert not any(line.strip().startswith("%") for line in below.splitlines()), width
