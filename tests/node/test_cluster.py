"""One trial over two nodes, both of which are this machine; all else is as between two."""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
import scripted
from fakes import resolve_alone
from msgspec import structs
from place import until
from telling_model import DIES, weights, write
from warm_command import Started, WarmCommand

from gpubench.node import environment, further_node
from gpubench.node.cluster import Cluster
from gpubench.node.launch.fork_server import ForkServer
from gpubench.node.locks import SweepLocks
from gpubench.node.node import Node
from gpubench.node.parts.files import PreparePart, RunPart, encode_json_line, open_parts_folder, parse_answer
from gpubench.node.parts.process import PartCommand
from gpubench.node.watch.nvml import NoNvml
from gpubench.plan import resolve as resolving
from gpubench.record.training import make_outcome
from gpubench.schema.attempt import Attempt, JobProgress
from gpubench.schema.events import End, Hello

SRUN_ENDS = """\
echo No module >&2
echo 'srun: error: n2: task 0: Exited with exit code 1' >&2
echo 'srun: Terminating StepId=3.1' >&2
exit 1"""


class Two:
    """Runs trials of a test over two nodes."""

    def __init__(self, server: ForkServer, ask: Callable[..., Any], data: Path) -> None:
        machine = environment.make_machine(None)
        self.node = Node(nvml=NoNvml("NVML was not opened"), machine=machine)
        self.node.launcher = server
        self._ask, self._data = ask, data

    def run(
        self,
        folder: Path,
        *,
        before: tuple[str, ...] = ("env",),
        look: Callable[[Sequence[JobProgress]], None] = lambda _: None,
        **fields: Any,
    ) -> tuple[Attempt, tuple[str, str], str]:
        """The attempt, how it ended, and its log. `before`: how a process is started on the second node."""
        asked = self._ask(data=self._data, nodes=2, cpus=2, workers=2, **fields)
        (job, facts) = asked.job, asked.facts
        resolved = resolve_alone(job, self.node.machine, facts, "cpu")
        log = folder / "log"
        log.touch()
        data = resolving.make_data_spec(job, resolved, facts, self._data)
        order = resolving.make_trial_order(job, resolved, data=data, log=log, known_gmacs=None)
        cluster = Cluster(
            first=self.node, commands=[PartCommand(name="n2", before=before)], address="127.0.0.1"
        )
        done = cluster.run_trial(order, (), nodes=2, timeout_s=120, should_stop=lambda: False, look=look)
        ended = make_outcome(job, resolved, done, done.forced)
        return done, (ended.status, ended.reason), log.read_text()


@pytest.fixture(scope="module")
def two(server: ForkServer, colours: Path, ask: Callable[..., Any]) -> Two:
    return Two(server, ask, colours)


def list_parts() -> list[psutil.Process]:
    """Processes of parts on further nodes, below this one."""
    alive = [child for child in psutil.Process().children() if child.status() != psutil.STATUS_ZOMBIE]
    return [child for child in alive if "gpubench.node.further_node" in child.cmdline()]


def all_below(process: psutil.Process) -> list[psutil.Process]:
    return [process, *process.children(recursive=True)]


