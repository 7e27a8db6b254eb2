"""The nodes on which one trial may run together: this one, and an agent on each further one.

This node runs its own part of a trial as it runs any trial (`Node.run`), and meanwhile hears the agents, which do the
same with theirs. Ranks meet by torch itself. Nothing is started on further nodes before a trial needs them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from gpubench.basics.errors import UnusableError
from gpubench.basics.words import many
from gpubench.node.agents import merging, network
from gpubench.node.agents.allocation import agent_commands, first_address
from gpubench.node.agents.clock import ClockReading, Clocks, same
from gpubench.node.agents.link import AgentCommand, Link, LostError
from gpubench.node.agents.merging import NodePart
from gpubench.node.agents.messages import Beat, Complete, Ended, Here, Release, RunTrial, StopTrial
from gpubench.node.environment import Machine
from gpubench.node.launch.attempt import INTERRUPTED
from gpubench.node.launch.launcher import StoppedError
from gpubench.node.launch.running_job import GRACE_S
from gpubench.node.node import Node
from gpubench.schema import hosts
from gpubench.schema.attempt import Attempt, JobProgress
from gpubench.schema.order import Meeting, TrialOrder

BEAT_S = 1.0
LOST_S = 60.0
"""After so long without a word from an agent during a trial its node counts as lost."""
SIGNAL_LAG_S = 1.0
"""Processes of one job hear a signal to all of them within less."""
END_LIMIT_S = 30.0
"""How long an agent may take to end a trial and to tell of it."""


class _NotHereError(Exception):
    """A trial can't run on these nodes. The text says why."""


@dataclass(kw_only=True, slots=True)
class _Far:
    """One agent's part of the trial under way."""

    link: Link
    order: TrialOrder
    begin: ClockReading
    is_complete: bool = False
    ended: Ended | None = None
    lost: str = ""
    was_stopped: bool = False

    @property
    def is_over(self) -> bool:
        return self.ended is not None or bool(self.lost)


