"""The experiment trackers to which `gpubench export --to` hands results over. Imports nothing heavy.

A new tracker is an entry here, and a file with a function that is given the runs (`runs.py`) and where they go.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpubench.basics.errors import UnusableError, unknown

if TYPE_CHECKING:
    from gpubench.export.runs import TrackedRun


@dataclass(frozen=True, kw_only=True, slots=True)
class TrackerExport:
    """What came of it."""

    where: str
    """The command by which one looks at it, or the address."""
    new: int
    """Runs that were written."""
    known: int
    """Runs that were there already, and were left as they are."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tracker:
    """One tracker. Its function is named `module:function`, for every `--help` reads these entries."""

    function: str
    """Writes runs to a place; is given the runs and the place, None for the tracker's usual one."""
    packages: tuple[str, ...]
    """What it imports that the core install does not bring."""

    def check(self) -> None:
        """Raises UnusableError where a package is missing."""
        for package in self.packages:
            if importlib.util.find_spec(package) is None:
                raise UnusableError(f"this needs {package}, which is not installed: pip install {package}")

    def export_runs(self, runs: Iterable[TrackedRun], place: str | None) -> TrackerExport:
        """Hands the runs over. Raises UnusableError where the place can't be written."""
        module, name = self.function.split(":")
        function: Callable[[Iterable[TrackedRun], str | None], TrackerExport] = getattr(
            importlib.import_module(module), name
        )
        return function(runs, place)


TRACKERS: Mapping[str, Tracker] = {
    "mlflow": Tracker(function="gpubench.export.mlflow_runs:export_runs", packages=("mlflow",)),
}
"""Name -> tracker, in the order of `--help`."""


def find_tracker(name: str) -> Tracker:
    """Raises UsageError for one that is not known."""
    if name not in TRACKERS:
        raise unknown("tracker", name, TRACKERS)
    return TRACKERS[name]
