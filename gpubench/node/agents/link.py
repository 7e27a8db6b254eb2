"""The first node's side of one agent: starts it, speaks with it, ends it."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gpubench import __version__
from gpubench.basics.quoted import clean
from gpubench.node.agents import frames
from gpubench.node.agents.clock import ROUND_TRIPS, ClockReading, best, reading
from gpubench.node.agents.messages import (
    AskTime,
    ForeignWordsError,
    Here,
    Open,
    Ready,
    Request,
    Time,
    Told,
    Unable,
    read_told,
)
from gpubench.node.launch.fork_server import START_LIMIT_S, with_this_gpubench
from gpubench.node.launch.launcher import StoppedError

LOOK_S = 0.25
"""How often somebody who waits for an agent is asked whether to go on waiting."""
TIME_LIMIT_S = 20.0
"""How long an idle agent may take to tell its time, which takes it a millisecond."""
LAST_BYTES = 4000
"""Of what it has printed among errors, where its last words are looked for."""
SEND_LIMIT_S = 20.0
"""How long it may take nothing in of what is said to it."""
CLOSE_LIMIT_S = 15.0
"""How long an agent may take to end what it has started."""
_NOT_OURS = (
    "SLURM_LABELIO", "SLURM_UNBUFFEREDIO", "SLURM_STDINMODE", "SLURM_STDOUTMODE", "SLURM_STDERRMODE",
    "SLURM_CPU_BIND", "SLURM_MEM_BIND", "SLURM_GPU_BIND", "SLURM_DISTRIBUTION", "SLURM_EXPORT_ENV",
)  # fmt: skip
"""Beginnings of variables by which users, or the srun that has started this process, tell a further srun what to do. An
agent's input and output must be left as they are; it is bound to CPUs of its own node, which have other numbers there;
and it needs the environment of this process."""
_NO_CAUSE = re.compile(r"srun: .*(: Exited with exit code \d+|Terminating StepId\S*|Job step aborted.*)")
"""What srun says of any end, behind what tells of its cause."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentCommand:
    """How an agent is started on one further node."""

    name: str
    """What the node is called until it has told its name."""
    before: tuple[str, ...]
    """The command before the agent's own: `srun … -w n2`, `ssh n2`, `ip netns exec b`; none: on this machine."""

    @property
    def argv(self) -> list[str]:
        return [*self.before, sys.executable, "-P", "-m", "gpubench.node.agent"]


class LostError(Exception):
    """The agent is gone, or can't be understood. The text says how, without the node's name."""


