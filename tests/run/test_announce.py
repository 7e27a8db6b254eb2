"""What a plan says of the training that it asks for."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from gpubench.plan.experiment_file import parse
from gpubench.plan.plan import expand
from gpubench.plan.sources import Disk
from gpubench.run.announce import name_rounds, training_line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "a window of 2.5 s; sgd with lr 0.05"),
        ("[run]\nepochs = 3", "3 epochs, 1 of them to warm up; sgd with lr 0.05"),
        ("[fixed]\nlr = 0.1\noptimizer = 'adam'\n[run]\nepochs = 1\nwarmup_epochs = 0", "1 epoch; adam with lr 0.1"),
        ("[axes]\noptimizer = ['sgd', 'adam']",
         "a window of 2.5 s; sgd with lr 0.05 or adam with lr 0.001"),
        ("[axes]\nwindow = [3, '0.3s']", "a window of 3 s or a window of 0.3 s; sgd with lr 0.05"),
        ("[run]\nsteps = 5", "a window of 5 steps; sgd with lr 0.05"),
        ("[run]\nuntil_top1 = 60", "until top-1 60 %, at most 50 epochs, 1 of them to warm up; sgd with lr 0.05"),
        ("[axes]\nlr = [1.0, 2.0, 3.0, 4.0]",
         "a window of 2.5 s; sgd with lr 1 or sgd with lr 2 or sgd with lr 3 or 1 other"),
        ("[axes]\nlr = [1.0, 2.0, 3.0, 4.0, 5.0]",
         "a window of 2.5 s; sgd with lr 1 or sgd with lr 2 or sgd with lr 3 or 2 others"),
    ],
)  # fmt: skip
def test_learning_rate_and_length_are_told_whether_given_or_not(text: str, line: str) -> None:
    plan = expand(parse(f'name = "t"\n{text}\n', "t"), device="cpu", sources=Disk())
    assert training_line(plan) == f"training: mobilenet_v2, crop-resize, fp32; {line}"


@pytest.mark.parametrize(
    ("axes", "line"),
    [
        ('model = ["lenet", "mlp"]\nprecision = ["bf16"]', "crop-resize, bf16; a window of 2.5 s; sgd with lr 0.05"),
        ('model = ["lenet"]\nprecision = ["bf16", "fp32"]', "lenet, crop-resize; a window of 2.5 s; sgd with lr 0.05"),
    ],
)  # fmt: skip
def test_what_varies_is_told_by_the_lines_of_trials_alone(axes: str, line: str) -> None:
    plan = expand(parse(f'name = "t"\n[axes]\n{axes}\n', "t"), device="cpu", sources=Disk())
    assert training_line(plan) == f"training: {line}"


@pytest.mark.parametrize(
    ("rounds", "name"),
    [
        ([3], "round 3"),
        ([4, 2, 3], "rounds 2 to 4"),
        ({2, 4, 6, 7, 8}, "rounds 2, 4 and 6 to 8"),
    ],
)
def test_rounds_are_named_with_their_gaps(rounds: Iterable[int], name: str) -> None:
    assert name_rounds(rounds) == name
