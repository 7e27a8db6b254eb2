"""Identity: what makes two trials the same one, whoever asks and wherever."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpubench.schema import catalog, trial
from gpubench.schema.trial import Trial, derive_config_id, derive_trial_id, make_trial
from gpubench.schema.trial_fields import DEFAULTS, FIELDS, select_fields
from gpubench.schema.validation import InvalidValueError, convert_value

VARIANT = catalog.VARIANTS["crop-resize"].make_definition()

# One other value for every field, so that a field that is forgotten in the hash is caught.
OTHER: dict[str, Any] = {
    "model": "resnet18", "width": 0.5, "input_size": 64, "num_classes": 7, "variant": "cached", "data": "birds",
    "train_images": 640, "batch_size": 65, "gpus": 2, "gpu_ids": (0, 2), "ranks": 2, "strategy": "ddp",
    "device": "cpu", "precision": "bf16", "memory_format": "contiguous", "execution": "compile",
    "cudnn_benchmark": True, "optimizer": "adam", "lr": 0.051, "accumulate": 2, "workers": 0, "prefetch": 3,
    "cpus": 2, "cpu_sharing": "pinned", "copies": 2, "gpu_mem_cap_mib": 12288, "epochs": 4, "warmup_epochs": 0,
    "steps": 50, "until_top1": 60.0, "breakdown": True, "seed": 1, "repeat": 1, "sync_every": 3,
    "confirm_top1": True, "nodes": 2, "window": 5.0, "launch_cpu": "one", "command": "python train.py",
    "settings": "depth=2", "epoch_pattern": "Epoch", "metrics": "acc=(.)", "until": "acc=6",
    "power_limit_w": 200, "sm_clock_limit_mhz": 1200,
}  # fmt: skip
REPEAT_FIELDS = select_fields(lambda about: about.repeats)
"""What `derive_config_id` leaves out."""
BY_CONTENT = ("variant", "data")
"""Fields whose name says nothing: their content enters the hash."""
BESIDE: dict[str, dict[str, Any]] = {"warmup_epochs": {"epochs": 3}}
"""Fields that mean something beside others only."""


def ids(fields: dict[str, Any], fingerprint: str = "images-1", model: str = "") -> tuple[str, str]:
    t = convert_value(fields, Trial)
    config = derive_config_id(t, VARIANT, fingerprint, model)
    return config, derive_trial_id(config, t.seed, t.repeat)


def test_golden_ids() -> None:
    """Identity is for ever: where these change, every stored result is lost. Raise trial.SCHEMA instead."""
    assert set(OTHER) == set(FIELDS)
    assert ids({}) == ("c80368fb8651b", "t99ab687d89e4")
    several = {
        "model": "resnet50", "gpus": 2, "gpu_ids": (0, 2), "lr": 0.1, "width": 0.5, "seed": 7, "repeat": 1, "epochs": 3,
        "warmup_epochs": 1,
    }  # fmt: skip
    assert ids(several) == ("caa0e50b19e65", "t5e3ed89a9fb2")


STORED: list[tuple[dict[str, Any], tuple[str, str]]] = [
    (
        {"train_images": 5120, "batch_size": 128, "precision": "bf16", "workers": 6, "cpus": 6, "epochs": 3},
        ("cf0aeacb4ad73", "t04a45ca9640f"),
    ),
    (
        {"train_images": 5120, "batch_size": 16, "gpus": 1, "memory_format": "contiguous", "epochs": 2},
        ("c90f188c45e3c", "t18b7372a8039"),
    ),
    (
        {"variant": "gpu-augment", "batch_size": 128, "gpus": 1, "precision": "bf16", "epochs": 30, "until_top1": 60.0},
        ("c5a4674c7ac78", "t488965349fda"),
    ),
]  # fmt: skip
"""Trials of results/ by what they were asked for, and the ids that version 0.1 gave them."""


@pytest.mark.parametrize(("fields", "stored"), STORED)
def test_whole_epochs_keep_the_ids_that_they_were_stored_under(
    fields: dict[str, Any], stored: tuple[str, str]
) -> None:
    t = make_trial(fields)
    config = derive_config_id(t, catalog.VARIANTS[t.variant].make_definition(), "c1cb612aa3cda163")
    assert (config, derive_trial_id(config, t.seed, t.repeat)) == stored


@pytest.mark.parametrize("name", select_fields(lambda about: about.added))
def test_a_field_that_came_later_changes_no_earlier_id(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Left at its default it hashes as if there were no such field; set, it makes another configuration."""
    as_always, set_ = ids({name: DEFAULTS[name]}), ids({name: OTHER[name]})
    assert as_always == ids({}) != set_
    monkeypatch.setattr(trial, "_ADDED", [other for other in trial._ADDED if other != name])
    assert ids({}) != as_always
    assert ids({name: OTHER[name]}) == set_


