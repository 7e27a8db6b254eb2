"""The work that a results folder takes grows as its trials do, and no faster: calls are counted, not seconds."""

from __future__ import annotations

import cProfile
from collections.abc import Callable, Sequence
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


def write_folder(path: Path, plan: Plan, *, measured: bool = True) -> Path:
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


def format_table(folder: Path) -> str:
    return terminal.format_text(make_folder_reports([read(folder)]))


def format_trials(folder: Path) -> str:
    return SHEETS["trials"]([read(folder)]).format_csv()


def calls(work: Callable[[Path], Any], folder: Path) -> int:
    """How many functions are called meanwhile, Python's own among them."""
    profile = cProfile.Profile()
    profile.runcall(work, folder)
    return sum(entry.callcount for entry in profile.getstats())


@pytest.mark.parametrize(
    ("make_folder", "works"),
    [
        (lambda path, times: write_folder(path, large.planned(FEW * times)), (format_table, format_trials)),
        pytest.param(
            lambda path, times: write_folder(path, copies(35 * times), measured=False),
            (format_table,),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            lambda path, times: write_folder(path, sizes(200 * times)),
            (format_table,),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["rows", "groups", "sizes"],
)
def test_twice_as_many_trials_take_twice_the_work(
    tmp_path: Path, make_folder: Callable[[Path, int], Path], works: Sequence[Callable[[Path], str]]
) -> None:
    """From two to four times as many, twice as much is added as from one to two; what looks at all rows for each row
    adds up to four times as much."""
    folders = [make_folder(tmp_path / f"{times}", times) for times in (1, 2, 4)]
    for work in works:
        work(folders[0])  # imports, and whatever is kept from one call to the next
        one, two, four = (calls(work, folder) for folder in folders)
        assert (four - two) < 2.4 * (two - one)


def test_a_row_without_samples_is_passed_by_in_no_time(tmp_path: Path) -> None:
    """The page looks for a trial that was sampled; where none was, it asks for each row."""
    folder = read(write_folder(tmp_path / "f", large.planned(FEW)))
    (report,) = make_folder_reports([folder])
    found = calls(lambda _: make_recommended_trace(folder, report, pytest.fail), tmp_path)
    assert found < 200 * len(report.labels)