class Link:
    """An agent that was started."""

    def __init__(self, command: AgentCommand, environ: Mapping[str, str] = os.environ) -> None:
        """Raises LostError where the command can't be run."""
        self.name = command.name
        self.here: Here | None = None
        self.is_ready = False
        self.heard = time.monotonic()
        self._frames = frames.Frames(may_greet=True)
        self._waiting: deque[Told] = deque()
        self._lost = ""
        self._numbers = 0
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - it goes with the link
        environment = with_this_gpubench(environ)
        environment = {name: value for name, value in environment.items() if not name.startswith(_NOT_OURS)}
        try:
            self._process = subprocess.Popen(
                command.argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=environment,
                start_new_session=True,
                bufsize=0,
            )
        except OSError as error:
            self._errors.close()
            raise LostError(f"{command.argv[0]} can't be run: {error.strerror}") from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._in, False)  # a node that hangs would stop this one, too

    @property
    def is_there(self) -> bool:
        """Whether it can still be spoken with, as far as is known."""
        return not self._lost and self._process.poll() is None

    # ---- talking ----

    def send(self, request: Request) -> None:
        """Raises LostError where the agent is gone, or takes nothing in."""
        try:
            frames.send(self._in, request, patience_s=SEND_LIMIT_S)
        except TimeoutError:
            raise self._broken(f"it took nothing in for {SEND_LIMIT_S:g} s") from None
        except OSError:
            raise self._last_told() from None

    def take(self, timeout: float) -> Told | None:
        """What it tells next; None where that is nothing within so many seconds. Raises LostError."""
        deadline = time.monotonic() + timeout
        while not self._waiting:
            if self._lost:
                raise LostError(self._lost)
            left = max(0.0, deadline - time.monotonic())
            if not select.select([self._out], [], [], left)[0]:
                return None
            data = os.read(self._out, frames.PIECE)
            if not data:
                raise self._gone()
            self.heard = time.monotonic()
            try:
                self._waiting += [read_told(one) for one in self._frames.feed(data)]
            except frames.ForeignError as error:
                raise self._broken(f"what came from it is no agent's message: {error}") from None
            except ForeignWordsError as error:
                raise self._broken(
                    f"it told what no agent of gpubench {__version__} tells ({error}); is another version there?"
                ) from None
        told = self._waiting.popleft()
        if isinstance(told, Unable):
            raise self._broken(told.reason)
        return told

    def _last_told(self) -> LostError:
        """Why it is gone, by what it has told before."""
        try:
            while self.take(LOOK_S) is not None:
                pass
        except LostError as why:
            return why
        return self._gone()

    def _gone(self) -> LostError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(2)
        code = self._process.poll()
        how = "its connection ended" if code is None else _how(code)
        if not (said := self._last_words()) and self.here is None and (greeting := self._frames.greeting):
            return self._broken(f"{how}; what came from it is no agent's message: {greeting}")
        return self._broken(f"{how}; it said: {said}" if said else how)

    def _broken(self, why: str) -> LostError:
        self._lost = self._lost or why
        return LostError(self._lost)

    def _last_words(self) -> str:
        """The last line of its errors that may tell why it has ended."""
        errors = self._errors.fileno()
        # The position in this file is the agent's, too.
        data = os.pread(errors, LAST_BYTES, max(0, os.fstat(errors).st_size - LAST_BYTES))
        lines = [line for one in data.decode(errors="replace").splitlines() if (line := clean(one).strip())]
        telling = [line for line in lines if not _NO_CAUSE.fullmatch(line)]
        return (telling or lines or [""])[-1][:300]

    # ---- what is asked of it ----

    def open(self, first: str) -> None:
        """Has it say what its node is; `make_ready` waits for the answer. Raises LostError."""
        self.send(Open(first=first))

    def make_ready(self, should_stop: Callable[[], bool]) -> Here:
        """Waits until trials can be started there. Raises LostError, StoppedError."""
        deadline = time.monotonic() + START_LIMIT_S
        while not (self.here and self.is_ready):
            if should_stop():
                raise StoppedError
            if time.monotonic() > deadline:
                raise self._broken(f"it was not ready within {START_LIMIT_S:g} s")
            match self.take(LOOK_S):
                case Here() as here:
                    self.here = here
                    if here.version != __version__:
                        raise self._broken(f"it has gpubench {here.version}, the first node {__version__}")
                case Ready():
                    self.is_ready = True
        return self.here

    def clock(self) -> ClockReading:
        """How its clock stands to this node's, by the fastest of several round trips. Raises LostError."""
        return best(self._ask_time() for _ in range(ROUND_TRIPS))

    def _ask_time(self) -> ClockReading:
        self._numbers += 1
        sent = time.monotonic()
        self.send(AskTime(number=self._numbers))
        while True:
            told = self.take(max(0.0, sent + TIME_LIMIT_S - time.monotonic()))
            received = time.monotonic()
            if told is None:
                raise self._broken(f"it did not tell its time within {TIME_LIMIT_S:g} s")
            if isinstance(told, Time) and told.number == self._numbers:
                return reading(sent, told.at, received)

    # ---- its end ----

    def close(self) -> None:
        """Ends it, and with it whatever it has started. Safe to call twice."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        deadline = time.monotonic() + (0 if self._lost and process.poll() is None else CLOSE_LIMIT_S)
        while process.poll() is None and time.monotonic() < deadline:
            if select.select([process.stdout], [], [], 0.05)[0] and not os.read(self._out, frames.PIECE):
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(max(0.0, deadline - time.monotonic()))
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        process.stdout.close()
        self._errors.close()


def _how(code: int) -> str:
    if code < 0:
        try:
            return f"its agent was ended by {signal.Signals(-code).name}"
        except ValueError:
            return f"its agent was ended by signal {-code}"
    return f"its agent ended with exit code {code}"
