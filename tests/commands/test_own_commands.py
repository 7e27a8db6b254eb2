"""`gpubench sweep -- CMD`: commands of many kinds, each run as a user would run it."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import pytest
from place import Place, all_gone, until

PYTHON = sys.executable
ONE_ROUND = ("--device", "cpu", "--rounds", "1")


def write(place: Place, name: str, text: str) -> str:
    (place.home / name).write_text(text)
    return name


def trials(place: Place, name: str) -> pd.DataFrame:
    return pd.read_csv(place.home / "results" / name / "trials.csv")


def records(place: Place, name: str) -> list[dict[str, Any]]:
    files = (place.home / "results" / name / "records").rglob("*.json")
    return [json.loads(file.read_text()) for file in files]


ECHO = """
import json, os, sys
print("in", os.getcwd())
with open(sys.argv[1], "a") as file:
    file.write(json.dumps([sys.argv[2:], sys.stdin.read(), dict(os.environ)]) + "\\n")
"""


def test_values_reach_the_command_as_words_and_nothing_else_of_ours_does(place: Place) -> None:
    write(place, "echo.py", ECHO)
    place.environment["OMP_NUM_THREADS"] = "7"
    place.environment["LIKE_THIS"] = "a  b"
    done = place.run(
        "sweep", *ONE_ROUND, "--batch-size", "16,32", "--set", "name=a b", "--seed", "5",
        "--", PYTHON, "echo.py", "seen", "--bs={batch_size}", "{name}", "{gpus}", "{seed}", "{{raw}}", "-n", "$HOME;",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    seen = [json.loads(line) for line in (place.home / "seen").read_text().splitlines()]
    assert [words for words, _, _ in seen] == [
        [f"--bs={size}", "a b", "0", "5", "{raw}", "-n", "$HOME;"] for size in (16, 32)
    ]
    for _, given, environment in seen:
        assert given == ""
        ours = {name for name in environment if name.startswith("GPUBENCH_")} - {"GPUBENCH_DATA"}
        assert ours == {"GPUBENCH_EPOCHS"}
        assert (environment["OMP_NUM_THREADS"], environment["LIKE_THIS"]) == ("7", "a  b")
        assert environment["CUDA_VISIBLE_DEVICES"] == ""
        for name in ("PYTHONPATH", "TORCHINDUCTOR_CACHE_DIR", "GLOO_SOCKET_IFNAME", "PYTHONUNBUFFERED"):
            assert environment.get(name) == place.environment.get(name), name
    logs = (place.home / "results" / "echo" / "logs").rglob("*.log")
    assert {log.read_text() for log in logs} == {f"in {place.home}\n"}


WORK = """
import subprocess, sys, time
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: pass
if sys.argv[1:] == ["child"]:
    burn(0.5)
else:
    held = bytearray(200 << 20)
    for place in range(0, len(held), 4096): held[place] = 1
    subprocess.run([sys.executable, __file__, "child"])
    burn(0.5)
    time.sleep(0.5)
"""


def test_a_whole_run_is_measured_with_all_of_its_processes(place: Place) -> None:
    done = place.run("sweep", *ONE_ROUND, "--images", "1000", "--", PYTHON, write(place, "work.py", WORK))
    assert done.returncode == 0, done.stderr
    (row,) = trials(place, "work").to_dict("records")
    assert row["epoch_time_source"] == "run"
    assert 1.5 <= row["epoch_time_s"] < 60
    assert row["images_per_s"] == pytest.approx(1000 / row["epoch_time_s"], rel=1e-4)
    assert 1.0 <= row["cpu_s_per_epoch"] < 2.0
    assert 200 <= row["host_mem_mib"] < 400
    for name in ("model", "variant", "batch_size", "precision", "strategy", "torch", "data_wait_pct"):
        assert pd.isna(row[name]), name
    (record,) = records(place, "work")
    assert record["missing"]["data_wait_pct"] == "command"
    assert record["missing"]["epochs_measured"] == "whole-run"
    assert "run s" in done.stdout


EPOCHS = """
import sys, time
for epoch, seconds in enumerate([0.6, 0.2, 0.3, 0.4]):
    print(f"Epoch {epoch} of 4")
    time.sleep(seconds)
    print(f"  acc={50 + 5 * epoch}.5 %, Loss  {1 / (epoch + 1):.3f}")
