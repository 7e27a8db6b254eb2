"""A user's command in a rank's place: an order in, events out. Runs in a process of its own below the leader.

The command is a child of this process, in its process tree. What it prints goes to the log by itself; where figures or
epochs are looked for in it, it comes through a terminal of its own, as programs print line by line to those alone.
"""

from __future__ import annotations

import contextlib
import math
import os
import pty
import re
import select
import selectors
import signal
import socket
import subprocess
import sys
import termios
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpubench.basics.memory_words import DEVICE_OUT_OF_MEMORY, HOST_OUT_OF_MEMORY
from gpubench.basics.outside_environment import read_outside_environment
from gpubench.basics.quoted import LONGEST, clean_line
from gpubench.basics.stopping import name_signal
from gpubench.schema.command import MetricTarget, parse_metric_patterns, parse_metric_target
from gpubench.schema.events import (
    CommandEnded,
    CommandStarted,
    EpochBegan,
    EpochEnded,
    Error,
    Filling,
    Hello,
    MetricSeen,
    ParentChannel,
    Warm,
)
from gpubench.schema.order import CommandRun, TrialOrder
from gpubench.script.epoch import SOCKET
from gpubench.script.marks import MarkedEpochs
from gpubench.script.output import EpochEdges, EpochSpan, LinePattern, LineSplitter, MetricReader
from gpubench.script.time_limit import CpuTimeError, limit_cpu_time

FOR_EVER_S = 30 * 86_400.0
"""For answers that only the parent's own deadline limits."""
PIECE_BYTES = 1 << 16
TAIL_BYTES = 1 << 18
"""At the end of the log, in which it is looked for why a command failed."""
METRIC_PERIOD_S = 2.0
"""How often the latest figures are told; in the end they are told once more."""
DRAIN_S = 1.0
"""How long what a command has printed last is waited for, once it has ended."""
GRACE_S = 10.0
"""How long a command that has reached its target may take to end itself."""
PATTERN_LIMIT_S = 2.0
"""CPU time in which the patterns must have been looked for in a piece of the output."""
MOST_MARKS = 1000
"""That are read before it is looked whether the command has ended."""
_DEVICE_WORDS = ("out of memory", "resource_exhausted", "cuda_error_out_of_memory")
"""How programs without torch say it."""


def main(order: TrialOrder, rank: int, channel: ParentChannel) -> int:
    """Runs the command to its end. Returns 0 after it has ended well, 1 after a reported error.

    Raises OSError where it can't report any more.
    """
    try:
        return CommandRunner(order, rank, channel).run()
    except Exception as error:  # noqa: BLE001 - every failure of a trial becomes a row with its reason
        traceback.print_exc()
        reason = clean_line(f"the command could not be watched: {type(error).__name__}: {error}", LONGEST)
        channel.send(Error(rank=rank, kind="failed", reason=reason, at=time.monotonic()))
        return 1


