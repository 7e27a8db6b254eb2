"""Networks by name, at their width, counted."""

from __future__ import annotations

import pytest
import torch
import torchvision

from gpubench.basics.errors import UsageError
from gpubench.schema import catalog
from gpubench.train import models


def on_meta(name, input_size=224, num_classes=1000, width=1.0, channels=3):
    with torch.device("cpu" if name.startswith("regnet") else "meta"):  # regnets draw on their own tensors
        return models.build_model(
            name, num_classes=num_classes, input_size=input_size, width=width, channels=channels
        ).to("meta")


def test_the_catalogue_knows_the_classifiers_of_torchvision():
    theirs = set(torchvision.models.list_models(module=torchvision.models))
    ours = set(catalog.TORCHVISION_MODELS)
    assert theirs == ours


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "input_size"),
    [
        ("vit_b_16", 96), ("maxvit_t", 224), ("inception_v3", 299), ("googlenet", 96), ("regnet_y_400mf", 64),
        ("alexnet", 96), ("lenet", 12), ("mlp", 28),
    ],
)  # fmt: skip
def test_models_take_the_size_and_the_classes_that_they_are_told(name, input_size):
    model = on_meta(name, input_size, num_classes=7)
    images = torch.empty(2, 3, input_size, input_size, device="meta")
    model.train()
    assert model(images).shape == (2, 7)


@pytest.mark.parametrize(
    ("name", "within"),
    [
        ("mobilenet_v2", 0.02),
        # Attention counts in full here; torchvision's figure leaves parts of it out.
        pytest.param("vit_b_32", 0.2, marks=pytest.mark.slow),
    ],
)
def test_multiply_adds_are_those_that_torchvision_publishes(name, within):
    published = torchvision.models.get_model_weights(name).DEFAULT.meta
    model = on_meta(name)
    counted = models.count_gmacs_per_image(model, input_size=224, channels=3)
    assert counted == pytest.approx(published["_ops"], rel=within)
    assert models.count_parameters_m(model) == pytest.approx(published["num_params"] / 1e6, abs=1e-9)


def test_counting_leaves_a_trained_model_as_it_is():
    model = models.build_model("resnet18", num_classes=4, input_size=64)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    assert models.count_gmacs_per_image(model, input_size=64, channels=3) == pytest.approx(0.149, rel=0.02)
    after = model.state_dict()
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items())
    assert {p.device.type for p in model.parameters()} == {"cpu"}


LIKE_OTHERS = {"resnet101", "resnet152"}
"""Their width is asked for as that of resnet50."""


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(catalog.WIDTH_MODELS) - LIKE_OTHERS))
def test_width_changes_the_parameters(name):
    size = 28 if name in catalog.SMALL_MODELS else 224
    narrow, usual, wide = (models.count_parameters_m(on_meta(name, size, width=w)) for w in (0.5, 1.0, 2.0))
    assert narrow < 0.8 * usual
    assert wide > 1.3 * usual


def test_small_models_take_grey_images():
    for name in catalog.SMALL_MODELS:
        assert on_meta(name, 28, 10, channels=1)(torch.empty(3, 1, 28, 28, device="meta")).shape == (3, 10)


# ---------------------------------------------------------------- a user's file


def write(folder, text):
    path = folder / "mine.py"
    path.write_text(text)
    return f"{path}:make"


def test_a_users_function_gets_what_it_asks_for(tmp_path):
    name = write(
        tmp_path,
        "from torch import nn\ndef make(width, num_classes):\n    return nn.Linear(int(width), num_classes)\n",
    )
    model = models.build_model(name, num_classes=5, input_size=28, width=3.0)
    assert (model.in_features, model.out_features) == (3, 5)


def test_a_users_file_may_use_its_neighbours_and_dataclasses(tmp_path):
    (tmp_path / "my_layers.py").write_text("from torch import nn\nLayer = nn.Linear\n")
    name = write(
        tmp_path,
        "from __future__ import annotations\n"
        "from dataclasses import dataclass, field\n"
        "from typing import ClassVar\n"
        "from my_layers import Layer\n"
        "@dataclass\n"
        "class Config:\n"
        "    kind: ClassVar[str] = 'x'\n"
        "    width: int = 3\n"
        "def make(num_classes):\n"
        "    return Layer(Config().width, num_classes)\n",
    )
    assert models.build_model(name, num_classes=5, input_size=28).in_features == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no function 'make'; it defines none"),
        ("make = 3\n", "has no function 'make'"),
        (
            "from functools import reduce\ndef other():\n    pass\n",
            "has no function 'make'; it defines other",
        ),
        ("def make():\n    return 3\n", "returned int, not a torch.nn.Module"),
    ],
)
def test_a_users_mistake_is_named(tmp_path, text, message):
    with pytest.raises(UsageError, match=message):
        models.build_model(write(tmp_path, text), num_classes=5, input_size=28)
