"""The results folder: whole files only, every attempt kept, one writer, tables for spreadsheets."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from fakes import record
from hypothesis import given
from hypothesis import strategies as st

from gpubench.analyze.folder import build_folder_from_rows
from gpubench.basics.errors import UnusableError
from gpubench.basics.quoted import HIDDEN
from gpubench.export.sheets import make_epoch_sheet, make_trial_sheet
from gpubench.results import whole_file
from gpubench.results.counting import select_counting_records
from gpubench.results.csv_text import format_csv
from gpubench.results.rows import make_row
from gpubench.results.store import Results
from gpubench.results.whole_file import write_whole
from gpubench.schema.columns import COLUMNS, EPOCH_COLUMNS
from gpubench.schema.record import Record
from gpubench.schema.row import Row


@pytest.fixture
def results(tmp_path: Path) -> Results:
    made = Results(tmp_path / "results")
    made.create_folder()
    return made


def rows_of(records: list[Record]) -> list[Row]:
    return [make_row(record) for record in select_counting_records(records).values()]


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


# ---- whole files ----


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    """A writer in another process, killed at any moment, leaves the old text or the new one."""
    path = tmp_path / "x.txt"
    texts = {letter * 200_000 for letter in "ab"}
    code = (
        "import sys, pathlib; from gpubench.results.store import write_whole\n"
        "path = pathlib.Path(sys.argv[1]); print('on', flush=True)\n"
        "while True:\n    [write_whole(path, letter * 200_000) for letter in 'ab']"
    )
    for pause in (0.03, 0.05, 0.08):
        writer = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE)
        assert writer.stdout
        writer.stdout.readline()
        while not path.exists():
            assert writer.poll() is None
        end = time.monotonic() + pause
        while time.monotonic() < end:
            assert not path.exists() or path.read_text() in texts
        writer.kill()
        writer.communicate()
        assert path.read_text() in texts


def test_a_file_that_can_not_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "child").touch()
    with pytest.raises(UnusableError, match="taken can't be written"):
        write_whole(tmp_path / "taken", "text")
    (tmp_path / "file").touch()
    with pytest.raises(UnusableError, match="can't be written"):
        write_whole(tmp_path / "file" / "below", "text")
    assert files(tmp_path) == {"taken/child", "file"}


def test_a_full_disk_is_one_clear_line() -> None:
    with pytest.raises(UnusableError, match=r"/dev/full/x can't be written"):
        write_whole(Path("/dev/full/x"), "text")


def test_a_folder_that_can_not_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UnusableError, match="is a file; name a folder"):
        Results(tmp_path / "file").create_folder()
    with pytest.raises(UnusableError, match="can't be written"):
        Results(tmp_path / "file" / "below").create_folder()
    with pytest.raises(UnusableError, match="can't be written"):
        Results(Path("/proc/no-such-place")).create_folder()


# ---- attempts ----


def test_a_stored_attempt_is_never_overwritten(results: Results) -> None:
    results.save([record(status="ok")], [[]], ("t_s",))
    with pytest.raises(UnusableError, match="exists already"):
        results.save([record(status="failed")], [[]], ("t_s",))
    assert [r.status for r in results.read_records()] == ["ok"]


def test_an_attempt_that_left_only_a_log_keeps_its_number(results: Results) -> None:
    """The sweep was killed during the trial: the log of attempt 1 must not be written over."""
    log = results.make_log_path("t0123456789a", 1)
    log.parent.mkdir(parents=True)
    log.write_text("its last words")
    assert results.find_next_attempt_number("t0123456789a") == 2
    # Another trial whose id begins alike.
    assert results.find_next_attempt_number("t0123456789") == 1


def test_a_record_comes_back_as_it_was(results: Results) -> None:
    before = record(
        reason="“ü” 日本\nline", result={"epoch_time_s": 1 / 3, "top1_pct": None}, doubts={"stranger": "one"},
        trial={"gpu_ids": [0, 1], "lr": 0.1}, epochs=[{"epoch": 0, "warmup": True, "epoch_time_s": 1.5}],
    )  # fmt: skip
    results.save([before], [[(0.1, "gpu0", "x", 1.5)]], ("t_s", "where", "metric", "value"))
    assert results.read_records() == [before]
    assert (
        results.make_attempt_file_path("samples", before.trial_id, 1, "csv").read_text()
        == "t_s,where,metric,value\n0.1,gpu0,x,1.5\n"
    )


def test_a_loss_that_is_no_number_does_not_lose_the_attempt(results: Results) -> None:
    """Training that diverges reports NaN; JSON knows none."""
    diverged = record(
        epochs=[{"epoch": 0, "warmup": True, "epoch_time_s": 1.5, "train_loss": float("nan")}],
        result={"loss": float("inf"), "top1_pct": 1.0},
    )
    results.save([diverged], [[(0.0, float("nan"))]], ("t_s", "value"))
    (back,) = results.read_records()
    assert back.epochs == [{"epoch": 0, "warmup": True, "epoch_time_s": 1.5, "train_loss": None}]
    assert back.result == {"loss": None, "top1_pct": 1.0}


def test_a_record_that_can_not_be_read_is_named(results: Results) -> None:
    results.save([record()], [[]], ("t_s",))
    path = results.make_attempt_file_path("records", "t0123456789a", 1, "json")
    path.write_text(path.read_text()[:100])
    with pytest.raises(UnusableError, match=r"t0123456789a-1\.json is left out.*: it is not JSON[^\n]*$"):
        results.read_records()


def test_half_written_files_are_no_records(results: Results) -> None:
    results.save([record()], [[]], ("t_s",))
    folder = results.folder / "records" / "01"
    (folder / ".t0123456789a-2.json.77.tmp").write_text("{")
    (folder / ".t0123456789a-3.json").write_text("{")
    assert len(results.read_records()) == 1
    assert results.find_next_attempt_number("t0123456789a") == 2


# ---- groups ----


def jobs(*statuses: Any, attempt: int = 1, group_id: str = "g0123456789a", **fields: Any) -> list[Record]:
    """One attempt at a group, whose jobs ended like this."""
    return [
        record(
            trial_id=f"j{number}{group_id[2:]}", group="two", job=f"{number} of {len(statuses)}", group_id=group_id,
            attempt=attempt, status=status, **fields,
        )
        for number, status in enumerate(statuses, start=1)
    ]  # fmt: skip


def save_group(results: Results, made: list[Record]) -> None:
    results.save(made, [[(0.1 * n, n)] for n, _ in enumerate(made, start=1)], ("t_s", "value"))


def test_a_group_is_one_file_and_its_jobs_come_back(results: Results) -> None:
    made = jobs("oom", "skipped", reason="why")
    save_group(results, made)
    assert files(results.folder) == {
        "records/01/g0123456789a-1.json",
        "samples/11/j1123456789a-1.csv",
        "samples/21/j2123456789a-1.csv",
    }
    assert results.read_records() == made
    assert (
        results.make_attempt_file_path("samples", "j2123456789a", 1, "csv").read_text()
        == "t_s,value\n0.2,2\n"
    )
    assert [row.job for row in rows_of(results.read_records())] == ["1 of 2", "2 of 2"]


def test_a_groups_attempt_is_never_overwritten(results: Results) -> None:
    save_group(results, jobs("ok", "ok"))
    with pytest.raises(UnusableError, match=r"g0123456789a-1\.json exists already"):
        save_group(results, jobs("failed", "skipped"))
    assert [r.status for r in results.read_records()] == ["ok", "ok"]


def test_an_attempt_at_a_group_that_is_half_written_does_not_count(
    results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between any two of its files: all of its jobs are there, or none."""
    whole = len(("samples", "samples", "record"))
    write = whole_file._write_then_place
    for number in range(1, whole + 1):
        made = jobs("ok", "ok", attempt=number)
        written = 0

        def dies(path: Path, data: str, put: Callable[[Path, Path], object], last: int = number) -> None:
            nonlocal written
            written += 1
            if written >= last:
                raise KeyboardInterrupt
            write(path, data, put)

        with monkeypatch.context() as patch:
            patch.setattr(whole_file, "_write_then_place", dies)
            with pytest.raises(KeyboardInterrupt):
                save_group(results, made)
        assert results.read_records() == []
    save_group(results, jobs("ok", "ok", attempt=whole + 1))
    assert [r.attempt for r in results.read_records()] == [whole + 1] * 2