class CommandRunner:
    """One command of one trial."""

    def __init__(self, order: TrialOrder, rank: int, channel: ParentChannel) -> None:
        assert isinstance(order.protocol, CommandRun)
        self.order = order
        self.rank = rank
        self.channel = channel
        trial = order.trial
        patterns = parse_metric_patterns(trial.metrics)
        self.metrics = MetricReader(patterns)
        self.target: MetricTarget | None = None
        if trial.until is not None:
            self.target = parse_metric_target(trial.until, [pattern.name for pattern in patterns])
        self.is_target_reached = False

    def run(self) -> int:
        """Starts the command, reads what it tells, and tells how it ended."""
        self.channel.send(Hello(rank=self.rank, pid=os.getpid()))
        if self.order.jobs > 1:
            self.channel.ask(Warm(rank=self.rank), FOR_EVER_S)
        try:
            with RunningCommand(self.order, is_measured=True, has_reader=self.reads_output) as running:
                self.channel.send(CommandStarted(rank=self.rank, at=running.began))
                listener = CommandListener(self, running)
                used_s = time.process_time()
                code = listener.read_until_end()
                reading_s = time.process_time() - used_s
            if code and not self.is_target_reached:
                self._send_failure(code)
                return 1
            if self.order.jobs > 1:
                self.channel.send(Filling(rank=self.rank, at=running.ended))
                if code := self.fill_until_others_end():
                    self._send_failure(code, " as it was run again beside the other jobs")
                    return 1
        except CommandStartError as error:
            self._send_error("failed", str(error))
            return 1
        except CpuTimeError:
            self._send_error(
                "failed",
                f"--metric or --epoch-pattern takes over {PATTERN_LIMIT_S:g} s for a few lines of the command's "
                "output: write patterns that can match a line in one way only, without repeats of repeats as in (a+)+",
            )
            return 1
        self.channel.send(
            CommandEnded(
                rank=self.rank,
                began=running.began,
                at=running.ended,
                epochs_from=listener.epochs_from,
                reading_s=reading_s,
            )
        )
        return 0

    @property
    def reads_output(self) -> bool:
        """Whether something is looked for in what the command prints."""
        return self.order.trial.epoch_pattern is not None or bool(self.metrics.patterns)

    def fill_until_others_end(self) -> int:
        """Runs the command again and again, so that the other jobs of the group never run alone. It is not measured.

        Returns 0 once all have ended; its exit code where it fails. Raises CommandStartError.
        """
        while True:
            with RunningCommand(self.order, is_measured=False, has_reader=False) as running:
                ready, _, _ = select.select([self.channel.fileno(), running.end], [], [])
                if self.channel.fileno() in ready:
                    self.channel.receive()  # what is left unread would break the conversation off
                    running.process.kill()
                    running.process.wait()
                    return 0
                if code := running.process.wait():
                    return code

    def _send_failure(self, code: int, when: str = "") -> None:
        """Why the command failed, by its end and the last that it printed."""
        lines = read_last_lines(self.order.log)
        kind, words = classify_command_failure(lines, uses_gpu=bool(self.order.gpu_uuids))
        self._send_error(kind, f"the command {describe_exit_code(code)}{when}{words}")

    def _send_error(self, kind: Any, reason: str) -> None:
        reason = clean_line(reason, LONGEST)
        self.channel.send(Error(rank=self.rank, kind=kind, reason=reason, at=time.monotonic()))


class CommandStartError(Exception):
    """The command can't be started. The message says which and why."""