@pytest.mark.slow
def test_ranks_of_both_nodes_train_one_network(two: Two, tmp_path: Path) -> None:
    listening: set[str] = set()

    def look(progress: Sequence[JobProgress]) -> None:
        if progress[0].steps and not listening:
            for process in all_below(psutil.Process()):
                for connection in process.net_connections("inet"):
                    if connection.status == psutil.CONN_LISTEN:
                        listening.add(connection.laddr.ip)

    done, ended, log = two.run(tmp_path, model=write(tmp_path), strategy="ddp", epochs=2, look=look)
    assert ended == ("ok", ""), log
    assert listening == {"127.0.0.1"}, "the one address"
    hellos = {e.rank: e.pid for e in done.events if isinstance(e, Hello)}
    assert hellos.keys() == {0, 1}
    told = weights(log)
    # The log holds what was printed on both nodes.
    assert told.keys() == {0, 1}
    assert len(set(told.values())) == 1

    # All times are on the first node's time line.
    ends = sorted((e for e in done.events if isinstance(e, End)), key=lambda e: (e.epoch, e.rank))
    assert [(e.epoch, e.rank) for e in ends] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert all(done.launched < e.t0 < e.t1 < done.finished for e in ends)
    first, second = done.nodes
    assert (first.clock_offset_s, first.first_rank, second.first_rank) == (0.0, 0, 1)
    assert second.clock_offset_s is not None
    # Both read the same clock here.
    assert abs(second.clock_offset_s) < 0.05
    assert len(done.watched.parts) == 2
    assert all(part.samples.find_series("cpu_tree_s").values for part in done.watched.parts)
    assert all(part.samples.find_series("host_mem_mib").values for part in done.watched.parts)
    nothing_is_left(tmp_path)


def nothing_is_left(folder: Path) -> None:
    """Neither a process of the second node's part nor its folder."""
    assert not list_parts()
    assert sorted(path.name for path in folder.iterdir() if path.suffix == ".parts") == []


TRAINS = 'print("TRAINS", flush=True) if self.steps == 3 and self.training else None'


def start_sweep(warm_command: WarmCommand, folder: Path, trick: str) -> Started:
    """A sweep of one trial over both nodes that would go on for long, of a model that does `trick` in each pass."""
    asked = (
        "sweep", "--model", write(folder, trick), "--device", "cpu", "--variant", "synthetic", "--ranks", "2",
        "--set", "input_size=28", "--set", "num_classes=4", "--epochs", "100000", "--batch-size", "32", "--rounds", "1",
        "--nodes", "2", "--agent", "env", "--network", "127.0.0.1", "--out", "out",
    )  # fmt: skip
    return warm_command.start(asked, cwd=folder, env=os.environ)


def read_ending(folder: Path) -> tuple[str, str]:
    """Of the one record; nothing else is left of the trial's parts."""
    assert not list(folder.rglob("*.parts"))
    (path,) = folder.rglob("records/*/*.json")
    record = json.loads(path.read_text())
    return record["status"], record["reason"]


@pytest.mark.slow
def test_a_rank_that_dies_on_the_second_node_is_named_with_it(
    warm_command: WarmCommand, tmp_path: Path
) -> None:
    sweep = start_sweep(warm_command, tmp_path, DIES)
    sweep.communicate(timeout=120)
    status, reason = read_ending(tmp_path)
    assert (sweep.returncode, status) == (1, "failed")
    assert re.match(r"rank 1 on node \S+ \(node 1\) was ended by SIGKILL", reason)


def await_training(sweep: Started, folder: Path) -> list[psutil.Process]:
    """All processes of a sweep whose trial trains on both nodes."""
    until(lambda: any("TRAINS" in log.read_text() for log in folder.rglob("logs/*/*.log")), "training")
    family = psutil.Process(sweep.pid).children(recursive=True)
    assert len(family) == 7, "fork server, leader and rank of each node, and the part of the second one"
    return family


@pytest.mark.slow
def test_a_sweep_that_is_stopped_ends_the_trial_on_both_nodes(
    warm_command: WarmCommand, tmp_path: Path
) -> None:
    sweep = start_sweep(warm_command, tmp_path, TRAINS)
    family = await_training(sweep, tmp_path)
    sweep.send_signal(signal.SIGINT)
    sweep.communicate(timeout=60)
    assert sweep.returncode == 75
    assert read_ending(tmp_path) == ("interrupted", "the sweep was stopped")
    until(lambda: not any(map(is_alive, family)), "the end of all")


