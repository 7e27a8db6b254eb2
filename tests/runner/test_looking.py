"""How far a sweep is, and how long it should still take."""

from __future__ import annotations

from typing import Any

import pytest

from gpubench.experiment.experiment import Options, parse, with_options
from gpubench.experiment.plan import Unit, expand
from gpubench.launch.attempt import Progress
from gpubench.runner.looking import progress_of
from gpubench.runner.sources import Disk

BASE = 'name = "test"\n[fixed]\nmodel = "lenet"\nvariant = "synthetic"\nbatch_size = 32\n[run]\nepochs = 2\n'


def a_unit(**fields: str) -> Unit:
    (unit,) = expand(
        with_options(parse(BASE, "test"), Options(fields=fields)), device="cpu", sources=Disk()
    ).units
    return unit


def left_s(progress: Progress, **seconds: float) -> float:
    given: dict[str, Any] = {"spent_s": 30.0, "estimated_s": 100.0, "after_s": 7.0} | seconds
    shown = progress_of(a_unit(), [progress], [], label="", done=0, total=1, elapsed_s=30.0, **given)
    assert shown.left_s is not None
    return shown.left_s


def at_part(part: float) -> Progress:
    """So far through the first of two epochs."""
    return Progress(epoch=0, step=round(part * 2000), steps=1000, measured=True)


@pytest.mark.parametrize("part", [0.001, 0.05, 0.1])
def test_to_a_tenth_of_the_way_the_estimate_says_what_is_left(part: float) -> None:
    assert left_s(at_part(part)) == pytest.approx(100 - 30 + 7)
    assert left_s(at_part(part), spent_s=200.0) == pytest.approx(7.0), "never less than nothing"


@pytest.mark.parametrize(("part", "own"), [(0.101, 30 * 0.899 / 0.101), (0.25, 90.0), (0.5, 30.0)])
def test_from_then_on_the_trial_itself_does(part: float, own: float) -> None:
    assert left_s(at_part(part)) == pytest.approx(own + 7)


def test_before_its_first_step_and_while_it_fills() -> None:
    assert left_s(Progress()) == pytest.approx(100 - 30 + 7)
    assert left_s(Progress(epoch=1, step=5, steps=1000, filling=True)) == pytest.approx(7.0)
