"""Trials that are made ready ahead of their turn: real processes, which rehearse, wait, and then train as ever."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from family import Family, family, left, nobody_left, trees

from gpubench.node import environment
from gpubench.node.launch.fork_server import ForkServer
from gpubench.node.node import Node
from gpubench.node.watch.nvml import NoNvml
from gpubench.plan import resolve as resolving
from gpubench.schema.attempt import Attempt
from gpubench.schema.events import Begin
from gpubench.schema.order import TrialOrder

MODELS = "tests/train/rehearsing_models.py:"


class Ahead:
    """A node on this machine that makes trials ready, and runs them."""

    def __init__(self, server: ForkServer, folder: Path, ask: Callable[..., Any]) -> None:
        self.node = Node(nvml=NoNvml("no GPU in this test"), machine=environment.machine(None))
        self.node.launcher = server
        self.folder, self.ask = folder, ask
        self._made = 0

    def order(self, **fields: Any) -> tuple[Callable[[Attempt], Any], TrialOrder]:
        """What is made of its end, and the order to its processes."""
        one = self.ask(**fields)
        resolved = resolving.resolve(one.job, self.node.machine, one.facts, "cpu")
        self._made += 1
        home = self.folder / str(self._made)
        home.mkdir()
        order = one.order(resolved, home, 0.0)
        return lambda done: one.ran(resolved, order, done), order

    def prepare(self, *orders: TrialOrder, limit_s: float = 60) -> list[int | None]:
        return self.node.prepare(
            orders, [() for _ in orders], should_stop=lambda: False, look=lambda _: None, limit_s=limit_s
        )

    def run(self, order: TrialOrder, ticket: int | None = None) -> Attempt:
        (done,) = self.node.run(
            [order], [()], timeout_s=60, should_stop=lambda: False, look=lambda _: None, ticket=ticket
        )
        return done


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where folders for temporary files are made."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def easy(ask: Callable[..., Any], colours: Path) -> Callable[..., Any]:
    """A trial on easy images, with any field by name."""
    return lambda **fields: ask(**{"data": colours, **fields})


@pytest.fixture
def ahead(server: ForkServer, tmp_path: Path, easy: Callable[..., Any], temporary: Path) -> Iterator[Ahead]:
    made = Ahead(server, tmp_path, easy)
    yield made
    assert nobody_left(server)
    assert list(temporary.iterdir()) == []


KINDS = [
    {"model": MODELS + "drops_and_counts"},
    {"model": MODELS + "drops_and_counts", "breakdown": True, "accumulate": 2},
    {"model": MODELS + "drops_and_counts", "precision": "bf16", "optimizer": "momentum"},
    {"model": MODELS + "drops_and_counts", "ranks": 2, "cpus": 2, "workers": 2},
    {"model": MODELS + "drops_and_counts", "strategy": "fsdp", "ranks": 2, "cpus": 2, "workers": 2},
    {"model": MODELS + "drops_and_counts", "strategy": "local", "ranks": 2, "cpus": 2, "workers": 2},
    {"data": None},
]


@pytest.mark.parametrize("fields", KINDS, ids=lambda fields: "-".join(map(str, fields.values())))
def test_a_trial_that_was_made_ready_trains_as_one_that_was_not(ahead: Ahead, fields: dict[str, Any]) -> None:
    """Its losses and top-1 are the same to the last digit: weights, draws and BatchNorm's statistics are."""
    ran, order = ahead.order(**fields)
    (ticket,) = ahead.prepare(order)
    assert ticket is not None
    ready = ran(ahead.run(order, ticket))
    ran, order = ahead.order(**fields)
    plain = ran(ahead.run(order))
    assert ready.status == plain.status == "ok", ready.reason
    assert [e.train_loss for e in ready.outcome.epochs] == [e.train_loss for e in plain.outcome.epochs]
    for column in ("top1_pct", "loss"):
        assert ready.outcome.result.get(column) == plain.outcome.result.get(column)


def test_several_wait_and_each_has_its_own_time(ahead: Ahead) -> None:
    """What came before a turn is told apart from it, and is in none of its times or samples."""
    made = [ahead.order(batch_size=size) for size in (16, 32, 64)]
    tickets = ahead.prepare(*(order for _, order in made))
    assert len({ticket for ticket in tickets if ticket}) == 3
    waiting = [tree.ranks[0].pid for tree in trees(ahead.node.launcher)]  # type: ignore[arg-type]
    before = 0.0
    for (ran, order), ticket in zip(reversed(made), reversed(tickets), strict=True):
        assert ticket is not None
        one = ran(ahead.run(order, ticket))
        assert one.status == "ok"
        assert one.done.launched >= before, "its turn came after the one before it"
        before = one.done.finished
        begins = [event for event in one.done.events if isinstance(event, Begin)]
        assert len(begins) == 2
        told = one.outcome.phases
        assert {"ahead_start", "ahead_build", "ahead_data", "ahead_rehearsal", "ahead_wait"} <= told.keys()
        assert not {"start", "build", "data"} & told.keys()
        assert sum(s for name, s in told.items() if not name.startswith("ahead_")) <= one.seconds
        samples = one.done.watched.samples.rows(one.done.launched)
        assert samples
        assert min(t for t, *_ in samples) >= 0
    assert len(set(waiting)) == 3


