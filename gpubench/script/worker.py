"""A user's command in a rank's place: an order in, events out. Runs in a process of its own below the leader.

The command is a child of this process, in its process tree. What it prints goes to the log by itself; where figures or
epochs are looked for in it, it comes through a terminal of its own, as programs print line by line to those alone.
"""

from __future__ import annotations

import contextlib
import os
import pty
import selectors
import socket
import subprocess
import termios
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

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
    Finite,
    Hello,
    MetricSeen,
    ParentChannel,
    Warm,
)
from gpubench.schema.order import CommandRun, TrialOrder
from gpubench.script.epoch import SOCKET
from gpubench.script.output import EpochEdges, EpochSpan, LinePattern, LineSplitter, MetricReader

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
_DEVICE_WORDS = ("out of memory", "resource_exhausted", "cuda_error_out_of_memory")
"""How programs without torch say it."""


class EpochMark(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `gpubench.epoch()` sends: an epoch has begun, or has ended as well."""

    t0: Finite
    t1: Finite | None = None


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
        self.run_asked = order.protocol
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
        with contextlib.ExitStack() as endings:
            try:
                running = endings.enter_context(RunningCommand(self.order, has_reader=self.reads_output))
            except OSError as error:
                self._send_error("failed", f"{self.run_asked.words[0]} can't be started: {error.strerror}")
                return 1
            self.channel.send(CommandStarted(rank=self.rank, at=running.began))
            listener = CommandListener(self, running)
            code = listener.read_until_end()
        if self.is_target_reached:
            code = 0
        if code:
            self._send_failure(code)
            return 1
        self.channel.send(
            CommandEnded(
                rank=self.rank,
                began=running.began,
                at=running.ended,
                epochs_from=listener.epochs_from,
                is_target_reached=None if self.target is None else self.is_target_reached,
            )
        )
        if self.order.jobs > 1:
            self.channel.send(Filling(rank=self.rank, at=running.ended))
            self.fill_until_others_end()
        return 0

    @property
    def reads_output(self) -> bool:
        """Whether something is looked for in what the command prints."""
        return self.order.trial.epoch_pattern is not None or bool(self.metrics.patterns)

    def fill_until_others_end(self) -> None:
        """Runs the command again and again, so that the other jobs of the group never run alone. It is not measured."""
        while self.channel.receive(0) is None:
            with RunningCommand(self.order, has_reader=False) as running:
                while running.process.poll() is None:
                    if self.channel.receive(0.1) is not None:
                        running.stop(GRACE_S)
                        return

    def _send_failure(self, code: int) -> None:
        """Why the command failed, by its end and the last that it printed."""
        lines = read_last_lines(self.order.log)
        kind, words = classify_command_failure(lines, uses_gpu=bool(self.order.gpu_uuids))
        self._send_error(kind, f"the command {describe_exit_code(code)}{words}")

    def _send_error(self, kind: Any, reason: str) -> None:
        reason = clean_line(reason, LONGEST)
        self.channel.send(Error(rank=self.rank, kind=kind, reason=reason, at=time.monotonic()))


class RunningCommand:
    """The command's process, from its start to the end of the block."""

    def __init__(self, order: TrialOrder, *, has_reader: bool) -> None:
        """`has_reader`: what it prints comes through `output`; else it goes to the log by itself."""
        assert isinstance(order.protocol, CommandRun)
        self._order = order
        self._words = order.protocol.words
        self._folder = order.protocol.folder
        self._has_reader = has_reader
        self.process: subprocess.Popen[bytes]
        self.output: int | None = None
        """What it prints, to be read; None: nobody reads it."""
        self.began = self.ended = 0.0
        self.marks = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        """On which its script tells of epochs."""

    def __enter__(self) -> RunningCommand:
        """Starts it. Raises OSError."""
        environment = make_command_environment(self._order)
        marks_path = self._order.scratch / "epochs"
        marks_path.unlink(missing_ok=True)
        self.marks.setblocking(False)
        with contextlib.suppress(OSError):  # its path may be too long: then the whole run is the window
            self.marks.bind(str(marks_path))
            environment[SOCKET] = str(marks_path)
        inner = None
        if self._has_reader:
            self.output, inner = open_plain_terminal()
        try:
            self.began = time.monotonic()
            self.process = subprocess.Popen(
                self._words,
                cwd=self._folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=inner,
                stderr=inner,
            )
        except BaseException:
            self._close()
            raise
        finally:
            if inner is not None:
                os.close(inner)
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        self.marks.close()
        if self.output is not None:
            os.close(self.output)
            self.output = None

    def stop(self, grace_s: float) -> None:
        """Asks it to end, and ends it where it takes longer. What it has started goes with the trial."""
        self.process.terminate()
        try:
            self.process.wait(grace_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class CommandListener:
    """Reads what a running command prints and marks, and tells what comes of it."""

    def __init__(self, runner: CommandRunner, running: RunningCommand) -> None:
        self._runner = runner
        self._running = running
        pattern = runner.order.trial.epoch_pattern
        self._edges = None if pattern is None else EpochEdges(LinePattern.compile(pattern))
        self._lines = LineSplitter()
        self._marked = 0
        self._next_told = 0.0

    @property
    def epochs_from(self) -> Any:
        """What told epochs apart."""
        if self._edges is not None:
            return "pattern"
        return "script" if self._marked else None

    def read_until_end(self) -> int:
        """Until the command has ended, and what it printed is read. Returns its exit code, less than 0 for a signal."""
        running = self._running
        end = os.pidfd_open(running.process.pid)
        with selectors.DefaultSelector() as selector:
            selector.register(end, selectors.EVENT_READ)
            selector.register(running.marks, selectors.EVENT_READ)
            if running.output is not None:
                selector.register(running.output, selectors.EVENT_READ)
            try:
                while True:
                    ready = {key.fd for key, _ in selector.select()}
                    if running.output in ready and not self._read_output():
                        selector.unregister(running.output)
                    if running.marks.fileno() in ready:
                        self._read_marks()
                    if end in ready:
                        running.ended = time.monotonic()
                        break
                    if self._runner.is_target_reached:
                        running.stop(GRACE_S)
                        running.ended = time.monotonic()
                        break
            finally:
                os.close(end)
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
        if self._edges is not None:
            had_begun = self._edges.has_begun
            for span in self._edges.find_epochs(text, now):
                self._tell_epoch(span)
            if self._edges.has_begun and not had_begun:
                self._tell_begin(0, now)
        for name, value in self._runner.metrics.find_values(text):
            target = self._runner.target
            if target is not None and name == target.name and value >= target.value:
                if not self._runner.is_target_reached:
                    self._tell_metric(name, value, now)
                self._runner.is_target_reached = True
        if now >= self._next_told:
            self._tell_metrics()

    def _tell_metrics(self) -> None:
        now = time.monotonic()
        self._next_told = now + METRIC_PERIOD_S
        for name, value in self._runner.metrics.latest.items():
            self._tell_metric(name, value, now)

    def _tell_metric(self, name: str, value: float, at: float) -> None:
        self._runner.channel.send(MetricSeen(rank=self._runner.rank, name=name, value=value, at=at))

    def _read_marks(self) -> None:
        """What `gpubench.epoch()` has sent. Anything else that reaches its socket is passed over."""
        while True:
            try:
                data = self._running.marks.recv(1000)
            except OSError:
                return
            try:
                mark = msgspec.json.decode(data, type=EpochMark)
            except msgspec.DecodeError:
                continue
            if self._edges is not None:
                continue  # the pattern was asked for
            if mark.t1 is None:
                self._tell_begin(self._marked, mark.t0)
            elif mark.t0 < mark.t1:
                self._tell_epoch(EpochSpan(self._marked, mark.t0, mark.t1))
                self._marked += 1

    def _tell_begin(self, number: int, at: float) -> None:
        self._runner.channel.send(EpochBegan(rank=self._runner.rank, epoch=number, at=max(0.0, at)))

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
    last = f"; last line of its output: {lines[-1][:300]}" if lines else ""
    for line in reversed(lines):
        if HOST_OUT_OF_MEMORY.search(line):
            continue
        is_said = any(words in line.lower() for words in _DEVICE_WORDS)
        if uses_gpu and (is_said or DEVICE_OUT_OF_MEMORY.search(line)):
            return "oom", f": {line[:500]}"
    return "failed", last


def describe_exit_code(code: int) -> str:
    """How a process ended, by its exit code as subprocess tells it, or as a shell does."""
    if code < 0:
        return f"was ended by {name_signal(-code)}"
    if 128 < code < 128 + 65:
        return f"ended with exit code {code} (a process of it was ended by {name_signal(code - 128)})"
    return f"ended with exit code {code}"
