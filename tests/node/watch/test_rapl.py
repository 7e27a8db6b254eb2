"""RAPL's counters, from a made tree of files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpubench.basics.errors import UnusableError
from gpubench.node.watch.meters.meter import Reading
from gpubench.node.watch.meters.rapl import Rapl
from gpubench.schema.missing import Unmeasured

RANGE_UJ = 262_143_328_850


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def zone(root: Path, name: str, kind: str, energy_uj: int = 5_000_000) -> Path:
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "name").write_text(f"{kind}\n")
    (folder / "energy_uj").write_text(f"{energy_uj}\n")
    (folder / "max_energy_range_uj").write_text(f"{RANGE_UJ}\n")
    return folder


def grow(folder: Path, joules: float) -> None:
    counter = folder / "energy_uj"
    counter.write_text(f"{(int(counter.read_text()) + int(1e6 * joules)) % (RANGE_UJ + 1)}\n")


def test_packages_and_memory_are_added_up_and_nothing_is_counted_twice(tmp_path: Path) -> None:
    counted = [
        zone(tmp_path, "intel-rapl:0", "package-0"),
        zone(tmp_path, "intel-rapl:1", "package-1-die-0"),
        zone(tmp_path, "intel-rapl:0:2", "dram"),
    ]
    others = [
        zone(tmp_path, "intel-rapl:0:0", "core"),
        zone(tmp_path, "intel-rapl:0:1", "uncore"),
        zone(tmp_path, "intel-rapl:2", "psys"),
        zone(tmp_path, "intel-rapl-mmio:0", "package-0"),
    ]
    (tmp_path / "intel-rapl").mkdir()
    clock = Clock()
    meter = Rapl(tmp_path, clock)
    meter.start()
    for folder, joules in zip(counted, (30, 20, 4), strict=True):
        grow(folder, joules)
    for folder in others:
        grow(folder, 1000)
    clock.now += 0.5
    assert meter.read_new() == [Reading(100.5, pytest.approx(54 / 0.5), 100.5)]


def test_a_counter_that_wraps_around_goes_on(tmp_path: Path) -> None:
    folder = zone(tmp_path, "intel-rapl:0", "package-0", RANGE_UJ - 3_000_000)
    clock = Clock()
    meter = Rapl(tmp_path, clock)
    meter.start()
    for _ in range(3):
        grow(folder, 20)
        clock.now += 0.1
        (reading,) = meter.read_new()
        assert isinstance(reading, Reading)
        assert reading.watts == pytest.approx(200)
    assert int((folder / "energy_uj").read_text()) < 60_000_000, "it has wrapped"


def test_between_trials_nothing_is_counted(tmp_path: Path) -> None:
    """A counter may wrap around several times while nobody reads it."""
    folder = zone(tmp_path, "intel-rapl:0", "package-0")
    clock = Clock()
    meter = Rapl(tmp_path, clock)
    meter.start()
    grow(folder, 1e5)
    clock.now += 3600
    meter.start()
    grow(folder, 15)
    clock.now += 0.1
    assert meter.read_new() == [Reading(clock.now, pytest.approx(150), clock.now)]


def test_a_counter_that_can_t_be_read_any_more_is_a_gap_and_its_time_is_not_made_up(tmp_path: Path) -> None:
    folder = zone(tmp_path, "intel-rapl:0", "package-0")
    clock = Clock()
    meter = Rapl(tmp_path, clock)
    meter.start()
    (folder / "energy_uj").rename(folder / "away")
    clock.now += 0.1
    (gap,) = meter.read_new()
    assert isinstance(gap, Unmeasured)
    assert "No such file" in str(gap)
    (folder / "away").rename(folder / "energy_uj")
    grow(folder, 500)
    clock.now += 0.1
    assert meter.read_new() == []
    grow(folder, 10)
    clock.now += 0.1
    assert meter.read_new() == [Reading(clock.now, pytest.approx(100), clock.now)]


def test_without_counters_it_says_so_at_once(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl:0", "psys")
    with pytest.raises(UnusableError, match=r"no counters under .*; virtual machines"):
        Rapl(tmp_path)


@pytest.mark.parametrize("text", ["", "many", "-"])
def test_a_counter_that_holds_no_number_is_refused(tmp_path: Path, text: str) -> None:
    (zone(tmp_path, "intel-rapl:0", "package-0") / "energy_uj").write_text(text)
    with pytest.raises(UnusableError, match="can't be read"):
        Rapl(tmp_path)


def test_who_may_not_read_is_told_what_an_administrator_would_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = zone(tmp_path, "intel-rapl:0", "package-0")
    (folder / "energy_uj").chmod(0)
    if os.access(folder / "energy_uj", os.R_OK):  # root reads all

        def refuse(path: Path) -> bytes:
            raise PermissionError(13, "Permission denied", str(path))

        monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(UnusableError) as error:
        Rapl(tmp_path)
    assert str(error.value) == (
        f"--meter rapl: {folder}/energy_uj may not be read by this user; an administrator permits it until the next "
        f"boot by: chmod a+r {tmp_path}/intel-rapl:*/energy_uj"
    )
