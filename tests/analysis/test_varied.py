"""Which fields become columns."""

from gpubench.analysis.varied import BEFORE, constant, label, same_in_all, varied
from whole_rows import row_with

from gpubench.schema.row import Row


def rows(*each):
    base = {"model": "lenet", "optimizer": "sgd", "lr": 0.05}
    return [row_with(**(base | one)) for one in each]


def test_what_differs_is_varied_in_the_order_of_the_columns():
    found = rows({"batch_size": 16, "variant": "cached"}, {"batch_size": 32, "variant": "synthetic"})
    assert varied(found) == ("variant", "batch_size")
    alike = constant(found)
    assert {n: alike[n] for n in alike if n not in BEFORE} == {
        "model": "lenet",
        "optimizer": "sgd",
        "lr": 0.05,
    }
    assert (alike["breakdown"], alike["cpu_sharing"]) == (False, "shared"), "rows of an earlier version"


def test_values_that_follow_another_field_are_no_columns_unless_asked_for():
    found = rows({"gpus": 1, "workers": 8, "gpu_ids": [0]}, {"gpus": 2, "workers": 16, "gpu_ids": [0, 1]})
    assert varied(found) == ("gpus",)
    assert varied(found, [["gpus", "workers"]]) == ("gpus", "workers")


def test_a_follower_with_a_life_of_its_own_is_a_column():
    found = rows({"gpus": 1, "workers": 8}, {"gpus": 1, "workers": 16})
    assert varied(found) == ("workers",)
    rates = rows({"batch_size": 16, "lr": 0.1}, {"batch_size": 32, "lr": 0.2})
    assert varied(rates) == ("batch_size", "lr")


def test_the_seed_and_facts_of_the_model_never_are():
    found = rows({"seed": 0, "params_m": 1.0, "model": "mlp"}, {"seed": 1, "params_m": 2.0})
    assert varied(found) == ("model",)


def test_a_planned_value_that_is_not_known_yet_is_not_another_value():
    assert varied(rows({"input_size": None}, {"input_size": 224})) == ()
    assert varied(rows({"steps": None}, {"steps": 50})) == ("steps",)


def test_label():
    assert label(
        row_with(batch_size=64, strategy="ddp", gpu_ids=(0, 1), lr=None), ["batch_size", "gpu_ids", "lr"]
    ) == ("batch_size=64 gpu_ids=0+1")


def test_gpu_ids_follow_their_number_only_where_they_are_the_first_ones():
    first = rows({"gpus": 1, "gpu_ids": [0]}, {"gpus": 2, "gpu_ids": [0, 1]})
    assert varied(first) == ("gpus",)
    own = rows({"gpus": 1, "gpu_ids": [0]}, {"gpus": 2, "gpu_ids": [1, 2]})
    assert varied(own) == ("gpus", "gpu_ids")


def test_copies_follow_the_group_that_is_named_after_them():
    found = rows({"copies": 1}, {"copies": 2, "group": "2 copies"}, {"copies": 3, "group": "3 copies"})
    assert varied(found) == ()
    assert varied(found, [["copies"]]) == ("copies",)
    assert varied(rows({"copies": 1, "group": "g"}, {"copies": 2, "group": "g"})) == ("copies",)


def test_cpus_that_rows_had_more_of_are_a_column_though_the_devices_determine_them():
    found = rows({"gpus": 1, "cpus": 8}, {"gpus": 2, "cpus": 16})
    assert varied(found) == ("gpus", "cpus")
    jobs = rows(
        {"cpus": 16}, {"cpus": 8, "group": "g", "job": "1 of 2"}, {"cpus": 8, "group": "g", "job": "2 of 2"}
    )
    assert varied(jobs) == (), "the jobs of a group share them"


def test_loaders_are_a_column_where_only_some_trials_left_them_to_the_machine():
    auto, four = {"asked": {"workers": None}}, {"asked": {"workers": 4}}
    one, two = {"gpus": 1, "workers": 8} | auto, {"gpus": 2, "workers": 16} | auto
    assert varied(rows(one, two)) == ("gpus",)
    assert varied(rows({"gpus": 1, "workers": 4} | four, two)) == ("gpus", "workers")


def test_a_switch_is_told_as_one_would_ask_for_it():
    assert label(row_with(cudnn_benchmark=True, batch_size=16), ("batch_size", "cudnn_benchmark")) == (
        "batch_size=16 cudnn_benchmark=true"
    )
    assert label(row_with(cudnn_benchmark=False), ("cudnn_benchmark",)) == "cudnn_benchmark=false"


def test_what_is_the_same_in_all_rows_is_so_whatever_row_differs_first():
    """Lists that are equal are alike, not known is a value of its own, and a field that differs in one row alone is not
    the same, wherever that row stands."""
    alike = {"batch_size": 4, "workers": None, "lr": 0.1, "gpu_ids": [0]}
    others = ({"lr": 0.2}, {"workers": 0}, {"gpu_ids": [0]}, {"batch_size": 8})
    rows = [row_with(**alike | other) for other in others]
    for first in range(len(rows)):
        turned = [*rows[first:], *rows[:first]]
        assert {*alike} & same_in_all(turned) == {"gpu_ids"}
        assert {*alike} & same_in_all(turned[:1]) == {*alike}
    assert same_in_all([]) == frozenset()
    assert same_in_all([rows[0], Row(fields={"lr": 0.2})]) == frozenset()  # of which no other field is known
