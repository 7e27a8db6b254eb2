"""Frames of pandas: what they hold, with which dtypes, and what is known of their columns."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import committed
import pandas as pd
import pytest
from swept import swept
from whole_rows import row_with

import gpubench
from gpubench.analyze.folder import Folder, build_folder_from_rows
from gpubench.basics.errors import UnusableError, UsageError
from gpubench.core.findings import BatchSizeFinding
from gpubench.export import sheets
from gpubench.notebook import LoadedFolders
from gpubench.results.store import Results
from gpubench.schema.columns import COLUMNS, SAMPLE_COLUMNS
from gpubench.schema.kinds import find_column_kind, format_value_text
from gpubench.schema.record import Record
from gpubench.schema.row import Row
from gpubench.schema.samples import SAMPLE_HEADER


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of four trials, with optimizers named in an order that is not that of the alphabet, two were measured."""
    folder = tmp_path_factory.mktemp("frames")
    return swept(folder, "part", "16,32", stop_after=2, optimizer="sgd,adam").runner.results.folder


@pytest.fixture(scope="module")
def copies() -> LoadedFolders:
    return gpubench.load(committed.folder("h200-copies-2026"))


def folder_of(rows: Sequence[Row], records: Sequence[Record] = ()) -> Folder:
    """A folder with these rows, and records that count."""
    return build_folder_from_rows(Path("/nowhere/by-hand"), rows, records=tuple(records))


def is_same(found: Any, value: Any, form: str) -> bool:
    """Whether a cell of a frame is what the row has."""
    if value is None:
        return bool(pd.isna(found))
    if form == "moment":
        return bool(found == datetime.fromisoformat(value))
    return bool(found == (format_value_text(value) if form in ("text", "list") else value))


@pytest.mark.parametrize("name", committed.cases((*committed.DIFFERENT, "titan-xp-2021")))
def test_trials_hold_every_column_of_trials_csv_and_every_value(name: str) -> None:
    found = gpubench.load(committed.folder(name))
    trials = found.trials
    assert list(trials.columns) == [column.name for column in COLUMNS]
    (folder,) = found.folders
    runs = folder.runs[folder.runs["status"] != "missing"]
    assert len(trials) == len(runs) > 0
    for column in COLUMNS:
        if column.name != "doubts":  # repeats that lie apart have one more
            values = [value for (value,) in sheets.list_frame_lines(runs, [column.name])]
            for cell, value in zip(trials[column.name], values, strict=True):
                assert is_same(cell, value, find_column_kind(column)), column.name


def test_dtypes_are_those_of_the_columns(copies: LoadedFolders) -> None:
    of = copies.trials.dtypes
    assert of["epoch_time_s"] == of["gpu_mem_mib"] == of["lr"] == "float64"
    assert of["batch_size"] == of["workers"] == of["round"] == of["steps"] == "Int64"
    assert of["breakdown"] == of["cudnn_benchmark"] == "boolean"
    assert of["reason"] == of["trial_id"] == of["host"] == "string"
    assert pd.api.types.is_datetime64_dtype(of["started_at"])
    for name in ("status", "strategy", "variant", "gpu_ids", "model"):
        assert of[name] == "string"
    assert copies.epochs.dtypes["warmup"] == "boolean"
    assert copies.epochs.dtypes["steps"] == "Int64"
    assert set(copies.trials["gpu_ids"].dropna()) == {"0"}


def test_findings_are_those_of_the_command_as_data_and_in_words() -> None:
    path = committed.folder("h200x2-2026")
    found = gpubench.load(path)
    assert found.reports == committed.load_reports(path, lambda line: pytest.fail(line))
    assert found.findings == [finding for report in found.reports for finding in report.findings]
    (best,) = (finding for finding in found.findings if isinstance(finding, BatchSizeFinding))
    assert best.choice is not None
    fields = found.reports[0].labels[best.choice.row]
    assert (best.word, fields["batch_size"], fields["gpus"], fields["strategy"]) == ("sure", 128, 2, "ddp")
    assert len(found.answers) == len(found.findings)
    assert found.answers[0].startswith("Take batch 128 on 2 GPUs ")
    assert str(found) == found.text()
    assert "Take batch 128 on 2 GPUs " in found.text()
    assert repr(found) == f"<gpubench results of {path}: 55 records>"


def test_a_notebook_shows_the_table_and_no_text_of_it_is_html() -> None:
    row = row_with(trial_id="t1", experiment="<b>x", status="failed", reason="<script>", batch_size=16)
    shown = LoadedFolders([folder_of([row])])._repr_html_()
    assert "<script>" not in shown
    assert "<b>x" not in shown
    assert "&lt;b&gt;x" in shown
    found = gpubench.load(committed.folder("h200x4-2026"))
    shown = found._repr_html_()
    assert shown.count("<table>") == len(found.reports) > 1
    assert all(f"<h4>{report.name}</h4>" in shown for report in found.reports)
    assert shown.count("<p><b>") == sum(bool(report.findings) for report in found.reports) > 1