def test_a_new_schema_makes_new_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    before = ids({})
    monkeypatch.setattr(trial, "SCHEMA", trial.SCHEMA + 1)
    assert ids({}) != before


@pytest.mark.parametrize("name", [name for name in FIELDS if name not in (*REPEAT_FIELDS, *BY_CONTENT)])
def test_another_value_is_another_configuration(name: str) -> None:
    beside = BESIDE.get(name, {})
    assert ids({**beside, name: OTHER[name]})[0] != ids(beside)[0]


@pytest.mark.parametrize("name", REPEAT_FIELDS)
def test_seed_and_repeat_are_other_trials_of_one_configuration(name: str) -> None:
    (config, one), (same, other) = ids({}), ids({name: OTHER[name]})
    assert config == same
    assert one != other


def test_seed_and_repeat_are_not_mixed_up() -> None:
    assert len({ids({"seed": s, "repeat": r})[1] for s in range(12) for r in range(12)}) == 144


@pytest.mark.parametrize("name", BY_CONTENT)
def test_variant_and_data_go_by_content(name: str) -> None:
    assert ids({name: OTHER[name]}) == ids({})
    assert ids({}, fingerprint="images-2") != ids({})
    t = make_trial({})
    assert derive_config_id(t, {**VARIANT, "cpu": []}, "images-1") != derive_config_id(t, VARIANT, "images-1")


def test_a_users_model_goes_by_its_file() -> None:
    here, there = {"model": "here/nets.py:small"}, {"model": "/there/nets.py:small"}
    assert ids(here, model="hash:small") == ids(there, model="hash:small")
    assert ids(here, model="hash:small") != ids(here, model="other:small")
    assert ids(here, model="hash:small") != ids(here, model="hash:large")


@pytest.mark.parametrize("name", [name for name in FIELDS if DEFAULTS[name] is None])
def test_auto_is_not_the_value_that_it_may_get(name: str) -> None:
    """What the machine fills in stands in the record; the id says that it was left open."""
    beside = BESIDE.get(name, {})
    assert ids({**beside, name: None}) == ids(beside) != ids({**beside, name: OTHER[name]})


TRAINING = {name: value for name, value in OTHER.items() if name != "command"}
COMMAND = {"command": "train.py {batch_size} {depth}", "batch_size": 16, "settings": "depth=2", "gpus": 2}


def test_order_of_fields_does_not_matter() -> None:
    assert ids(dict(reversed(TRAINING.items()))) == ids(TRAINING)


def test_a_command_is_told_apart_by_what_it_is_given_alone() -> None:
    """Of fields without a placeholder it knows nothing, and so does its id."""
    assert ids(COMMAND) == ids({**COMMAND, "model": "resnet18", "lr": 0.3, "window": 3.0})
    for name, other in (
        ("batch_size", 32),
        ("settings", "depth=4"),
        ("gpus", 1),
        ("command", "b {batch_size}"),
    ):
        assert ids({**COMMAND, name: other}) != ids(COMMAND), name
    assert ids(COMMAND, model="other script") != ids(COMMAND)
    t = make_trial(COMMAND)
    assert (t.workload, t.strategy, t.devices) == ("command", "single", 2)
    told = t.as_json_dict()
    assert {"batch_size", "gpus", "settings"} < told.keys()
    assert not {"model", "variant", "strategy", "precision", "window", "epochs"} & told.keys()


LOAD = {"model": "matmul", "batch_size": 512, "precision": "bf16", "gpus": 1, "steps": 20}


