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
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import gpubench
from gpubench.basics import stacks
from gpubench.basics.errors import UnusableError
from gpubench.basics.outside_environment import note_outside_environment
from gpubench.basics.stopping import SIGNALS, block_signals
from gpubench.node.launch.channel import (
    Channel,
    ImportFailed,
    LeaderExited,
    ReapLeader,
    ServerReady,
    StartTrial,
    TrialStarted,
    make_socket_pair,
    read_server_message,
)
from gpubench.node.launch.descendants import (
    find_process,
    kill_process_group,
    kill_processes,
    list_descendants,
)
from gpubench.node.launch.event_checker import InvalidEventError, parse_event
from gpubench.node.launch.scratch import make_compile_environment
from gpubench.schema.events import Answer, Event, Garbled, LeaderExit, ServerExit
from gpubench.schema.order import TrialOrder

START_LIMIT_S = 300.0
"""A cold network file system can take minutes to import torch."""
LAUNCH_LIMIT_S = 30.0
"""How long the server may take to fork a leader, which takes it 10 ms: longer, and it is stopped or wedged."""
LOOK_S = 0.25
"""How often somebody who waits for the server is asked whether to go on waiting."""
END_LIMIT_S = 10.0
"""How long killed processes may take to go: the driver gives a GPU's memory back meanwhile."""


class LaunchStoppedError(Exception):
    """The sweep was stopped while a trial was being started."""


def never_stop() -> bool:
    """Nobody stops it."""
    return False


def make_torch_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process that imports torch for us. Start it with `python -P`."""
    environment = dict(environ)
    # The fork server must stay single-threaded; a rank sets its own thread count from its CPUs.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        environment[name] = "1"
    environment.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    # gloo looks the host's own name up, which many machines can't resolve; all ranks are on this host.
    environment.setdefault("GLOO_SOCKET_IFNAME", "lo")
    environment["PYTHONUNBUFFERED"] = "1"
    return make_gpubench_environment(environment)


def make_gpubench_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process that imports the same gpubench as this one, whatever is installed.

    Started with `python -P` it imports nothing that happens to lie in the working folder.
    """
    home = str(Path(gpubench.__file__).parents[1])
    path = os.pathsep.join([home, *filter(None, [environ.get("PYTHONPATH")])])
    return {**environ, "PYTHONPATH": path}


class ForkServer:
    """What starts trials, over `gpubench.node.launch.server`: the seam in whose place tests may put their own.

    The import of torch goes on while the caller plans. `should_stop` is asked while it waits, several times a second.
    """

    def __init__(self, compiled: Path | None = None, *, has_trainings: bool = True) -> None:
        """`compiled`: where torch keeps what it compiles; None: where it does so by itself. `has_trainings`: whether it
        imports torch, which commands do not need."""
        self._compiled = compiled
        self._has_trainings = has_trainings
        self._server = ServerProcess(compiled, has_trainings=has_trainings)

    @property
    def pid(self) -> int:
        return self._server.pid

    def wait_ready(self, should_stop: Callable[[], bool] = never_stop) -> None:
        """Waits until torch is imported. Raises UnusableError where that fails, LaunchStoppedError where stopped."""
        self._server.wait_ready(should_stop)

    def launch(self, order: TrialOrder, should_stop: Callable[[], bool] = never_stop) -> ForkedTrial:
        """Starts one trial, in a new server where the last one was killed. Its log and scratch folder must exist.

        Raises UnusableError where none can start, LaunchStoppedError where it was stopped meanwhile.
        """
        if self._server.check_if_lost():
            self._server.close()
            self._server = ServerProcess(self._compiled, has_trainings=self._has_trainings)
        self._server.wait_ready(should_stop)
        return self._server.launch(order, should_stop)

    def close(self) -> None:
        """Ends the server, and with it whatever it started."""
        self._server.close()