class RunningCommand:
    """The command's process, from its start to the end of the block."""

    def __init__(self, order: TrialOrder, *, is_measured: bool, has_reader: bool) -> None:
        """`is_measured`: its script may tell of epochs. `has_reader`: what it prints comes through `output`; else it
        goes to the log by itself."""
        assert isinstance(order.protocol, CommandRun)
        self._order = order
        self._words = order.protocol.words
        self._folder = order.protocol.folder
        self._is_measured = is_measured
        self._has_reader = has_reader
        self._endings = contextlib.ExitStack()
        self.process: subprocess.Popen[bytes]
        self.end: int
        """A descriptor that can be read once it has ended."""
        self.output: int | None = None
        """What it prints, to be read; None: nobody reads it."""
        self.began = self.ended = 0.0
        self.marks = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        """On which its script tells of epochs."""

    def __enter__(self) -> RunningCommand:
        """Starts it. Raises CommandStartError."""
        with contextlib.ExitStack() as endings:
            endings.enter_context(self.marks)
            environment = make_command_environment(self._order)
            if self._is_measured:
                environment |= self._open_marks()
            inner = None
            if self._has_reader:
                self.output, inner = open_plain_terminal()
                endings.callback(os.close, self.output)
            try:
                self.began = time.monotonic()
                self.process = subprocess.Popen(
                    self._words,
                    cwd=self._folder,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=inner,
                    stderr=inner,
                    start_new_session=True,  # so that what it leaves running can be told from this process
                )
            except OSError as error:
                raise CommandStartError(f"{self._words[0]} can't be started: {error.strerror}") from None
            finally:
                if inner is not None:
                    os.close(inner)
            endings.callback(self._kill_left)
            self.end = os.pidfd_open(self.process.pid)
            endings.callback(os.close, self.end)
            self._endings = endings.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._endings.close()

    def _kill_left(self) -> None:
        """Ends what it has left running, so that it does not go on beside its next run; daemons go with the trial."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def _open_marks(self) -> dict[str, str]:
        """Listens for marks. Returns the variable by which the script knows where."""
        path = self._order.scratch / "epochs"
        self.marks.setblocking(False)
        try:
            self.marks.bind(str(path))
        except OSError as error:
            print(f"gpubench does not hear of epochs by gpubench.epoch(): {path}: {error}", file=sys.stderr)
            return {}
        return {SOCKET: str(path)}


class CommandListener:
    """Reads what a running command prints and marks, and tells what comes of it."""

    def __init__(self, runner: CommandRunner, running: RunningCommand) -> None:
        self._runner = runner
        self._running = running
        pattern = runner.order.trial.epoch_pattern
        self._edges = None if pattern is None else EpochEdges(LinePattern.compile(pattern))
        self._lines = LineSplitter()
        self._marks = MarkedEpochs(running.began)
        self._begun = -1
        """The number of the last epoch whose begin was told."""
        self._next_told = 0.0

    @property
    def epochs_from(self) -> Any:
        """What told epochs apart. None: nothing did, or the target was reached within the first."""
        if self._edges is not None:
            return None if self._runner.is_target_reached and not self._edges.count else "pattern"
        return "script" if self._marks.count else None

    def read_until_end(self) -> int:
        """Until the command has ended, and what it printed is read. Returns its exit code, less than 0 for a signal.

        Raises CpuTimeError where a pattern takes too long.
        """
        running = self._running
        kills, next_kill = [signal.SIGKILL, signal.SIGTERM], math.inf
        with selectors.DefaultSelector() as selector:
            selector.register(running.end, selectors.EVENT_READ)
            selector.register(running.marks, selectors.EVENT_READ)
            if running.output is not None:
                selector.register(running.output, selectors.EVENT_READ)
            while True:
                wait_s = None if next_kill == math.inf else max(0.0, next_kill - time.monotonic())
                ready = {key.fd for key, _ in selector.select(wait_s)}
                if running.output in ready and not self._read_output():
                    selector.unregister(running.output)
                if running.marks.fileno() in ready:
                    self._read_marks()
                if running.end in ready:
                    running.ended = time.monotonic()
                    break
                is_first = self._runner.is_target_reached and len(kills) == 2
                if is_first or time.monotonic() >= next_kill:
                    running.process.send_signal(kills.pop())
                    next_kill = time.monotonic() + GRACE_S if kills else math.inf
        self._read_rest()
        return running.process.wait()

    def _read_rest(self) -> None:
        """What it has printed last. A daemon of it may print on: that is not waited for."""
        self._read_marks()
        output = self._running.output
        if output is not None:
            os.set_blocking(output, False)
            deadline = time.monotonic() + DRAIN_S
            while self._read_output() and time.monotonic() < deadline:
                pass
            self._handle_lines(self._lines.end())
        self._tell_metrics()
        if self._marks.passed_over:
            print(
                f"gpubench has passed over {self._marks.passed_over} marks of gpubench.epoch(): they overlap others, "
                "or lie outside of the run",
                file=sys.stderr,
            )

    def _read_output(self) -> bool:
        """Reads a piece and hands it on to the log; False where there is no more."""
        assert self._running.output is not None
        try:
            piece = os.read(self._running.output, PIECE_BYTES)
        except OSError:  # the last process that could print has ended, or there is nothing more to read now
            return False
        if not piece:
            return False
        with contextlib.suppress(OSError):  # a full disk: what is measured is not lost for it
            os.write(1, piece)
        self._handle_lines(self._lines.split_off_lines(piece))
        return True

    def _handle_lines(self, text: str) -> None:
        """Looks for epochs and figures in whole lines."""
        if not text:
            return
        now = time.monotonic()
        runner, target = self._runner, self._runner.target
        was_reached = runner.is_target_reached
        spans: list[EpochSpan] = []
        had_begun = self._edges is not None and self._edges.has_begun
        with limit_cpu_time(PATTERN_LIMIT_S):
            values = runner.metrics.find_values(text)
            reached = [v for name, v in values if target and name == target.name and v >= target.value]
            if target is not None and reached:
                text = runner.metrics.cut_behind_target(text, target)
            if self._edges is not None and not was_reached:  # what it does on its way out is no epoch
                spans = self._edges.find_epochs(text, now)
        for span in spans:
            self._tell_epoch(span)
        if self._edges is not None and self._edges.has_begun and not had_begun:
            self._tell_begin(0, now)
        if target is not None and reached and not was_reached:
            self._tell_metric(target.name, reached[0], now)
            runner.is_target_reached = True
        if now >= self._next_told:
            self._tell_metrics()

    def _tell_metrics(self) -> None:
        now = time.monotonic()
        self._next_told = now + METRIC_PERIOD_S
        for name, value in self._runner.metrics.latest.items():
            self._tell_metric(name, value, now)

    def _tell_metric(self, name: str, value: float | None, at: float) -> None:
        self._runner.channel.send(MetricSeen(rank=self._runner.rank, name=name, value=value, at=at))

    def _read_marks(self) -> None:
        """What `gpubench.epoch()` has sent."""
        for _ in range(MOST_MARKS):
            try:
                data = self._running.marks.recv(1000)
            except OSError:
                return
            if self._edges is not None:
                continue  # the pattern was asked for
            number = self._marks.count
            mark = self._marks.read_mark(data, time.monotonic())
            if mark is None:
                continue
            if mark.t1 is not None:
                self._tell_epoch(EpochSpan(number, mark.t0, mark.t1))
            elif number > self._begun:
                self._tell_begin(number, mark.t0)
                self._begun = number

    def _tell_begin(self, number: int, at: float) -> None:
        self._runner.channel.send(EpochBegan(rank=self._runner.rank, epoch=number, at=at))

    def _tell_epoch(self, span: EpochSpan) -> None:
        self._runner.channel.send(
            EpochEnded(rank=self._runner.rank, epoch=span.number, t0=span.t0, t1=span.t1)
        )


def make_command_environment(order: TrialOrder) -> dict[str, str]:
    """The user's own environment, with the trial's GPUs."""
    environment = read_outside_environment(os.environ)
    environment["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    environment["CUDA_VISIBLE_DEVICES"] = ",".join(order.gpu_uuids)
    return environment


def open_plain_terminal() -> tuple[int, int]:
    """A terminal for a command to print to: the end that is read, and the command's. It changes nothing of the text."""
    outer, inner = pty.openpty()
    modes = termios.tcgetattr(inner)
    modes[1] &= ~termios.OPOST
    modes[3] &= ~termios.ECHO
    termios.tcsetattr(inner, termios.TCSANOW, modes)
    return outer, inner


