"""What works on frames is imported before the first trial of a sweep, and where nothing is measured not at all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
HEAVY = "{'pandas', 'scipy', 'gpubench.analyze.folder'}"


def run(code: str, *words: str) -> list[str]:
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True, env=env
    )
    return done.stdout.splitlines()


@pytest.mark.slow
def test_a_plan_that_is_only_shown_needs_no_frames(tmp_path: Path) -> None:
    code = f"""
import sys
from gpubench.cli.main import main
try:
    main()
finally:
    print({HEAVY} & set(sys.modules))
"""
    words = [
        "sweep",
        "--device",
        "cpu",
        "--variant",
        "synthetic",
        "--model",
        "lenet",
        "-n",
        "--out",
        str(tmp_path),
    ]
    assert run(code, *words)[-1] == "set()"


@pytest.mark.slow
def test_a_sweep_has_all_of_it_before_its_first_trial(tmp_path: Path) -> None:
    code = f"""
import sys
from pathlib import Path
from swept import swept
from gpubench.run.unit_runner import UnitRunner
print({HEAVY} & set(sys.modules))
run = UnitRunner.run_and_store_attempt
def watched(self, *asked):
    before = set(sys.modules)
    records = run(self, *asked)
    new = sorted(name for name in sys.modules.keys() - before if name.startswith(('pandas', 'numpy')))
    print('pandas' in before, new)
    return records
UnitRunner.run_and_store_attempt = watched
swept(Path(sys.argv[1]), "x", "16,32")
"""
    assert run(code, str(tmp_path)) == ["set()", "True []", "True []"]
