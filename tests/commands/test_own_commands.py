"""`gpubench sweep -- CMD`: commands of many kinds, each run as a user would run it."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
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
        ours = {name for name in environment if name.startswith("GPUBENCH_")} - place.environment.keys()
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


def test_settings_are_columns_of_their_own(place: Place) -> None:
    done = place.run(
        "sweep", *ONE_ROUND, "--set", "depth=2,10", "--set", "rate=0.1,1", "--set", "way=a,b", "--zip", "x,y=1/u,2/v",
        "--exclude", "way=b,depth=10", "--metric", r"sum=(\d+)",
        "--", "bash", "-c", "echo sum=$(({depth}+{x})) {rate} {way} {y}",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = trials(place, "bash")
    assert len(rows) == 12
    assert rows["depth"].dtype == "int64"
    assert (rows["sum"] == rows["depth"] + rows["x"]).all()
    assert set(zip(rows["depth"], rows["way"], strict=True)) == {(2, "a"), (2, "b"), (10, "a")}
    assert (rows["settings"] == [
        f"depth={row.depth} x={row.x} rate={row.rate:g} way={row.way} y={row.y}" for row in rows.itertuples()
    ]).all()  # fmt: skip
    assert rows["rate"].tolist().count(0.1) == 6
    heading = next(line for line in done.stdout.splitlines() if "run s" in line)
    assert {"depth", "x", "rate", "way", "y"} < set(heading.split())


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
    assert row["epochs_to_top1"] == 2
    (record,) = records(place, "epochs")
    assert record["phases"]["command"] < 1.6, "it was not ended"


def test_figures_that_are_lost_or_never_seen_are_empty_columns(place: Place) -> None:
    script = "echo loss_now=0.5 acc=7; echo loss_now=nan"
    done = place.run(
        "sweep", *ONE_ROUND, "--metric", r"loss_now=(\S+)", "--metric", r"acc=(\d)", "--metric", r"typo=(\d)",
        "--", "bash", "-c", script,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = trials(place, "bash")
    assert rows["acc"].tolist() == [7.0]
    assert rows["loss_now"].isna().all()
    assert rows["typo"].isna().all()
    assert {"acc", "loss_now", "typo"} <= set(done.stdout.split())


def test_who_reaches_the_target_within_the_first_epoch_stands_beside_the_others(place: Place) -> None:
    script = (
        "echo Epoch 0; sleep 0.1; [ {n} = 1 ] && echo acc=9; sleep 0.2; echo Epoch 1; sleep 0.1; echo acc=9; "
    )
    script += "sleep 9"
    done = place.run(
        "sweep", *ONE_ROUND, "--set", "n=1,2", "--epoch-pattern", r"Epoch (\d+)", "--metric", r"acc=(\d)",
        "--until", "acc=9", "--", "bash", "-c", script,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = trials(place, "bash").set_index("n")
    assert rows["epochs_to_top1"].tolist() == [1, 2]
    assert rows["epoch_time_s"].isna().tolist() == [True, False]
    assert done.stdout.count("reaches acc 9 first") == 1
    predicted = place.run("predict", "results/bash", "--copies", "2", trains=False)
    assert "Traceback" not in predicted.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "word"), [("", "Batch 2 reaches acc 9 first"), (" {seed}", "Not sure")])
def test_the_table_says_who_reaches_the_figure_first(place: Place, seed: str, word: str) -> None:
    """Without a seed each process is another draw; with one, all rounds are of one."""
    script = f"sleep 0.$((6/{{batch_size}})); echo acc=9; sleep 5; true{seed}"
    done = place.run(
        "sweep", "--device", "cpu", "--batch-size", "1,2", "--metric", r"acc=(\d)", "--until", "acc=9",
        "--", "bash", "-c", script,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Which one reaches the target first?" in done.stdout
    assert "s to acc 9" in done.stdout
    assert word in done.stdout
    rows = trials(place, "bash")
    assert len(rows) == 6
    assert (rows["time_to_top1_s"] < rows["epoch_time_s"]).all()
    assert (rows["epoch_time_s"] < 3).all()


def test_a_target_that_was_not_reached_is_told(place: Place) -> None:
    done = place.run(
        "sweep", *ONE_ROUND, "--metric", r"acc=([\d.]+)", "--until", "acc=99",
        "--", PYTHON, write(place, "e.py", EPOCHS),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (record,) = records(place, "e")
    assert record["missing"]["time_to_top1_s"] == ["command-target-missed", "acc", "65.5", "99"]


IN_THE_FIRST = """
import time
print("Epoch 1", flush=True)
time.sleep(0.5)
print("acc=7\\nEpoch 2\\nEpoch 3", flush=True)
time.sleep(60)
"""


def test_a_target_that_is_reached_in_the_first_epoch_has_its_time(place: Place) -> None:
    done = place.run(
        "sweep", *ONE_ROUND, "--metric", r"acc=(\d+)", "--until", "acc=5", "--epoch-pattern", r"Epoch (\d+)",
        "--", PYTHON, write(place, "first.py", IN_THE_FIRST),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (row,) = trials(place, "first").to_dict("records")
    assert (row["epochs_to_top1"], row["acc"]) == (1, 7)
    assert 0.3 < row["time_to_top1_s"] < 10
    assert pd.isna(row["epoch_time_s"])


AT_ONCE = "sleep 0.2; cat << END\nEpoch 1\nEpoch 2\nEpoch 3\nEND"
"""`cat` writes them by one call; a shell's own `printf` may write line by line."""


