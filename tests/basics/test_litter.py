"""What killed sweeps have left in a results folder goes with the next one; what others may need stays."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpubench.basics import litter
from gpubench.results.store import Results
from gpubench.results.whole_file import write_whole


@pytest.fixture(scope="module")
def gone() -> int:
    """The number of a process that is gone."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.fixture
def results(tmp_path: Path) -> Iterator[Results]:
    """A folder with a record, a table and a log."""
    made = Results(tmp_path / "results")
    made.create_folder()
    for path in ("records/ab/tab-1.json", "trials.csv", "logs/ab/tab-1.log", "plans/x-1.toml"):
        write_whole(made.folder / path, "kept\n")
    return made


def left(results: Results) -> set[str]:
    return {str(p.relative_to(results.folder)) for p in results.folder.rglob("*") if not p.is_dir()}


def put(results: Results, *names: str) -> None:
    for name in names:
        (results.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (results.folder / name).write_text("left\n")


def make_old(results: Results, *names: str) -> None:
    long_ago = time.time() - litter.OLD_S - 10
    for name in names:
        os.utime(results.folder / name, (long_ago, long_ago))


def test_a_writer_that_is_killed_leaves_what_the_next_start_removes(results: Results) -> None:
    before = left(results)
    code = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom gpubench.results.whole_file import write_whole\n"
        "os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)\n"
        "write_whole(Path(sys.argv[1]), 'half')"
    )
    for path in ("records/ab/tab-2.json", "trials.csv", "plans/y-1.toml"):
        subprocess.run([sys.executable, "-c", code, str(results.folder / path)], check=False)
    assert len(left(results) - before) == 3
    results.create_folder()
    assert left(results) == before


def test_of_another_host_s_process_only_what_is_old_goes(results: Results, gone: int) -> None:
    before = left(results)
    elsewhere = f".trials.csv.01234567-abcdef-{gone}.tmp"
    put(results, elsewhere)
    results.create_folder()
    assert left(results) == before | {elsewhere}
    make_old(results, elsewhere)
    results.create_folder()
    assert left(results) == before


def test_what_is_not_a_sweep_s_own_stays(results: Results, gone: int) -> None:
    stays = {".nfs0001", ".hidden", ".notes.tmp", f"mine.{gone}.tmp", f"a/b/c/.d.{gone}.tmp"}
    put(results, *stays)
    (results.folder / f".link.{gone}.tmp").symlink_to(results.folder / "trials.csv")
    make_old(results, *stays)
    before = left(results)
    results.create_folder()
    assert left(results) == before


def test_a_probe_that_another_start_removed_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = os.fstat

    def look_and_lose(descriptor: int) -> os.stat_result:
        for probe in tmp_path.glob("results/.probe.*"):
            probe.unlink()
        return look(descriptor)

    monkeypatch.setattr(os, "fstat", look_and_lose)
    Results(tmp_path / "results").create_folder()
