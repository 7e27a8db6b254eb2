"""The nodes on which one trial may run together: this one, and further ones.

This node runs its own part of a trial as it runs any trial (`Node.run`). On each further one it starts a process that
does the same with that node's part (`part.py`), writes what happened into a folder that both see, and ends. Ranks meet,
wait for each other and part by torch itself. Nothing is left on further nodes between two trials.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec import structs

from gpubench.basics.errors import UnusableError
from gpubench.basics.ports import reserved_port
from gpubench.basics.words import many
from gpubench.node.environment import Machine
from gpubench.node.launch.attempt import INTERRUPTED
from gpubench.node.launch.launcher import StoppedError
from gpubench.node.launch.running_job import GRACE_S
from gpubench.node.node import Node
from gpubench.node.parts import network
from gpubench.node.parts.allocation import first_address, part_commands
from gpubench.node.parts.files import NodeInfo, Open, PartsFolder, RunPart, parts_folder
from gpubench.node.parts.process import LostError, PartCommand, PartProcess, close_all
from gpubench.node.parts.uniting import NodePart, unite
from gpubench.schema import hosts
from gpubench.schema.attempt import Attempt, JobProgress
from gpubench.schema.order import Meeting, TrialOrder
from gpubench.schema.workload import WORKLOADS

SIGNAL_LAG_S = 1.0
"""Processes of one job hear a signal to all of them within less."""
END_LIMIT_S = 30.0
"""How long a part may take to end a trial and to write of it."""


class _NotHereError(Exception):
    """A trial can't run on these nodes. The text says why."""


@dataclass(kw_only=True, slots=True)
class Cluster:
    """This node and the further ones."""

    first: Node
    commands: Sequence[PartCommand] = ()
    """How a process is started on each further node."""
    address: str
    """By which name or IP address further nodes reach this one."""
    may_share: bool = False
    """Whether trials run on GPUs of further nodes that other sweeps there have, too."""

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return 1 + len(self.commands)

    def run(
        self,
        order: TrialOrder,
        left_out: Collection[str],
        *,
        nodes: int,
        timeout_s: float,
        should_stop: Callable[[], bool],
        look: Callable[[Sequence[JobProgress]], None],
    ) -> Attempt:
        """One attempt at a trial on `nodes` nodes; afterwards none of its processes is left on any.

        `order`: as for the first of them; its log must lie where all nodes see it. `should_stop` and `look` are called
        a few times a second. A part that dies fails the trial.
        """
        launched = time.monotonic()
        with contextlib.ExitStack() as ending:
            try:
                folder, mark = ending.enter_context(parts_folder(order.log))
                processes: list[PartProcess] = []
                ending.callback(close_all, processes)
                infos = self._start(folder, mark, nodes - 1, processes, should_stop)
                orders = _orders(order, self.first.machine, infos, ending)
                for process, its_order in zip(processes, orders[1:], strict=True):
                    _hand_over(process, its_order, left_out, timeout_s, may_share=self.may_share)
            except StoppedError:
                return Attempt(forced=INTERRUPTED, launched=launched, finished=time.monotonic())
            except (_NotHereError, UnusableError) as why:
                return Attempt(forced=("failed", str(why)), launched=launched, finished=time.monotonic())
            trial = _Trial(processes, orders[1:], should_stop)
            (done,) = self.first.run(
                [orders[0]], [left_out], timeout_s=timeout_s, should_stop=trial.should_stop, look=look
            )
            trial.finish()
            first = NodePart(
                host=self.first.machine.host,
                ranks=order.ranks,
                gpu_uuids=order.gpu_uuids,
                done=done,
                was_stopped=trial.has_stopped_first,
            )
            parts = [first, *trial.parts()]
            _add_logs(order.log, hosts.told_apart([part.host for part in parts]), folder)
        return unite(parts, is_stopped=trial.is_stopped, launched=done.launched, finished=time.monotonic())

    def _start(
        self,
        folder: PartsFolder,
        mark: str,
        count: int,
        processes: list[PartProcess],
        should_stop: Callable[[], bool],
    ) -> list[NodeInfo]:
        """Starts a process on each of the first so many further nodes, and waits until a trial can begin there.

        `processes`: is filled, so that they can be ended whatever comes. Raises _NotHereError, StoppedError.
        """
        for number, command in enumerate(self.commands[:count], 1):  # side by side: each imports torch
            try:
                processes.append(PartProcess(command, folder, number))
                processes[-1].send(Open(first=self.address, folder=folder.path, mark=mark, number=number))
            except LostError as why:
                raise _why_not_had(command.name, why, should_stop) from None
        infos = []
        for process in processes:
            try:
                infos.append(process.await_node_info(should_stop))
            except LostError as why:
                raise _why_not_had(process.name, why, should_stop) from None
        return infos