def test_a_load_is_told_apart_by_what_it_knows_alone() -> None:
    def identify(**fields: Any) -> str:
        return derive_config_id(make_trial(LOAD | fields), catalog.NO_IMAGES.make_definition(), "none")

    of_networks = {"variant": "cached", "lr": 0.3, "optimizer": "adam", "epochs": 3, "workers": 4, "ranks": 2}
    assert identify() == identify(**of_networks)
    assert make_trial(LOAD) == make_trial(LOAD | of_networks)
    others: list[dict[str, Any]] = [
        {"model": "copy"}, {"batch_size": 513}, {"precision": "fp32"}, {"gpus": 2}, {"steps": 21}, {"cpus": 1}
    ]  # fmt: skip
    for other in others:
        assert identify(**other) != identify(), other
    assert identify(model="copy") == identify(model="copy", precision="fp16")
    t = make_trial({"model": "nbody", "window": 2.0})
    assert (t.workload, t.batch_size, t.window) == ("load", catalog.LOADS["nbody"].usual_size, 2.0)
    assert "precision" not in t.as_json_dict()
    assert make_trial({"model": "resnet18"}).workload == "training"
    assert make_trial({"model": "matmul", "command": "a {model}"}).workload == "command"


@pytest.mark.parametrize("fields", [{}, TRAINING, COMMAND, LOAD])
def test_a_trial_read_back_from_json_is_the_same_trial(fields: dict[str, Any]) -> None:
    t = make_trial(fields)
    again = convert_value(json.loads(json.dumps(t.as_json_dict())), Trial)
    assert again == t
    assert derive_config_id(again, VARIANT, "x") == derive_config_id(t, VARIANT, "x")


# ---- defaults that follow from other fields ----


@pytest.mark.parametrize(
    ("fields", "filled"),
    [
        ({}, {"strategy": "single", "lr": 0.05}),
        ({"gpus": 2}, {"strategy": "ddp"}),
        ({"ranks": 2, "device": "cpu"}, {"strategy": "ddp", "gpus": 0}),
        ({"gpu_ids": (1, 3)}, {"gpus": 2, "strategy": "ddp"}),
        ({"device": "cpu"}, {"gpus": 0, "strategy": "single"}),
        ({"optimizer": "adam"}, {"lr": 0.001}),
        ({"until_top1": 60.0}, {"epochs": 50, "warmup_epochs": 1}),
        ({}, {"epochs": None, "warmup_epochs": None, "window": None, "steps": None, "launch_cpu": "free"}),
        ({"epochs": 2}, {"warmup_epochs": 1}),
        ({"epochs": 1}, {"warmup_epochs": 0}),
        ({"strategy": "local", "ranks": 2}, {"sync_every": 8}),
        ({"strategy": "local", "ranks": 2, "sync_every": 3}, {"sync_every": 3}),
        ({"strategy": "ddp", "ranks": 2}, {"sync_every": None}),
    ],
)
def test_what_follows_from_other_fields(fields: dict[str, Any], filled: dict[str, Any]) -> None:
    t = make_trial(fields)
    assert {name: getattr(t, name) for name in filled} == filled


@pytest.mark.parametrize(
    "fields",
    [
        {"batch_size": 0}, {"batch_size": True}, {"batch_size": "16"}, {"lr": 0.0}, {"lr": float("nan")},
        {"width": 17.0}, {"gpus": -1}, {"seed": 1 << 32}, {"until_top1": 100.0}, {"window": 0.0},
        {"window": float("inf")}, {"window": "3s"}, {"steps": 0}, {"launch_cpu": "two"},
    ],
)  # fmt: skip
def test_wrong_values_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidValueError):
        make_trial(fields)


def test_devices() -> None:
    for fields, count in (
        ({}, 1),
        ({"gpus": 4}, 4),
        ({"device": "cpu"}, 1),
        ({"device": "cpu", "ranks": 3}, 3),
    ):
        assert make_trial(fields).devices == count


@pytest.mark.parametrize(
    "fields",
    [{"prefetch": 10**16}, {"epochs": 100_001}, {"gpu_ids": (10**10,)}, {"lr": 1e16}, {"window": 1e10}],
)
def test_what_no_record_could_hold_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidValueError, match="at most"):
        make_trial(fields)