def test_epochs_that_are_told_at_one_moment_have_no_length(place: Place) -> None:
    done = place.run(
        "sweep", *ONE_ROUND, "--images", "5", "--epoch-pattern", r"Epoch (\d+)", "--", "bash", "-c", AT_ONCE
    )
    assert done.returncode == 1, done.stderr
    (row,) = trials(place, "bash").to_dict("records")
    assert (row["status"], pd.isna(row["epoch_time_s"])) == ("failed", True)
    assert "came at one moment: have the command print each at once" in row["reason"]


def test_a_pattern_that_would_take_years_fails_its_trial(place: Place) -> None:
    script = f"echo acc={'a' * 60}b; sleep 600"
    done = place.run("sweep", *ONE_ROUND, "--metric", "acc=(a+)+$", "--", "bash", "-c", script)
    assert done.returncode == 1, done.stderr
    (row,) = trials(place, "bash").to_dict("records")
    assert "--metric or --epoch-pattern takes over 2 s for a few lines" in row["reason"]


JUNK = """
import os, socket, time
messages = [b"junk", b'{"t0": -5, "t1": -4}', b'{"t0": 1, "t1": 1e300}', b"[" * 4000]
if os.fork() == 0:
    os.setsid()
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    while True:
        for message in messages:
            sock.sendto(message, os.environ["GPUBENCH_EPOCHS"])
time.sleep(0.5)
"""


def test_a_flood_of_junk_among_its_marks_changes_nothing(place: Place) -> None:
    done = place.run("sweep", *ONE_ROUND, "--timeout", "60s", "--", PYTHON, write(place, "junk.py", JUNK))
    assert done.returncode == 0, done.stderr
    (row,) = trials(place, "junk").to_dict("records")
    assert (row["status"], row["epoch_time_source"]) == ("ok", "run")
    (log,) = (place.home / "results" / "junk" / "logs").rglob("*.log")
    assert "marks of gpubench.epoch(): they overlap others, or lie outside of the run" in log.read_text()