def test_samples_are_marked_by_the_windows_of_the_record(copies: LoadedFolders) -> None:
    assert tuple(column.name for column in SAMPLE_COLUMNS[:4]) == SAMPLE_HEADER
    trial_id = copies.trials["trial_id"][0]
    made = copies.samples(trial_id)
    assert list(made.columns) == [column.name for column in SAMPLE_COLUMNS]
    assert made.attrs["units"]["t_s"] == "s"
    (one,) = [one for one in Results(copies.folders[0].path).read_records() if one.trial_id == trial_id]
    assert one.span is not None
    assert made["t_s"].is_monotonic_increasing
    for window in one.windows:
        inside = made[(made["t_s"] + one.span.launched).between(window.t0, window.t1)]
        assert len(inside) > 0
        assert set(inside["epoch"]) == {window.epoch}
        assert set(inside["measured"]) == {window.epoch > 0}
    assert made["epoch"].isna().any()
    assert not made.loc[made["epoch"].isna(), "measured"].any()
    busy = made[made["measured"] & (made["metric"] == "gpu_util_pct")]["value"].mean()
    assert busy == pytest.approx(copies.trials["gpu_util_pct"][0], abs=5)


@pytest.mark.parametrize("damage", ["", "t_s,device,metric,value\n1,0,power_w,much\n"])
def test_damaged_samples_are_told_in_one_line(interrupted: Path, tmp_path: Path, damage: str) -> None:
    found = gpubench.load(shutil.copytree(interrupted, tmp_path / "damaged"))
    trial_id = found.trials["trial_id"][0]
    (path,) = found.folders[0].path.glob(f"samples/*/{trial_id}-*.csv")
    path.write_text(damage)
    with pytest.raises(UnusableError, match=r"^[^\n]* is damaged: [^\n]+$"):
        found.samples(trial_id)


def test_readings_of_a_file_that_was_cut_off_are_left_out_with_a_warning(
    interrupted: Path, tmp_path: Path
) -> None:
    found = gpubench.load(shutil.copytree(interrupted, tmp_path / "damaged"))
    trial_id = found.trials["trial_id"][0]
    (path,) = found.folders[0].path.glob(f"samples/*/{trial_id}-*.csv")
    lines = path.read_text("utf-8").splitlines(keepends=True)
    for cut in ("1.5,0,power_w,12", "\0\0\n"):
        path.write_text("".join([*lines[:9], cut]))
        with pytest.warns(
            UserWarning, match=f"{path.name} is damaged: 1 of its 9 readings can't be read"
        ) as warned:
            assert len(found.samples(trial_id)) == 8
        assert [one.filename for one in warned] == [__file__]


@pytest.mark.slow
def test_several_folders_stand_in_one_frame_under_their_names(interrupted: Path, tmp_path: Path) -> None:
    other = committed.folder("h200-copies-2026")
    found = gpubench.load(other, interrupted)
    assert list(found.trials["results"].unique()) == [other.name, interrupted.name]
    assert set(found.trials["results"]) == {other.name, interrupted.name}
    assert found.trials.columns[0] == found.table().columns[0] == found.doubts.columns[0] == "results"
    assert len(found.environment) == 2
    folders = dict.fromkeys(report.name.partition(":")[0] for report in found.reports)
    assert list(folders) == [other.name, interrupted.name]

    twin = tmp_path / interrupted.name
    shutil.copytree(interrupted, twin)
    again = gpubench.load(interrupted, twin)  # of one name, so each is called by where it lies
    assert list(again.trials["results"].unique()) == [str(interrupted), str(twin)]
    trial_id = again.trials["trial_id"][0]
    with pytest.raises(UsageError, match=r"say which one: results="):
        again.samples(trial_id)
    assert len(again.samples(trial_id, results=str(twin))) > 0


def test_a_record_that_cannot_be_read_is_a_warning_of_the_line_that_loads(
    interrupted: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(interrupted, tmp_path / "damaged")
    damaged = min((folder / "records").glob("*/*.json"))
    damaged.write_text("{")
    with pytest.warns(UserWarning, match=damaged.name) as told:
        found = gpubench.load(folder)
    assert [one.filename for one in told] == [__file__] * len(told)
    assert len(found.trials) == 1


def test_doubts_name_their_rows_and_sentences() -> None:
    row = row_with(
        trial_id="t1", experiment="x", status="ok", batch_size=16, doubts="other+spread",
        doubt_texts={"spread": "epochs spread"}, epoch_time_s=1.0,
    )  # fmt: skip
    made = LoadedFolders([folder_of([row, row_with(trial_id="t2", experiment="x", batch_size=32)])]).doubts
    assert list(made["code"]) == ["other", "spread"]
    assert list(made["row"]) == ["batch 16"] * 2
    assert pd.isna(made["sentence"][0])
    assert made["sentence"][1] == "epochs spread"


def imported_by(code: str) -> set[str]:
    """The modules that are there after this code."""
    ended = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return set(ended.stdout.split())


def test_the_package_imports_next_to_nothing() -> None:
    bare = imported_by("import typing")
    more = imported_by("import gpubench; gpubench.load") - bare
    assert len(more) <= 3, sorted(more)
    assert not {"pandas", "msgspec", "numpy", "typer"} & more
