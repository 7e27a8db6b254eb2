"""The parent's side of the fork server: starts it, has it fork the leaders of trials, hears, answers and ends these."""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import gpubench
from gpubench.basics import stacks
from gpubench.basics.errors import UnusableError
from gpubench.basics.stopping import SIGNALS, signals_blocked
from gpubench.node.launch.channel import Channel, TooLargeError, channel_pair
from gpubench.node.launch.control import (
    Exited,
    ImportFailed,
    Reap,
    Refused,
    Run,
    ServerReady,
    Started,
    read_server_message,
)
from gpubench.node.launch.descendants import descendants, kill, kill_group, process
from gpubench.node.launch.event_checker import EventChecker, InvalidEventError
from gpubench.node.launch.launcher import StoppedError, never_stop
from gpubench.node.launch.scratch import with_compile_cache
from gpubench.schema.events import Answer, Event, Garbled, LeaderExit, ServerExit
from gpubench.schema.order import TrialOrder
from gpubench.schema.validation import InvalidValueError

START_LIMIT_S = 300.0
"""A cold network file system can take minutes to import torch."""
LAUNCH_LIMIT_S = 30.0
"""How long the server may take to fork a leader, which takes it 10 ms: longer, and it is stopped or wedged."""
TELL_LIMIT_S = 5.0
"""How long the server may take to tell of a leader's end, which takes it a millisecond."""
LOOK_S = 0.25
"""How often somebody who waits for the server is asked whether to go on waiting."""
END_LIMIT_S = 10.0
"""How long killed processes may take to go: the driver gives a GPU's memory back meanwhile."""
MOST_EVENTS = 1000
"""Messages that are read at once at most: who never stops telling keeps nobody from looking at the clock."""


def child_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process that imports torch for us. Start it with `python -P`."""
    environment = dict(environ)
    # The fork server must stay single-threaded; a rank sets its own thread count from its CPUs.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        environment[name] = "1"
    environment.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    # gloo looks the host's own name up, which many machines can't resolve; all ranks are on this host.
    environment.setdefault("GLOO_SOCKET_IFNAME", "lo")
    environment["PYTHONUNBUFFERED"] = "1"
    return with_this_gpubench(environment)


def with_this_gpubench(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process that imports the same gpubench as this one, whatever is installed.

    Started with `python -P` it imports nothing that happens to lie in the working folder.
    """
    home = str(Path(gpubench.__file__).parents[1])
    path = os.pathsep.join([home, *filter(None, [environ.get("PYTHONPATH")])])
    return {**environ, "PYTHONPATH": path}