print("over")
time.sleep(0.4)
"""


def test_epochs_and_figures_are_read_in_the_output(place: Place) -> None:
    """The program holds its output back where it prints to no terminal."""
    done = place.run(
        "sweep", *ONE_ROUND, "--epoch-pattern", r"Epoch (\d+)", "--metric", r"acc=([\d.]+)",
        "--metric", r"last_loss=Loss +([\d.]+)", "--", PYTHON, write(place, "epochs.py", EPOCHS),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (row,) = trials(place, "epochs").to_dict("records")
    assert (row["epoch_time_source"], row["epochs_measured"]) == ("measured", 2)
    assert (row["acc"], row["last_loss"]) == (65.5, 0.25)
    epochs = pd.read_csv(place.home / "results" / "epochs" / "epochs.csv")
    assert epochs["warmup"].tolist() == [1, 0, 0]
    for seconds, asked in zip(epochs["epoch_time_s"], [0.6, 0.2, 0.3], strict=True):
        assert seconds == pytest.approx(asked, abs=0.15)
    table = pd.read_csv(place.home / "results" / "epochs" / "table.csv")
    assert table["acc"].tolist() == [65.5]


MARKED = """
import time, gpubench
for epoch in range(4):
    with gpubench.epoch():
        time.sleep(0.3)
    time.sleep(0.2)
try:
    with gpubench.epoch():
        raise KeyError
except KeyError:
    pass