def test_the_next_attempt_at_a_group_writes_over_no_log_of_its_jobs(results: Results) -> None:
    ids = ("g0123456789a", "j1123456789a", "j2123456789a")
    assert results.find_next_attempt_number(*ids) == 1
    save_group(results, jobs("ok", "ok"))
    assert results.find_next_attempt_number(*ids) == 2
    log = results.make_log_path(ids[2], 4)
    log.parent.mkdir(parents=True)
    log.write_text("its last words")
    # The sweep was killed while attempt 4 ran.
    assert results.find_next_attempt_number(*ids) == 5
    assert results.find_next_attempt_number("g0123456789b", "j1123456789b", "j2123456789b") == 1


# ---- a folder that goes away ----


def test_a_folder_that_is_removed_while_a_sweep_writes_into_it_is_told(results: Results) -> None:
    shutil.rmtree(results.folder)
    with pytest.raises(UnusableError, match="was removed or renamed"):
        results.save([record()], [[]], ("t_s",))
    # What has just been measured is kept all the same.
    assert len(results.read_records()) == 1


def test_what_was_measured_while_the_folder_was_renamed_lies_in_it_and_nowhere_else(results: Results) -> None:
    place = results.folder.with_name("renamed")
    results.folder.rename(place)
    with pytest.raises(UnusableError, match="was removed or renamed"):
        results.save([record()], [[]], ("t_s",))
    with pytest.raises(UnusableError, match="was removed or renamed"):
        results.write_table("trials.csv", "")
    assert not results.folder.exists()
    assert len(Results(place).read_records()) == 1