class ForkServer:
    """A Launcher over `gpubench.node.launch.server`. The import of torch goes on while the caller plans."""

    def __init__(self, compiled: Path | None = None) -> None:
        """`compiled`: where torch keeps what it compiles; None: where it does so by itself."""
        self._compiled = compiled
        self._number = 0
        self._ends: dict[int, int] = {}
        """How servers before this one ended."""
        self._start()

    def _start(self) -> None:
        self._number += 1
        parent_end, server_end = channel_pair()
        # Until it can say that they are not its own affair, they wait: a batch system signals all processes of a job.
        with server_end, signals_blocked(SIGNALS):
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-m",
                    "gpubench.node.launch.server",
                    str(server_end.fileno()),
                    str(os.getpid()),
                ],
                pass_fds=[server_end.fileno()],
                env=child_environment(with_compile_cache(os.environ, self._compiled)),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        self._control = Channel(parent_end)
        self._ready = False
        self._lost = False
        self._exited: dict[int, Exited] = {}
        self._started: list[int] = []

    @property
    def pid(self) -> int:
        return self._process.pid

    def _receive_message(self, timeout: float) -> None:
        try:
            received = self._control.receive(timeout)
        except OSError as error:
            if not self._ready:
                raise UnusableError(f"the fork server died ({self._last_words()}): {error}") from error
            # It has been killed, and its trials with it: their rows say so, and the next launch starts another.
            self._lost = True
            return
        if received is None:
            return
        try:
            news = read_server_message(received)
        except InvalidValueError as error:
            news = Refused(reason=f"its answer: {error}")
        match news:
            case ImportFailed(reason=reason):
                raise UnusableError(f"torch can't be imported: {reason}")
            case ServerReady():
                self._ready = True
            case Started(pid=pid):
                self._started.append(pid)
            case Refused(reason=reason):
                raise UnusableError(
                    f"this process and its fork server do not understand each other ({reason}); was gpubench changed "
                    "while it ran? start the sweep again"
                )
            case Exited():
                self._exited[news.pid] = news

    def _last_words(self) -> str:
        self._process.kill()
        _, err = self._process.communicate()
        lines = err.decode(errors="replace").strip().splitlines() if err else []
        return lines[-1] if lines else "it said nothing"

    def wait_ready(self, should_stop: Callable[[], bool] = never_stop) -> None:
        """Waits until torch is imported. Raises UnusableError where it can't be, StoppedError where it was stopped."""
        deadline = time.monotonic() + START_LIMIT_S
        while not self._ready:
            if time.monotonic() > deadline:
                self._kill_server()
                raise UnusableError(f"importing torch took more than {START_LIMIT_S:g} s")
            if should_stop():
                self._kill_server()
                raise StoppedError
            self._receive_message(LOOK_S)

    def _kill_server(self) -> None:
        """Kills a server that does not answer, and with it whatever it started; the next launch starts another."""
        self._process.kill()
        self._lost = True

    def launch(self, order: TrialOrder, should_stop: Callable[[], bool] = never_stop) -> ForkedTrial:
        """Starts one trial. Its log and scratch folder must exist.

        A server that does not start it within LAUNCH_LIMIT_S is killed. Raises UnusableError where none can start,
        StoppedError where it was stopped meanwhile.
        """
        if not self._lost:
            self.wait_ready(should_stop)
            self._receive_message(0)
        if self._lost:
            self.close()
            self._ends[self._number] = self._process.returncode
            self._start()
            self.wait_ready(should_stop)
        checker = EventChecker(order, time.monotonic)
        # A channel for each rank, so that an answer reaches the one that asked.
        pairs = _pairs(order.ranks)
        try:
            self._hand_over(order, [rank_end.fileno() for _, rank_end in pairs])
            for _, rank_end in pairs:
                rank_end.close()
            self._await_start(should_stop)
        except BaseException:
            for end in itertools.chain.from_iterable(pairs):
                end.close()
            raise
        channels = [Channel(parent_end) for parent_end, _ in pairs]
        return ForkedTrial(self, self._number, self._started.pop(), channels, checker, order.scratch)

    def _hand_over(self, order: TrialOrder, files: Sequence[int]) -> None:
        """Hands an order over. Raises UnusableError where it is too large; the server hears nothing of it then."""
        try:
            self._control.send(Run(order=order), files)
        except TooLargeError as error:
            # Names and paths are short: it is the lists of a user's own variant that have no end.
            raise UnusableError(
                f"the order to the trial's processes is too large ({error}); "
                "shorten what its variant lists: fewer transforms, or shorter arguments"
            ) from None
        except OSError:
            self._lost = True  # it died since it was looked at; `_await_start` tells

    def _await_start(self, should_stop: Callable[[], bool]) -> None:
        """Until the server has started what was ordered. Raises UnusableError, StoppedError."""
        deadline = time.monotonic() + LAUNCH_LIMIT_S
        while not self._started:
            if not self._lost:
                self._receive_message(LOOK_S)
            if self._lost:
                raise UnusableError(
                    "the fork server died while it started a trial: does the host have memory left?"
                )
            if time.monotonic() > deadline and not self._started:
                self._kill_server()
                raise UnusableError(
                    f"the fork server did not start the trial within {LAUNCH_LIMIT_S:g} s, as if it had been "
                    "stopped by a signal; it was killed, and the next trial gets a new one"
                )
            if should_stop():
                self._kill_server()
                raise StoppedError

    def exit_event(self, pid: int, number: int) -> LeaderExit | ServerExit:
        """Who ended and how, once `has_exited`."""
        if self.is_lost(number):
            return ServerExit(self._ends.get(number, 0) if number != self._number else self._exit_code())
        ended = self._exited[pid]
        return LeaderExit(ended.status if ended.code == os.CLD_EXITED else -ended.status)

    def _exit_code(self) -> int:
        """How the present server ended; 0 where it has not yet."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(TELL_LIMIT_S)
        return 0

    def has_exited(self, pid: int, number: int) -> bool:
        """Whether the leader `pid` of server `number` is a zombie by now, or went with that server."""
        if not self._lost:
            self._receive_message(0)
        return self.is_lost(number) or pid in self._exited

    def is_lost(self, number: int) -> bool:
        """Whether server `number` was killed, by the host when its memory ran out, for example.

        Another may have taken its place since, to launch the next job of a group.
        """
        return self._lost or number != self._number

    def await_exit(self, pid: int) -> None:
        """Waits until the server tells that a killed leader has gone. One that does not is killed itself."""
        deadline = time.monotonic() + TELL_LIMIT_S
        while not self.has_exited(pid, self._number):
            if time.monotonic() > deadline:
                self._kill_server()
                return
            self._receive_message(0.05)

    def reap(self, pid: int) -> None:
        """Waits for a killed leader of the present server and lets that one reap it."""
        deadline = time.monotonic() + END_LIMIT_S
        while not self.has_exited(pid, self._number) and time.monotonic() < deadline:
            self._receive_message(0.05)
        if not self._lost and self._exited.pop(pid, None) is not None:
            with contextlib.suppress(OSError):  # a server that has just died leaves nothing to reap
                self._control.send(Reap(pid=pid))

    def close(self) -> None:
        """Ends the server, and with it whatever it started."""
        self._control.close()
        # One that still imports torch has started nothing, and would hear of the end seconds later.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5 if self._ready else 0)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        if self._process.stderr:
            self._process.stderr.close()


class ForkedTrial:
    """A `Running` trial of the fork server."""

    def __init__(
        self,
        server: ForkServer,
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


def _pairs(count: int) -> list[tuple[socket.socket, socket.socket]]:
    """So many pairs of ends. Raises UnusableError where the process may not open as many files."""
    pairs: list[tuple[socket.socket, socket.socket]] = []
    try:
        pairs.extend(channel_pair() for _ in range(count))
    except OSError as error:
        for end in itertools.chain.from_iterable(pairs):
            end.close()
        raise UnusableError(
            f"no connection to {count} ranks can be opened: {error.strerror} "
            "(ulimit -n says how many files may be open)"
        ) from None
    return pairs
