"""What a stranger may have put into a results folder: links, files in places of others, locks that nobody wrote."""

from __future__ import annotations

from pathlib import Path

import pytest
from earlier_version import as_earlier_version
from swept import swept

from gpubench.basics.errors import UnusableError
from gpubench.commands.merge import merge_folders
from gpubench.results.store import Results


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


@pytest.mark.parametrize("place", ["records", "records/zz", "logs", "plans"])
def test_a_folder_that_is_a_link_is_refused_and_nothing_behind_it_is_touched(
    place: str, source: Path, outside: Path, tmp_path: Path
) -> None:
    link = source / place
    if link.exists():
        link.rename(tmp_path / "kept")
    link.symlink_to(outside)
    before = list_files(outside)
    with pytest.raises(UnusableError, match=f"{link} is a link"):
        Results(source).create()
    if place == "plots":  # of which a merge copies nothing
        link.unlink()
        return
    with pytest.raises(
        UnusableError, match=f"{link} is a link|not a results folder|is a link, and gpubench follows none"
    ):
        merge_folders([source], out=tmp_path / "target")
    assert list_files(outside) == before


def test_files_that_are_links_are_not_copied(source: Path, outside: Path, tmp_path: Path) -> None:
    (record,) = Results(source).records()
    log = Results(source).log(record.trial_id, record.attempt)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    log.symlink_to(outside / "secret.log")
    (log.parent / f"{record.trial_id}-7.log").symlink_to(outside / "secret.log")
    merge_folders([source], out=tmp_path / "target")
    assert not [
        path for path in (tmp_path / "target").rglob("*") if path.is_file() and path.read_bytes() == b"theirs"
    ]


def test_a_record_that_is_a_link_is_left_out_and_named(source: Path, tmp_path: Path) -> None:
    (record,) = Results(source).records()
    path = Results(source).part("records", record.trial_id, record.attempt, "json")
    path.rename(tmp_path / "elsewhere.json")
    path.symlink_to(tmp_path / "elsewhere.json")
    lines: list[str] = []
    assert Results(source).records(lines.append) == []
    assert [str(path) in line and "a link" in line for line in lines] == [True]
