"""`gpubench sweep --meter`: a power meter beside the trials, by another program that writes what it shows."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from place import Place, until

NETS = """
from pathlib import Path
from torch import nn

class Net(nn.Module):
    def __init__(self, classes, inputs):
        super().__init__()
        self.layer = nn.Linear(inputs, classes)

    def forward(self, x):
        Path({busy!r}).touch()
        return self.layer(x.flatten(1))

def net(num_classes, channels, input_size):
    return Net(num_classes, channels * input_size**2)
"""
METER = """
import collections, pathlib, sys, time

busy, out, truth = map(pathlib.Path, sys.argv[1:])
DELAY_S, WIDTH_S, AHEAD_S, DRIFT, STEP_S = 1.5, 1.0, 5000.0, 1e-3, 0.02
drawn, began = collections.deque(maxlen=1000), time.monotonic()

def is_training():
    try:
        return time.time() - busy.stat().st_mtime < 0.3
    except OSError:
        return False

with out.open("w", buffering=1) as told, truth.open("w", buffering=1) as true:
    print("own clock time,volts,watts", file=told)
    for k in range(10**9):
        now = time.monotonic()
        drawn.append((now, 60.0 + 90.0 * is_training()))
        print(*drawn[-1], file=true)
        if k % 25 == 0:
            shown = [watts for t, watts in drawn if now - DELAY_S - WIDTH_S < t <= now - DELAY_S]
            if shown:
                print(f"{AHEAD_S + (now - began) * (1 + DRIFT):.3f},230,{sum(shown) / len(shown):.2f}", file=told)
        time.sleep(max(0.0, began + (k + 1) * STEP_S - time.monotonic()))
"""
"""A machine draws 60 W, and 150 W while it trains; the meter shows the mean over a second, 1.5 s later, twice a second,
on a clock of its own that is fast by 1,000 ppm. What was drawn, on the machine's clock, goes to another file."""


BURN = """
import pathlib, sys, time

end = time.monotonic() + 4
while time.monotonic() < end:
    pathlib.Path(sys.argv[1]).touch()
    time.sleep(0.02)
"""


class Meter:
    """The meter's program, which runs in a test's folder."""

    def __init__(self, place: Place) -> None:
        self.busy, self.out, self.truth = (place.home / name for name in ("busy", "power.csv", "truth.txt"))
        words = map(str, (self.busy, self.out, self.truth))
        self.process = subprocess.Popen([sys.executable, "-c", METER, *words])
        until(lambda: self.out.exists() and self.out.read_text().count("\n") > 4, "the meter's first lines")

    def mean_drawn(self, t0: float, t1: float) -> float:
        """W between two times of the machine's clock."""
        lines = [line.split() for line in self.truth.read_text().splitlines() if line.count(" ") == 1]
        inside = [float(watts) for t, watts in lines if t0 <= float(t) <= t1]
        return sum(inside) / len(inside)


@pytest.fixture
def meter(place: Place) -> Iterator[Meter]:
    running = Meter(place)
    yield running
    running.process.kill()
    running.process.wait()


def check_delay(record: dict[str, Any], meter: Meter) -> None:
    (source,) = [source for source in record["provenance"] if source.startswith(f"csv:{meter.out}, ")]
    told = re.search(r", (\S+) ± (\S+) s late by the edges of ", source)
    assert told, source
    assert float(told[1]) == pytest.approx(1.75, abs=0.4)


def list_records(place: Place) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in (place.home / "results").rglob("records/*/*.json")]


def test_power_and_energy_by_a_csv_that_grows_meanwhile(place: Place, meter: Meter) -> None:
    (place.home / "nets.py").write_text(NETS.format(busy=str(meter.busy)))
    done = place.run(
        "sweep", "--device", "cpu", "--model", "nets.py:net", "--variant", "synthetic", "--batch-size", "8,16",
        "--window", "4s", "--rounds", "1", "--meter", f"csv:{meter.out}",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"meters: csv:{meter.out}; 8 s after each trial for what comes late" in done.stderr.splitlines()

    table, records = place.trials(), list_records(place)
    assert len(records) == len(table) == 2
    for record in records:
        row = table.loc[record["trial"]["batch_size"]]
        (window,) = [window for window in record["windows"] if window["epoch"] == 1]
        true_w = meter.mean_drawn(window["t0"], window["t1"])
        assert row["meter_power_w"] == pytest.approx(true_w, rel=0.05)
        assert row["meter_energy_j"] == pytest.approx(true_w * row["epoch_time_s"], rel=0.1)
        assert row["meter_source"] == f"csv:{meter.out}"
        assert record["missing"]["rapl_power_w"] == "no-meter"
        check_delay(record, meter)


def test_a_command_s_whole_run(place: Place, meter: Meter) -> None:
    done = place.run(
        "sweep", "--rounds", "1", "--out", "results/burn", "--meter", f"csv:{meter.out}", "--",
        sys.executable, "-c", BURN, str(meter.busy),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (record,) = list_records(place)
    (window,) = record["windows"]
    true_w = meter.mean_drawn(window["t0"], window["t1"])
    assert record["result"]["meter_power_w"] == pytest.approx(true_w, rel=0.05)
    assert re.search(r"  ok  run \S+ s  meter 1[345]\d W$", done.stderr, re.MULTILINE)
    seconds = window["t1"] - window["t0"]
    assert record["result"]["meter_energy_j"] == pytest.approx(true_w * seconds, rel=0.05)
    check_delay(record, meter)


@pytest.mark.parametrize(
    ("meter", "code", "words"),
    [
        (
            "csv:away.csv",
            4,
            "--meter csv:away.csv: No such file or directory; start the program that writes it first",
        ),
        ("csv:nets.py", 2, "--meter csv:nets.py: its header has no power that is known"),
        ("http://127.0.0.1:1/", 4, "--meter http://127.0.0.1:1/: no answer: Connection refused"),
        ("plug", 2, "--meter 'plug': give rapl, csv:PATH or http://HOST/PATH"),
    ],
)
def test_a_meter_that_can_t_be_read_is_told_before_anything_runs(
    place: Place, meter: str, code: int, words: str
) -> None:
    (place.home / "nets.py").write_text("time,volts\n")
    before = place.files()
    done = place.run("sweep", "-n", "--device", "cpu", "--model", "lenet", "--meter", meter, trains=False)
    assert (done.returncode, done.stdout) == (code, "")
    assert re.fullmatch(r"gpubench: [^\n]+\n", done.stderr), done.stderr
    assert words in done.stderr
    assert place.files() == before


@pytest.mark.skipif(any(Path("/sys/class/powercap").glob("intel-rapl:*")), reason="there are counters here")
def test_a_machine_without_rapl_says_so(place: Place) -> None:
    done = place.run("sweep", "-n", "--device", "cpu", "--model", "lenet", "--meter", "rapl", trains=False)
    assert (done.returncode, done.stdout) == (4, "")
    assert "--meter rapl: no counters under /sys/class/powercap" in done.stderr
