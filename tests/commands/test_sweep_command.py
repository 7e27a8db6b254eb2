"""`gpubench sweep` in a results folder: resumed, extended, stopped, killed."""

from __future__ import annotations

import json
import re
import signal
import time

import pandas as pd
import psutil
import pytest
from place import HELD, LIMIT_S, LOAD, SMALL, TINY, Place, all_gone, until
from warm_command import Started

from gpubench.results.file_names import parse_file_name
from gpubench.schema.columns import COLUMNS
from gpubench.store.work_claims import list_workers


@pytest.mark.slow
def test_a_sweep_is_resumed_extended_and_finished(place: Place) -> None:
    first = place.run("sweep", *TINY, "--batch-size", "8,16")
    assert first.returncode == 0, first.stderr
    announced, images, *rest = first.stderr.splitlines()
    assert re.fullmatch(rf"batch-size: 2 .* s{LOAD}, .* results/batch-size", announced)
    assert re.match(r"images: 64 .* 64 .*/images/.*; first 64 \+ 64 images", images)
    told = [line.split("  ")[1] for line in rest if line.startswith("[")]  # a busy host has a line of its own
    assert told == ["started", "ok", "started", "ok"]
    assert [line.split()[0] for line in first.stdout.splitlines() if re.match(r" +\d+ +[\d,]+", line)] == [
        "8",
        "16",
    ]

    # As a spreadsheet or pandas sees it.
    table = place.trials()
    assert set(table.columns) | {"batch_size"} == {column.name for column in COLUMNS}
    assert list(table["status"]) == ["ok", "ok"]
    for row in table.to_dict("records"):
        assert row["images_per_s"] * row["epoch_time_s"] == pytest.approx(row["images_per_epoch"], rel=1e-4)
        assert 0 < row["epoch_time_s"] < LIMIT_S
        assert 0 <= row["data_wait_pct"] <= 100
        assert pd.isna(row["gpu_mem_mib"]), "no GPU: empty, never 0"
    short = pd.read_csv(place.home / "results" / "batch-size" / "table.csv")
    assert len(short) == 2
    epochs = pd.read_csv(place.home / "results" / "batch-size" / "epochs.csv")
    assert list(epochs["warmup"]) == [1, 0, 1, 0]

    # What was planned is told beforehand the next time, and only what is new runs.
    planned = place.run("sweep", "-n", *TINY, "--batch-size", "8,16,32").stdout.splitlines()
    assert [line.split(None, 2)[2].split()[0] for line in planned[:3]] == ["done", "done", "about"]
    before = {p: p.read_bytes() for p in (place.home / "results").rglob("records/*/*")}
    second = place.run("sweep", *TINY, "--batch-size", "8,16,32", "--json")
    assert second.returncode == 0, second.stderr
    assert " (2 done already)" in second.stderr
    assert second.stderr.count("started") == 1
    lines = [json.loads(line) for line in second.stdout.splitlines()]
    assert sorted(line["batch_size"] for line in lines) == [8, 16, 32]
    # What was measured is left alone.
    assert {p: p.read_bytes() for p in before} == before
    assert list(place.trials().loc[:16, "epoch_time_s"]) == list(table["epoch_time_s"])

    # Nothing left to do; and the same table, from the newest folder.
    finished = place.run("sweep", *TINY, "--batch-size", "8,16,32")
    assert finished.returncode == 0
    assert re.fullmatch(r".*: 3 done, .*\n", finished.stderr)
    shown = place.run("table")
    assert (shown.returncode, shown.stderr, shown.stdout) == (0, "", finished.stdout)
    assert list_workers(place.home / "results" / "batch-size") == [], "all claims are given back"


@pytest.mark.slow
def test_a_sweep_that_is_stopped_before_it_has_begun_says_that_nothing_was_measured(place: Place) -> None:
    """Here while it waits for the user's own model to be tried."""
    (place.home / "slow.py").write_text(
        "import pathlib, time\npathlib.Path('tried').touch()\ntime.sleep(60)\ndef net(num_classes): pass\n"
    )
    sweep = place.start("sweep", "--device", "cpu", "--model", "slow.py:net")
    until(lambda: (place.home / "tried").exists(), "the model to be tried")
    sweep.send_signal(signal.SIGINT)
    out, err = sweep.communicate(timeout=LIMIT_S)
    assert (sweep.returncode, out) == (130, "")
    assert err == "gpubench: stopped; nothing was measured\n"
    assert not (place.home / "results").exists()


@pytest.mark.slow
def test_a_sweep_can_be_stopped_and_killed_and_goes_on(place: Place) -> None:
    """A model that waits for as long as a file is there: stopped in the middle of its first epoch, for certain."""
    hold = place.home / "hold"
    hold.touch()
    (place.home / "nets.py").write_text(HELD.format(hold=str(hold)))
    command = ("sweep", *SMALL, "--model", "nets.py:net", "--batch-size", "8,16", "--workers", "1")

    killed = place.start(*command)
    family = _in_training(killed)
    killed.kill()
    killed.communicate()
    all_gone(family)

    stopped = place.start(*command)
    family = _in_training(stopped)
    stopped.send_signal(signal.SIGINT)
    out, err = stopped.communicate(timeout=LIMIT_S)
    assert stopped.returncode == 75
    assert "stopped; " in err.splitlines()[-1]
    assert "interrupted" in out
    all_gone(family)
    assert dict(place.trials()["status"]) == {8: "interrupted"}

    hold.unlink()
    again = place.run(*command)
    assert again.returncode == 0, again.stderr
    assert dict(place.trials()["status"]) == {8: "ok", 16: "ok"}
    (trial_id,) = place.trials().loc[[8], "trial_id"]
    kept = {parse_file_name(path) for path in (place.home / "results").rglob("records/*/*.json")}
    numbers = {name.number for name in kept if name and name.unit_id == trial_id}
    # Attempt 1 was killed and left its log only.
    assert numbers == {2, 3}


def _in_training(sweep: Started) -> list[psutil.Process]:
    """Its processes, once a rank and its loader are there."""

    def family() -> list[psutil.Process]:
        return psutil.Process(sweep.pid).children(recursive=True)

    def training() -> bool:
        # Below the sweep: the fork server, the leader, the rank, the loader's worker.
        try:
            return any(
                len(process.parents()) >= len(psutil.Process(sweep.pid).parents()) + 4 for process in family()
            )
        except psutil.NoSuchProcess:
            return False

    until(lambda: sweep.poll() is not None or training(), "the trial to begin")
    assert sweep.poll() is None, sweep.communicate()[1]
    time.sleep(0.5)
    return family()
