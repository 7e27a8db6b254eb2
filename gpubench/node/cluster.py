"""The nodes on which one trial may run together: this one, and further ones.

This node runs its own part of a trial as it runs any trial (`Node.run_unit`). On each further one it starts a process
that does the same with that node's part (`part.py`), writes what happened into a folder that both see, and ends. Ranks
meet, wait for each other and part by torch itself. Nothing is left on further nodes between two trials.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec import structs

from gpubench.basics.errors import UnusableError
from gpubench.basics.linux import read_network_stack_id
from gpubench.basics.ports import reserve_port
from gpubench.basics.words import format_count
from gpubench.node.environment import Machine
from gpubench.node.launch.attempt import INTERRUPTED, wait_for_stop_signal
from gpubench.node.launch.fork_server import LaunchStoppedError
from gpubench.node.launch.leader import GRACE_S
from gpubench.node.node import Node
from gpubench.node.parts import network
from gpubench.node.parts.files import NodeInfo, PartsFolder, PreparePart, RunPart, open_parts_folder
from gpubench.node.parts.merging import NodePart, merge_parts
from gpubench.node.parts.process import (
    PartCommand,
    PartLostError,
    PartProcess,
    close_all_parts,
    list_part_commands,
)
from gpubench.schema import hosts
from gpubench.schema.attempt import Attempt, JobProgress
from gpubench.schema.order import Rendezvous, TrialOrder
from gpubench.schema.workload import WORKLOADS

END_LIMIT_S = 30.0
"""How long a part may take to end a trial and to write of it."""


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
    def node_count(self) -> int:
        """How many nodes there are."""
        return 1 + len(self.commands)

    def run_trial(
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
                folder, mark = ending.enter_context(open_parts_folder(order.log))
                processes: list[PartProcess] = []
                ending.callback(close_all_parts, processes)
                infos = self._start_further_nodes(folder, mark, nodes - 1, processes, should_stop)
                orders = _make_node_orders(order, self.first.machine, infos, ending)
                for process, its_order in zip(processes, orders[1:], strict=True):
                    process.send(
                        RunPart(
                            order=its_order,
                            left_out=tuple(sorted(left_out)),
                            timeout_s=timeout_s,
                            may_share=self.may_share,
                        )
                    )
            except LaunchStoppedError:
                return Attempt(forced=INTERRUPTED, launched=launched, finished=time.monotonic())
            except PartLostError as why:
                # A signal to all processes of a job may end a part that has only begun: then the trial has not failed.
                reason = f"node {why.node} can't be had: {why}"
                forced = INTERRUPTED if wait_for_stop_signal(should_stop) else ("failed", reason)
                return Attempt(forced=forced, launched=launched, finished=time.monotonic())
            except UnusableError as why:
                return Attempt(forced=("failed", str(why)), launched=launched, finished=time.monotonic())
            trial = _FurtherNodeParts(processes, orders[1:], should_stop)
            (done,) = self.first.run_unit(
                [orders[0]],
                [left_out],
                timeout_s=timeout_s,
                should_stop=trial.should_stop_first_node,
                look=look,
            )
            trial.end_all_parts()
            first = NodePart(
                host=self.first.machine.host,
                ranks=order.ranks,
                gpu_uuids=order.gpu_uuids,
                done=done,
                was_stopped=trial.has_stopped_first,
            )
            parts = [first, *trial.parts]
            _append_node_logs(
                order.log, hosts.make_distinct_node_names([part.host for part in parts]), folder
            )
        return merge_parts(
            parts, is_stopped=trial.is_stopped, launched=done.launched, finished=time.monotonic()
        )

    def _start_further_nodes(
        self,
        folder: PartsFolder,
        mark: str,
        count: int,
        processes: list[PartProcess],
        should_stop: Callable[[], bool],
    ) -> list[NodeInfo]:
        """Starts a process on each of the first so many further nodes, and waits until a trial can begin there.

        `processes`: is filled, so that they can be ended whatever comes. Raises PartLostError, LaunchStoppedError.
        """
        for number, command in enumerate(self.commands[:count], 1):  # side by side: each imports torch
            processes.append(PartProcess(command, folder, number))
            processes[-1].send(PreparePart(first=self.address, folder=folder.path, mark=mark, number=number))
        return [process.await_node_info(should_stop) for process in processes]


def make_cluster(
    first: Node, agents: Sequence[str], address: str | None, *, may_share: bool = False
) -> Cluster:
    """This node with the further ones that there are. `agents`: how a process is started on each of them (`ssh n2`);
    none: those of the SLURM job. `address`: of this node, as others reach it; None: by its name. `may_share`: see
    `Cluster`.

    Raises UsageError, UnusableError.
    """
    return Cluster(
        first=first,
        commands=list_part_commands(agents, os.environ),
        address=address or os.environ.get("SLURMD_NODENAME") or socket.gethostname(),
        may_share=may_share,
    )


class _FurtherNodeParts:
    """The parts on further nodes of a trial under way, as the first node sees them."""

    def __init__(
        self,
        processes: Sequence[PartProcess],
        orders: Sequence[TrialOrder],
        should_stop: Callable[[], bool],
    ) -> None:
        self._processes = processes
        self.parts = [
            NodePart(host=process.name, ranks=order.ranks, gpu_uuids=order.gpu_uuids)
            for process, order in zip(processes, orders, strict=True)
        ]
        self._last_word = WORKLOADS[orders[0].trial.workload].last_word
        self._is_sweep_stopped = should_stop
        self.is_stopped = False
        """Whether the sweep was stopped."""
        self.has_stopped_first = False
        """Whether the first node's part was ended because of another's."""
        self._broken_at: float | None = None

    def _read_ended_parts(self) -> None:
        """Reads what happened on each node whose part has ended."""
        for process, part in zip(self._processes, self.parts, strict=True):
            if not part.is_over and process.has_ended:
                try:
                    part.done = process.read_attempt()
                except PartLostError as why:
                    part.lost = str(why)

    def _has_part_failed(self, part: NodePart) -> bool:
        """Whether it is over, and not all of its ranks have done their work."""
        if part.done is None:
            return bool(part.lost)
        return sum(isinstance(event, self._last_word) for event in part.done.events) < part.ranks

    def should_stop_first_node(self) -> bool:
        """Whether the first node's part is to end now."""
        self.is_stopped = self.is_stopped or self._is_sweep_stopped()
        if self.is_stopped:
            return True
        self._read_ended_parts()
        if any(map(self._has_part_failed, self.parts)):
            # What has failed there is soon felt here: the ranks' own errors tell more than their being ended.
            self._broken_at = self._broken_at or time.monotonic()
            lost = any(part.lost for part in self.parts)
            self.has_stopped_first = lost or time.monotonic() > self._broken_at + GRACE_S
        return self.has_stopped_first

    def end_all_parts(self) -> None:
        """Until every part has ended, or is lost. The first node's has ended."""
        now = time.monotonic()
        grace = now if self.is_stopped else now + GRACE_S
        while any(not part.is_over for part in self.parts) and now < grace + END_LIMIT_S:
            if now >= grace:
                for process, part in zip(self._processes, self.parts, strict=True):
                    if not part.is_over and not part.was_stopped:
                        part.was_stopped = True
                        process.close_input()
            self._read_ended_parts()
            time.sleep(0.02)
            now = time.monotonic()
        for part in self.parts:
            if not part.is_over:
                part.lost = f"its part did not end within {END_LIMIT_S:g} s"


