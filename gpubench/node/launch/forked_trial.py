"""The parent's side of a trial that the fork server has started: hears its processes, answers and ends them."""

from __future__ import annotations

import contextlib
import select
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from gpubench.basics import stacks
from gpubench.node.launch.channel import Channel
from gpubench.node.launch.descendants import descendants, kill, kill_group, process
from gpubench.node.launch.event_checker import EventChecker, InvalidEventError
from gpubench.schema.events import Answer, Event, Garbled, LeaderExit, ServerExit

END_LIMIT_S = 10.0
"""How long killed processes may take to go: the driver gives a GPU's memory back meanwhile."""
MOST_EVENTS = 1000
"""Messages that are read at once at most: who never stops telling keeps nobody from looking at the clock."""


class Server(Protocol):
    """What a trial asks of the fork server that has started it."""

    def exit_event(self, pid: int, number: int) -> LeaderExit | ServerExit: ...

    def has_exited(self, pid: int, number: int) -> bool: ...

    def is_lost(self, number: int) -> bool: ...

    def await_exit(self, pid: int) -> None: ...

    def reap(self, pid: int, limit: float = 10.0) -> None: ...


class ForkedTrial:
    """A `Running` trial of the fork server."""

    def __init__(
        self,
        server: Server,
        number: int,
        pid: int,
        channels: list[Channel],
        checker: EventChecker,
        scratch: Path,
    ) -> None:
        self.pid = pid
        self._checker = checker
        self._scratch = scratch
        self._is_end_told = False
        self._is_garbled = False
        self._leader = process(pid)
        self._server = server
        self._number = number
        self._channels = channels
        self._open = list(channels)
        self._over = False

    @property
    def open_files(self) -> Sequence[int]:
        return [channel.fileno() for channel in self._open]

    def events(self, timeout: float) -> list[Event]:
        events: list[Event] = []
        # Asked first: what was said before the end is then read below.
        over = self.ended
        if not self._open:
            time.sleep(min(max(timeout, 0), 0.005))
        heard = 0
        while self._open and heard < MOST_EVENTS:
            readable = _readable(self._open, 0 if events else max(timeout, 0))
            if not readable:
                break
            heard += len(readable)
            for channel in readable:
                events += self._receive_event(channel)
        if over and not self._is_end_told:
            self._is_end_told = True
            events.append(self._server.exit_event(self.pid, self._number))
        return events

    def _receive_event(self, channel: Channel) -> list[Event]:
        """The event that waits in a channel, if it is one. After the first that is none no more are taken."""
        rank = self._channels.index(channel)
        try:
            data = channel.receive_bytes()
        except ConnectionError:
            self._open.remove(channel)  # every process of the trial has closed its end
            return []
        if self._is_garbled:
            return []
        try:
            return [self._checker.check(rank, data)]
        except InvalidEventError as error:
            self._is_garbled = True
            return [Garbled(rank, str(error))]

    def _discard(self, timeout: float) -> None:
        """Reads what waits in the channels, up to `timeout` seconds for the first, and forgets it."""
        if not self._open:
            time.sleep(timeout)
        for channel in _readable(self._open, timeout):
            try:
                channel.receive_bytes()
            except ConnectionError:
                self._open.remove(channel)

    def reply(self, rank: int, answer: Answer) -> None:
        with contextlib.suppress(OSError):  # a rank that died in the meantime needs no answer
            self._channels[rank].send(answer, wait=False)  # nor one that asks and does not listen

    @property
    def ended(self) -> bool:
        return self._over or self._server.has_exited(self.pid, self._number)

    def stacks(self) -> list[stacks.Stack]:
        return stacks.ask(self._scratch, descendants(self._leader))

    def end(self) -> None:
        if self._over:
            return
        self._over = True
        # The leader reaps what is killed below it and then ends by itself; its unreaped id keeps the group ours.
        deadline = time.monotonic() + END_LIMIT_S
        while not self._server.has_exited(self.pid, self._number) and time.monotonic() < deadline:
            kill(descendants(self._leader))
            self._discard(0.005)  # so that the leader is not held up by a channel that a rank has filled
        if not self._server.has_exited(self.pid, self._number) and not descendants(self._leader):
            # The leader was stopped, or the server does not tell of its end: killing the leader tells which.
            kill_group(self._leader)
            self._server.await_exit(self.pid)
        if self._server.is_lost(self._number):
            # The kernel kills whoever lived by the server. Ids may be anybody's by now, so we only wait: the
            # channels close with the last process that holds them.
            while self._open and time.monotonic() < deadline:
                self._discard(0.05)
        else:
            strays = descendants(self._leader)
            kill_group(self._leader)
            kill(strays)
            self._server.reap(self.pid)
        for channel in self._channels:
            channel.close()


def _readable(channels: Sequence[Channel], timeout: float) -> list[Channel]:
    """Those of the channels that something can be read from, waiting so many seconds for the first."""
    by_file = {channel.fileno(): channel for channel in channels}
    looked = select.poll()  # select() knows no descriptor from 1024 on
    for file in by_file:
        looked.register(file, select.POLLIN)
    return [by_file[file] for file, _ in looked.poll(1e3 * timeout)]