def test_what_gets_no_turn_leaves_nothing(ahead: Ahead) -> None:
    _, order = ahead.order()
    ran, other = ahead.order(batch_size=64)
    first, second = ahead.prepare(order, other)
    assert first is not None
    assert second is not None
    ahead.node.discard([first])
    assert order.log.read_bytes() == b""
    assert ran(ahead.run(other, second)).status == "ok"


def kills_a_rank(server: ForkServer) -> None:
    os.kill(trees(server)[0].ranks[0].pid, signal.SIGKILL)


def kills_a_leader(server: ForkServer) -> None:
    os.kill(trees(server)[0].leader.pid, signal.SIGKILL)


@pytest.mark.parametrize("kill", [kills_a_rank, kills_a_leader])
def test_one_that_was_killed_while_it_waited_is_run_as_ever(
    ahead: Ahead, server: ForkServer, kill: Callable[[ForkServer], None]
) -> None:
    made = [ahead.order(batch_size=size, ranks=ranks, cpus=2) for size, ranks in ((32, 2), (64, 1))]
    tickets = ahead.prepare(*(order for _, order in made))
    victim = trees(server)[0]
    kill(server)
    assert left([victim.ranks[0]], within=5) == []
    psutil.wait_procs([victim.leader], 0.2)  # it may tell of it a moment later
    first, second = (
        ran(ahead.run(order, ticket)) for (ran, order), ticket in zip(made, tickets, strict=True)
    )
    assert (first.status, second.status) == ("ok", "ok"), first.reason
    assert "start" in first.outcome.phases, "it was launched anew"
    assert "ahead_start" in second.outcome.phases, "the other one had been spared"


def test_where_the_server_was_killed_all_are_run_as_ever(
    own_server: ForkServer, tmp_path: Path, easy: Callable[..., Any], temporary: Path
) -> None:
    ahead = Ahead(own_server, tmp_path, easy)
    made = [ahead.order(batch_size=size) for size in (32, 64)]
    tickets = ahead.prepare(*(order for _, order in made))
    waiting: Family = family(own_server)
    os.kill(own_server.pid, signal.SIGKILL)
    assert left(waiting, within=5) == []
    for (ran, order), ticket in zip(made, tickets, strict=True):
        one = ran(ahead.run(order, ticket))
        assert one.status == "ok", one.reason
        assert "start" in one.outcome.phases
    assert list(temporary.iterdir()) == []


def test_what_can_t_rehearse_fails_in_its_own_turn_for_its_own_reason(ahead: Ahead) -> None:
    ran, order = ahead.order(model=MODELS + "raises_in_forward")
    spared, other = ahead.order()
    ticket, second = ahead.prepare(order, other)
    assert ticket is None
    assert order.log.read_bytes() == b""
    assert second is not None
    assert spared(ahead.run(other, second)).status == "ok"
    failed = ran(ahead.run(order))
    assert failed.status == "failed"
    assert "start" not in failed.reason
    assert "ready" not in failed.reason


def test_what_is_not_ready_in_time_is_left_to_its_turn(ahead: Ahead) -> None:
    _, order = ahead.order(model=MODELS + "never_builds")
    assert ahead.prepare(order, limit_s=1.0) == [None]


def test_a_stop_while_they_are_made_ready_leaves_nothing(ahead: Ahead) -> None:
    """Nor does one that is ready by then."""
    orders = [ahead.order()[1], ahead.order(model=MODELS + "never_builds")[1]]
    ready: list[int] = []
    found = ahead.node.prepare(orders, [(), ()], should_stop=lambda: 1 in ready, look=ready.append)
    assert found == [None, None]


DRIVER = """
import pickle, sys, time
from gpubench.node import environment
from gpubench.node.node import Node
from gpubench.node.watch.nvml import NoNvml
import json, psutil
if __name__ == "__main__":
    orders = pickle.load(sys.stdin.buffer)
    node = Node(nvml=NoNvml("none"), machine=environment.machine(None))
    node.start()
    node.wait_ready(lambda: False)
    node.prepare(orders, [()] * len(orders), should_stop=lambda: False, look=lambda _: None)
    print(json.dumps([p.pid for p in psutil.Process().children(recursive=True)]), flush=True)
    time.sleep(60)
"""


def test_those_that_wait_go_with_a_sweep_that_is_killed(ahead: Ahead, tmp_path: Path) -> None:
    orders = [ahead.order(batch_size=size)[1] for size in (16, 32)]
    temporary = tmp_path / "theirs"
    temporary.mkdir()
    sweep = subprocess.Popen(
        [sys.executable, "-c", DRIVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=dict(os.environ, TMPDIR=str(temporary)),
    )
    assert sweep.stdin is not None
    assert sweep.stdout is not None
    sweep.stdin.write(pickle.dumps(orders))
    sweep.stdin.close()
    waiting = [psutil.Process(pid) for pid in json.loads(sweep.stdout.readline())]
    assert len(waiting) == 5, "server, two leaders, two ranks"
    assert len(list(temporary.glob("gpubench-*"))) == 2
    sweep.kill()
    sweep.wait()
    sweep.stdout.close()
    assert left(waiting, within=5) == []
    tempfile.tempdir = str(temporary)
    ahead.node.clear()  # as the next sweep does
    assert list(temporary.glob("gpubench-*")) == []
    tempfile.tempdir = str(tmp_path / "temporary")
