"""What a stranger may have put into a results folder: links, files in places of others, locks that nobody wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from earlier_version import as_earlier_version
from swept import merge_records, swept

from gpubench.basics.errors import UnusableError
from gpubench.results.file_names import parse_file_name
from gpubench.results.store import Results
from gpubench.store.work_claims import list_workers


def list_files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    swept(tmp_path / "source", "one", "16")
    return as_earlier_version(tmp_path / "source")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder of somebody else, with what gpubench would take for litter of its own."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / ".x.lock").write_text("theirs")
    (folder / ".x.999999.tmp").write_text("theirs")
    (folder / "secret.log").write_text("theirs")
    return folder


@pytest.mark.parametrize(
    "place", ["records", "records/zz", "samples", "logs", "logs/zz", "plans", "left-out", "plots"]
)
def test_a_folder_that_is_a_link_is_refused_and_nothing_behind_it_is_touched(
    place: str, source: Path, outside: Path, tmp_path: Path
) -> None:
    link = source / place
    if link.exists():
        link.rename(tmp_path / "kept")
    link.symlink_to(outside)
    before = list_files(outside)
    with pytest.raises(UnusableError, match=f"{link} is a link"):
        Results(source).create_folder()
    if place == "plots":  # of which a merge copies nothing
        link.unlink()
        return
    with pytest.raises(
        UnusableError, match=f"{link} is a link|not a results folder|is a link, and gpubench follows none"
    ):
        merge_records([source], out=tmp_path / "target")
    assert list_files(outside) == before


def test_files_that_are_links_are_not_copied(source: Path, outside: Path, tmp_path: Path) -> None:
    (record,) = Results(source).read_records()
    log = Results(source).make_log_path(record.trial_id, record.attempt)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    log.symlink_to(outside / "secret.log")
    (log.parent / f"{record.trial_id}-7.log").symlink_to(outside / "secret.log")
    merge_records([source], out=tmp_path / "target")
    assert not [
        path for path in (tmp_path / "target").rglob("*") if path.is_file() and path.read_bytes() == b"theirs"
    ]


def test_a_record_that_is_a_link_is_left_out_and_named(source: Path, tmp_path: Path) -> None:
    (record,) = Results(source).read_records()
    path = Results(source).make_attempt_file_path("records", record.trial_id, record.attempt, "json")
    path.rename(tmp_path / "elsewhere.json")
    path.symlink_to(tmp_path / "elsewhere.json")
    lines: list[str] = []
    assert Results(source).read_records(lines.append) == []
    assert [str(path) in line and "a link" in line for line in lines] == [True]


@pytest.mark.parametrize("name", ["old/{}-1.json", "{}/{}-01.json", "{}/{}-١.json"])
def test_a_second_file_of_an_attempt_takes_no_measured_record_away(
    name: str, source: Path, tmp_path: Path
) -> None:
    (record,) = Results(source).read_records()
    inside = record.trial_id[1:3]
    second = (
        source
        / "records"
        / (name.format(record.trial_id) if name[0] == "o" else name.format(inside, record.trial_id))
    )
    second.parent.mkdir(exist_ok=True)
    whole = json.loads(
        Results(source).make_attempt_file_path("records", record.trial_id, 1, "json").read_text()
    )
    second.write_text(json.dumps(whole | {"reason": "not the one"}))
    lines: list[str] = []
    assert [each.reason for each in Results(source).read_records(lines.append)] == [record.reason]
    assert any(str(second) in line for line in lines)
    merge_records([source], out=tmp_path / "target")
    assert [each.reason for each in Results(tmp_path / "target").read_records(lambda _: None)] == [
        record.reason
    ]


@pytest.mark.parametrize(
    "name", ["aa/x..x-1.log", "aa/..-1.log", "aa/t-1.log", "bb/taa-1.log", "aa/taa-0.log"]
)
def test_a_log_at_a_place_that_is_no_attempt_s_stays_where_it_is(
    name: str, source: Path, tmp_path: Path
) -> None:
    path = source / "logs" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("a stranger's")
    assert parse_file_name(path) is None
    merge_records([source], out=tmp_path / "target")
    assert not [
        each
        for each in tmp_path.rglob("*")
        if each.is_file() and each != path and "stranger" in each.read_text(errors="replace")
    ]


def test_the_name_in_a_claim_reaches_no_terminal_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "records" / "aa" / "taa-r1-m01234567.1"
    path.parent.mkdir(parents=True)
    host = "\x1b[31mh\u202e" + "x" * 1000
    path.write_text(json.dumps({"host": host, "boot": "b", "pid_namespace": "n", "pid": 7, "began": "1"}))
    (worker,) = list_workers(tmp_path)
    assert worker.who.startswith("process 7 on")
    assert worker.who.isprintable()