def cluster(first: Node, agents: Sequence[str], address: str | None, *, may_share: bool = False) -> Cluster:
    """This node with the further ones that there are. `agents`: how a process is started on each of them (`ssh n2`);
    none: those of the SLURM job. `address`: of this node, as others reach it; None: by its name. `may_share`: see
    `Cluster`.

    Raises UsageError, UnusableError.
    """
    return Cluster(
        first=first,
        commands=part_commands(agents, os.environ),
        address=first_address(address, os.environ),
        may_share=may_share,
    )


class _Part:
    """A part of the trial under way."""

    def __init__(self, process: PartProcess, order: TrialOrder) -> None:
        self.process = process
        self.order = order
        self.done: Attempt | None = None
        self.lost = ""
        self.was_stopped = False

    @property
    def is_over(self) -> bool:
        return self.done is not None or bool(self.lost)

    def poll(self) -> None:
        """Reads what happened there, once it has ended."""
        if not self.is_over and self.process.has_ended:
            try:
                self.done = self.process.read_attempt()
            except LostError as why:
                self.lost = str(why)

    @property
    def is_broken(self) -> bool:
        """Whether it is over, and not all of its ranks have done their work."""
        if self.done is None:
            return bool(self.lost)
        last_word = WORKLOADS[self.order.trial.workload].last_word
        return sum(isinstance(event, last_word) for event in self.done.events) < self.order.ranks


class _Trial:
    """A trial under way on several nodes, as the first node sees the others."""

    def __init__(
        self,
        processes: Sequence[PartProcess],
        orders: Sequence[TrialOrder],
        should_stop: Callable[[], bool],
    ) -> None:
        self._parts = [_Part(*each) for each in zip(processes, orders, strict=True)]
        self._is_sweep_stopped = should_stop
        self.is_stopped = False
        """Whether the sweep was stopped."""
        self.has_stopped_first = False
        """Whether the first node's part was ended because of another's."""
        self._broken_at: float | None = None

    def should_stop(self) -> bool:
        """Whether the first node's part is to end now."""
        self.is_stopped = self.is_stopped or self._is_sweep_stopped()
        if self.is_stopped:
            return True
        for part in self._parts:
            part.poll()
        if any(part.is_broken for part in self._parts):
            # What has failed there is soon felt here: the ranks' own errors tell more than their being ended.
            self._broken_at = self._broken_at or time.monotonic()
            lost = any(part.lost for part in self._parts)
            self.has_stopped_first = lost or time.monotonic() > self._broken_at + GRACE_S
        return self.has_stopped_first

    def finish(self) -> None:
        """Until every part has ended, or is lost. The first node's has ended."""
        now = time.monotonic()
        grace = now if self.is_stopped else now + GRACE_S
        while any(not part.is_over for part in self._parts) and now < grace + END_LIMIT_S:
            if now >= grace:
                for part in self._parts:
                    if not part.is_over and not part.was_stopped:
                        part.was_stopped = True
                        part.process.stop()
            for part in self._parts:
                part.poll()
            time.sleep(0.02)
            now = time.monotonic()
        for part in self._parts:
            if not part.is_over:
                part.lost = f"its part did not end within {END_LIMIT_S:g} s"

    def parts(self) -> list[NodePart]:
        """What became of them."""
        return [
            NodePart(
                host=part.process.name,
                ranks=part.order.ranks,
                gpu_uuids=part.order.gpu_uuids,
                done=part.done,
                lost=part.lost,
                was_stopped=part.was_stopped,
            )
            for part in self._parts
        ]


def _hand_over(
    process: PartProcess, order: TrialOrder, left_out: Collection[str], timeout_s: float, *, may_share: bool
) -> None:
    """Raises _NotHereError."""
    asked = RunPart(order=order, left_out=tuple(sorted(left_out)), timeout_s=timeout_s, may_share=may_share)
    try:
        process.send(asked)
    except LostError as why:
        raise _NotHereError(f"node {process.name} can't be had: {why}") from None


