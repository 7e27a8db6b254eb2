"""A CSV that another process appends to while it is read."""

from __future__ import annotations

import datetime
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpubench.basics.errors import UnusableError, UsageError
from gpubench.node.watch.meters.growing_csv import GrowingCsv
from gpubench.node.watch.meters.meter import Reading
from gpubench.schema.missing import Unmeasured


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def opened(path: Path, text: str, column: str = "") -> GrowingCsv:
    path.write_text(text)
    meter = GrowingCsv(f"{path}#{column}" if column else str(path), lambda: 50.0)
    meter.start()
    return meter


def told(meter: GrowingCsv) -> list[tuple[float, float]]:
    readings = meter.read_new()
    assert all(isinstance(item, Reading) for item in readings), readings
    return [(item.at, item.watts) for item in readings if isinstance(item, Reading)]


def why_not(meter: GrowingCsv) -> list[str]:
    return [str(item) for item in meter.read_new() if isinstance(item, Unmeasured)]


def test_only_what_comes_after_the_begin_and_only_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "power.csv"
    meter = opened(path, "time,watts\n1,10\n2,20\n")
    assert told(meter) == []
    append(path, "3,30\n4,4")
    assert told(meter) == [(3, 30)]
    append(path, "0\n5,50\n")
    assert told(meter) == [(4, 40), (5, 50)]
    append(path, "6,60\n7,7")
    meter.start()  # in the middle of a line, whose end is no reading
    append(path, "0\n8,80\n")
    assert told(meter) == [(8, 80)]


EPOCH = datetime.datetime(2026, 3, 1, 12, 30, 0, 500_000)


@pytest.mark.parametrize(
    ("header", "line", "at", "watts"),
    [
        ("timestamp,watts", "1772368200.5,123.4", 1772368200.5, 123.4),
        ("Date and Time;Power (W);Voltage", "2026-03-01T12:30:00.500;123,4;230", EPOCH.timestamp(), 123.4),
        ("timestamp, power.draw [W]", "2026/03/01 12:30:00.500, 123.4 W", EPOCH.timestamp(), 123.4),
        ("watts\tt_s", "5\t7.5", 7.5, 5.0),
        ("V,A,active_power,Time", "230,0.5,115,2026-03-01T12:30:00.5+00:00", 1772368200.5, 115.0),
        ('"time","W"', '"7.5","5e1"', 7.5, 50.0),
        ("power", "123.4", 50.0, 123.4),
        ("voltage,power", "230,123.4", 50.0, 123.4),
    ],
)
def test_what_columns_are_is_known_from_the_header(
    tmp_path: Path, header: str, line: str, at: float, watts: float
) -> None:
    meter = opened(tmp_path / "power.csv", f"{header}\n")
    append(tmp_path / "power.csv", f"{line}\n")
    assert told(meter) == [(pytest.approx(at), pytest.approx(watts))]


@pytest.mark.parametrize(("first", "second"), [("1.5,10\n", [(2.5, 20)]), ("10\n", [(50.0, 2.5)])])
def test_without_a_header_there_may_be_time_and_watts_or_watts_alone(
    tmp_path: Path, first: str, second: list[tuple[float, float]]
) -> None:
    path = tmp_path / "power.csv"
    meter = opened(path, first)
    append(path, "2.5,20\n" if "," in first else "2.5\n")
    assert told(meter) == second


def test_a_column_may_be_named(tmp_path: Path) -> None:
    path = tmp_path / "power.csv"
    meter = opened(path, "time,power,Channel 2\n", "channel 2")
    append(path, "1,10,20\n")
    assert told(meter) == [(1, 20)]
    assert meter.name == f"csv:{path}"


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        (
            "time,volts,amperes\n",
            "",
            "no power that is known .it has time, volts, amperes.; say which behind #",
        ),
        ("time,power,watts\n", "", "several powers"),
        ("time,power,watts\n", "amperes", "no amperes"),
        ("1,2,3\n", "", "no header"),
    ],
)
def test_a_header_that_does_not_tell_the_power_is_refused(
    tmp_path: Path, text: str, column: str, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        opened(tmp_path / "power.csv", text, column)


def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    with pytest.raises(UnusableError, match=r"away.csv: No such file or directory; start the program"):
        GrowingCsv(str(tmp_path / "away.csv"))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UnusableError, match="pipe: no regular file"):
        GrowingCsv(str(tmp_path / "pipe"))
    with pytest.raises(UnusableError, match="no regular file"):
        GrowingCsv(str(tmp_path))


