"""Where a process hangs: asked of real ones, and in words."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import gpubench
from gpubench.basics import stacks
from gpubench.basics.stacks import ProcessStack, describe_stacks, find_user_frame, request_stacks

HANGS = """
import re, sys, time
from pathlib import Path
from gpubench.basics import stacks

def stuck():
    {how}

stacks.install_stack_handler(Path(sys.argv[1]), "rank_0")
print("ready", flush=True)
stuck()
"""
IN_C = 're.match(r"(a+)+$", "a" * 64 + "b")'
"""A call into C that holds the interpreter for longer than anybody waits."""


@pytest.fixture
def hanging(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    script = tmp_path / "nets.py"
    script.write_text(HANGS.format(how=request.param))
    started = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path)], stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    assert started.stdout is not None
    assert started.stdout.readline() == "ready\n"
    time.sleep(0.05)
    yield started
    started.kill()
    started.communicate()


@pytest.mark.parametrize("hanging", [IN_C], indirect=True)
def test_a_call_into_c_that_never_returns_is_found(hanging: subprocess.Popen[str], tmp_path: Path) -> None:
    for _ in range(2):  # and again: what it wrote before is not read twice
        (one,) = request_stacks(tmp_path, [psutil.Process(hanging.pid)])
        assert (one.name, one.place) == ("rank 0", "nets.py:7 stuck")
        assert one.text.count("most recent call first") == 1
    # It goes on as if nothing had been.
    assert hanging.poll() is None


@pytest.mark.parametrize("hanging", ["time.sleep(60)"], indirect=True)
def test_a_stopped_process_is_told_by_its_state(hanging: subprocess.Popen[str], tmp_path: Path) -> None:
    hanging.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, hanging.pid, os.WSTOPPED)
    began = time.monotonic()
    (one,) = request_stacks(tmp_path, [psutil.Process(hanging.pid)])
    # It can't answer, and is not waited for.
    assert time.monotonic() - began < stacks.ANSWER_S
    assert (one.place, one.text) == ("stopped (SIGSTOP)", "")


@pytest.mark.parametrize("hanging", ["time.sleep(60)"], indirect=True)
def test_who_is_none_of_the_trial_s_is_sent_nothing(hanging: subprocess.Popen[str], tmp_path: Path) -> None:
    (tmp_path / stacks.FOLDER / f"rank_1-{os.getpid()}").touch()  # a model may write what it likes there
    (tmp_path / stacks.FOLDER / "rubbish").touch()
    (tmp_path / stacks.FOLDER / "rank_2-1²").touch()  # a digit to Python, and no number
    assert [one.name for one in request_stacks(tmp_path, [psutil.Process(hanging.pid)])] == ["rank 0"]
    assert request_stacks(tmp_path, []) == []
    assert request_stacks(tmp_path / "nowhere", [psutil.Process(hanging.pid)]) == []


@pytest.mark.parametrize("hanging", ["time.sleep(60)"], indirect=True)
def test_what_a_model_puts_in_the_place_of_an_answer_is_not_waited_for(
    hanging: subprocess.Popen[str], tmp_path: Path
) -> None:
    (path,) = (tmp_path / stacks.FOLDER).iterdir()
    path.unlink()
    os.mkfifo(path)
    (one,) = request_stacks(tmp_path, [psutil.Process(hanging.pid)])
    assert one.text == ""


def test_a_file_of_any_name_is_where_somebody_was_in() -> None:
    (one,) = [
        stacks.ProcessStack(
            name="rank 0", state="S", text=f'{HEAD}  File "/x/inception.py", line 12 in forward\n'
        )
    ]
    assert stacks.describe_stacks([one]) == "rank 0 was in inception.py:12 forward"


HEAD = "Current thread 0x1 (most recent call first):\n"
OWN = str(Path(gpubench.__file__).parent)
LIBRARY = os.path.dirname(os.__file__)  # noqa: PTH120
TWO_THREADS = f"""Current thread 0x01 (most recent call first):
  File "/home/user/helper.py", line 3 in watch

Thread 0x02 (most recent call first):
  File "{LIBRARY}/selectors.py", line 415 in select
  File "{LIBRARY}/site-packages/torch/utils/data/dataloader.py", line 1 in _try_get_data
  File "{OWN}/train/loop.py", line 88 in run
  File "/home/user/nets.py", line 4 in main
"""
WORKER = f"""Current thread 0x01 (most recent call first):
  File "{LIBRARY}/multiprocessing/queues.py", line 113 in get
%s  File "{LIBRARY}/site-packages/torch/utils/data/_utils/worker.py", line 271 in _worker_loop
  File "{OWN}/train/loop.py", line 88 in run
"""


def test_the_innermost_frame_of_the_main_thread_that_is_no_library_s() -> None:
    assert find_user_frame(TWO_THREADS) == "loop.py:88 run"
    assert find_user_frame("") == ""


def test_a_loader_s_worker_that_waits_for_work_is_not_blamed() -> None:
    assert find_user_frame(WORKER % "") == ""
    crop = '  File "/home/user/nets.py", line 9 in crop\n'
    assert find_user_frame(WORKER % crop) == "nets.py:9 crop"


def at(name: str, place: str) -> ProcessStack:
    text = f'Thread 0x1 (most recent call first):\n  File "/home/{place.split(":")[0]}", line {place.split(":")[1]}'
    return ProcessStack(name=name, state="S", text=f"{text} in f\n")


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ([], ""),
        ([at("rank 0", "a.py:1")], "rank 0 was in a.py:1 f"),
        ([at("rank 0", "a.py:1"), at("rank 1", "a.py:1")], "rank 0 and rank 1 were in a.py:1 f"),
        ([ProcessStack(name="rank 1", state="T", text="")], "rank 1 was stopped (SIGSTOP)"),
        ([ProcessStack(name="rank 1", state="t", text="")], "rank 1 was stopped by a debugger"),
        (
            [ProcessStack(name="rank 1", state="D", text="")],
            "rank 1 was in the kernel, as if waiting for a disk or a network file system",
        ),
        ([ProcessStack(name="rank 1", state="S", text="")], ""),
        ([at(f"rank {k}", "a.py:1") for k in range(9)], "rank 0 and 8 others were in a.py:1 f"),
        (
            [at(f"rank {k}", f"a.py:{k}") for k in range(6)],
            "rank 0 was in a.py:0 f; rank 1 was in a.py:1 f; rank 2 was in a.py:2 f; rank 3 was in a.py:3 f; "
            "and 2 more, in the log",
        ),
    ],
)
def test_in_words(found: list[ProcessStack], words: str) -> None:
    assert describe_stacks(found) == words
