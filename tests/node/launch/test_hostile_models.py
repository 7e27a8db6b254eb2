"""Whatever a model does in its rank, its trial ends as one row with its reason, and the parent is none the worse."""

from __future__ import annotations

import csv
import gc
import os
import re
from pathlib import Path

import psutil
import pytest
from family import blamed, nobody_left
from warm_command import WarmCommand

from gpubench.node.launch import attempt
from gpubench.node.launch.fork_server import END_LIMIT_S, ForkServer

HOSTILE = "tests/train/hostile_models.py:"
SENT = "rank 0 sent what is no message of gpubench: "

ENDINGS = {
    "writes_binary": ("failed", SENT + "256 bytes"),
    "writes_a_hundred_megabytes": ("failed", SENT + "100,000 bytes"),
    "sends_open_files": ("ok", ""),
    "never_stops_telling": ("timeout", "did not end within 2 s; rank 0 was in hostile_models.py:"),
    "never_stops_asking": ("timeout", "did not end within 2 s; rank 0 was in hostile_models.py:"),
    "patches_the_clocks": ("ok", ""),
    "closes_all": ("failed", "rank 0 ended with exit code 70"),
    "hangs_up": ("failed", "the process that leads the trial ended with exit code 1"),
    "changes_its_surroundings": ("ok", ""),
    "spends_its_cpu_time": ("failed", "rank 0 was ended by SIG"),
    "raises_the_unspeakable": ("failed", "UnspeakableError: (its message can't be had: str() of it raised RuntimeE"),
    "raises_megabytes": ("failed", "ValueError: mmmm"),
    "raises_in_colour": ("failed", "ValueError: red"),
    "kills_its_leader": ("failed", "the process that leads the trial was ended by SIGKILL"),
    "leaves_as_if_all_were_well": ("failed", "rank 0 ended with exit code 0 before it had a result"),
    "stops_itself": ("timeout", "did not end within 2 s; rank 0 was stopped (SIGSTOP)"),
    "traces_its_leader": ("ok", ""),
    "dies_in_a_thread": ("failed", "rank 0 ended with exit code 9"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("model", "status", "words"), [(m, *ending) for m, ending in ENDINGS.items()])
def test_each_ends_as_one_row_with_its_reason(
    train, server: ForkServer, model: str, status: str, words: str
) -> None:
    server.wait_ready()
    gc.collect()
    parent = psutil.Process(os.getpid())
    rss, files = parent.memory_info().rss, parent.num_fds()
    ran = train(
        model=HOSTILE + model, data=None, train_images=128, timeout_s=2 if status == "timeout" else 60
    )
    assert (ran.status, ran.reason[: len(words)]) == (status, words)
    assert ran.reason.isprintable()
    assert len(ran.reason) <= 2000
    assert parent.memory_info().rss - rss < 64 << 20
    assert parent.num_fds() <= files  # what earlier tests have left to the collector may be closed meanwhile
    # A channel that it has filled holds nobody up: else the end of all would be waited for so long.
    assert status != "timeout" or ran.seconds < 2 + END_LIMIT_S
    assert nobody_left(server)


def test_a_clock_that_a_model_has_changed_changes_no_figure(train) -> None:
    ran = train(model=HOSTILE + "patches_the_clocks", data=None, train_images=128)
    assert 0 < ran.outcome.result["epoch_time_s"] < ran.seconds
    assert len(ran.step_ms) == 4


def test_a_rank_that_left_early_is_not_waited_for_until_the_deadline(
    train, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt, "FAILED_LIMIT_S", 0.5)
    ran = train(model="tests/train/user_models.py:second_rank_leaves", ranks=2, cpus=2, workers=2)
    assert ran.status == "failed"
    assert blamed(ran.reason) == (1, "0")
    assert ran.seconds < 30, "and not a minute"


@pytest.mark.slow
def test_a_rank_in_a_loader_says_which_of_its_workers_hangs(train) -> None:
    ran = train(model="tests/train/user_models.py:images_never_come", workers=2, timeout_s=4)
    assert ran.status == "timeout"
    # The rank waits for a batch of its loader, or has begun its pass and starts the workers.
    assert re.search(
        r"; rank 0 was in \w+\.py:\d+ \w+; loader worker 0 .*user_models\.py:\d+ never", ran.reason
    ), ran.reason
    assert "gpubench asked loader worker 0 " in ran.log
    assert "most recent call first" in ran.log


@pytest.mark.slow
def test_a_sweep_goes_on_and_tells_each(tmp_path: Path, warm_command: WarmCommand) -> None:
    """As users give them: the rows of one sweep in its table and its CSV, and one line each."""
    models = ("raises_in_colour", "hangs_up", "patches_the_clocks")
    sweep = [
        *(
            "sweep",
            "--model",
            ",".join(HOSTILE + m for m in models),
            "--device",
            "cpu",
            "--variant",
            "synthetic",
        ),
        *(
            "--batch-size",
            "16",
            "--set",
            "train_images=64",
            "--set",
            "num_classes=4",
            "--set",
            "input_size=28",
        ),
        *("--epochs", "2", "--cpus", "1", "--rounds", "1", "--out", str(tmp_path / "out")),
    ]
    done = warm_command.run(sweep, cwd=Path.cwd(), env=os.environ, timeout=120)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False), done.stderr
    with (tmp_path / "out" / "trials.csv").open(newline="") as file:
        rows = {row["model"].rpartition(":")[2]: row for row in csv.DictReader(file)}
    for model in models:
        status, words = ENDINGS[model]
        assert rows[model]["status"] == status
        assert words in rows[model]["reason"]
        assert words in done.stdout + done.stderr
    assert "\x1b" not in rows["raises_in_colour"]["reason"]
