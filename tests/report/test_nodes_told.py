"""That rows were measured on several nodes, and whether their intervals hold what these differ by."""

import re

import pytest
from test_tables import row, shown


def runs(batch, *hosts, **values):
    return [
        row(batch, repeat=n, trial_id=f"t{batch}-{n}", host=host, epoch_time_s=2.0 + 0.01 * n, **values)
        for n, host in enumerate(hosts)
    ]


def said(rows):
    return [note for note in shown(rows).remarks if "nodes of one kind" in note]


def test_one_node_is_not_told():
    assert said([*runs(32, "n1", "n1"), *runs(64, "n1", "n1")]) == []


def test_rows_that_were_measured_on_several_hold_what_they_differ_by():
    """Two rows of two processes tell the error of the effect by one degree of freedom."""
    (note,) = said([*runs(32, "n1", "n2"), *runs(64, "n2", "n1")])
    assert note.startswith(
        "Measured on 2 nodes of one kind (n1 and n2): each row was measured on several of them, so that the interval "
        "of its epoch time holds what these differ by, as if each process had had a node of its own. "
        "Against n1, epoch time changes by less than 0.1 % ("
    )
    assert note.endswith(
        "on n2, by the 2 rows that were measured on several of them. Rows of unlike nodes are compared after this is "
        "taken away, with its error in their intervals, so a growth, a speedup or a slowdown need not be that of the "
        "epoch times shown. That it is as much in every row is taken for granted: too few rows tell."
    )


def test_rows_of_one_node_among_others_are_named():
    (note,) = said([*runs(32, "n1", "n2"), *runs(64, "n2", "n2")])
    assert note == (
        "Measured on 2 nodes of one kind (n1 and n2): what nodes differ by is in no interval of an epoch time of one "
        "node alone (batch_size=64)."
    ), "one process on each tells no error of the effect"


def test_of_many_nodes_the_first_are_named():
    rows = [*runs(32, "n1", "n2", "n3"), *runs(64, "n4", "n5", "n6")]
    (note,) = said(rows)
    assert note.startswith("Measured on 6 nodes of one kind (n1, n2, n3, n4 and others): each row")
    assert note.endswith(
        "No row connects n1, n2 and n3 and n4, n5 and n6, so nobody knows what these differ by, and comparisons "
        "between them are open: gpubench sweep … --join --reference measures one row on each."
    )


def test_nodes_that_no_row_connects_leave_comparisons_open_and_the_answer_says_why():
    rows = [*runs(32, "n1", "n1", "n1"), *runs(64, "n2", "n2", "n2")]
    table = shown(rows)
    assert said(rows) == [
        "Measured on 2 nodes of one kind (n1 and n2): what nodes differ by is in no interval of an epoch time of one "
        "node alone (all rows). No row connects n1 and n2, so nobody knows what these differ by, and comparisons "
        "between them are open: gpubench sweep … --join --reference measures one row on each."
    ]
    assert table.answers[0].startswith("Open whether 64 is faster than 32.")
    assert (
        "It is not known what nodes differ by: too few processes of one configuration ran on those of both rows; "
        "gpubench sweep … --join --reference measures one on each"
    ) in table.answers[0]
    (_, second) = table.rows
    assert second.epoch_time_growth_pct == pytest.approx(0.0), "as measured: nothing better is known"
    assert second.epoch_time_growth_high_pct is None


def test_a_growth_between_nodes_is_without_what_they_differ_by():
    """n2 takes twice as long; 64 takes a tenth longer than 32."""
    wide = {"images_per_epoch": 100}
    reference = [
        row(
            batch,
            trial_id=f"r{batch}{n}{host}",
            host=host,
            round=n,
            repeat=repeat,
            epoch_time_s=scale * (1 + n / 1000),
            **wide,
        )
        for batch in (8, 16)
        for n in (1, 2, 3)
        for repeat, (host, scale) in enumerate((("n1", 3.0), ("n2", 6.0)))
    ]
    others = [
        row(batch, trial_id=f"t{batch}", host=host, round=n, epoch_time_s=time * (1 + n / 1000), **wide)
        for batch, host, time in ((32, "n1", 2.0), (64, "n2", 4.4))
        for n in (1, 2, 3)
    ]
    rows = [*reference, *others]
    *_, last = shown(rows).rows
    assert last.epoch_time_growth_pct == pytest.approx(10)
    assert last.epoch_time_growth_low_pct < 10 < last.epoch_time_growth_high_pct < 11
    assert last.epoch_time_s == pytest.approx(4.4088, rel=1e-4), "as measured"
    (note,) = said(rows)
    assert re.search(
        r"Against n1, epoch time grows 100 % \(\+99\.\d to \+100\.\d %\) on n2, by the 2 rows that", note
    )
    assert note.endswith("From row to row it differs by no more than chance explains.")
    (alone,) = said([one for one in rows if one.batch_size != 8])
    assert "epoch time grows 100 % (" in alone
    assert "by the only row that was measured" in alone
    assert "One row alone tells that. Others may differ by something else" in alone
    assert shown([one for one in rows if one.batch_size != 8]).rows[-1].epoch_time_growth_high_pct > 100


def test_that_nodes_differ_by_unlike_much_is_said():
    """16 takes as long on both nodes, 32 twice as long on the second."""
    rows = [
        row(
            batch, trial_id=f"t{batch}", host=host, round=n, repeat=repeat, epoch_time_s=time * (1 + n / 1000)
        )
        for batch, scale in ((16, 1.0), (32, 2.0), (64, 1.4))
        for n in (1, 2, 3)
        for repeat, (host, time) in enumerate((("n1", 1.0), ("n2", scale)))
    ]
    (note,) = said(rows)
    assert "From row to row it seems to differ by more than chance, by a standard deviation of 2" in note
    assert note.endswith("which is in these intervals, too.")


def test_another_kind_of_machine_is_no_other_node_of_this_one():
    cpu = {"device": "cpu"}
    assert (
        said([*runs(32, "n1", "n1", cpu_name="A", **cpu), *runs(64, "n2", "n2", cpu_name="B", **cpu)]) == []
    )


def test_trials_over_several_nodes_are_no_further_nodes_of_those_over_one():
    """Each row's nodes are the same in all of its rounds, so nothing stands between them but the nodes of its own."""
    assert said([*runs(32, "n1", "n1"), *runs(64, "n1 + n2", "n1 + n2")]) == []


def test_of_trials_over_several_nodes_sets_of_these_are_told_and_no_reference_is_advised():
    rows = [*runs(32, "n1 + n2", "n1 + n2"), *runs(64, "n1 + n3", "n1 + n3")]
    (note,) = said(rows)
    assert note.startswith("Measured on 2 sets of 2 nodes of one kind (n1 + n2 and n1 + n3): ")
    assert note.endswith(
        "No row connects n1 + n2 and n1 + n3, so nobody knows what these differ by, and comparisons between them are "
        "open."
    )


def test_rows_without_a_host_are_of_a_node_that_is_not_on_record():
    rows = [*runs(32, "n1", "n1"), *runs(64, "n2", "n2"), *runs(128, None, None)]
    (note,) = said(rows)
    assert "No row connects a node that is not on record, n1 and n2, so nobody knows" in note
