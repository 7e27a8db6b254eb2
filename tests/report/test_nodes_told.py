"""That rows were measured on several nodes, and whether their intervals hold what these differ by."""

import pytest
from test_tables import row, shown

UNLIKE = (
    " Rows of unlike nodes are compared by the rounds that both were measured in on the same node; where these are "
    "fewer than three, nobody knows what the nodes differ by, and the comparison is open."
)


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
    assert said([*runs(32, "n1", "n2"), *runs(64, "n2", "n1")]) == [
        "Measured on 2 nodes of one kind (n1 and n2): each row was measured on several of them, so that the interval "
        "of its epoch time holds what these differ by, as if each process had had a node of its own."
    ]


def test_rows_of_one_node_among_others_are_named():
    (note,) = said([*runs(32, "n1", "n2"), *runs(64, "n2", "n2")])
    assert note == (
        "Measured on 2 nodes of one kind (n1 and n2): what nodes differ by is in no interval of an epoch time of one "
        f"node alone (batch_size=64).{UNLIKE}"
    )


def test_of_many_nodes_the_first_are_named():
    (note,) = said([*runs(32, "n1", "n2", "n3"), *runs(64, "n4", "n5", "n6")])
    assert note.startswith("Measured on 6 nodes of one kind (n1, n2, n3, n4 and others): each row")


def test_unlike_nodes_leave_comparisons_open_and_the_answer_says_why():
    rows = [*runs(32, "n1", "n1", "n1"), *runs(64, "n2", "n2", "n2")]
    table = shown(rows)
    assert said(rows) == [
        "Measured on 2 nodes of one kind (n1 and n2): what nodes differ by is in no interval of an epoch time of one "
        f"node alone (all rows).{UNLIKE}"
    ]
    assert table.answers[0].startswith("Open whether 64 is faster than 32.")
    assert (
        "It is not known what nodes differ by, and these rows were measured on unlike ones; measure them on one node, "
        "or in three rounds or more in common on the same nodes"
    ) in table.answers[0]
    (_, second) = table.rows
    assert second.epoch_time_growth_pct == pytest.approx(0.0), "as measured: nothing better is known"
    assert second.epoch_time_growth_high_pct is None


def test_another_kind_of_machine_is_no_other_node_of_this_one():
    cpu = {"device": "cpu"}
    assert (
        said([*runs(32, "n1", "n1", cpu_name="A", **cpu), *runs(64, "n2", "n2", cpu_name="B", **cpu)]) == []
    )


def test_trials_over_several_nodes_are_no_further_nodes_of_those_over_one():
    """Each row's nodes are the same in all of its rounds, so nothing stands between them but the nodes of its own."""
    assert said([*runs(32, "n1", "n1"), *runs(64, "n1 + n2", "n1 + n2")]) == []


def test_of_trials_over_several_nodes_sets_of_these_are_told():
    (note,) = said([*runs(32, "n1 + n2", "n1 + n2"), *runs(64, "n1 + n3", "n1 + n3")])
    assert note.startswith("Measured on 2 sets of 2 nodes of one kind (n1 + n2 and n1 + n3): ")
