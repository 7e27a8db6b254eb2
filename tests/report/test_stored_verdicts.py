"""Whoever reads a results folder of an earlier version reads one verdict on each of its groups."""

import csv
import io
import re

import committed
import pytest
from gpubench.report import spreadsheet
from gpubench.report.contents import Contents, contents

from gpubench.results.store import Results

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
            if row.overlap_gain is None:
                continue
            said = [note for note in table.notes if note.startswith(row.group) and "overlap gain" in note]
            loss = r"(, (and|perhaps) slower than one after the other)?"
            word = re.compile(rf"(: |each, ){row.sharing}{loss} \(overlap gain ")
            assert any(map(word.search, said)), row.group
            assert row.sharing in in_csv[place].values()
            assert row.sharing == row.verdict.cell
            compared += 1
    assert compared


def test_a_busy_gpu_stands_in_no_cell_of_full_resources() -> None:
    stored = {r.result.full_together for n in WITH_GROUPS for r in Results(committed.folder(n)).records()}
    assert "gpu" in stored, "as earlier versions stored it"
    found = {row.full_together for name in WITH_GROUPS for row in read(name).rows}
    assert not {part for cell in found if cell for part in cell.split("+")} & {"gpu", "memory-bandwidth"}


def test_two_epochs_have_no_range() -> None:
    rows = [row for row in read("h200-pairs-2026").rows if row.group]
    assert rows
    assert {row.epochs_measured for row in rows} == {2}
    assert {row.verdict.gain_range for row in rows} == {None}
    assert all(row.sharing.startswith("perhaps ") for row in rows)


@pytest.mark.parametrize("name", ["h200-pairs-2026", "h200x4-groups-2026", "h200-cpus-2026"])
def test_no_table_tells_a_spread_of_two_epochs(name: str) -> None:
    found = read(name)
    few = [row for row in found.rows if (row.epochs_measured or 0) == 2]
    assert few
    for row in few:
        assert row.epoch_time_iqr_s is None
        assert "spread" not in (row.doubts or "")
    for table in found.tables:
        if {row.epochs_measured for row in table.rows} <= {None, 2}:
            assert not any("spread by" in note or ", spread)" in note for note in table.notes)


def test_copies_that_were_faster_than_alone_waited_for_nothing_and_are_doubted() -> None:
    """Slowdowns of 0.94, 0.93 and 0.90 at a gain between partly parallel and parallel."""
    table = next(table for table in read("h200-copies-2026").tables if table.name == "mobilenet_v2-copies")
    (said,) = [note for note in table.answers if note.startswith("3 copies (batch_size=16): ")]
    assert " None of the jobs was slower than alone. " in said
    assert "waited" not in said
    (doubt,) = [note for note in table.doubts if note.startswith("Doubt faster-together: ")]
    assert "it took 0.90 to 0.94 times as long as alone" in doubt
    assert sum("faster-together" in (row.doubts or "") for row in table.rows) == 3


def test_sentences_on_groups_are_short() -> None:
    """For readers who are no native speakers: they had 110 words."""
    said = [
        sentence
        for name in WITH_GROUPS
        for table in read(name).tables
        for note in table.answers
        if "overlap gain" in note
        for sentence in note.split(". ")
    ]
    assert len(said) > 30
    assert max(len(sentence.split()) for sentence in said) <= 45


def test_the_heading_counts_rows_of_which_a_further_round_was_interrupted() -> None:
    (table,) = read("h200-pairs-rounds-2026").tables
    (said,) = [line for line in table.heading if " in 3 rounds: " in line]
    assert said.endswith(": 9 ok; of those that are ok, 1 with a further round interrupted")
    (whole,) = [
        line for line in read("h200-copies-rounds-2026").tables[0].heading if " in 3 rounds: " in line
    ]
    assert whole.endswith(" ok")
