"""A folder that several processes read is told exactly as if one had read it."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from benchmarks import large_results as large
from committed import folders
from damaged import RECORDS

from gpubench.analyze.folder import read_folder, table_csv, trials_csv
from gpubench.basics.helpers import share_out
from gpubench.results import reading_together
from gpubench.results.store import Results
from gpubench.results.stored_lines import measured_times

UNASKED = ("windows", "phases", "epochs")


@pytest.fixture
def helped(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Two helpers, whatever the machine has, for few files; for each piece whether one of them has read it.

    The last third of the pieces are left to the process itself, and the others are not: who comes first is chance.
    """
    found: list[bool] = []

    def told(pieces: Any, work: Any, helpers: int) -> Iterator[Any]:
        last = len(pieces) * 2 // 3
        for piece, body in share_out(pieces[:last], work, helpers):
            found.append(helpers > 0)
            yield piece, work(piece) if body is None and helpers else body
        found.extend([False] * (len(pieces) - last))
        yield from ((piece, None) for piece in pieces[last:])

    monkeypatch.setattr(threading, "active_count", lambda: 1)  # as if no test before had left one behind
    monkeypatch.setattr(reading_together, "share_out", told)
    monkeypatch.setattr(reading_together, "_spare_cpus", lambda: 2)
    monkeypatch.setattr(reading_together, "MANY", 1)
    monkeypatch.setattr(reading_together, "PIECE", 7)
    return found


def folder_of(path: Path) -> Path:
    """Trials alone, and groups, of whose records helpers read none."""
    large.write(path, large.planned(400))
    (copies,) = (one for one in folders() if one.name == "h200-copies-2026")
    shutil.copytree(copies / "records", path / "records", dirs_exist_ok=True)
    return path


def both(folder: Path, without: tuple[str, ...]) -> list[tuple[list[str], list[Any]]]:
    """What is told of records that can't be read, and those that can, read by one process and by several."""
    found: list[tuple[list[str], list[Any]]] = []
    for together in (False, True):
        told: list[str] = []
        records = Results(folder).records(told.append, without, together=together)
        found.append(
            (
                told,
                [
                    (
                        {k: v for k, v in replace(one, epochs=[]).stored().items() if k not in UNASKED},
                        measured_times(one.epochs),
                    )
                    for one in records
                ],
            )
        )
        if not without:
            found[-1][1].append([(list(one.epochs), list(one.windows), one.phases) for one in records])
    return found


@pytest.mark.parametrize("without", [(), UNASKED[:2], UNASKED])
def test_the_records_are_the_same(tmp_path: Path, helped: list[bool], without: tuple[str, ...]) -> None:
    folder = folder_of(tmp_path / "x")
    alone, together = both(folder, without)
    assert repr(alone) == repr(together)
    assert len(alone[1]) > 400
    assert {True, False} == set(helped)


@pytest.mark.usefixtures("helped")
def test_damaged_records_are_told_in_the_same_words_and_order(tmp_path: Path) -> None:
    """Of each kind of damage one, wherever in the folder it lies."""
    folder = folder_of(tmp_path / "x")
    paths = sorted((folder / "records").glob("*/t*.json"))
    whole = [path.read_text("utf-8") for path in paths]
    for path, text, damage in zip(paths, whole, RECORDS.values(), strict=False):
        path.unlink()
        damage(path, text)
    assert len(paths) > len(RECORDS) + 1
    alone, together = both(folder, UNASKED)
    assert repr(alone) == repr(together)
    assert len(alone[0]) > len(RECORDS) * 3 / 4  # what differs in no column's type is no damage


def test_parts_that_are_alike_are_kept_once(tmp_path: Path, helped: list[bool]) -> None:
    """Whoever has read them: of 100,000 records they would take most of the memory."""
    large.write(tmp_path / "x", large.planned(200))
    records = Results(tmp_path / "x").records(without=UNASKED, together=True)
    assert True in helped
    assert len({id(one.environment) for one in records}) == 1
    assert len({id(one.missing) for one in records}) == 1
    assert len({json.dumps(one.provenance) for one in records}) == len(
        {id(one.provenance) for one in records}
    )


def test_a_table_is_the_same(tmp_path: Path, helped: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    large.write(tmp_path / "x", large.planned(200))
    together = read_folder(tmp_path / "x", pytest.fail)
    assert True in helped
    monkeypatch.setattr(reading_together, "_spare_cpus", lambda: 0)
    helped.clear()
    alone = read_folder(tmp_path / "x", pytest.fail)
    assert True not in helped
    assert trials_csv(together) == trials_csv(alone)
    assert table_csv(together) == table_csv(alone)