@dataclass(kw_only=True, slots=True)
class Cluster:
    """This node and the further ones."""

    first: Node
    commands: Sequence[AgentCommand] = ()
    """How the agent of each further node is started."""
    address: str
    """By which name or IP address further nodes reach this one."""
    may_share: bool = False
    """Whether trials run on GPUs of further nodes that other sweeps there have, too."""
    _links: dict[int, Link] = field(default_factory=dict)
    """Place in `commands` -> its agent, where it runs."""

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

        `order`: as for the first of them. `should_stop` and `look` are called a few times a second. An agent that dies
        fails the trial; the next one starts it again.
        """
        launched = time.monotonic()
        try:
            links = self._ready(nodes - 1, should_stop)
            begins = [self._clock(link) for link in links]
            orders = _orders(order, self.first.machine, [link.here for link in links if link.here])
        except StoppedError:
            return Attempt(forced=INTERRUPTED, launched=launched, finished=time.monotonic())
        except _NotHereError as why:
            return Attempt(forced=("failed", str(why)), launched=launched, finished=time.monotonic())
        far = [
            _Far(link=link, order=own, begin=begin)
            for link, own, begin in zip(links, orders[1:], begins, strict=True)
        ]
        trial = _Trial(far, should_stop)
        trial.start(left_out, timeout_s, may_share=self.may_share)
        (own,) = self.first.run(
            [orders[0]],
            [left_out],
            timeout_s=timeout_s,
            should_stop=trial.should_stop,
            look=look,
            may_end=trial.may_end,
        )
        trial.finish()
        parts = [
            NodePart(
                host=self.first.machine.host,
                ranks=order.ranks,
                gpu_uuids=order.gpu_uuids,
                clocks=same(),
                done=own,
                was_stopped=trial.has_stopped_own,
            ),
            *map(self._part, far),
        ]
        _add_logs(order.log, hosts.told_apart([part.host for part in parts])[1:], far)
        self._drop([one.link for one in far if one.lost])
        return merging.merged(
            parts, is_stopped=trial.is_stopped, launched=own.launched, finished=time.monotonic()
        )

    def close(self) -> None:
        """Ends all agents. A trial that needs them starts them again."""
        self._drop(list(self._links.values()))

    # ---- agents ----

    def _ready(self, count: int, should_stop: Callable[[], bool]) -> list[Link]:
        """The first so many agents, ready for a trial. Raises _NotHereError, StoppedError."""
        wanted = range(count)
        self._drop([link for link in self._links.values() if not link.is_there])  # ended since the last trial
        for number in wanted:  # side by side: each imports torch
            if number not in self._links:
                command = self.commands[number]
                try:
                    link = self._links[number] = Link(command)
                    link.open(self.address)
                except LostError as why:
                    self._drop([self._links[number]] if number in self._links else [])
                    raise _why_not_had(command.name, why, should_stop) from None
        for number in wanted:
            link = self._links[number]
            try:
                link.name = link.make_ready(should_stop).host
            except LostError as why:
                self._drop([link])
                raise _why_not_had(link.name, why, should_stop) from None
        return [self._links[number] for number in wanted]

    def _clock(self, link: Link) -> ClockReading:
        try:
            return link.clock()
        except LostError as why:
            self._drop([link])
            raise _NotHereError(f"node {link.name} can't be had: {why}") from None

    def _part(self, one: _Far) -> NodePart:
        done, end = one.ended, one.begin
        if done is not None:
            try:
                end = one.link.clock()
            except LostError as why:
                one.lost = str(why)
        return NodePart(
            host=one.link.name,
            ranks=one.order.ranks,
            gpu_uuids=one.order.gpu_uuids,
            clocks=Clocks(begin=one.begin, end=end),
            done=done.attempt() if done and not one.lost else None,
            lost=one.lost,
            was_stopped=one.was_stopped,
        )

    def _drop(self, links: Collection[Link]) -> None:
        for number, link in list(self._links.items()):
            if link in links:
                del self._links[number]
                link.close()


def cluster(first: Node, agents: Sequence[str], address: str | None, *, may_share: bool = False) -> Cluster:
    """This node with the further ones that there are. `agents`: how a process is started on each of them (`ssh n2`);
    none: those of the SLURM job. `address`: of this node, as others reach it; None: by its name. `may_share`: see
    `Cluster`.

    Raises UsageError, UnusableError.
    """
    return Cluster(
        first=first,
        commands=agent_commands(agents, os.environ),
        address=first_address(address, os.environ),
        may_share=may_share,
    )


class _Trial:
    """A trial under way on several nodes, as the first node sees the others."""

    def __init__(self, far: Sequence[_Far], should_stop: Callable[[], bool]) -> None:
        self._far = far
        self._asked = should_stop
        self.is_stopped = False
        """Whether the sweep was stopped."""
        self.has_stopped_own = False
        """Whether this node's own part was ended because of another's."""
        self._is_released = False
        self._broken_at: float | None = None
        self._next_beat = 0.0

    def start(self, left_out: Collection[str], timeout_s: float, *, may_share: bool) -> None:
        for one in self._far:
            one.link.heard = time.monotonic()
            self._send(
                one,
                RunTrial(
                    order=one.order,
                    left_out=tuple(sorted(left_out)),
                    timeout_s=timeout_s,
                    may_share=may_share,
                ),
            )

    def should_stop(self) -> bool:
        """Hears the agents; whether this node's own part is to end now."""
        self.is_stopped = self.is_stopped or self._asked()
        self._hear()
        if self.is_stopped:
            return True
        if any(one.lost for one in self._far) or (
            self._broken_at is not None and time.monotonic() > self._broken_at + GRACE_S
        ):
            self.has_stopped_own = True
        return self.has_stopped_own

    def may_end(self) -> bool:
        """Whether all ranks of all nodes have reported: until then none ends, for others may still hear from it."""
        if not self._is_released and all(one.is_complete for one in self._far):
            self._is_released = True
            for one in self._far:
                self._send(one, Release())
        return self._is_released

    def finish(self) -> None:
        """Until every agent has told of its end, or is lost. This node's own part has ended."""
        now = time.monotonic()
        # What has failed here is soon felt there: the ranks' own errors tell more than their being ended.
        grace = now if self.is_stopped else now + GRACE_S
        deadline = grace + END_LIMIT_S
        while any(not one.is_over for one in self._far) and (now := time.monotonic()) < deadline:
            if not self._is_released and now >= grace:
                for one in self._far:
                    if not one.is_over and not one.was_stopped:
                        one.was_stopped = True
                        self._send(one, StopTrial())
            self._hear(0.05)
        for one in self._far:
            if not one.is_over:
                one.lost = f"its agent did not end the trial within {END_LIMIT_S:g} s"

    def _hear(self, timeout: float = 0) -> None:
        now = time.monotonic()
        if now >= self._next_beat:
            self._next_beat = now + BEAT_S
            for one in self._far:
                if not one.is_over:
                    self._send(one, Beat())
        for one in self._far:
            try:
                while not one.is_over and (told := one.link.take(timeout)) is not None:
                    match told:
                        case Complete():
                            one.is_complete = True
                        case Ended():
                            one.ended = told
            except LostError as why:
                one.lost = str(why)
            if not one.is_over and time.monotonic() > one.link.heard + LOST_S:
                one.lost = f"nothing was heard of it for {LOST_S:g} s"
            if one.is_over and not self._is_released:
                self._broken_at = self._broken_at or time.monotonic()

    def _send(self, one: _Far, message: RunTrial | Release | StopTrial | Beat) -> None:
        try:
            one.link.send(message)
        except LostError as why:
            one.lost = str(why)


