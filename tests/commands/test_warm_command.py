"""Commands of tests, forked from a process that is warm, against those of a fresh interpreter."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest
from place import HELD, LIMIT_S, LOAD, SMALL, TINY, Place


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("sweep", "--nosuch"),
        ("sweep", "--batch-size", "0"),
        ("sweep", "-n", *TINY, "--batch-size", "8,16"),
        ("table", "gone"),
        ("data", "list"),
        ("predict", "--help"),
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


@pytest.mark.slow
def test_what_a_warm_sweep_forks_is_as_what_a_cold_one_starts(place: Place) -> None:
    """Its fork server: threads, open files, whether it leads a session, signals that it ignores."""
    hold = place.home / "hold"
    hold.touch()
    (place.home / "nets.py").write_text(HELD.format(hold=str(hold)))
    command = ("sweep", *SMALL, "--model", "nets.py:net", "--batch-size", "8", "--out")
    seen = []
    for start in (place.start, place.start_cold):
        sweep = start(*command, start.__name__)
        assert sweep.stderr is not None
        assert any("started" in line for line in sweep.stderr), "it ended before"
        (server,) = psutil.Process(sweep.pid).children()
        status = Path(f"/proc/{server.pid}/status").read_text()
        ignored = re.search(r"SigIgn:\s*(\w+)", status)
        assert ignored is not None
        leads = os.getsid(server.pid) == server.pid
        files = []
        for _ in range(20):  # one more is open for the moment in which it forks
            files.append(server.num_fds())
            time.sleep(0.05)
        seen.append((server.num_threads(), min(files), leads, ignored[1], server.cwd()))
        sweep.kill()
        sweep.communicate()
    assert seen[0] == seen[1]
