"""Transforms by name on the CPU."""

from __future__ import annotations

import pytest
import torch
from torchvision.transforms import v2

from gpubench.basics.errors import UsageError
from gpubench.schema.order import transforms
from gpubench.train.data import on_cpu

DECODED = torch.randint(
    0, 256, (75, 100, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0)
).permute(2, 0, 1)


def test_evaluation_resizes_and_crops_what_is_not_of_the_size() -> None:
    theirs = v2.Compose([v2.Resize(64, antialias=True), v2.CenterCrop(56)])
    assert torch.equal(on_cpu.Evaluation(56)(DECODED), theirs(DECODED))
    square = DECODED[:, :56, :56]
    assert on_cpu.Evaluation(56)(square) is square


def test_an_unknown_name_has_a_suggestion() -> None:
    with pytest.raises(UsageError, match="did you mean RandomHorizontalFlip"):
        on_cpu.build_transforms((("RandomHorizontalFlop", {}),))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("RandomResizedCrop", {"size": 32, "scales": [0.1, 1]}),
        ("RandomHorizontalFlip", {"p": 2}),
        ("Resize", {"size": 32, "interpolation": "bilinaer"}),
        ("RandomCrop", {}),
    ],
)
def test_wrong_arguments_name_their_transform(name: str, arguments: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=f"transform {name}: "):
        on_cpu.build_transforms(((name, arguments),))


def test_transforms_are_names_or_names_with_arguments() -> None:
    found = transforms(["RandomHorizontalFlip", {"Resize": {"size": ["$input_size", "$input_size"]}}], 48)
    assert found == (("RandomHorizontalFlip", {}), ("Resize", {"size": [48, 48]}))
    for wrong in (3, {"A": {}, "B": {}}, {"A": 3}):
        with pytest.raises(UsageError, match="a transform reads"):
            transforms([wrong], 48)
