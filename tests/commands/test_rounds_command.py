"""Sweeps in rounds as users run them: real processes on the CPU, Ctrl-C and a killed sweep in the second round."""

from __future__ import annotations

from collections import Counter

import pandas as pd
import psutil
import pytest
from place import Place, all_gone, until

from gpubench.results.store import Results
from gpubench.schema.record import Record

ON_CPU = (
    "--device", "cpu", "--variant", "synthetic", "--set", "input_size=28", "--set", "train_images=128",
    "--epochs", "2", "--out", "out",
)  # fmt: skip
SWEEP = ("sweep", "--model", "lenet", *ON_CPU)


def records(place: Place) -> list[Record]:
    return Results(place.home / "out").read_records()


def rounds(place: Place) -> Counter[tuple[int | None, int, str]]:
    """How often each batch size ended in each round in each way."""
    return Counter((r.trial["batch_size"], r.round, r.status) for r in records(place))


def once(*batches: int, rounds: int) -> Counter[tuple[int | None, int, str]]:
    return Counter((batch, number, "ok") for batch in batches for number in range(1, rounds + 1))


@pytest.mark.slow
def test_two_rounds_and_a_third(place: Place) -> None:
    done = place.run(*SWEEP, "--batch-size", "16", "--rounds", "2")
    assert done.returncode == 0, done.stderr
    assert " in 2 rounds, roughly " in done.stderr
    told = [line.split(":")[0] for line in done.stderr.splitlines() if line.startswith("round")]
    assert list(dict.fromkeys(told)) == ["round 1 of 2", "round 2 of 2"]
    assert "2 processes a row" in done.stdout
    assert rounds(place) == once(16, rounds=2)
    rows = pd.read_csv(place.home / "out" / "trials.csv")
    for row in rows.to_dict("records"):
        assert row["images_per_s"] * row["epoch_time_s"] == pytest.approx(128, rel=1e-4)
    assert list(rows["epoch_time_source"]) == ["measured"] * 2, "each process measures alike"
    line = pd.read_csv(place.home / "out" / "table.csv").iloc[0]
    assert line["repeats"] == 2
    assert line["epoch_time_low_s"] < line["epoch_time_s"] < line["epoch_time_high_s"]
    assert line["epoch_time_s"] == pytest.approx(
        rows[rows["batch_size"] == line["batch_size"]]["epoch_time_s"].prod() ** (1 / 2), rel=1e-4
    )

    more = place.run(*SWEEP, "--batch-size", "16", "--rounds", "3", "-q")
    assert (more.returncode, more.stdout) == (0, "out\n")
    assert rounds(place) == once(16, rounds=3)


@pytest.mark.slow
def test_a_sweep_that_is_killed_in_a_further_round_loses_nothing_and_goes_on(place: Place) -> None:
    """One that is stopped there: tests/run/test_live_rounds.py, and at every trial tests/run/test_sweep_rounds.py."""
    command = (*SWEEP, "--batch-size", "16,32")
    running = place.start(*command, "--rounds", "60", "-q")
    until(lambda: any(r.round > 1 for r in records(place)) or running.poll() is not None, "the second round")
    family = psutil.Process(running.pid).children(recursive=True)
    running.kill()
    running.communicate()
    all_gone(family)
    before = rounds(place)
    assert before >= once(16, 32, rounds=1)
    last = max(r.round for r in records(place))

    again = place.run(*command, "--rounds", str(last), "-q")
    assert again.returncode == 0, again.stderr
    assert rounds(place) == once(16, 32, rounds=last), "nothing twice, nothing missing"
