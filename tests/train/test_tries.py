"""What torch finds out about users' own models and transforms, as the child that tries them does; here in process.

tests/commands/test_own_code.py has some of them through that child and the whole command.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gpubench.train.user_code_probe import describe_try_error

NETS = """
from torch import nn

def net(num_classes, channels, input_size):
    return nn.Sequential(nn.Flatten(), nn.Linear(channels * input_size**2, num_classes))

def reads_its_weights(num_classes, channels, input_size):  # which the meta device has none of
    made = net(num_classes, channels, input_size)
    return made if made[1].weight.sum().item() < 1e9 else None

def deep(num_classes, depth):
    return net(num_classes, 3, 28)

def typo(num_classes):
    return nn.Linaer(3, num_classes)

def number(num_classes):
    return num_classes

def leaves(num_classes):
    raise SystemExit("no")
"""
FILES = {
    "nets": NETS.encode(),
    "missing": b"import nosuchmodule\ndef net(num_classes): pass\n",
    "beside": b"from missing import net\n",
    "cut": b"def net(:",
    "utf16": b"\xff\xfe",
}


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What is said of `file.py:function` in a folder of its own."""
    monkeypatch.setattr(sys, "path", list(sys.path))  # a file finds its neighbours
    for name, text in FILES.items():
        (tmp_path / f"{name}.py").write_bytes(text)

    def said(model: str) -> str | None:
        sizes = {"num_classes": 4, "input_size": 28, "channels": 3, "width": 1.0}
        return describe_try_error({"model": f"{tmp_path}/{model}", **sizes})

    return said


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (
            "nets.py:nett",
            "nets.py has no function 'nett'; it defines net, reads_its_weights, deep, typo, number",
        ),
        ("nets.py:deep", "TypeError: deep() missing 1 required positional argument: 'depth'"),
        ("nets.py:typo", "nets.py, line 15: AttributeError: module 'torch.nn' has no attribute 'Linaer'"),
        ("nets.py:number", "returned int, not a torch.nn.Module"),
        ("nets.py:leaves", "nets.py, line 21: SystemExit: no"),
        ("missing.py:net", "missing.py, line 1: ModuleNotFoundError: No module named 'nosuchmodule'"),
        ("cut.py:net", "SyntaxError: invalid syntax (cut.py, line 1)"),
        ("utf16.py:net", "SyntaxError: (unicode error) 'utf-8' codec can't decode"),
        ("nowhere.py:net", "there is no file "),
        ("beside.py:net", "missing.py, line 1: ModuleNotFoundError: No module named 'nosuchmodule'"),
    ],
)
def test_a_model_that_cannot_be_built_is_told_in_one_line(told, model: str, words: str) -> None:
    said = told(model)
    assert said is not None
    assert words in said
    assert "\n" not in said


@pytest.mark.parametrize("function", ["net", "reads_its_weights"])
def test_a_right_model_is_not_refused(told, function: str) -> None:
    assert told(f"nets.py:{function}") is None


def said_of(*, cpu: list[object] | None = None, gpu: list[object] | None = None) -> str | None:
    return describe_try_error({"cpu": cpu or [], "gpu": gpu or [], "input_size": 28})


@pytest.mark.parametrize(
    ("where", "transform", "words"),
    [
        ("cpu", {"RandomErasing": {"q": 1}}, "transform RandomErasing: "),
        (
            "cpu",
            "RandomHorizontalFlop",
            "unknown transform 'RandomHorizontalFlop': did you mean RandomHorizontalFlip",
        ),
        (
            "gpu",
            "RandomHorizontalFlop",
            "unknown transform on the device 'RandomHorizontalFlop': did you mean",
        ),
        (
            "gpu",
            {"RandomCrop": {"paddin": 8}},
            "transform RandomCrop on the device: got an unexpected keyword",
        ),
        ("gpu", {"RandomCrop": {}, "RandomHorizontalFlip": {}}, "a transform reads Name or {Name = "),
        ("cpu", {"Resize": {"size": "big"}}, "transform Resize: "),
        ("gpu", {"RandomCrop": {"padding": "a lot"}}, "transform RandomCrop on the GPU: "),
    ],
)
def test_a_wrong_argument_of_a_transform_is_told_in_one_line(
    where: str, transform: object, words: str
) -> None:
    said = said_of(**{where: [transform]})
    assert said is not None
    assert said.startswith(words)
    assert "\n" not in said


def test_right_transforms_are_not_refused() -> None:
    large = {"RandomResizedCrop": {"size": "$input_size", "interpolation": "bicubic"}}
    cpu = ["RandomHorizontalFlip", {"RandomErasing": {"p": 0.2}}, large]
    gpu = [{"RandomCrop": {"padding": 2}}, {"RandomResizedCrop": {"scale": [0.5, 1.0]}}]
    assert said_of(cpu=cpu, gpu=gpu) is None
