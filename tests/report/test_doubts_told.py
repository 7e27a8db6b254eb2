"""The sentences on doubts: no figure is lost, the worst stands first, rows are named."""

import pytest
from test_tables import cells, row, shown


def doubted(batch, text, code="other-load", **values):
    return row(batch, doubts=code, doubt_texts={code: text}, **values)


def told(*rows):
    table = shown([*rows, *(row(5000 + n) for n in range(2))])
    assert table.doubts[0] == "! marks rows with doubts, which follow."
    return table.doubts[1:]


def used(pct):
    return f"other work used {pct} % of the trial's CPUs meanwhile; run it again on a quiet host"


def test_the_range_of_a_figure_stands_with_the_worst_first_and_its_row():
    (note,) = told(*(doubted(16 << n, used(pct)) for n, pct in enumerate((12, 67, 40, 12))))
    assert note == (
        "Doubt other-load: other work used up to 67 %, at least 12 % of the trial's CPUs meanwhile; run it again on a "
        "quiet host (in 4 of 6 rows; worst: batch_size=32)"
    )
    (few,) = told(doubted(16, used(12)), doubted(32, used(67)), doubted(64, used(12)))
    assert few.endswith("(worst: batch_size=32; also in batch_size=16; batch_size=64)")
    every = shown([doubted(16, used(12)), doubted(32, used(67))]).doubts[-1]
    assert every.endswith("(all rows; worst: batch_size=32)")


def test_equal_sentences_are_one_with_its_rows():
    assert told(doubted(16, used(12)), doubted(32, used(12))) == (
        f"Doubt other-load: {used(12)} (batch_size=16; batch_size=32)",
    )
    assert cells(shown([doubted(16, used(12)), row(32)]), "status") == ["ok !", "ok"]
    assert shown([row(64)]).doubts == ()


@pytest.mark.parametrize(
    ("code", "text", "mild", "bad", "range_"),
    [
        ("short-epochs", "times rest on {} s: measure longer", "0.9", "0.015", "0.015 to 0.9 s"),
        ("short-window", "measured over {} s: the counter moves every 0.1 s", "9.1", "2.0", "2.0 to 9.1 s"),
        ("slow-cpu", "the CPU ran at {} % of its fastest", "84", "55", "55 to 84 %"),
        ("faster-together", "it took {} times as long as alone", "0.94", "0.41", "0.41 to 0.94 times"),
        ("low-clock", "the GPU ran at {} of 1980 MHz", "1500", "345", "345 to 1500 of 1980 MHz"),
        (
            "near-limit",
            "{} of 12,288 MiB were used",
            "11700",
            "12280",
            "up to 12280, at least 11700 of 12,288 MiB",
        ),
        ("spread", "epoch times spread by {} % of their median", "6", "16", "by up to 16 %, at least 6 % of"),
        ("short-epochs", "times rest on {} s: measure longer", "0.5", "1e-05", "1e-05 to 0.5 s"),
        ("desktop", "a window held {} MiB", "90", "1,614", "held up to 1,614 MiB, at least 90 MiB"),
        (
            "energy",
            "the counter says 1000 J, sampled power {} J",
            "990",
            "1100",
            "up to 1100 J, at least 990 J",
        ),
        ("energy", "the counter says 1000 J, sampled power {} J", "1100", "700", "700 to 1100 J"),
    ],
)
def test_which_end_is_the_worst_is_known_of_each_doubt(code, text, mild, bad, range_):
    (note,) = told(doubted(16, text.format(mild), code), doubted(32, text.format(bad), code))
    assert range_ in note
    assert "worst: batch_size=32" in note


def test_where_several_figures_differ_the_worst_row_is_quoted_whole():
    def hindered(time, jobs):
        return f"it took {time} times as long as alone, where {jobs} jobs would take {jobs}"

    (note,) = told(
        doubted(16, hindered("6.00", 4), "beyond-turns"), doubted(32, hindered("5.20", 2), "beyond-turns")
    )
    assert note == (
        "Doubt beyond-turns: it took 5.20 times as long as alone, where 2 jobs would take 2 "
        "(worst, with these figures: batch_size=32; also in batch_size=16)"
    )


def test_other_words_are_another_sentence_and_names_are_no_figures():
    first = "another process used the GPU: process {} (python) held 614 MiB on GPU {}; run again"
    notes = told(
        *(doubted(16 << n, first.format(*who), "stranger") for n, who in enumerate(((7, 0), (9, 0), (7, 1))))
    )
    assert [note.partition("(batch")[0].strip() for note in notes] == [
        f"Doubt stranger: {first.format(*who)}" for who in ((7, 0), (9, 0), (7, 1))
    ]
    cold = "nothing was warmed up: use --set warmup_epochs=1"
    (without, drift) = told(doubted(16, cold), doubted(32, cold.replace("=1", "=2")))
    assert without.endswith("=1 (batch_size=16)")
    assert drift.endswith("=2 (batch_size=32)")


def test_no_repeat_s_figure_is_lost():
    repeats = [
        doubted(16, used(pct), repeat=n, config_id="c", epoch_time_s=1.0) for n, pct in enumerate((67, 5, 12))
    ]
    (note,) = told(*repeats)
    assert "up to 67 %, at least 5 %" in note
    assert note.endswith("(batch_size=16)")


def test_repeats_that_lie_apart_do_not_hide_how_far_epochs_of_one_of_them_do():
    text = "epoch times spread by 8 % of their median"
    first = doubted(16, text, "spread", config_id="c", epoch_time_s=1.0)
    notes = told(first, row(16, config_id="c", epoch_time_s=2.0, repeat=1))
    assert notes[0] == f"Doubt spread: {text} (batch_size=16)"
    assert notes[1].startswith("Doubt spread: epoch times of its processes lie more than 5 %")


def test_a_doubt_without_a_sentence_keeps_its_code():
    assert told(row(16, doubts="odd")) == ("Doubt odd (batch_size=16)",)


def test_that_jobs_hinder_each_other_is_the_first_doubt():
    texts = {"beyond-turns": "it took 3.35 times as long as alone", "other-load": used(12)}
    found = told(row(16, doubts="beyond-turns+other-load", doubt_texts=texts), doubted(8, used(12)))
    assert [note.split(":")[0] for note in found] == ["Doubt beyond-turns", "Doubt other-load"]
    found = told(doubted(8, used(12)), row(16, doubts="beyond-turns+other-load", doubt_texts=texts))
    assert [note.split(":")[0] for note in found] == ["Doubt beyond-turns", "Doubt other-load"]