def test_a_command_without_a_batch_size_beside_sizes_of_another_leaves_their_answer(place: Place) -> None:
    out = ("sweep", "--out", "results/mix", "--rounds", "3")
    place.run(*out, "--batch-size", "1,3", "--images", "100", "--", "sleep", "0.{batch_size}")
    before = place.run("table", "results/mix", trains=False).stdout
    place.run(*out, "--", "sleep", "0.2")
    after = place.run("table", "results/mix", trains=False).stdout
    for shown in (before, after):
        assert "Which batch size is best?" in shown
        assert re.search(r"Take batch 1\b", shown), shown
    drawn = place.run("plot", "results/mix", "--out", "drawn", trains=False)
    assert drawn.returncode == 0, drawn.stderr
    (picture,) = (place.home / "drawn").iterdir()
    assert picture.name == "sleep-growth.svg"
    assert "epochs an hour" not in picture.read_text()


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


def test_a_script_that_changes_meanwhile_is_not_taken_for_what_it_was(place: Place) -> None:
    script = write(place, "grows.sh", "echo '# x' >> grows.sh")
    done = place.run(
        "sweep", "--device", "cpu", "--rounds", "1", "--set", "d=1,2", "--", "bash", script, "{d}"
    )
    assert done.returncode == 1, done.stderr
    rows = trials(place, "grows")
    assert rows["status"].tolist() == ["ok", "failed"]
    assert rows["reason"][1].startswith(
        "a script of the command has changed since the sweep began: start the sweep"
    )


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


def test_a_command_that_can_not_run_again_fails_its_group(place: Place) -> None:
    """Else the other would have run alone, and nobody would know."""
    script = "mkdir done{nap}-$PPID || exit 7; sleep {nap}"
    done = place.run("sweep", *ONE_ROUND, "--job", "nap=0.1", "--job", "nap=2", "--", "bash", "-c", script)
    assert done.returncode == 1, done.stderr
    rows = trials(place, "bash")
    assert sorted(rows["status"]) == ["failed", "ok", "ok", "skipped"]
    (reason,) = rows[rows["status"] == "failed"]["reason"]
    assert (
        "ended with exit code 7 as it was run again beside the other jobs; last line of its output: mkdir"
        in reason
    )


LEAVES = """
sleep 600 &
for pid in $(cat left 2>/dev/null); do grep -qs '^State:.[^Z]' /proc/$pid/status && echo $pid >> still; done
echo $! >> left
sleep $1
"""
"""Of what has been killed its parent may not have taken note yet: a zombie runs no more."""


def test_what_a_copy_leaves_running_is_not_there_when_it_runs_again(place: Place) -> None:
    script = write(place, "leaves.sh", LEAVES)
    done = place.run("sweep", *ONE_ROUND, "--job", "nap=0.1", "--job", "nap=3", "--", "bash", script, "{nap}")
    assert done.returncode == 0, done.stderr
    assert len((place.home / "left").read_text().split()) > 5
    still = (place.home / "still").read_text().split() if (place.home / "still").exists() else []
    assert len(set(still)) <= 2, "but for what the other job had running"


COUNTED = MARKED.replace("range(4)", "range(30)").replace("0.3", "0.01").replace("time.sleep(0.2)", "pass")


def test_what_runs_beside_the_others_runs_as_fast_as_before(place: Place) -> None:
    """Nobody listens to its epochs any more, and it does not wait for that."""
    script = write(place, "m.py", COUNTED + "open(f'ran{sys.argv[1]}', 'a').write('x')\n")
    (place.home / "m.py").write_text("import sys\n" + (place.home / "m.py").read_text())
    fast, slow = f"{PYTHON} {script} 1", "sleep 6"
    done = place.run(
        "sweep", *ONE_ROUND, "--job", f"run={fast}", "--job", f"run={slow}", "--", "bash", "-c", "{run}"
    )
    assert done.returncode == 0, done.stderr
    assert len((place.home / "ran1").read_text()) >= 4, "one alone, one measured, and more beside"


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


SIZED = """
import sys, time
for epoch in range(4):
    print(f"Epoch {epoch}, acc=5{epoch}", flush=True)
    time.sleep(0.1 * int(sys.argv[1]))
"""


