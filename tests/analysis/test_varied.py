"""Which fields become columns."""

from gpubench import result
from gpubench.analysis.slowdown import overlap_gain, slowdown, verdict
from gpubench.analysis.varied import constant, label, varied


def rows(*each):
    base = dict.fromkeys(result.BY_NAME) | {"model": "lenet", "optimizer": "sgd", "lr": 0.05}
    return [base | one for one in each]


def test_what_differs_is_varied_in_the_order_of_the_columns():
    found = rows({"batch_size": 16, "variant": "cached"}, {"batch_size": 32, "variant": "synthetic"})
    assert varied(found) == ("variant", "batch_size")
    assert constant(found) == {"model": "lenet", "optimizer": "sgd", "lr": 0.05, "breakdown": False}


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
        {"batch_size": 64, "strategy": "ddp", "gpu_ids": (0, 1), "lr": None}, ["batch_size", "gpu_ids", "lr"]
    ) == ("batch_size=64 gpu_ids=0+1")


def test_overlap_gain_of_the_published_log():
    alone = (19.6, 12.8, 11.3)
    four = overlap_gain([slowdown(t, a) for t, a in zip((51, 28, 22.5), alone, strict=True)])
    own = overlap_gain([slowdown(28.5, a) for a in (16.2, 15.4, 11.3)])
    shared = overlap_gain([slowdown(32.5, 21.5), slowdown(23.1, 13.6)])
    assert [round(gain, 2) for gain in (four, own, shared)] == [0.17, 0.25, 0.25]
    assert overlap_gain([1.0, 1.0, 1.0]) == 1
    assert overlap_gain([3.0, 3.0, 3.0]) == 0
    assert overlap_gain([2.0, None]) is None


def test_words_for_an_overlap_gain():
    assert [verdict(g) for g in (1.0, 0.9, 0.5, 0.1, -0.2)] == [
        "parallel", "parallel", "partly parallel", "merely concurrent", "merely concurrent",
    ]  # fmt: skip