def test_a_header_may_come_later(tmp_path: Path) -> None:
    path = tmp_path / "power.csv"
    meter = opened(path, "")
    append(path, "time,wat")
    assert told(meter) == []
    append(path, "ts\n1,10\n")
    assert told(meter) == [(1, 10)]


def test_a_file_that_is_replaced_or_cut_short_is_read_on(tmp_path: Path) -> None:
    """As logrotate does it, by renaming and by copying; the new file may have its columns in another order."""
    path = tmp_path / "power.csv"
    meter = opened(path, "time,watts\n")
    append(path, "1,10\n2,20\n")
    path.rename(tmp_path / "power.csv.1")
    append(tmp_path / "power.csv.1", "3,30\n")
    path.write_text("watts,time\n40,4\n")
    seen = told(meter) + told(meter)
    assert seen == [(1, 10), (2, 20), (3, 30), (4, 40)]
    path.write_text("time,watts\n5,50\n")
    assert told(meter) == []  # as long as before: only what is longer or shorter is seen
    path.write_text("t,w\n6,60\n")
    assert told(meter) == [(6, 60)]
    path.unlink()
    assert why_not(meter) == [f"{path}: No such file or directory"]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("1,many", "no number: 'many'"),
        ("1", "too few cells"),
        ("yesterday,10", "no time: 'yesterday'"),
        ("nan,10", "no time: 'nan'"),
        ("1,nan", "told nan W"),
        ("1,1e30", "told 1e.30 W"),
        ("\x00\xff,", "no number"),
    ],
)
def test_a_line_that_is_no_reading_is_a_gap_with_its_reason(tmp_path: Path, line: str, why: str) -> None:
    path = tmp_path / "power.csv"
    meter = opened(path, "time,watts\n")
    append(path, f"{line}\n\n2,20\n")
    gap, reading = meter.read_new()
    assert isinstance(gap, Unmeasured)
    assert re.search(why, str(gap)), gap
    assert reading == Reading(2, 20, 50.0)


def test_many_lines_a_second_become_ten(tmp_path: Path) -> None:
    path = tmp_path / "power.csv"
    meter = opened(path, "time,watts\n")
    append(path, "".join(f"{k / 1000},{100 + k % 2}\n" for k in range(1000)))
    seen = told(meter)
    assert 9 <= len(seen) <= 12
    assert seen[-1][0] == pytest.approx(0.999)
    assert [watts for _, watts in seen] == pytest.approx([100.5] * len(seen), abs=0.2)
    append(path, "".join(f"{2 + k / 10},{k}\n" for k in range(5)))
    assert len(told(meter)) == 5, "ten a second stay as they are"


def test_one_line_without_end_fills_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "power.csv"
    meter = opened(path, "time,watts\n")
    append(path, "9" * 1_000_000)
    for _ in range(20):
        assert told(meter) == []
        assert len(meter._rest) <= 1 << 17
    append(path, "\n1,10\n")
    assert told(meter) + told(meter) == [(1, 10)]


WRITER = """
import sys, time
with open(sys.argv[1], "a", buffering=1) as file:
    for k in range(200):
        text = f"{k},{1000 + k}\\n"
        file.write(text[:3]); file.flush()
        time.sleep(0.002)
        file.write(text[3:]); file.flush()
"""


def test_a_process_that_writes_in_pieces_while_it_is_read_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "power.csv"
    meter = opened(path, "time,watts\n")
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)])
    seen: list[tuple[float, float]] = []
    while writer.poll() is None:
        seen += told(meter)
        time.sleep(0.003)
    seen += told(meter)
    assert seen == [(k, 1000 + k) for k in range(200)]
