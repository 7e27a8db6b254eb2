"""The work that a results folder takes grows as its trials do, and no faster: calls are counted, not seconds."""

from __future__ import annotations

import gc
import io
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from benchmarks import large_results as large
from gpubench.export.csv_file import made
from gpubench.report import cells, heading, notes, terminal
from gpubench.report.reading import Reading, reading
from rich.console import Console

from gpubench.export.formats import Asked
from gpubench.plan.experiment_file import parse
from gpubench.plan.options import Options, with_options
from gpubench.plan.plan import Plan, expand
from gpubench.plan.sources import Disk
from gpubench.schema.row import TableRow

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
    return expand(
        with_options(parse(TEXT, "large"), Options(fields=axes)), device="cuda", sources=Disk(), cpus=64
    )


def sizes(trials: int) -> Plan:
    """So many batch sizes of one series."""
    asked = with_options(parse(TEXT, "large"), Options(fields={"batch_size": f"1:{trials}:1"}))
    return expand(asked, device="cuda", sources=Disk(), cpus=64)


def folder_of(path: Path, plan: Plan, *, measured: bool = True) -> Path:
    """A folder with this plan; `measured`: and a record of each trial."""
    large.write(path, plan)
    if not measured:
        first, *others = sorted((path / "records").glob("*/*.json"))
        for one in others:
            one.unlink()
        assert first.is_file()
    return path


def read(folder: Path) -> Reading:
    return reading(folder, lambda line: pytest.fail(line), keep=())


def table(folder: Path) -> str:
    out = io.StringIO()
    terminal.show(read(folder).tables, Console(file=out, highlight=False))
    return out.getvalue()


def csv_of(sheet: str) -> Callable[[Path], bytes]:
    return lambda folder: made([reading(folder, lambda line: pytest.fail(line))], Asked(sheet=sheet))


def calls(work: Callable[[Path], Any], folder: Path) -> int:
    """How many functions are called meanwhile, Python's own among them."""
    found = 0

    def count(_: object, event: str, __: object) -> None:
        nonlocal found
        found += event in ("call", "c_call")

    work(folder)  # imports, and whatever is kept from one call to the next
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work(folder)
    finally:
        sys.setprofile(before)
    return found


@pytest.mark.parametrize(
    ("kind", "work"),
    [
        ("rows", table),
        ("seeds", table),
        ("groups", table),
        ("sizes", table),
        ("rows", csv_of("trials")),
        ("rows", csv_of("epochs")),
    ],
)
def test_twice_as_many_trials_take_twice_the_work(
    tmp_path: Path, kind: str, work: Callable[[Path], Any]
) -> None:
    """From 200 to 400 trials twice as much is added as from 100 to 200; what looks at all rows for each row adds up to
    four times as much."""
    found = []
    for times in (1, 2, 4):
        if kind == "groups":
            folder = folder_of(tmp_path / f"{times}", copies(FEW // 2 * times), measured=False)
        elif kind == "sizes":
            folder = folder_of(tmp_path / f"{times}", sizes(3 * FEW * times))
        else:
            folder = folder_of(tmp_path / f"{times}", large.planned(FEW * times, seeds=kind == "seeds"))
        found.append(calls(work, folder))
    one, two, four = found
    assert (four - two) < 2.4 * (two - one)


def called(work: Callable[[Path], Any], folder: Path) -> set[Any]:
    """The code that runs meanwhile."""
    found = set()
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, _: found.add(frame.f_code) if event == "call" else None)
    try:
        work(folder)
    finally:
        sys.setprofile(before)
    return found


def test_what_a_form_does_not_show_is_not_made(tmp_path: Path) -> None:
    """Cells, the lines above and the remarks take a sixth of the time of a CSV, which holds none of them."""
    folder = folder_of(tmp_path / "x", sizes(FEW))
    shown = {cells.texts.__code__, heading.heading.__code__, notes.remarks.__code__}
    assert shown <= called(table, folder)
    assert shown.isdisjoint(called(csv_of("table"), folder))


def test_of_a_folder_that_is_only_printed_little_is_kept(tmp_path: Path) -> None:
    """A record takes more memory than the row that is made of it, and nobody asks for it again."""
    folder = folder_of(tmp_path / "x", large.planned(4 * FEW))
    read(folder)  # imports are counted in none of them
    kept = {}
    for keep in ((), ("records", "plans")):
        gc.collect()
        tracemalloc.start()
        found = reading(folder, lambda line: pytest.fail(line), keep=keep)
        gc.collect()
        kept[keep] = tracemalloc.get_traced_memory()[0] / len(found.contents.rows)
        tracemalloc.stop()
        assert len(found.records) == (4 * FEW if keep else 0)
    assert kept[()] < 7_000
    assert kept[("records", "plans")] < 12_000  # bytes; with their epochs as values they took 20,000


def test_what_is_kept_of_a_folder_changes_no_table(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "x", large.planned(FEW))
    everything = reading(folder, lambda line: pytest.fail(line))
    some = read(folder)
    assert [terminal.text(one) for one in some.tables] == [terminal.text(one) for one in everything.tables]
    assert some.contents.plans == []
    assert everything.contents.plans


def test_of_the_lines_of_a_table_only_the_last_form_is_kept(tmp_path: Path) -> None:
    """A line takes 2 KB, and is made anew several times until all is known of it."""
    folder = folder_of(tmp_path / "x", sizes(FEW))
    gc.collect()
    others_lines = {id(one) for one in gc.get_objects() if type(one) is TableRow}
    (made,) = read(folder).tables
    gc.collect()
    lines = [one for one in gc.get_objects() if type(one) is TableRow and id(one) not in others_lines]
    assert len(lines) == len(made.rows) == FEW
    first, *others = made.rows
    assert first.before is None
    assert all(row.before is before for before, row in zip(made.rows, others, strict=False))