def test_the_best_is_told_as_a_command_and_no_rule_of_trainings_is_asked(place: Place) -> None:
    asked = ("--epoch-pattern", r"Epoch (\d{1,9})", "--metric", r"acc=(\d+)", "--images", "30")
    done = place.run(
        "sweep", "--device", "cpu", "--rounds", "2", "--batch-size", "1,4", "--set", "w=a b", *asked,
        "--", PYTHON, write(place, "sized.py", SIZED), "{batch_size}", "{w}",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    best = shlex.split(place.run("table", "--best").stdout)
    again = place.run(*best[1 : best.index("--")], "-n", *best[best.index("--") :])
    assert "--batch-size 1" in " ".join(best)
    (row,) = trials(place, "sized").query("batch_size == 1 and round == 1").to_dict("records")
    assert again.stdout.startswith(row["trial_id"]), "another trial"
    rules = [json.loads(line) for line in place.run("audit", "--json").stdout.splitlines()]
    asked_nothing = {rule["number"] for rule in rules if "a training by gpubench itself" in json.dumps(rule)}
    assert asked_nothing == {1, 2, 5, 6, 8, 9, 10}
    assert "broken" not in {rule["verdict"] for rule in rules if rule["number"] in asked_nothing}


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
    (
        ("--set", "name=missing", "--", "bash", "-e", "{name}.sh", "x"),
        "command 'bash' can't run 'missing.sh': no such file",
    ),
    (
        ("train.py",),
        "train.py is a script, not an experiment file: a command stands behind --, as in gpubench sweep ",
    ),
    (("--",), "a command is missing behind --"),
    (("--set", "depth=3"), "unknown field 'depth'"),
    (("--set", "depth=3", "--", "ls"), "'depth' has no effect: the command has no {depth}"),
    (("--set", "warmup_epoch=3", "--", "ls"), "did you mean warmup_epochs?"),
    (
        ("python", "train.py"),
        "a command of your own stands behind --, as in gpubench sweep -- python train.py",
    ),
    (("--epoch-pattern", "x"), "give one behind --"),
    (("--epoch-pattern", "(", "--", "ls"), "is no regular expression"),
    (("--metric", "status=x(.)", "--", "ls"), "a column of gpubench's own"),
    (("--metric", "machine=x(.)", "--", "ls"), "a column of gpubench's own"),
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


def test_what_users_have_named_chooses_and_orders_rows(place: Place) -> None:
    """`depth` is a number in one folder and a name in the other: both are compared as text then."""
    say = ("--metric", r"acc=([\d.]+)", "--", "bash", "-c", "echo acc=$0", "{depth}")
    assert place.run("sweep", *ONE_ROUND, "--set", "depth=9,10,2", "--out", "a", *say).returncode == 0

    def list_depths(*words: str) -> list[str]:
        done = place.run("table", *words, "--csv", trains=False)
        assert done.returncode == 0, done.stderr
        return pd.read_csv(io.StringIO(done.stdout), dtype=str)["depth"].tolist()

    assert list_depths("a", "--where", "depth>2", "--sort=-acc") == ["10", "9"]
    done = place.run("table", "a", "--where", "acc=10", trains=False)
    assert (done.returncode, "10" in done.stdout) == (0, True)
    refused = place.run("table", "a", "--where", "depht=2", trains=False)
    assert "unknown column 'depht': did you mean depth" in refused.stderr
    assert (
        place.run("sweep", *ONE_ROUND, "--set", "depth=no", "--out", "b", "--", "echo", "{depth}").returncode
        == 0
    )
    assert list_depths("a", "b", "--where", "depth=no,9") == ["9", "no"]


def test_a_figure_of_any_size_is_read_back(place: Place) -> None:
    script = ("--", "bash", "-c", "echo loss=3e20")
    done = place.run("sweep", *ONE_ROUND, "--metric", r"loss_seen=loss=(\S+)", *script)
    assert done.returncode == 0, done.stderr
    told = place.run("table", "results/bash")
    assert (told.returncode, told.stderr) == (0, "")
