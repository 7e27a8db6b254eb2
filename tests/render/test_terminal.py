"""Reports as text: what is said is test_words.py's, here is where it stands."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
import reports
from rich.console import Console

from gpubench.core.report import Cell, ReportRow, ReportWarning, RowGroup
from gpubench.render import terminal, words


def show(report, width=80, *, is_why=False):
    console = Console(file=io.StringIO(), force_terminal=True, width=width, color_system=None)
    terminal.print_reports([report], console, is_why=is_why)
    return console.file.getvalue()


@pytest.mark.parametrize("name", reports.REPORTS)
def test_a_pipe_gets_ascii_in_80_columns_with_the_words_of_a_terminal(name):
    report = reports.REPORTS[name]()
    plain, rich = terminal.format_text([report]), show(report)
    assert plain.isascii()
    assert max(map(len, [*plain.splitlines(), *rich.splitlines()])) <= 80
    below = [line.text for line in terminal.choose_sentences_that_fit(report)]
    for text in (plain, rich):
        said = " ".join(text.split())
        assert all(
            " ".join(line.translate(terminal.TO_ASCII).split()) in said.translate(terminal.TO_ASCII)
            for line in below
        )


@pytest.mark.parametrize("name", reports.REPORTS)
def test_three_lines_above_a_table_and_ten_below(name):
    lines = show(reports.REPORTS[name]()).splitlines()
    blank = [place for place, line in enumerate(lines) if not line.strip()]
    assert blank[0] <= terminal.HEADING_LINES
    assert len(lines) - blank[-1] - 1 <= terminal.LINES_BELOW


def test_the_whole_of_one_report_on_a_terminal():
    assert show(reports.one_process()) == (
        "mobilenet_v2-4gpu · 4 × H200, 64 CPUs · 1 process a row · mobilenet_v2 · fp32 ·\n"
        "GPU memory capped at 12,288 MiB · 10,240 images\n"
        "Where does a larger batch stop paying?\n"
        "\n"
        "batch  images/s                    GiB\n"
        "──────────────────────────────────────\n"
        "ddp\n"
        "   16     1,261  ███▎              2.0\n"
        "   32     2,522  ██████▋           2.3\n"
        "   64     4,191  ███████████       3.0\n"
        "  128     6,097  ████████████████  4.3  ◀\n"
        "  256     5,790  ███████████████▎  7.0\n"
        "  512  × out of memory: the cap is 12 GiB; 1,024 and 2,048 skipped\n"
        "dp !\n"
        "   16       239  ▋                 2.0\n"
        "   32       448  █▏                2.3\n"
        "   64       941  ██▌               3.0\n"
        "  128     1,739  ████▋             4.3\n"
        "  256     3,108  ████████▏         7.0\n"
        "  512  × out of memory: the cap is 12 GiB; 1,024 and 2,048 skipped\n"
        "!: warned of, --why\n"
        "\n"
        "Take batch 128 with ddp: 6,097 images/s, 4.3 GiB. 256 may be as fast. 512 ran\n"
        "  out of memory.\n"
        "Memory × time is least at batch 128 (32 to 128) for ddp (likely).\n"
        "ddp is 1.86 to 5.62 times as fast as dp at every batch size (likely).\n"
        "! One process a row, so nothing is sure: such rows were seen to differ by up to\n"
        "  40 % (--rounds 3).\n"
        "! In 6 of 12 rows DataParallel copies the model in every step: prefer ddp.\n"
        "More: --why, --columns all\n"
    )


def test_series_side_by_side_have_a_line_of_their_own_with_intervals_and_marks():
    lines = terminal.format_text([reports.batch_sizes()]).splitlines()
    assert lines[4:9] == [
        "       1 GPU             2 GPUs (ddp)      2 GPUs (dp)",
        "batch     epoch s   GiB     epoch s   GiB     epoch s   GiB",
        "-----------------------------------------------------------",
        "   16  4.90 +-38%   2.1   6.27 +-5%   2.3  27.9 +-25%   2.2  !",
        "   32   3.07 +-2%   3.5  3.25 +-34%   3.0  14.4 +-19%   2.9",
    ]
    assert lines[10].endswith("<")


def test_columns_for_which_there_is_no_room_follow_behind_the_first_one_again():
    lines = terminal.format_text([replace(reports.pairs(), findings=())]).splitlines()
    headings = [line.split()[0] for line in lines if line.startswith("jobs")]
    assert headings[0] == "jobs"
    wide = reports.batch_sizes()
    wide = replace(
        wide,
        columns=wide.columns * 2,
        groups=tuple(
            RowGroup(head={}, rows=tuple(replace(row, cells=row.cells * 2) for row in group.rows))
            for group in wide.groups
        ),
    )
    lines = terminal.format_text([wide]).splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split().count("GiB") for line in lines if line.startswith("batch")] == [3, 3]


def test_bars_take_what_is_left_of_the_line_and_go_where_that_is_little():
    def draw(spare):
        text = show(reports.not_sure(), 25 + spare)
        return next(line for line in text.splitlines() if line.startswith("  128")).count("█")

    assert [draw(spare) for spare in (20, 16, 10, 6, 5)] == [16, 16, 10, 6, 0]


def test_reports_stand_apart():
    console = Console(file=io.StringIO(), force_terminal=True, width=80, color_system=None)
    terminal.print_reports([reports.not_sure(), reports.not_sure()], console)
    once = show(reports.not_sure())
    assert console.file.getvalue() == f"{once}\n{once}"


def test_long_names_fold_above_the_row_that_they_name():
    lines = terminal.format_text([reports.pairs()]).splitlines()
    place = lines.index("mobilenet_v2 16 &")
    assert lines[place + 1].split("  ")[0] == "resnet50 64"
    assert lines[place + 1].endswith(" 1.99")


@pytest.mark.parametrize(
    ("name", "above"),
    [
        ("two jobs on one GPU (crop-resize)", "two jobs on one GPU"),
        ("mobilenet_v2-separate-gpus-together", "mobilenet_v2-separate-"),
    ],
)
def test_names_break_at_hyphens_only_where_a_word_is_too_long(name, above):
    report = reports.pairs()
    finding = report.findings[0]
    group = replace(finding.groups[1], name=name)
    report = replace(
        report, findings=(replace(finding, groups=(finding.groups[0], group, finding.groups[2])),)
    )
    assert above in terminal.format_text([report]).splitlines()


def test_an_ending_takes_one_line_whatever_its_reason():
    report = reports.not_sure()
    row = ReportRow(
        labels=(0,),
        cells=(Cell(value=8), Cell(value=None), Cell(value=None)),
        status="failed",
        reason="\x1b[31mRuntimeError: [bold]" + "x" * 300,
    )
    report = replace(report, groups=(RowGroup(head={}, rows=(row,)),))
    for text in (terminal.format_text([report]), show(report)):
        (line,) = [line for line in text.splitlines() if "failed" in line]
        assert line.strip().startswith("8  ")
        assert "RuntimeError: [bold]xxx" in line
        assert line.endswith("x...")
        assert len(line) <= 80
        assert "\x1b" not in text


def test_a_series_that_ran_out_of_memory_says_so_in_its_cell():
    report = reports.batch_sizes()
    row = report.groups[0].rows[5]
    cells = (row.cells[0], Cell(value=None, status="oom"), Cell(value=None), *row.cells[3:])
    report = replace(report, groups=(RowGroup(head={}, rows=(replace(row, cells=cells),)),))
    (line,) = [line for line in terminal.format_text([report]).splitlines() if line.startswith("  512")]
    assert line.split()[:6] == ["512", "out", "of", "memory", "2.03", "+-7%"]


def test_where_room_is_short_details_of_findings_go_first_and_the_answer_never():
    report = reports.batch_sizes()
    chosen = terminal.choose_sentences_that_fit(report)
    assert [line.kind for line in chosen] == ["answer", "finding", "finding", "warning", "note"]
    assert chosen[-1].text == words.CUT
    assert "Memory" not in "".join(line.text for line in chosen)
    many = replace(report, warnings=tuple(ReportWarning(code=f"code-{n}", rows=(1,)) for n in range(30)))
    assert terminal.choose_sentences_that_fit(many)[0].kind == "answer"
    assert len(terminal.choose_sentences_that_fit(many)) == 7
    assert len(terminal.choose_sentences_that_fit(many, is_all=True)) == 34


def test_why_adds_every_claim_with_its_interval_p_value_and_verdict():
    text = terminal.format_text([reports.batch_sizes()], is_why=True)
    assert "Memory x time is least" in text
    lines = text.splitlines()
    place = lines.index("What do more devices bring?")
    assert [re.split(" {2,}", line) for line in lines[place + 1 : place + 4]] == [
        [*words.WHY_HEADINGS],
        ["1 GPU -> 2 GPUs (ddp), batch 16", "images/s", "0.78", "0.70-0.86", "0.010", "unknown"],
        ["1 GPU -> 2 GPUs (ddp), batch 32", "images/s", "0.94", "0.85-1.03", "0.010", "unknown"],
    ]
    assert len({len(line) for line in lines[place + 1 : place + 4]}) == 1
    open_report = reports.not_sure()
    assert words.format_remedy(open_report.findings[0]) in terminal.format_text([open_report], is_why=True)
    assert words.HINT not in show(reports.one_process(), is_why=True)


@pytest.mark.parametrize(
    ("share", "bar"), [(1.0, "████"), (0.5, "██"), (0.28, "█▏"), (0.001, "▏"), (0.0, ""), (1.7, "████")]
)
def test_a_bar_is_as_long_as_its_share_and_seen_where_there_is_something(share, bar):
    assert terminal.draw_bar(share, 4) == bar


def test_only_decided_comparisons_have_a_colour():
    console = Console(file=io.StringIO(), force_terminal=True, width=80, color_system="standard")
    terminal.print_reports([reports.network_sizes()], console)
    text = console.file.getvalue()
    assert "\x1b[31m  0.77 (0.70–0.85)" in text
    assert "\x1b[32m  1.79 (1.63–1.97)" in text
    assert "  1.17 (1.06–1.29) ?\n" in text
    assert "\x1b[33m! In 1 of 10 rows" in text


def test_a_report_without_trials():
    assert terminal.format_text([]) == "No trials in this folder.\n"


@pytest.mark.parametrize("length", range(60, 75))
def test_lines_are_folded_as_they_are_written(length):
    report = reports.batch_sizes()
    report = replace(report, question=f"{'x' * length} ± … ≥ what of it?", name=f"{'n' * (length - 40)} ≤ …")
    assert max(map(len, terminal.format_text([report]).splitlines())) <= 80


def test_a_long_question_leaves_one_line_of_facts_which_names_what_was_measured_on_what():
    """The experiment's name and the number of processes go first; where folders are read together, the name stays."""
    question = "On one GPU and on two, where does a larger batch stop paying, and which is faster?"
    report = replace(reports.batch_sizes(), question=question)
    facts = show(report).splitlines()[0]
    assert facts.split(" · ") == [
        "2 × H200, 32 CPUs", "mobilenet_v2", "224 px", "crop-resize", "fp32", "5,120 images",
    ]  # fmt: skip
    assert show(replace(report, name="folder: sizes")).startswith("folder: sizes · ")
