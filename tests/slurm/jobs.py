"""Folders in which jobs run `gpubench`, as users' scripts do."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from cluster import Cluster
from place import SMALL, TINY

GPUBENCH = shlex.join([sys.executable, "-m", "gpubench"])
SWEEP = f"{GPUBENCH} sweep {shlex.join([*TINY, '--yes'])}"
"""A sweep on the CPU that takes seconds; its batch sizes are still to be said."""
HELD_SWEEP = f"{GPUBENCH} sweep {shlex.join([*SMALL, '--yes', '--model', 'nets.py:net'])}"
"""The same with a model of the test's own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Workplace:
    """A folder that jobs run in."""

    cluster: Cluster
    home: Path
    images: Path
    """Where all jobs find the images that the first of them makes."""

    def submit(self, script: str, *options: str) -> str:
        """The id of a job that runs these lines here."""
        setting = f"export GPUBENCH_DATA={shlex.quote(str(self.images))} COLUMNS=300\nunset GPUBENCH_OUT"
        return self.cluster.submit(f"{setting}\n{script}", "--chdir", str(self.home), *options)

    def trials(self, name: str = "batch-size") -> pd.DataFrame:
        return pd.read_csv(self.home / "results" / name / "trials.csv").set_index("batch_size").sort_index()