"""


def test_epochs_are_told_by_the_script(place: Place) -> None:
    done = place.run(
        "sweep", *ONE_ROUND, "--images", "30", "--set", "warmup_epochs=2", "--", PYTHON, write(place, "m.py", MARKED)
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    epochs = pd.read_csv(place.home / "results" / "m" / "epochs.csv")
    assert epochs["warmup"].tolist() == [1, 1, 0, 0]
    assert epochs["epoch_time_s"].between(0.3, 0.35).all()
    (row,) = trials(place, "m").to_dict("records")
    assert row["images_per_s"] == pytest.approx(30 / row["epoch_time_s"], rel=1e-4)


def test_of_several_processes_the_first_tells_and_outside_a_sweep_none_does(place: Place) -> None:
    script = write(place, "m.py", MARKED)
    several = f"RANK=1 {PYTHON} {script} & RANK=0 {PYTHON} {script}; wait"
    done = place.run("sweep", *ONE_ROUND, "--", "bash", "-c", several)
    assert done.returncode == 0, done.stderr
    assert len(pd.read_csv(place.home / "results" / "bash" / "epochs.csv")) == 4
    assert os.system(f"cd {place.home} && {PYTHON} {script}") == 0


def test_a_command_that_has_reached_its_target_is_ended(place: Place) -> None:
    done = place.run(
        "sweep", *ONE_ROUND, "--metric", r"acc=([\d.]+)", "--until", "acc=55", "--epoch-pattern", r"Epoch (\d+)",
        "--", PYTHON, write(place, "epochs.py", EPOCHS),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (row,) = trials(place, "epochs").to_dict("records")
    assert row["acc"] == 55.5
    assert row["time_to_top1_s"] == pytest.approx(0.8, abs=0.2)
    assert row["epochs_to_top1"] in (1, 2)
    (record,) = records(place, "epochs")
    assert record["phases"]["command"] < 1.6, "it was not ended"


def test_a_target_that_was_not_reached_is_told(place: Place) -> None:
    done = place.run(
        "sweep", *ONE_ROUND, "--metric", r"acc=([\d.]+)", "--until", "acc=99",
        "--", PYTHON, write(place, "e.py", EPOCHS),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (record,) = records(place, "e")
    assert record["missing"]["time_to_top1_s"] == ["command-target-missed", "acc", "65.5", "99"]


ENDINGS: list[tuple[str, str, str]] = [
    (
        "echo so; echo why >&2; exit 3",
        "failed",
        "the command ended with exit code 3; last line of its output: why",
    ),
    ("kill -SEGV $$", "failed", "the command was ended by SIGSEGV"),
    ("(kill -KILL $BASHPID); exit $?", "failed", "exit code 137 (a process of it was ended by SIGKILL)"),
    ("echo CUDA out of memory; exit 1", "failed", "last line of its output: CUDA out of memory"),
    ("sleep 100", "timeout", "did not end within 2 s"),
]


@pytest.mark.parametrize(("script", "status", "reason"), ENDINGS)
def test_how_a_command_ends(place: Place, script: str, status: str, reason: str) -> None:
    done = place.run("sweep", *ONE_ROUND, "--timeout", "2s", "--", "bash", "-c", script)
    assert done.returncode == 1
    (row,) = trials(place, "bash").to_dict("records")
    assert row["status"] == status
    assert reason in row["reason"]


def test_nothing_of_a_command_is_left(place: Place) -> None:
    """A daemon in a session of its own, which holds its output open."""
    daemon = "import os, time; os.setsid(); open('pid', 'w').write(str(os.getpid())); time.sleep(600)"
    script = f'{PYTHON} -c "{daemon}" & while [ ! -s pid ]; do sleep 0.05; done; echo acc=1'
    done = place.run("sweep", *ONE_ROUND, "--metric", r"acc=(\d+)", "--", "bash", "-c", script)
    assert done.returncode == 0, done.stderr
    assert not psutil.pid_exists(int((place.home / "pid").read_text()))
    assert trials(place, "bash")["acc"].tolist() == [1.0]


def test_a_sweep_that_is_killed_leaves_no_command_behind(place: Place) -> None:
    running = place.start("sweep", *ONE_ROUND, "--", "bash", "-c", "echo $$ > pid; sleep 600")
    until(
        lambda: (place.home / "pid").exists() and bool((place.home / "pid").read_text()),
        "the command to start",
    )
    family = [psutil.Process(int((place.home / "pid").read_text()))]
    running.kill()
    all_gone(family)


def test_what_is_measured_is_kept_and_a_changed_script_is_measured_again(place: Place) -> None:
    script = write(place, "once.sh", "echo x >> runs")
    asked = ("sweep", *ONE_ROUND, "--batch-size", "1,2", "--", "bash", script, "{batch_size}")
    assert place.run(*asked).returncode == 0
    done = place.run(*asked)
    assert done.returncode == 0
    assert "2 done already" in done.stderr or "nothing" in done.stderr
    assert len((place.home / "runs").read_text().split()) == 2
    write(place, "once.sh", "echo x >> runs; true")
    assert place.run(*asked).returncode == 0
    assert len((place.home / "runs").read_text().split()) == 4
    assert len(trials(place, "once")) == 4


def test_copies_run_at_once_and_until_all_have_ended(place: Place) -> None:
    script = write(
        place, "copies.py", "import time, sys\nprint(time.time())\ntime.sleep(0.5)\nprint(time.time())"
    )
    done = place.run("sweep", *ONE_ROUND, "--copies", "1,2", "--", PYTHON, script)
    assert done.returncode == 0, done.stderr
    rows = trials(place, "copies")
    assert rows["status"].tolist() == ["ok"] * 3
    assert rows["slowdown"].notna().tolist() == [False, True, True]
    together = [
        log.read_text().split() for log in (place.home / "results" / "copies" / "logs").rglob("j*.log")
    ]
    begins, ends = zip(*((float(words[0]), float(words[1])) for words in together), strict=True)
    assert max(begins) < min(ends)


def test_a_training_runs_beside_a_command(place: Place) -> None:
    done = place.run(
        "sweep", *ONE_ROUND, "--job", "nap=3", "--job", "model=mlp,variant=synthetic,input_size=8,batch_size=8",
        "--window", "0.5s", "--", "sleep", "{nap}",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = trials(place, "sleep")
    assert rows["status"].tolist() == ["ok"] * 4
    command, training = (
        rows[rows["group"].notna()][names] for names in (["command", "epoch_time_s"], ["model"])
    )
    assert command["command"].tolist() == ["sleep '{nap}'", command["command"].tolist()[1]]
    assert training["model"].tolist()[1] == "mlp"
    assert command["epoch_time_s"].tolist()[0] == pytest.approx(3, abs=0.5)


@pytest.mark.slow
def test_a_file_asks_for_the_same(place: Place) -> None:
    (place.home / "asked.toml").write_text(
        "name = \"asked\"\n[command]\nrun = \"bash -c 'echo v={depth}{batch_size}'\"\nmetrics = ['v=(\\d+)']\n"
        "[axes]\ndepth = [2, 4]\n[fixed]\nbatch_size = 1\n[run]\nrounds = 1\n"
    )
    done = place.run("sweep", "asked.toml", "--device", "cpu")
    assert done.returncode == 0, done.stderr
    assert trials(place, "asked")["v"].tolist() == [21.0, 41.0]
    again = place.run("sweep", "asked.toml", "--device", "cpu", "--", "bash", "-c", "echo v=9{depth}")
    assert again.returncode == 2
    assert "batch_size has no effect" in again.stderr


@pytest.mark.slow
def test_endless_output_costs_neither_room_nor_figures(place: Place) -> None:
    lines = 10_000_000
    script = (
        f"echo Epoch 0; yes '0123456789' | head -n {lines}; echo Epoch 1; echo acc=7; sleep 0.2; echo Epoch 2"
    )
    began = time.monotonic()
    done = place.run(
        "sweep", *ONE_ROUND, "--epoch-pattern", r"^Epoch (\d+)", "--metric", r"acc=(\d+)", "--", "bash", "-c", script
    )  # fmt: skip
    assert done.returncode == 0, (done.stderr, time.monotonic() - began)
    (row,) = trials(place, "bash").to_dict("records")
    assert row["acc"] == 7
    assert 0.2 <= row["epoch_time_s"] < 1
    (log,) = (place.home / "results" / "bash" / "logs").rglob("*.log")
    assert log.stat().st_size < 10 << 20


WRONG: list[tuple[tuple[str, ...], str]] = [
    (("--batch-size", "16", "--", "ls"), "batch_size has no effect: the command has no {batch_size}"),
    (("--", "ls", "{batch_size}"), "add --batch-size VALUES"),
    (("--", "ls", "{depth}"), "add --set depth=VALUES"),
    (("--set", "detph=3", "--", "ls", "{depth}"), "did you mean depth"),
    (("--window", "3s", "--", "ls"), "window is of trainings"),
    (("--", "no-such-program"), "can't be run: it is not on the PATH"),
    (("--", "./no-such-program"), "there is no such file"),
    (("--",), "a command is missing behind --"),
    (("--set", "depth=3"), "unknown field 'depth'"),
    (("--epoch-pattern", "x"), "give one behind --"),
    (("--epoch-pattern", "(", "--", "ls"), "is no regular expression"),
    (("--metric", "status=x(.)", "--", "ls"), "a column of gpubench's own"),
    (("--until", "acc=3", "--", "ls"), "nothing finds acc"),
]


@pytest.mark.parametrize(("words", "says"), WRONG)
def test_what_can_not_be_is_told_before_anything_runs(
    place: Place, words: tuple[str, ...], says: str
) -> None:
    done = place.run("sweep", *words, trains=False)
    assert done.returncode == 2
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert place.files() == set()


def test_the_plan_alone_runs_nothing(place: Place) -> None:
    done = place.run("sweep", "-n", "--batch-size", "16,32", "--", "touch", "{batch_size}")
    assert done.returncode == 0, done.stderr
    assert [line.split("  ")[1] for line in done.stdout.splitlines()[:2]] == [
        "batch_size=16",
        "batch_size=32",
    ]
    assert not Path(place.home / "16").exists()