def read_last_lines(log: Path) -> list[str]:
    """The last lines of a log, those without a word left out."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
            text = file.read(TAIL_BYTES).decode(errors="replace")
    except OSError:
        return []
    return [line for raw in text.splitlines() if (line := clean_line(raw).strip())]


def classify_command_failure(lines: Sequence[str], *, uses_gpu: bool) -> tuple[str, str]:
    """`oom` or `failed`, and the words of it, by the last lines that a command printed."""
    last = f"; last line of its output: {find_telling_line(lines)[:300]}" if lines else ""
    for line in reversed(lines):
        if HOST_OUT_OF_MEMORY.search(line):
            continue
        is_said = any(words in line.lower() for words in _DEVICE_WORDS)
        if uses_gpu and (is_said or DEVICE_OUT_OF_MEMORY.search(line)):
            return "oom", f": {line[:500]}"
    return "failed", last


_ERROR = re.compile(r"(?:^|[\]:] ?)[\w.]*(?:Error|Exception|Interrupt|Exit): *\S")
"""An exception with its words, also behind a launcher's `[rank0]: `."""


def find_telling_line(lines: Sequence[str]) -> str:
    """The last line that names an error, for launchers write pages below it; else the last one with a word."""
    with_word = (line for line in reversed(lines) if any(map(str.isalnum, line)))
    return next((line for line in reversed(lines) if _ERROR.search(line)), next(with_word, lines[-1]))


def describe_exit_code(code: int) -> str:
    """How a process ended, by its exit code as subprocess tells it, or as a shell does."""
    if code < 0:
        return f"was ended by {name_signal(-code)}"
    if 128 < code < 128 + 65:
        return f"ended with exit code {code} (a process of it was ended by {name_signal(code - 128)})"
    return f"ended with exit code {code}"
