"""`gpubench predict` beside the sweep of the same jobs."""

from __future__ import annotations

import re

import pytest
from place import TINY, Place


@pytest.mark.slow
def test_what_jobs_would_do_to_each_other_is_what_the_sweep_predicted(place: Place) -> None:
    """First from a trial that was measured alone; once the group was measured, with how good that was."""
    ask = ("--set", "model=lenet", "--set", "device=cpu", "--set", "input_size=28", "--set", "data=procedural:64x32",
           "--set", "batch_size=8", "--copies", "2")  # fmt: skip
    assert place.run("sweep", *TINY, "--batch-size", "8", "--workers", "1").returncode == 0
    before = place.files()
    first = place.run("predict", *ask, "--set", "workers=1")
    assert first.returncode == 0, first.stderr
    assert "measured" not in first.stdout
    wrong = place.run("predict", *ask, "--bad-images", "some")
    assert wrong.returncode == 2
    assert wrong.stderr.endswith("unknown --bad-images 'some': valid: fail, skip\n")
    assert place.files() == before, "nothing is run, nothing written"

    measured = place.run("sweep", *TINY, "--batch-size", "8", "--workers", "1", "--copies", "2")
    predicted = re.search(r"predicted ([0-9.]+), ([0-9.]+) times as long as alone: ", measured.stderr)
    assert predicted, measured.stderr
    assert find_slowdowns(first.stdout) == [*predicted.groups()]
    again = place.run("predict", *ask, "--set", "workers=1")
    assert "  slowdown  measured  error %\n" in again.stdout


def find_slowdowns(text: str) -> list[str]:
    """The predicted slowdowns of jobs that have not run together."""
    return re.findall(r"^(?:\d of 2: .*?|\S.*?) +\d+\.\d\d +\d+\.\d\d +(\d+\.\d\d)$", text, re.MULTILINE)
