"""When the parent is killed without a word, everything that it started goes too."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from family import left
from msgspec import structs

from gpubench.schema.order import WholeEpochs
from gpubench.schema.validation import convert_to_plain

DRIVER = """
import json, sys
from gpubench.schema.validation import make_converter
from gpubench.node.launch.fork_server import ForkServer
from gpubench.node.launch.descendants import find_process, list_descendants
from gpubench.schema.events import Begin
from gpubench.schema.order import TrialOrder
order = make_converter(TrialOrder)(json.loads(sys.stdin.read()))
server = ForkServer()
trial = server.launch(order)
while True:
    for event in trial.receive_events(1):
        if isinstance(event, Begin):
            # The daemon, too: the leader has taken it in.
            ours = [server.pid, trial.pid, *(p.pid for p in list_descendants(find_process(trial.pid)))]
            print(json.dumps(ours), flush=True)
"""


@pytest.mark.parametrize(
    ("number", "server_stands_still"),
    [
        pytest.param(signal.SIGKILL, False, id=""),
        pytest.param(signal.SIGSEGV, True, id="stopped server", marks=pytest.mark.slow),
    ],
)
def test_server_leader_ranks_loader_workers_and_daemons_go_with_the_parent(
    train, tmp_path, number, server_stands_still
):
    # An order of a trial that would go on for hours, made by running a short one.
    order = train(model="tests/train/user_models.py:tiny", ranks=2, cpus=2, workers=2).order
    (tmp_path / "scratch").mkdir()
    order = structs.replace(
        order,
        trial=structs.replace(order.trial, model="tests/train/user_models.py:leaves_a_daemon_and_is_slow"),
        protocol=WholeEpochs(epochs=1000, warmup_epochs=1),
        log=tmp_path / "log",
        scratch=tmp_path / "scratch",
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", DRIVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path.cwd(),
    )
    assert parent.stdin is not None
    assert parent.stdout is not None
    parent.stdin.write(json.dumps(convert_to_plain(order)))
    parent.stdin.close()
    # The trial's second epoch begins: both loader workers are there.
    pids = [json.loads(parent.stdout.readline()) for _ in range(4)][-1]
    processes = [psutil.Process(pid) for pid in pids]
    # Server, leader, two ranks, two loader workers, two daemons.
    assert len(processes) >= 8
    if server_stands_still:
        processes[0].suspend()
    parent.send_signal(number)
    parent.wait()
    assert left(processes, within=5) == []
    parent.stdout.close()