def _why_not_had(name: str, why: LostError, should_stop: Callable[[], bool]) -> Exception:
    """A signal to all processes of a job may end an agent that has only begun: then the sweep hears it at that moment,
    too, and the trial has not failed."""
    deadline = time.monotonic() + SIGNAL_LAG_S
    while time.monotonic() < deadline:
        if should_stop():
            return StoppedError()
        time.sleep(0.05)
    return _NotHereError(f"node {name} can't be had: {why}")


def _orders(order: TrialOrder, machine: Machine, there: Sequence[Here]) -> list[TrialOrder]:
    """The order of each node: `order` is the first one's. Raises _NotHereError where they are not alike."""
    address = there[0].address
    try:
        interfaces = [network.interface_of(address), *(one.interface for one in there)]
    except UnusableError:
        raise _NotHereError(
            f"node {there[0].host} takes {address} for the first node, which is none of its addresses; say by which IP "
            "address others reach it (--network)"
        ) from None
    if network.is_loopback(address):
        for one in there:
            if one.loopback != network.loopback():
                raise _NotHereError(
                    f"node {one.host} takes {address} for the first node, which leads back to {one.host} itself; say "
                    "by which IP address others reach it (--network)"
                )
    gpus, ranks = len(order.gpu_uuids), order.ranks
    orders = [order]
    for one in there:
        if why := _why_unlike(order, machine, one):
            raise _NotHereError(why)
        cpu_ids = tuple(one.cpu_ids)
        bound = len(order.cpu_ids) < len(machine.cpu_ids)
        orders.append(
            replace(
                order,
                gpu_uuids=tuple(gpu.uuid for gpu in one.gpus[:gpus]),
                cpu_ids=cpu_ids[: len(order.cpu_ids)] if bound else cpu_ids,
            )
        )
    port = network.free_port()
    return [
        replace(
            own,
            meeting=Meeting(
                address=address,
                port=port,
                interface=interface,
                first_rank=number * ranks,
                world=len(orders) * ranks,
            ),
        )
        for number, (own, interface) in enumerate(zip(orders, interfaces, strict=True))
    ]


def _why_unlike(order: TrialOrder, machine: Machine, there: Here) -> str:
    """Why a trial can't be shared equally with this node; empty where it can."""
    wanted = len(order.gpu_uuids)
    if len(there.gpus) < wanted:
        return f"node {there.host} shows {many(len(there.gpus), 'GPU')}, the trial needs {wanted} there"
    here = {(gpu.name, gpu.memory_mib) for gpu in machine.gpus if gpu.uuid in order.gpu_uuids}
    others = {(gpu.name, gpu.memory_mib) for gpu in there.gpus[:wanted]}
    if wanted and here != others:
        ours, theirs = (
            " + ".join(f"{name}, {mib} MiB" for name, mib in sorted(one)) for one in (here, others)
        )
        return (
            f"node {there.host} has other GPUs ({theirs}) than node {machine.host} ({ours}): ask for nodes of one "
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


def _add_logs(log: Path, called: Sequence[str], far: Sequence[_Far]) -> None:
    """What processes of further nodes have printed, below what those of this one have."""
    said = [
        f"\n---- node {name} ----\n{one.ended.log}"
        for name, one in zip(called, far, strict=True)
        if one.ended and one.ended.log
    ]
    if said:
        try:
            with log.open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write("".join(said))
        except OSError:  # a full disk: the reason says the gist of it
            return