def _make_node_orders(
    order: TrialOrder, machine: Machine, infos: Sequence[NodeInfo], ending: contextlib.ExitStack
) -> list[TrialOrder]:
    """The order of each node: `order` is the first one's. `ending`: gives the port free where ranks meet. Raises
    UnusableError where the nodes are not alike."""
    address = infos[0].address
    try:
        interfaces = [network.find_interface_by_address(address), *(info.interface for info in infos)]
    except UnusableError:
        raise UnusableError(
            f"node {infos[0].machine.host} takes {address} for the first node, which is none of its addresses; say by "
            "which IP address others reach it (--network)"
        ) from None
    gpus, ranks = len(order.gpu_uuids), order.ranks
    orders = [order]
    is_loopback = ipaddress.ip_address(address.partition("%")[0]).is_loopback
    for info in infos:
        further = info.machine
        if is_loopback and info.network_stack != read_network_stack_id():
            raise UnusableError(
                f"node {further.host} takes {address} for the first node, which leads back to {further.host} itself; "
                "say by which IP address others reach it (--network)"
            )
        if why := _describe_node_mismatch(order, machine, further):
            raise UnusableError(why)
        cpu_ids = tuple(further.cpu_ids)
        is_bound = len(order.cpu_ids) < len(machine.cpu_ids)
        orders.append(
            structs.replace(
                order,
                gpu_uuids=tuple(gpu.uuid for gpu in further.gpus[:gpus]),
                cpu_ids=cpu_ids[: len(order.cpu_ids)] if is_bound else cpu_ids,
            )
        )
    try:
        port = ending.enter_context(reserve_port(address))
    except OSError as error:
        raise UnusableError(f"ranks can't meet at {address}: {error.strerror}") from None
    return [
        structs.replace(
            its_order,
            rendezvous=Rendezvous(
                address=address,
                port=port,
                interface=interface,
                first_rank=number * ranks,
                world=len(orders) * ranks,
            ),
        )
        for number, (its_order, interface) in enumerate(zip(orders, interfaces, strict=True))
    ]


