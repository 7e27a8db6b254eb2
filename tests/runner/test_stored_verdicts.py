"""Whoever reads a results folder of an earlier version reads one verdict on each of its groups."""

import csv
import io

import committed
import pytest

from gpubench.analysis.slowdown import word
from gpubench.experiment.experiment import Options
from gpubench.report import spreadsheet
from gpubench.runner.predict.command import predict
from gpubench.runner.tables import Contents, contents
from gpubench.store import Results

WITH_GROUPS = ("h200-copies-2026", "h200-cpus-2026", "h200-pairs-2026", "h200x4-groups-2026", "titan-xp-2021")


def read(name: str) -> Contents:
    results = Results(committed.folder(name))
    return contents(results, results.records())


@pytest.mark.parametrize("name", WITH_GROUPS)
def test_column_sentence_and_spreadsheet_say_the_same_word(name: str) -> None:
    found = read(name)
    compared = 0
    for table in found.tables:
        in_csv = list(csv.DictReader(io.StringIO(spreadsheet.text([table]))))
        for place, row in enumerate(table.rows):
            if row.get("overlap_gain") is None:
                continue
            said = [note for note in table.notes if note.startswith(row["group"]) and "overlap gain" in note]
            assert any(f": {row['sharing']} (overlap gain " in note for note in said), row["group"]
            assert row["sharing"] in in_csv[place].values()
            facts = row.get("together") or {}
            assert row["sharing"] == word(
                row["overlap_gain"], facts.get("gain_range"), facts.get("undecidable")
            )
            compared += 1
    assert compared


def test_the_track_record_judges_by_the_same_word(capsys: pytest.CaptureFixture[str]) -> None:
    """One of six groups was measured between two words. Two are of two epochs, so theirs are not sure either."""
    predict([committed.folder("h200x4-groups-2026")], Options(fields={}))
    said = capsys.readouterr().out
    assert "the predicted verdict was right for 1 of 3 groups; it is not decided for 3 groups, whose" in said


def test_a_busy_gpu_stands_in_no_cell_of_full_resources() -> None:
    stored = {
        r.result.get("full_together") for n in WITH_GROUPS for r in Results(committed.folder(n)).records()
    }
    assert "gpu" in stored, "as earlier versions stored it"
    found = {row.get("full_together") for name in WITH_GROUPS for row in read(name).rows}
    assert not {part for cell in found if cell for part in cell.split("+")} & {"gpu", "memory-bandwidth"}


def test_two_epochs_have_no_range() -> None:
    rows = [row for row in read("h200-pairs-2026").rows if row["group"]]
    assert rows
    assert {row["epochs_measured"] for row in rows} == {2}
    assert {row["together"]["gain_range"] for row in rows} == {None}
    assert all(row["sharing"].startswith("perhaps ") for row in rows)