class ServerProcess:
    """One fork server."""

    def __init__(self, compiled: Path | None, *, has_trainings: bool) -> None:
        parent_end, server_end = make_socket_pair()
        # Until it can say that they are not its own affair, they wait: a batch system signals all processes of a job.
        with server_end, block_signals(SIGNALS):
            number = str(server_end.fileno())
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "gpubench.node.launch.server", number, str(os.getpid())]
                + ["--trainings"] * has_trainings,
                pass_fds=[server_end.fileno()],
                env=note_outside_environment(
                    os.environ, make_torch_environment(make_compile_environment(os.environ, compiled))
                ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        self._control = Channel(parent_end)
        self._is_ready = False
        self.is_lost = False
        """Whether it was killed, by the host when its memory ran out, for example, and its trials with it."""
        self._exited: dict[int, LeaderExited] = {}
        self._started: list[int] = []

    @property
    def pid(self) -> int:
        return self._process.pid

    def _receive_message(self, timeout: float) -> None:
        if self.is_lost:
            return
        try:
            received = self._control.receive(timeout)
        except OSError as error:
            if not self._is_ready:
                raise UnusableError(
                    f"the fork server died ({self._kill_and_read_error()}): {error}"
                ) from error
            self.is_lost = True  # the rows of its trials say so, and the next launch starts another
            return
        match None if received is None else read_server_message(received):
            case ImportFailed(reason=reason):
                raise UnusableError(f"torch can't be imported: {reason}")
            case ServerReady():
                self._is_ready = True
            case TrialStarted(pid=pid):
                self._started.append(pid)
            case LeaderExited() as exited:
                self._exited[exited.pid] = exited

    def _kill_and_read_error(self) -> str:
        self._process.kill()
        _, err = self._process.communicate()
        lines = err.decode(errors="replace").strip().splitlines() if err else []
        return lines[-1] if lines else "it said nothing"

    def _wait_or_kill(
        self, is_so: Callable[[], bool], limit_s: float, words: str, should_stop: Callable[[], bool]
    ) -> None:
        """Waits until something is so. A server that takes longer, or is waited for no longer, is killed.

        Raises UnusableError with these words, LaunchStoppedError.
        """
        deadline = time.monotonic() + limit_s
        while not is_so():
            if should_stop():
                self.kill()
                raise LaunchStoppedError
            if time.monotonic() > deadline:
                self.kill()
                raise UnusableError(words)
            self._receive_message(LOOK_S)

    def wait_ready(self, should_stop: Callable[[], bool]) -> None:
        """Raises as `ForkServer.wait_ready` does."""
        words = f"importing torch took more than {START_LIMIT_S:g} s"
        self._wait_or_kill(lambda: self._is_ready, START_LIMIT_S, words, should_stop)

    def kill(self) -> None:
        """Kills it, and with it whatever it started."""
        self._process.kill()
        self.is_lost = True

    def check_if_lost(self) -> bool:
        if self._is_ready:
            self._receive_message(0)
        return self.is_lost

    def launch(self, order: TrialOrder, should_stop: Callable[[], bool]) -> ForkedTrial:
        """Starts one trial. A server that does not do so within LAUNCH_LIMIT_S is killed."""
        # A channel for each rank, so that an answer reaches the one that asked.
        pairs: list[tuple[socket.socket, socket.socket]] = []
        try:
            try:
                pairs.extend(make_socket_pair() for _ in range(order.ranks))
            except OSError as error:
                raise UnusableError(
                    f"no connection to {order.ranks} ranks can be opened: {error.strerror} "
                    "(ulimit -n says how many files may be open)"
                ) from None
            try:
                self._control.send(StartTrial(order=order), [rank_end.fileno() for _, rank_end in pairs])
            except OSError as error:
                raise UnusableError(
                    f"the order can't be handed to the fork server: {error.strerror}; shorten what its variant lists"
                ) from None
            for _, rank_end in pairs:
                rank_end.close()
            words = f"the fork server did not start the trial within {LAUNCH_LIMIT_S:g} s, and was killed"
            self._wait_or_kill(
                lambda: bool(self._started) or self.is_lost, LAUNCH_LIMIT_S, words, should_stop
            )
            if not self._started:
                raise UnusableError(
                    "the fork server died while it started a trial: does the host have memory left?"
                )
        except BaseException:
            for end in itertools.chain.from_iterable(pairs):
                end.close()
            raise
        channels = [Channel(parent_end) for parent_end, _ in pairs]
        return ForkedTrial(self, self._started.pop(), channels, order.scratch)

    def make_exit_event(self, pid: int) -> LeaderExit | ServerExit:
        """Who ended and how, once `has_exited`."""
        if self.is_lost:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return ServerExit(self._process.wait(END_LIMIT_S))
            return ServerExit(0)
        ended = self._exited[pid]
        return LeaderExit(ended.status if ended.code == os.CLD_EXITED else -ended.status)

    def has_exited(self, pid: int) -> bool:
        """Whether the leader `pid` is a zombie by now, or went with this server."""
        self._receive_message(0)
        return self.is_lost or pid in self._exited

    def reap_leader(self, pid: int) -> None:
        """Waits for a killed leader and lets the server reap it. One that does not tell of its end is killed itself."""
        deadline = time.monotonic() + END_LIMIT_S
        while not self.has_exited(pid):
            if time.monotonic() > deadline:
                self.kill()
            self._receive_message(0.05)
        if self._exited.pop(pid, None) is not None:
            with contextlib.suppress(OSError):  # a server that has just died leaves nothing to reap
                self._control.send(ReapLeader(pid=pid))

    def close(self) -> None:
        """Ends it, and with it whatever it started."""
        self._control.close()
        # One that still imports torch has started nothing, and would hear of the end seconds later.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5 if self._is_ready else 0)
        self._process.kill()
        self._process.wait()
        if self._process.stderr:
            self._process.stderr.close()


class ForkedTrial:
    """A trial under way."""

    def __init__(self, server: ServerProcess, pid: int, channels: list[Channel], scratch: Path) -> None:
        """`pid`: of the leader, the root of the trial's process tree."""
        self.pid = pid
        self._scratch = scratch
        self._is_end_told = False
        self._is_garbled = False
        self._leader = find_process(pid)
        self._server = server
        self._channels = channels
        self._open = list(channels)
        self._is_over = False

    @property
    def open_descriptors(self) -> Sequence[int]:
        """What becomes readable when there is something in `receive_events`; none where nobody can say more."""
        return [channel.fileno() for channel in self._open]

    def receive_events(self, timeout: float) -> list[Event]:
        """What its processes said, waiting up to `timeout` seconds for the first."""
        # Asked first: what was said before the end is then read below.
        is_over = self.has_leader_ended
        if not self._open:
            time.sleep(min(max(timeout, 0), 0.005))
        events: list[Event] = []
        for channel in _select_readable(self._open, max(timeout, 0)):
            events += self._receive_event(channel)
        if is_over and not events and not self._is_end_told:
            self._is_end_told = True
            events.append(self._server.make_exit_event(self.pid))
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
            return [parse_event(rank, data)]
        except InvalidEventError as error:
            self._is_garbled = True
            return [Garbled(rank, str(error))]

    def _discard_messages(self, timeout: float) -> None:
        """Reads what waits in the channels, up to `timeout` seconds for the first, and forgets it."""
        if not self._open:
            time.sleep(timeout)
        for channel in _select_readable(self._open, timeout):
            try:
                channel.receive_bytes()
            except ConnectionError:
                self._open.remove(channel)

    def reply(self, rank: int, answer: Answer) -> None:
        """Answers a rank that waits."""
        with contextlib.suppress(OSError):  # a rank that died in the meantime needs no answer
            self._channels[rank].send(answer, wait=False)  # nor one that asks and does not listen

    @property
    def has_leader_ended(self) -> bool:
        """Whether the leader has ended."""
        return self._is_over or self._server.has_exited(self.pid)

    def request_stacks(self) -> list[stacks.ProcessStack]:
        """Where its processes are at this moment, in code; none where nobody can say. May take a second."""
        return stacks.request_stacks(self._scratch, list_descendants(self._leader))

    def end(self) -> None:
        """Kills what is left of the trial's processes and reaps them. Safe to call twice."""
        if self._is_over:
            return
        self._is_over = True
        # The leader reaps what is killed below it and then ends by itself; its unreaped id keeps the group ours.
        deadline = time.monotonic() + END_LIMIT_S
        while not self._server.has_exited(self.pid) and time.monotonic() < deadline:
            kill_processes(list_descendants(self._leader))
            # So that the leader is not held up by a channel that a rank has filled.
            self._discard_messages(0.005)
        if self._server.is_lost:
            # The kernel kills whoever lived by the server. Ids may be anybody's by now, so we only wait: the
            # channels close with the last process that holds them.
            while self._open and time.monotonic() < deadline:
                self._discard_messages(0.05)
        else:
            strays = list_descendants(self._leader)
            kill_process_group(self._leader)
            kill_processes(strays)
            self._server.reap_leader(self.pid)
        for channel in self._channels:
            channel.close()


def _select_readable(channels: Sequence[Channel], timeout: float) -> list[Channel]:
    """Those of the channels that something can be read from, waiting so many seconds for the first."""
    by_file = {channel.fileno(): channel for channel in channels}
    return [by_file[file] for file in _poll_readable_files(by_file, timeout)]


def _poll_readable_files(files: Iterable[int], timeout: float) -> list[int]:
    looked = select.poll()  # select() knows no descriptor from 1024 on
    for file in files:
        looked.register(file, select.POLLIN)
    return [file for file, _ in looked.poll(1e3 * timeout)]


def collect_events(trials: Sequence[ForkedTrial], timeout: float) -> list[list[Event]]:
    """What the processes of each trial said, waiting up to `timeout` seconds for the first word of any."""
    if len(trials) == 1:
        return [trials[0].receive_events(timeout)]
    if files := [file for trial in trials for file in trial.open_descriptors]:
        _poll_readable_files(files, max(timeout, 0))
        timeout = 0
    return [trial.receive_events(timeout / len(trials)) for trial in trials]