def _describe_node_mismatch(order: TrialOrder, machine: Machine, further: Machine) -> str:
    """Why a trial can't be shared equally with this node; empty where it can."""
    wanted = len(order.gpu_uuids)
    if len(further.gpus) < wanted:
        return f"node {further.host} shows {format_count(len(further.gpus), 'GPU')}, the trial needs {wanted} there"
    first_gpus = {(gpu.name, gpu.memory_mib) for gpu in machine.gpus if gpu.uuid in order.gpu_uuids}
    further_gpus = {(gpu.name, gpu.memory_mib) for gpu in further.gpus[:wanted]}
    if wanted and first_gpus != further_gpus:
        first_kinds, further_kinds = (
            " + ".join(f"{name}, {mib} MiB" for name, mib in sorted(kinds))
            for kinds in (first_gpus, further_gpus)
        )
        return (
            f"node {further.host} has other GPUs ({further_kinds}) than node {machine.host} ({first_kinds}): "
            "ask for nodes of one kind"
        )
    if not wanted and machine.cpu_name != further.cpu_name:
        return (
            f"node {further.host} has other CPUs ({further.cpu_name}) than node {machine.host} ({machine.cpu_name}): "
            "ask for nodes of one kind"
        )
    if len(order.cpu_ids) < len(machine.cpu_ids) and len(further.cpu_ids) < len(order.cpu_ids):
        needed = len(order.cpu_ids)
        return f"node {further.host} lets it use {len(further.cpu_ids)} CPUs, the trial needs {needed} there"
    return ""


def _append_node_logs(log: Path, called: Sequence[str], folder: PartsFolder) -> None:
    """What processes of further nodes have printed, below what those of this one have: of parts that were lost, too."""
    for number, name in enumerate(called[1:], 1):
        try:
            printed = folder.read_if_present(folder.make_log_path(number))
            if printed:
                with log.open("ab") as file:
                    file.write(f"\n---- node {name} ----\n".encode() + printed)
        except OSError:  # a full disk: the reason says the gist of it
            return
