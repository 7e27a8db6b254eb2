"""The results that are committed. Whatever else lies in `results/`, a sweep of the reader's own say, is no test's."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gpubench.analyze.folder import Folder, read_folder
from gpubench.analyze.questions import make_folder_reports
from gpubench.core.report import Report

ROOT = Path(__file__).parents[1]
HOME = ROOT / "results"

NAMES = (
    "h200-batch-size-2026",
    "h200-checks-2026",
    "h200-copies-2026",
    "h200-copies-rounds-2026",
    "h200-copies-steady-2026",
    "h200-cpus-2026",
    "h200-cpus-rounds-2026",
    "h200-own-script-2026",
    "h200-pairs-2026",
    "h200-pairs-rounds-2026",
    "h200-pairs-steady-2026",
    "h200-target-2026",
    "h200-until-top1-2026",
    "h200-variants-2026",
    "h200x2-2026",
    "h200x2-network-size-2026",
    "h200x4-2026",
    "h200x4-groups-2026",
    "h200x4-scaling-2026",
    "titan-xp-2021",
)
"""Where git can't be asked: an unpacked archive, a machine without git. A test keeps it true."""

DIFFERENT = ("h200-copies-rounds-2026", "h200-target-2026", "h200x2-network-size-2026", "h200x4-2026")
"""Jobs together in rounds, trainings to a target, sizes of networks, strategies on several GPUs."""


@cache
def tracked() -> tuple[str, ...] | None:
    """The folders in `results/` that git knows; None where it can't be asked."""
    asked = ["git", "-C", str(ROOT), "ls-files", "-z", "--", "results"]
    try:
        ended = subprocess.run(asked, capture_output=True, text=True, timeout=30, check=False)
    except OSError:
        return None
    names = {line.split("/")[1] for line in ended.stdout.split("\0") if line.count("/") > 1}
    return tuple(sorted(names)) if ended.returncode == 0 and names else None


def folders(needed: str = "records") -> list[Path]:
    """The committed folders that are here and hold a file or folder of this name."""
    return [HOME / name for name in tracked() or NAMES if (HOME / name / needed).exists()]


def folder(name: str) -> Path:
    """The committed folder of this name; without its records the test is skipped."""
    assert name in (tracked() or NAMES), f"results/{name} is not committed"
    if not (HOME / name / "records").is_dir():
        pytest.skip(f"the records of results/{name} are not here: they were deleted from this clone")
    return HOME / name


def cases(names: Iterable[str]) -> list[Any]:
    """Names of folders as a test's parameters: all but a few that differ are slow."""
    return [pytest.param(name, marks=[pytest.mark.slow] * (name not in DIFFERENT)) for name in names]


@cache
def load(name: str) -> Folder:
    """The committed folder of this name, read once; a line that can't be read fails."""
    return read_folder(folder(name), pytest.fail)


@cache
def load_tables(name: str) -> dict[str, Report]:
    """The reports of that folder by the names of their tables."""
    return {report.name: report for report in make_folder_reports([load(name)])}


def load_reports(path: Path, tell: Callable[[str], None] = pytest.fail) -> list[Report]:
    """A report a table of a results folder. `tell`: is given a line for each record or plan that can't be read."""
    return make_folder_reports([read_folder(path, tell)])
