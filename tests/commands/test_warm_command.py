"""Commands of tests, forked from a process that is warm, against those of a fresh interpreter."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest
from place import LIMIT_S, LOAD, TINY, Place


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("sweep", "-n", *TINY, "--batch-size", "8,16"),
        ("table", "gone"),
    ],
    ids=" ".join,
)
def test_a_warm_command_says_what_a_cold_one_says(place: Place, arguments: Sequence[str]) -> None:
    """So that the tests below may use warm ones."""
    warm, cold = place.run(*arguments), place.run_cold(*arguments)
    said = [re.sub(LOAD, "", ended.stdout) for ended in (warm, cold)]
    assert (warm.returncode, said[0], warm.stderr) == (cold.returncode, said[1], cold.stderr)


def test_a_warm_command_is_a_process_of_its_own(place: Place, tmp_path: Path) -> None:
    """It ends by signals, with their exit codes, and its streams and folder are those that it was given."""
    started = place.start("sweep", "--device", "cpu", "--data", "procedural:3000")
    assert started.stderr is not None
    assert "results in results/batch-size" in started.stderr.readline()
    assert psutil.Process(started.pid).cwd() == str(tmp_path)
    with pytest.raises(subprocess.TimeoutExpired):
        started.wait(0)
    started.kill()
    assert started.wait(LIMIT_S) == -signal.SIGKILL
    started.kill()  # whoever has its id now is not meant