# ---- plans ----


def test_a_plan_takes_the_place_of_the_same_one(results: Results) -> None:
    results.save_plan("a", "1234", "first")
    results.save_plan("a", "1234", "second")
    results.save_plan("b", "1234", "third")
    assert [path.read_text() for path in results.list_plan_paths()] == ["second", "third"]


# ---- tables ----


def written(results: Results, records: list[Any]) -> pd.DataFrame:
    results.write_table(
        "trials.csv",
        make_trial_sheet([build_folder_from_rows(results.folder, rows_of(records))]).format_csv(),
    )
    return pd.read_csv(results.folder / "trials.csv", dtype={"gpu_ids": str})


def test_the_header_is_one_for_ever() -> None:
    folder = build_folder_from_rows(Path(), rows_of([record()]))
    assert make_trial_sheet([folder]).format_csv().splitlines()[0] == ",".join(
        column.name for column in COLUMNS
    )
    assert make_epoch_sheet([folder]).format_csv() == ",".join(column.name for column in EPOCH_COLUMNS) + "\n"


def test_rows_read_back(results: Results) -> None:
    measured = {
        "epoch_time_s": 1.23456789,
        "images_per_s": 829.4,
        "images_per_epoch": 1024,
        "gpu_mem_mib": None,
    }
    trial = {
        "model": "lenet",
        "gpu_ids": [0, 1],
        "cudnn_benchmark": True,
        "lr": 0.05,
        "workers": None,
        "repeat": 0,
    }
    frame = written(results, [record(result=measured, trial=trial, resolved={"workers": 4})])
    (row,) = frame.to_dict("records")
    assert row["gpu_ids"] == "0+1"
    assert row["cudnn_benchmark"] == 1
    assert row["workers"] == 4, "what the machine filled in"
    assert pd.isna(row["gpu_mem_mib"]), "unknown is empty, never 0"
    assert row["epoch_time_s"] == pytest.approx(1.23456789, rel=1e-5)
    assert row["images_per_s"] * row["epoch_time_s"] == pytest.approx(row["images_per_epoch"], rel=1e-4)
    assert row["started_at"] == "2026-11-20 09:53:00"


def test_epochs_have_a_row_each() -> None:
    epochs = [
        {"epoch": 0, "warmup": True, "epoch_time_s": 2.0},
        {"epoch": 1, "warmup": False, "epoch_time_s": 1.0},
    ]
    stored = (record(epochs=epochs, attempt=2),)
    frame = make_epoch_sheet([build_folder_from_rows(Path(), rows_of(stored), records=stored)]).to_frame()
    assert list(frame.warmup) == [1, 0]
    assert list(frame.attempt) == [2, 2]
    assert list(frame.trial_id) == ["t0123456789a"] * 2


FORMULAS = [
    "=1+1",
    "+1",
    "-1+2",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "=cmd|' /C calc'!A0",
    "＝1+1",
    "＋1",
    "－1",
    "＠SUM(A1)",
]


@pytest.mark.parametrize("text", FORMULAS)
def test_text_that_a_spreadsheet_would_run_is_made_harmless(text: str) -> None:
    (row,) = csv.DictReader(io.StringIO(format_csv(["model", "lr"], [[text, -0.5]]), newline=""))
    assert row["model"] == "'" + text.replace("\r", " ")
    assert row["lr"] == "-0.5", "a negative number stays a number"


@given(st.lists(st.text(alphabet=st.characters(exclude_categories=["Cs"])), min_size=1, max_size=4))
def test_any_text_stays_in_its_cell(texts: list[str]) -> None:
    out = format_csv(["a"] * len(texts), [texts])
    rows = list(csv.reader(io.StringIO(out, newline="")))
    assert len(rows) == 2
    for cell, text in zip(rows[1], texts, strict=True):
        assert _without_marks(cell) == _without_marks(HIDDEN.sub(" ", text.replace("\r", " ")))


def _without_marks(text: str) -> str:
    """Without the apostrophes that keep a spreadsheet from running what follows them, here or behind a `;`."""
    return re.sub(r"'+(?=[=+@＝＋－＠\-\t ])", "", text)


def test_a_number_that_no_record_could_follow_is_no_attempt_s(results: Results) -> None:
    log = results.make_attempt_file_path("logs", "t0123456789a", 1_000_000, "log")
    log.parent.mkdir(parents=True, exist_ok=True)
    log.touch()
    assert results.find_next_attempt_number("t0123456789a") == 1


def test_a_name_that_is_no_utf_8_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(UnusableError, match="it would hold the name of a file or folder that is no UTF-8"):
        write_whole(tmp_path / "plan.toml", 'data = "b\udcffrds"')
    assert list(tmp_path.iterdir()) == []