def _why_not_had(name: str, why: LostError, should_stop: Callable[[], bool]) -> Exception:
    """A signal to all processes of a job may end an agent that has only begun: then the sweep hears it at that moment,
    too, and the trial has not failed."""
    deadline = time.monotonic() + SIGNAL_LAG_S
    while time.monotonic() < deadline:
        if should_stop():
            return StoppedError()
        time.sleep(0.05)
    return _NotHereError(f"node {name} can't be had: {why}")


def _orders(
    order: TrialOrder, machine: Machine, infos: Sequence[NodeInfo], ending: contextlib.ExitStack
) -> list[TrialOrder]:
    """The order of each node: `order` is the first one's. `ending`: gives the port free where ranks meet. Raises
    _NotHereError where the nodes are not alike."""
    address = infos[0].address
    try:
        interfaces = [network.interface_of(address), *(info.interface for info in infos)]
    except UnusableError:
        raise _NotHereError(
            f"node {infos[0].host} takes {address} for the first node, which is none of its addresses; say by which "
            "IP address others reach it (--network)"
        ) from None
    if network.is_loopback(address):
        for info in infos:
            if info.loopback != network.loopback():
                raise _NotHereError(
                    f"node {info.host} takes {address} for the first node, which leads back to {info.host} itself; "
                    "say by which IP address others reach it (--network)"
                )
    gpus, ranks = len(order.gpu_uuids), order.ranks
    orders = [order]
    for info in infos:
        if why := _why_unlike(order, machine, info):
            raise _NotHereError(why)
        cpu_ids = tuple(info.cpu_ids)
        is_bound = len(order.cpu_ids) < len(machine.cpu_ids)
        orders.append(
            structs.replace(
                order,
                gpu_uuids=tuple(gpu.uuid for gpu in info.gpus[:gpus]),
                cpu_ids=cpu_ids[: len(order.cpu_ids)] if is_bound else cpu_ids,
            )
        )
    try:
        port = ending.enter_context(reserved_port(address))
    except OSError as error:
        raise _NotHereError(f"ranks can't meet at {address}: {error.strerror}") from None
    return [
        structs.replace(
            its_order,
            meeting=Meeting(
                address=address,
                port=port,
                interface=interface,
                first_rank=number * ranks,
                world=len(orders) * ranks,
            ),
        )
        for number, (its_order, interface) in enumerate(zip(orders, interfaces, strict=True))
    ]


def _why_unlike(order: TrialOrder, machine: Machine, there: NodeInfo) -> str:
    """Why a trial can't be shared equally with this node; empty where it can."""
    wanted = len(order.gpu_uuids)
    if len(there.gpus) < wanted:
        return f"node {there.host} shows {many(len(there.gpus), 'GPU')}, the trial needs {wanted} there"
    here = {(gpu.name, gpu.memory_mib) for gpu in machine.gpus if gpu.uuid in order.gpu_uuids}
    others = {(gpu.name, gpu.memory_mib) for gpu in there.gpus[:wanted]}
    if wanted and here != others:
        own, other = (
            " + ".join(f"{name}, {mib} MiB" for name, mib in sorted(kinds)) for kinds in (here, others)
        )
        return (
            f"node {there.host} has other GPUs ({other}) than node {machine.host} ({own}): ask for nodes of one "
            "kind"
        )
    if not wanted and machine.cpu_name != there.cpu_name:
        return (
            f"node {there.host} has other CPUs ({there.cpu_name}) than node {machine.host} ({machine.cpu_name}): ask "
            "for nodes of one kind"
        )
    if len(order.cpu_ids) < len(machine.cpu_ids) and len(there.cpu_ids) < len(order.cpu_ids):
        return f"node {there.host} lets it use {len(there.cpu_ids)} CPUs, the trial needs {len(order.cpu_ids)} there"
    return ""


def _add_logs(log: Path, called: Sequence[str], folder: PartsFolder) -> None:
    """What processes of further nodes have printed, below what those of this one have: of parts that were lost, too."""
    for number, name in enumerate(called[1:], 1):
        try:
            printed = folder.read(folder.log(number))
            if printed:
                with log.open("ab") as file:
                    file.write(f"\n---- node {name} ----\n".encode() + printed)
        except OSError:  # a full disk: the reason says the gist of it
            return
