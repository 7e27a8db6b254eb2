"""How far apart the times behind an epoch time lie, in its cell and in the note below."""

import pytest
from gpubench.analysis.repeats import merge_repeats
from gpubench.report.spread import Spread, spread
from test_tables import cells, row, shown


def repeats(*times, **values):
    return [row(64, epoch_time_s=t, repeat=n, trial_id=f"t{n}", **values) for n, t in enumerate(times)]


def said(table):
    return [note for note in table.remarks if note.startswith(("±", "In parentheses"))]


def test_two_processes_show_their_interval_those_of_steps_too():
    """Around sqrt(56) = 7.483 the logarithm reaches 12.706 × ln(8/7) / 2 = 0.848 far: a factor of 2.336."""
    table = shown(repeats(7.0, 8.0, epoch_time_source="extrapolated"))
    assert cells(table, "epoch_time_s") == ["~7.48 (3.20–17.48)"]
    assert said(table) == [
        "In parentheses: the 95 % interval over processes, one for each of n, where it is wide."
    ]
    assert cells(shown(repeats(7.5)), "epoch_time_s") == ["7.5"]


def test_three_processes_show_plus_minus_unless_the_interval_is_wide():
    """The logarithms of 2, 2.2 and 2.4 have a standard error of 0.05265; times 4.303 that is 0.2265."""
    near = shown(repeats(2.0, 2.2, 2.4))
    assert cells(near, "epoch_time_s") == ["2.19 ± 0.50"]
    assert said(near) == ["± is half the 95 % interval over processes, one for each of n."]
    # 5 processes: a standard error of 0.2356, times 2.776 that is 0.6541; a factor of 1.923 around 2.480.
    wide = shown(repeats(1.2, 1.9, 2.5, 3.6, 4.57))
    assert cells(wide, "epoch_time_s") == ["2.48 (1.29–4.77)"]
    assert said(wide) == [
        "In parentheses: the 95 % interval over processes, one for each of n, where it is wide."
    ]


def test_an_interval_wider_than_the_time_itself_is_no_number_of_seconds():
    """Around 2.526 a factor of 4.610: from 0.55 to 11.65, half of which is 5.55. Of two such the end is in weeks."""
    table = shown(repeats(0.5, 1.3, 2.17, 8.1, 9.0))
    assert cells(table, "epoch_time_s") == ["2.53 ± >100 %"]
    assert said(table) == [
        "± >100 %: half the 95 % interval over processes, one for each of n, is longer than the time itself; "
        "further rounds narrow it."
    ]
    assert cells(shown(repeats(1.0, 4.0)), "epoch_time_s") == ["2 ± >100 %"]
    (one,) = table.rows
    assert one.epoch_time_low_s == pytest.approx(0.548, abs=0.001), "CSVs keep the ends"
    assert one.epoch_time_high_s == pytest.approx(11.64, abs=0.01)


def test_an_extrapolated_time_is_shown_as_finely_as_what_is_known_of_it():
    """Of three processes, 1,000 s apart, and of one alone."""
    several = repeats(28957.45, 29957.3, 31000.1, epoch_time_source="extrapolated")
    assert cells(shown(several), "epoch_time_s") == ["~29,960 ± 2,540"]
    assert cells(shown(several[:1]), "epoch_time_s") == ["~28,960"]


def of_one_process(batch, *times, iqr, time):
    return row(
        batch, epoch_time_s=time, epoch_time_iqr_s=iqr, epochs_measured=len(times), epoch_times_s=list(times)
    )


def test_epochs_of_one_process_from_three_on():
    table = shown([of_one_process(64, 1.0, 1.2, iqr=0.1, time=1.1)])
    assert (cells(table, "epoch_time_s"), said(table)) == (["1.1"], [])
    wide = shown([of_one_process(64, 1.0, 2.0, 9.0, iqr=4.0, time=2.0)])
    assert cells(wide, "epoch_time_s") == ["2.0 (1.5–5.5)"]
    assert "over the measured epochs of one process" in said(wide)[0]
    of_old = shown([row(64, epoch_time_s=2.0, epoch_time_iqr_s=4.0, epochs_measured=3)])
    assert cells(of_old, "epoch_time_s") == ["2 ± 2"], "where the epochs are not known"


def test_where_one_row_has_repeats_and_another_has_not_the_note_says_which_is_which():
    one = of_one_process(128, 1.0, 1.1, 1.2, iqr=0.1, time=1.1)
    assert said(shown([*repeats(2.0, 2.2, 2.4), one])) == [
        "± is half the 95 % interval over processes, one for each of n.",
        "± is half the interquartile range over the measured epochs of one process, where n is 1.",
    ]


def merged(rows):
    (one,) = merge_repeats(rows)
    return spread(one)


def test_the_ends_of_a_spread():
    both = merged(repeats(8.0, 7.0))
    assert (both.kind, both.repeats) == ("interval", True)
    assert (both.low, both.high) == (pytest.approx(3.2038, rel=1e-4), pytest.approx(17.479, rel=1e-4))
    half = merged(repeats(2.0, 2.2, 2.4))
    assert (half.kind, half.repeats) == ("half", True)
    assert (half.low, half.high) == (pytest.approx(-0.5013, abs=1e-4), pytest.approx(0.5013, abs=1e-4))
    wide = merged([of_one_process(64, 1.0, 2.0, 9.0, iqr=4.0, time=2.0)])
    assert wide == Spread(kind="quartiles", repeats=False, low=1.5, high=5.5)


def test_as_wide_as_the_time_is_still_plus_minus():
    assert merged([of_one_process(64, 1.0, 2.0, 5.0, iqr=2.0, time=2.0)]).kind == "half"


def test_without_a_time_or_its_spread_there_is_none():
    assert merged([row(64, epoch_time_s=None, epoch_time_iqr_s=0.1, epochs_measured=5)]) is None
    assert merged([row(64, epoch_time_s=2.0, epoch_time_iqr_s=None, epochs_measured=5)]) is None
    assert merged([row(64, epoch_time_s=2.0, epoch_time_iqr_s=0.1, epochs_measured=None)]) is None


def test_a_repeat_without_an_epoch_time_is_none_of_three():
    two = merged(repeats(2.0, 2.1, None))  # sqrt(4.2) = 2.0494, and exp(12.706 × ln(1.05) / 2) = 1.3634
    assert (two.low, two.high) == (pytest.approx(1.5032, abs=1e-4), pytest.approx(2.7941, abs=1e-4))
    assert merged(repeats(2.0, None, None)) is None
