"""Users' own models and variants, as commands try them before anything is made."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from place import SMALL, Place

NETS = """
from torch import nn

def net(num_classes, channels, input_size):
    return nn.Sequential(nn.Flatten(), nn.Linear(channels * input_size**2, num_classes))

def typo(num_classes):
    return nn.Linaer(3, num_classes)
"""
VARIANT = """
name = "x"
[fixed]
variant = "own"
device = "cpu"
data = "procedural:64x32"
model = "lenet"
input_size = 28
batch_size = 8
[variants.own]
"""
# (file of the model or variant, words of the line)
NO_FUNCTION = ("nets.py:", "a model of your own is FILE.py:FUNCTION")
"""What is seen without torch."""
TYPO = ("nets.py:typo", "nets.py, line 8: AttributeError: module 'torch.nn' has no attribute 'Linaer'")
NO_SUCH_ARGUMENT = ("cpu = [{ RandomErasing = { q = 1 } }]", "transform RandomErasing: ")
"""What torch alone knows, in a child; tests/train/test_tries.py has all that it finds."""


def asked_with(place: Place, own: str) -> Sequence[str]:
    """The command that trains with a user's own model or variant."""
    (place.home / "nets.py").write_text(NETS)
    (place.home / "own.toml").write_text(VARIANT + own)
    return ["sweep", *SMALL, "--model", own] if ".py" in own else ["sweep", "own.toml"]


def _refused(place: Place, words: str, *arguments: str) -> None:
    before = place.files()
    ended = place.run(*arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert re.fullmatch(r"gpubench: [^\n]+\n", ended.stderr), ended.stderr
    assert words in ended.stderr
    assert not {path for path in place.files() - before if "__pycache__" not in path}


@pytest.mark.slow
@pytest.mark.parametrize(("own", "words"), [NO_FUNCTION, NO_SUCH_ARGUMENT])
def test_what_users_wrote_themselves_is_tried_by_a_plan(place: Place, own: str, words: str) -> None:
    _refused(place, words, *asked_with(place, own), "-n")


def test_what_users_wrote_themselves_is_tried_before_anything_is_made(place: Place) -> None:
    own, words = TYPO
    asked = asked_with(place, own)
    _refused(place, words, *asked)
    (place.home / "results" / "there" / "records").mkdir(parents=True)  # a folder that has been there before
    _refused(place, words, *asked, "--out", "results/there")


@pytest.mark.slow
def test_a_model_whose_trials_are_done_is_not_tried_again(place: Place) -> None:
    told = place.home / "told"
    (place.home / "nets.py").write_text(f"open({str(told)!r}, 'a').write('imported ')\n{NETS}")
    command = ("sweep", *SMALL, "--model", "nets.py:net", "--batch-size", "8")
    assert place.run(*command).returncode == 0
    before = told.read_text()
    # Once to try it, once to train.
    assert before.count("imported") >= 2
    again = place.run(*command)
    assert re.fullmatch(r".*: 1 done, .*\n", again.stderr)
    assert told.read_text() == before
