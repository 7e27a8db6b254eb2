"""Training until an accuracy: when it stops, what it reports, and that all ranks stop together."""

from __future__ import annotations

import pytest

from gpubench.schema.codes import REASONS, format_reason
from gpubench.schema.events import Evaluated, Settle

MODELS = "tests/train/user_models.py:"
TWO = {"ranks": 2, "cpus": 2, "workers": 2}
COLUMNS = ("epochs_to_top1", "time_to_top1_s", "energy_to_top1_j")
ONE_GPU = {"device": "cuda", "gpus": 1, "cpus": 2, "workers": 2}
TWO_GPUS = {"device": "cuda", "gpus": 2, "cpus": 2, "workers": 2, "strategy": "ddp"}
AT_ONCE = {"model": MODELS + "tiny", "lr": 0.5}
GRADUALLY = {"model": MODELS + "tiny", "lr": 1e-3, "seed": 1}


def top1(ran):
    return [epoch.top1_pct for epoch in ran.outcome.epochs]


def events(ran, kind):
    return [event for event in ran.done.events if isinstance(event, kind)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "where",
    [
        pytest.param(TWO, id="gloo"),
        pytest.param({**TWO, "strategy": "fsdp"}, id="fsdp"),
        pytest.param(ONE_GPU, id="gpu", marks=pytest.mark.gpu),
        pytest.param({**ONE_GPU, "execution": "graph"}, id="graph", marks=pytest.mark.gpu),
        pytest.param(TWO_GPUS, id="nccl", marks=pytest.mark.multigpu),
        pytest.param({**TWO_GPUS, "strategy": "fsdp"}, id="nccl-fsdp", marks=pytest.mark.multigpu),
    ],
)
def test_it_stops_when_the_target_is_reached(train, where):
    seen = top1(train(until_top1=99.9, epochs=4, **GRADUALLY, **where))
    # The third epoch is to be the first that reaches it.
    assert max(seen[:2]) < seen[2]
    ran = train(until_top1=seen[2], epochs=9, **GRADUALLY, **where)
    assert ran.status == "ok", ran.reason
    result, epochs = ran.outcome.result, ran.outcome.epochs
    assert result["epochs_to_top1"] == len(epochs) == 3
    assert result["time_to_top1_s"] == pytest.approx(sum(e.epoch_time_s for e in epochs))
    assert result["top1_pct"] == top1(ran)[-1]
    assert "energy_to_top1_j" not in ran.outcome.missing
    # Every epoch is evaluated once, the last one too.
    assert len(events(ran, Evaluated)) == len(epochs)
    assert len(events(ran, Settle)) == 1


@pytest.mark.slow
def test_a_confirmed_target_takes_a_second_evaluation_in_a_row(train):
    seen = top1(train(until_top1=99.9, epochs=5, **GRADUALLY))
    # The third epoch is to be the first there, and the fourth as well.
    assert max(seen[:2]) < seen[2] <= seen[3]
    fields = {"until_top1": seen[2], "epochs": 9, **GRADUALLY}
    plain, confirmed = train(**fields), train(confirm_top1=True, **fields)
    assert (top1(plain), top1(confirmed)) == (seen[:3], seen[:4])
    assert plain.outcome.result["top1_crossing"] == "unconfirmed"
    assert confirmed.outcome.result["top1_crossing"] == "confirmed"
    # The second evaluation does not change how long it took.
    assert confirmed.outcome.result["epochs_to_top1"] == 3


@pytest.mark.slow
def test_evaluating_every_epoch_changes_nothing_that_is_trained(train):
    fields = {"model": "lenet", "epochs": 3, "cpu": ({"RandomHorizontalFlip": {}},)}
    plain, evaluated = train(**fields), train(until_top1=99.99, **fields)
    assert [e.train_loss for e in plain.outcome.epochs[:2]] == [
        e.train_loss for e in evaluated.outcome.epochs[:2]
    ]
    assert top1(plain) == [None] * 3


def test_a_target_that_the_warm_up_reaches_waits_for_a_measured_epoch(train):
    ran = train(until_top1=70.0, epochs=9, **AT_ONCE)
    assert [e.warmup for e in ran.outcome.epochs] == [True, False]
    assert top1(ran)[0] >= 70
    result = ran.outcome.result
    assert result["epochs_to_top1"] == 1
    assert result["time_to_top1_s"] == ran.outcome.epochs[0].epoch_time_s
    assert result["epochs_measured"] == 1
    assert result["top1_pct"] == top1(ran)[-1]


@pytest.mark.slow
def test_a_target_that_is_never_reached_is_a_result(train):
    ran = train(until_top1=99.0, epochs=3, model=MODELS + "tiny", lr=1e-6)
    assert (ran.status, len(ran.outcome.epochs)) == ("ok", 3)
    for name in COLUMNS:
        assert ran.outcome.result.get(name) is None
        assert ran.outcome.missing[name] == format_reason(
            "target-missed", f"{top1(ran)[-1]:.1f}", 3, "epochs", 99
        )
    assert ran.outcome.result["epoch_time_s"] > 0


def test_a_training_that_has_diverged_goes_no_further(train):
    ran = train(until_top1=99.9, epochs=9, model="lenet", lr=1e10, workers=0)
    assert ran.status == "ok", ran.reason
    # The warm-up and one measured epoch.
    assert len(ran.outcome.epochs) == 2
    assert ran.outcome.missing["epochs_to_top1"].startswith("training diverged: ")


def test_where_nobody_asked_it_says_so(train):
    ran = train(model=MODELS + "tiny")
    for name in COLUMNS:
        assert ran.outcome.missing[name] == REASONS["no-target"]
