"""What is kept of machines' own noise, and how it stands in tables of rows of one process."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import scripted
from swept import swept
from warm_command import WarmCommand

from gpubench.analysis.machine_noise import MachineKnown, MachineNoise, MeasuredNoise
from gpubench.basics.errors import UnusableError
from gpubench.results import kept_noise

MACHINE = MachineKnown(key="CPU", host="here", cpu_name="CPU")
"""That of `scripted.computer`."""
NOISE = MachineNoise(
    machine=MACHINE,
    day="2026-11-20",
    versions={"torch": "2.11.0"},
    measured=tuple(
        MeasuredNoise(
            configuration=f"lenet, {limited}", device="cpu", cpus=scripted.computer().cpu_count, processes=5,
            total_sd=sd, within_sd=None, epoch_time_s=1.0, data_wait_pct=wait,
        )
        for limited, sd, wait in (("small", 0.02, 0.0), ("with loaders", 0.05, 40.0))
    ),
)  # fmt: skip


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GPUBENCH_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


def told() -> tuple[list[MachineNoise], list[str]]:
    lines: list[str] = []
    return kept_noise.read(lines.append), lines


def test_what_is_kept_is_read_back_and_lies_in_the_folder_of_states(state: Path) -> None:
    path = kept_noise.keep(NOISE)
    assert path.parent == state / "noise"
    assert told() == ([NOISE], [])


def test_each_machine_has_a_file_and_a_new_measurement_takes_the_place_of_the_old() -> None:
    other = MachineNoise(
        machine=MachineKnown(key="CPU", host="there", cpu_name="CPU"),
        day="2026-11-21",
        versions={},
        measured=NOISE.measured,
    )
    newer = MachineNoise(machine=MACHINE, day="2026-11-22", versions={}, measured=NOISE.measured[:1])
    assert kept_noise.keep(NOISE) != kept_noise.keep(other)
    assert kept_noise.keep(newer) == kept_noise.keep(NOISE)
    kept_noise.keep(newer)
    found, lines = told()
    assert sorted(found, key=lambda one: one.day) == [other, newer]
    assert not lines


def test_without_a_folder_nothing_is_known_and_none_is_made(state: Path) -> None:
    assert told() == ([], [])
    assert not state.exists()


def test_a_place_that_cannot_be_written_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUBENCH_STATE", os.devnull)
    with pytest.raises(UnusableError, match="can't be written"):
        kept_noise.keep(NOISE)


def test_where_it_lies_without_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GPUBENCH_STATE")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    assert kept_noise.folder() == tmp_path / "xdg" / "gpubench" / "noise"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert kept_noise.folder() == tmp_path / "home" / ".local" / "state" / "gpubench" / "noise"


def changed(old: str, new: str) -> Callable[[Path], object]:
    def change(path: Path) -> None:
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

    return change


def folder_in_its_place(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES: tuple[tuple[Callable[[Path], object], str], ...] = (
    (lambda path: path.write_text(path.read_text()[:100]), "is not JSON (half written?)"),
    (lambda path: path.write_text("[]"), "is damaged"),
    (lambda path: path.write_bytes(b"\xff\xfe"), "is not JSON"),
    (changed("0.02", "-0.02"), "is damaged"),
    (changed("0.02", "NaN"), "is damaged"),
    (changed("0.02", '"0.02"'), "is damaged"),
    (changed('"processes": 5', '"processes": 2'), "is damaged"),
    (changed("2026-11-20", "yesterday"), "is damaged"),
    (changed('"schema": 1', '"schema": 2'), "was written by a later version of gpubench"),
    (folder_in_its_place, "can't be read"),
    (changed('"versions": {', '"versions": {"' + 5000 * "9" + '": 1, '), "is damaged (versions.99"),
)


@pytest.mark.parametrize(("damage", "said"), DAMAGES)
def test_a_damaged_file_is_told_in_one_line_and_ignored(damage: Callable[[Path], object], said: str) -> None:
    path = kept_noise.keep(NOISE)
    damage(path)
    found, lines = told()
    assert found == []
    (line,) = lines
    assert line.startswith(f"{path} is left out: it {said}")
    assert "\n" not in line
    assert len(line) < 400 + len(str(path)), "a name in the file may be a whole line of it"
    assert line.endswith("gpubench doctor --noise on its machine writes it anew")


# ---- in tables ----


Table = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def table(warm_command: WarmCommand, tmp_path: Path, state: Path) -> Table:
    """`gpubench table` of a scripted sweep, beside this folder of states."""
    swept(tmp_path / "x", "one", "16,32")
    swept(tmp_path / "rounds", "one", "16,32", repeats=3)

    def run(folder: str = "x") -> subprocess.CompletedProcess[str]:
        env = {"PATH": "/usr/bin:/bin", "GPUBENCH_STATE": str(state), "COLUMNS": "200"}
        return warm_command.run(("table", str(tmp_path / folder)), cwd=tmp_path, env=env, timeout=60)

    return run


def test_rows_of_one_process_borrow_it_and_the_table_says_whose_and_of_which_day(table: Table) -> None:
    before = table()
    assert (before.returncode, before.stderr, "†" in before.stdout) == (0, "", False)
    kept_noise.keep(NOISE)
    after = table()
    assert (after.returncode, after.stderr) == (0, "")
    rows = [
        line
        for line in after.stdout.splitlines()
        if line.split()[:1] in (["16"], ["32"]) and line.endswith("ok !")
    ]
    assert len(rows) == 2
    assert all(" ± " in line and " †" in line for line in rows)
    (said,) = [line for line in after.stdout.splitlines() if line.startswith("†")]
    assert "of one process, so the machine's own noise stands in" in said
    assert "on 2026-11-20 (lenet, with loaders)" in said, "these rows wait for their data"
    assert "one process" in after.stdout.replace(said, ""), "comparisons still say what they rest on"


def test_rows_of_several_processes_and_of_other_machines_stay_as_they_are(table: Table) -> None:
    before, of_several = table().stdout, table("rounds").stdout
    elsewhere = MachineKnown(key="CPU", host="there", cpu_name="CPU")
    kept_noise.keep(MachineNoise(machine=elsewhere, day=NOISE.day, versions={}, measured=NOISE.measured))
    assert table().stdout == before
    kept_noise.keep(NOISE)
    assert table("rounds").stdout == of_several


def test_a_table_beside_a_damaged_file_is_the_one_without_it(table: Table) -> None:
    before = table().stdout
    path = kept_noise.keep(NOISE)
    path.write_text(json.dumps({"schema": 1}))
    ended = table()
    assert (ended.returncode, ended.stdout) == (0, before)
    assert ended.stderr.count("\n") == 1
    assert str(path) in ended.stderr
