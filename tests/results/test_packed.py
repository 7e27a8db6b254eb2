"""Results folders whose samples and logs lie in a zip file: read, gone on with, merged and unpacked as others are."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from swept import swept

import gpubench
from gpubench.analyze.audit import audit_folder
from gpubench.analyze.folder import read_folder
from gpubench.basics.errors import UnusableError
from gpubench.commands.merge import merge_folders
from gpubench.results import packed
from gpubench.results.packed import PACKED, pack_folder, unpack_folder
from gpubench.results.store import Results


def files(folder: Path) -> dict[str, bytes]:
    """All samples and logs as files."""
    paths = (path for kind in ("samples", "logs") for path in (folder / kind).glob("*/*"))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths if path.name[0] != "."}


def members(folder: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(folder / PACKED) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packed") / "results"
    swept(folder, "one", "16,32")
    for number, path in enumerate(sorted(folder.glob("logs/*/*.log"))):
        path.write_text(f"line {number}\n" * 100)
    return folder


@pytest.fixture
def folder(measured: Path, tmp_path: Path) -> Path:
    return shutil.copytree(measured, tmp_path / "results")


def test_what_is_packed_is_unpacked_as_it_was(folder: Path) -> None:
    before, lines = files(folder), list[str]()
    done = pack_folder(folder, lines.append)
    assert (done.files, files(folder), members(folder)) == (4, {}, before)
    assert done.bytes_before == sum(map(len, before.values()))
    assert not (folder / "samples").exists()
    first = (folder / PACKED).read_bytes()
    undone = unpack_folder(folder, lines.append)
    assert (undone.files, files(folder), (folder / PACKED).exists()) == (4, before, False)
    pack_folder(folder, lines.append)
    # The same files make the same zip file.
    assert (folder / PACKED).read_bytes() == first
    assert lines == []


def test_every_reader_takes_a_packed_folder_as_it_is(folder: Path) -> None:
    trial_id = Results(folder).read_records()[0].trial_id
    loose = gpubench.load(folder).samples(trial_id)
    verdicts = [rule.verdict for rule in audit_folder(read_folder(folder, print))]
    next_number = Results(folder).find_next_attempt_number(trial_id)
    pack_folder(folder, print)
    assert gpubench.load(folder).samples(trial_id).equals(loose)
    assert [rule.verdict for rule in audit_folder(read_folder(folder, print))] == verdicts
    assert Results(folder).find_next_attempt_number(trial_id) == next_number == 2


def test_a_sweep_goes_on_beside_the_zip_file_and_packing_again_unites_both(folder: Path) -> None:
    before = files(folder)
    pack_folder(folder, print)
    swept(folder, "one", "16,32,64", rounds=2)
    new = files(folder)
    assert len(new) == 8
    assert sorted(record.attempt for record in Results(folder).read_records()) == [1, 1, 1, 2, 2, 2]
    pack_folder(folder, print)
    assert members(folder) == before | new


@pytest.mark.slow
@pytest.mark.parametrize("is_target_packed", [False, True])
def test_packed_folders_are_merged(folder: Path, tmp_path: Path, is_target_packed: bool) -> None:
    before = files(folder)
    pack_folder(folder, print)
    target = tmp_path / "target"
    swept(target, "two", "64")
    own = files(target)
    if is_target_packed:
        pack_folder(target, print)
    merge_folders([target, folder], out=target)
    packed_ones = members(target) if is_target_packed else {}
    assert files(target) | packed_ones == before | own
    merge_folders([target, folder], out=target)
    assert len(files(target)) + len(packed_ones) == 6


def test_what_differs_from_the_zip_file_stays_as_it_is(folder: Path) -> None:
    pack_folder(folder, print)
    name, content = min(members(folder).items())
    (folder / name).parent.mkdir(parents=True)
    (folder / name).write_text("something else")
    lines: list[str] = []
    pack_folder(folder, lines.append)
    assert files(folder) == {name: b"something else"}
    assert members(folder)[name] == content
    unpack_folder(folder, lines.append)
    assert files(folder)[name] == b"something else"
    assert (folder / PACKED).exists()
    assert len(lines) == 2


def test_a_link_is_neither_packed_nor_followed(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.log"
    secret.write_text("theirs")
    link = min(folder.glob("logs/*/*.log"))
    link.unlink()
    link.symlink_to(secret)
    pack_folder(folder, print)
    assert link.is_symlink()
    assert b"theirs" not in members(folder).values()


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "half": lambda content: content[: len(content) // 2],
    "no zip": lambda _: b"something else" * 100,
    "bits": lambda content: content[:60] + bytes(byte ^ 0xFF for byte in content[60:120]) + content[120:],
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_zip_file_is_one_line_and_costs_nothing_that_is_there(folder: Path, kind: str) -> None:
    pack_folder(folder, print)
    swept(folder, "one", "64")
    before = files(folder)
    path = folder / PACKED
    path.write_bytes(DAMAGES[kind](path.read_bytes()))
    content = path.read_bytes()
    for act in (pack_folder, unpack_folder):
        with pytest.raises(UnusableError, match=rf"^[^\n]*{PACKED} can't be read: [^\n]*$"):
            act(folder, print)
    assert (files(folder), path.read_bytes()) == (before, content)
    assert len(read_folder(folder, print).records) == 3


@pytest.mark.parametrize(
    "name",
    [
        "../out.log",
        "/tmp/o.log",
        "logs/../../out.log",
        "logs/aa/out.log",
        "logs/aa/taa-1.csv",
        "records/aa/taa-1.json",
    ],
)
def test_members_that_are_no_attempt_s_lead_nowhere(folder: Path, tmp_path: Path, name: str) -> None:
    """Nor are they lost where the zip file is made anew."""
    pack_folder(folder, print)
    with zipfile.ZipFile(folder / PACKED, "a") as archive:
        archive.writestr(name, "theirs")
    swept(folder, "one", "64")
    for act in (pack_folder, unpack_folder):
        with pytest.raises(UnusableError, match="is no attempt's samples or log"):
            act(folder, print)
    assert members(folder)[name] == b"theirs"
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.read_bytes() == b"theirs"]


def test_a_bomb_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "LARGEST", 1 << 16)
    trial_id = Results(folder).read_records()[0].trial_id
    with zipfile.ZipFile(folder / PACKED, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr(f"logs/{trial_id[1:3]}/{trial_id}-7.log", b"0" * (1 << 20))
    with pytest.raises(UnusableError, match="larger than 0 MiB"):
        unpack_folder(folder, print)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["pack", "unpack"])
def test_whoever_is_killed_in_the_middle_has_lost_nothing(folder: Path, command: str) -> None:
    """At fifteen moments: what is there as a file or as a member is all that was there."""
    before = files(folder)
    chance = random.Random(command)
    work, undo = (pack_folder, unpack_folder) if command == "pack" else (unpack_folder, pack_folder)
    undo(folder, print)
    began = time.monotonic()
    work(folder, print)
    whole_s = time.monotonic() - began
    for _ in range(15):
        undo(folder, print)
        if (pid := os.fork()) == 0:
            try:
                work(folder, print)
            finally:
                os._exit(0)
        time.sleep(chance.random() * whole_s)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        there = members(folder) if (folder / PACKED).exists() else {}
        assert there | files(folder) == before
