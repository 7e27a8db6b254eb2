"""Whoever reads a results folder of an earlier version reads one verdict on each of its groups."""

import csv
import io
import re
import statistics

import committed
import pytest

from gpubench.commands.predict import predict
from gpubench.plan.options import Options
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


def test_the_track_record_judges_by_the_same_word(capsys: pytest.CaptureFixture[str]) -> None:
    """One of six groups was measured between two words. Two are of two epochs, so theirs are not sure either."""
    predict([committed.folder("h200x4-groups-2026")], Options(fields={}))
    said = capsys.readouterr().out
    assert (
        "the predicted verdict was right for 1 of 3 groups; it is not decided for 1 group, whose measured verdict is "
        "not sure, and for 2 groups, whose spread is not known."
    ) in said


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


def test_the_track_record_comes_first_and_names_each_group_as_its_table_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Another table of this folder has copies in another precision, of which these need not be told apart."""
    predict([committed.folder("h200-copies-2026")], Options(fields={}))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("10 jobs of 4 groups on NVIDIA H200, 143,771 MiB: half of the predictions")
    assert lines[-1].startswith("By results of NVIDIA H200")
    named = [line.split(")")[0] + ")" for line in lines if " copies (" in line]
    assert named == [f"{n} copies (batch_size={batch})" for n in (2, 3) for batch in (16, 128)]


@pytest.mark.parametrize("name", [*WITH_GROUPS, "h200-copies-rounds-2026", "h200-pairs-rounds-2026"])
def test_predict_tells_the_slowdowns_and_errors_of_the_table(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of rounds it told those of the first alone: 1.56 and an error of −1 %, where the table had 1.88 and −18 %."""
    predict([committed.folder(name)], Options(fields={}))
    lines = capsys.readouterr().out.splitlines()
    notes = {note for table in read(name).tables for note in table.answers}
    number = r"[+−]?\d+(?:\.\d+)?"
    told = [re.search(r"times as long as alone, measured (.*?) \(error (.*?) %\)", note) for note in notes]
    in_table = [tuple(re.findall(number, part) for part in said.groups()) for said in told if said]
    assert in_table
    in_predict = []
    for line in lines:
        cells = re.split(r"\s{2,}", line.strip())
        if len(cells) >= 5 and cells[1].isdecimal():
            in_predict.append((re.findall(number, cells[2]), re.findall(number, cells[4])))
    assert sorted(in_predict) == sorted(in_table)
    errors = [abs(int(error.replace("−", "-"))) for _, of_group in in_table for error in of_group]
    assert f"{len(errors)} jobs of {len(in_table)} group" in lines[0]
    said = re.search(r"half of the predictions were within (\d+) %", lines[0])
    assert said
    assert abs(int(said[1]) - statistics.median(errors)) <= 1, "both were rounded"


def test_the_heading_counts_rows_of_which_a_further_round_was_interrupted() -> None:
    (table,) = read("h200-pairs-rounds-2026").tables
    (said,) = [line for line in table.heading if " in 3 rounds: " in line]
    assert said.endswith(": 9 ok; of those that are ok, 1 with a further round interrupted")
    (whole,) = [
        line for line in read("h200-copies-rounds-2026").tables[0].heading if " in 3 rounds: " in line
    ]
    assert whole.endswith(" ok")


def test_a_prediction_by_all_rounds_says_why_the_table_has_another(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = "This rests on all rounds of the rows alone; the prediction in a group's table rests on the first round"
    options = Options(fields={"copies": "2", "batch_size": "128"})
    predict([committed.folder("h200-copies-rounds-2026")], options)
    assert said in capsys.readouterr().out
    predict([committed.folder("h200-copies-2026")], Options(fields={**options.fields, "precision": "bf16"}))
    assert said not in capsys.readouterr().out