@pytest.mark.slow
def test_a_part_that_dies_in_mid_trial_fails_it_and_leaves_nothing(
    warm_command: WarmCommand, tmp_path: Path
) -> None:
    sweep = start_sweep(warm_command, tmp_path, TRAINS)
    family = await_training(sweep, tmp_path)
    (its_part,) = (process for process in family if len(process.children(recursive=True)) == 3)
    its_part.kill()
    sweep.communicate(timeout=60)
    status, reason = read_ending(tmp_path)
    assert (sweep.returncode, status) == (1, "failed")
    assert re.match(r"node \S+ \(node 1\) was lost: its part was ended by SIGKILL", reason)
    until(lambda: not any(map(is_alive, family)), "the end of all, on the first node, too")


def is_alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


@pytest.mark.slow
def test_a_node_that_can_t_be_had_fails_the_trial_with_its_words(two: Two, tmp_path: Path) -> None:
    for before, words in (
        (("no-such-command",), "no-such-command can't be run: No such file"),
        (("false",), "its part ended with exit code 1"),
        (("sh", "-c", "echo Welcome to n2"), "exit code 0; it said: Welcome to n2"),
        (("sh", "-c", "exec <&-; echo Welcome to n2; sleep 1"), "exit code 0; it said: Welcome to n2"),
        (("sh", "-c", "echo n2: no route >&2; exit 255"), "exit code 255; it said: n2: no route"),
        (("sh", "-c", "echo Hello; echo No module >&2; exit 1"), "exit code 1; it said: No module"),
        (("sh", "-c", f"yes noise | head -n 9999 >&2; {SRUN_ENDS}"), "exit code 1; it said: No module"),
        (("sh", "-c", "echo 'srun: error: No such step' >&2; exit 1"), "said: srun: error: No such step"),
    ):
        _, (status, reason), _ = two.run(tmp_path, before=before, epochs=2)
        assert status == "failed"
        assert reason.startswith("node n2 can't be had: ")
        assert words in reason


@pytest.mark.parametrize("may_share", [False, True])
def test_a_gpu_of_another_sweep_of_a_further_node_is_not_measured_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, may_share: bool
) -> None:
    """Unless that is allowed. The part runs in this process, and its trial by a script."""
    gpu, hold = f"GPU-{secrets.token_hex(8)}", SweepLocks()
    assert hold.take_free([gpu]) == []
    node = Node(nvml=NoNvml("none"), machine=scripted.computer(1), gpu_locks=SweepLocks())
    node.launcher = scripted.Scripted()
    monkeypatch.setattr(further_node, "make_this_node", lambda: node)
    for waits in ("start_fork_server", "wait_ready"):
        monkeypatch.setattr(Node, waits, lambda *_: True)
    order = structs.replace(scripted.order(log=tmp_path / "log"), gpu_uuids=(gpu,))
    reads, writes = os.pipe()
    with open_parts_folder(order.log) as (folder, mark), os.fdopen(writes, "wb") as lines:
        for request in (
            PreparePart(first="127.0.0.1", folder=folder.path, mark=mark, number=1),
            RunPart(order=order, left_out=(), timeout_s=5, may_share=may_share),
        ):
            lines.write(encode_json_line(request))
        lines.flush()
        further_node.run_node_part(further_node.RequestReader(reads))
        done = parse_answer(Attempt, folder.make_attempt_path(1).read_bytes())
    os.close(reads)
    hold.release()
    if may_share:
        assert done.forced is None
    else:
        assert f"measures on {gpu}; wait" in str(done.forced)


@pytest.mark.slow
def test_a_folder_that_the_second_node_does_not_see_is_told_before_the_trial(
    two: Two, tmp_path: Path
) -> None:
    """As where results lie on a disk of the first node."""
    hides = ("unshare", "--mount", "sh", "-c", f'mount -t tmpfs none {tmp_path} && exec "$@"', "sh")
    if os.geteuid() != 0:
        pytest.skip("a mount of its own wants root")
    done, (status, reason), _ = two.run(tmp_path, before=hides, epochs=2)
    assert status == "failed"
    assert "is not there as the first node has made it" in reason
    assert "(--out)" in reason
    assert not [e for e in done.events if isinstance(e, Hello)], "nothing has run"
    nothing_is_left(tmp_path)
