"""The work that a results folder takes grows as its trials do, and no faster: calls are counted, not seconds."""

from __future__ import annotations

import cProfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from benchmarks import large_results as large

from gpubench.analyze.folder import Folder, read_folder
from gpubench.analyze.questions import make_folder_reports
from gpubench.analyze.trace import make_recommended_trace
from gpubench.export.sheets import SHEETS
from gpubench.plan.experiment_file import parse_experiment
from gpubench.plan.options import apply_options
from gpubench.plan.plan import Plan, expand_experiment
from gpubench.plan.sources import DiskSources
from gpubench.plan.sweep_options import ExperimentOptions
from gpubench.render import terminal

FEW = 100
TEXT = """
name = "large"
[fixed]
model = "lenet"
gpus = 1
variant = "synthetic"
train_images = 10240
[run]
epochs = 10
"""


def copies(trials: int) -> Plan:
    """So many trials alone, and as many groups of two copies of each."""
    axes = {"batch_size": f"1:{trials}:1", "copies": "2"}
    return expand_experiment(
        apply_options(parse_experiment(TEXT, "large"), ExperimentOptions(fields=axes)),
        device="cuda",
        sources=DiskSources(),
        cpus=64,
    )


def sizes(trials: int) -> Plan:
    """So many batch sizes of one series."""
    asked = apply_options(
        parse_experiment(TEXT, "large"), ExperimentOptions(fields={"batch_size": f"1:{trials}:1"})
    )
    return expand_experiment(asked, device="cuda", sources=DiskSources(), cpus=64)


def folder_of(path: Path, plan: Plan, *, measured: bool = True) -> Path:
    """A folder with this plan; `measured`: and a record of each trial."""
    large.write(path, plan)
    if not measured:
        first, *others = sorted((path / "records").glob("*/*.json"))
        for one in others:
            one.unlink()
        assert first.is_file()
    return path


def read(folder: Path) -> Folder:
    return read_folder(folder, lambda line: pytest.fail(line))


def table(folder: Path) -> str:
    return terminal.format_text(make_folder_reports([read(folder)]))


def csv_of(sheet: str) -> Callable[[Path], str]:
    return lambda folder: SHEETS[sheet]([read(folder)]).format_csv()


def calls(work: Callable[[Path], Any], folder: Path) -> int:
    """How many functions are called meanwhile, Python's own among them."""
    profile = cProfile.Profile()
    profile.runcall(work, folder)
    return sum(entry.callcount for entry in profile.getstats())


@pytest.mark.parametrize(
    ("kind", "work"),
    [
        ("rows", table),
        pytest.param("groups", table, marks=pytest.mark.slow),
        pytest.param("sizes", table, marks=pytest.mark.slow),
        ("rows", csv_of("trials")),
    ],
)
def test_twice_as_many_trials_take_twice_the_work(
    tmp_path: Path, kind: str, work: Callable[[Path], Any]
) -> None:
    """From 200 to 400 trials twice as much is added as from 100 to 200; what looks at all rows for each row adds up to
    four times as much."""
    found: list[int] = []
    for times in (1, 2, 4):
        if kind == "groups":
            folder = folder_of(tmp_path / f"{times}", copies(FEW // 2 * times), measured=False)
        elif kind == "sizes":
            folder = folder_of(tmp_path / f"{times}", sizes(3 * FEW * times))
        else:
            folder = folder_of(tmp_path / f"{times}", large.planned(FEW * times))
        if not found:
            work(folder)  # imports, and whatever is kept from one call to the next
        found.append(calls(work, folder))
    one, two, four = found
    assert (four - two) < 2.4 * (two - one)


def test_a_row_without_samples_is_passed_by_in_no_time(tmp_path: Path) -> None:
    """The page looks for a trial that was sampled; where none was, it asks for each row."""
    folder = read(folder_of(tmp_path / "f", large.planned(FEW)))
    (report,) = make_folder_reports([folder])
    found = calls(lambda _: make_recommended_trace(folder, report, pytest.fail), tmp_path)
    assert found < 200 * len(report.labels)
