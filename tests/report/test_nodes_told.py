"""That rows were measured on several nodes, and whether their intervals hold what these differ by."""

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
    assert said([*runs(32, "n1", "n2"), *runs(64, "n2", "n1")]) == [
        "Measured on 2 nodes of one kind (n1 and n2): each row was measured on several of them, so that its interval "
        "holds what they differ by."
    ]


def test_rows_of_one_node_among_others_are_named():
    assert said([*runs(32, "n1", "n2"), *runs(64, "n2", "n2")]) == [
        "Measured on 2 nodes of one kind (n1 and n2): what nodes differ by is in no interval of a row of one node "
        "alone (batch_size=64)."
    ]


def test_of_many_nodes_the_first_are_named():
    rows = [*runs(32, "n1", "n2", "n3"), *runs(64, "n4", "n5", "n6")]
    (note,) = said(rows)
    assert note.startswith("Measured on 6 nodes of one kind (n1, n2, n3, n4 and others): each row")


def test_another_kind_of_machine_is_no_other_node_of_this_one():
    cpu = {"device": "cpu"}
    assert (
        said([*runs(32, "n1", "n1", cpu_name="A", **cpu), *runs(64, "n2", "n2", cpu_name="B", **cpu)]) == []
    )
