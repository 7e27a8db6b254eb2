"""The first node's side of a part on a further node: starts its process, reads its files, ends it.

Further nodes are those of a SLURM job, or as somebody says.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from gpubench import __version__
from gpubench.basics.errors import UnusableError, UsageError
from gpubench.basics.quoted import clean_line
from gpubench.basics.stopping import name_signal
from gpubench.node.launch.fork_server import START_LIMIT_S, LaunchStoppedError, make_gpubench_environment
from gpubench.node.parts import files
from gpubench.node.parts.files import NodeInfo, PartsFolder, PreparePart, RunPart
from gpubench.schema.attempt import Attempt

T = TypeVar("T")

LOOK_S = 0.25
"""How often the first node looks for what a part writes, and asks whether to go on waiting."""
SEND_LIMIT_S = 20.0
"""How long a part may take nothing in of what is written to it."""
SEEN_LIMIT_S = 20.0
"""How long a file that a part has written may take to be seen on the first node."""
CLOSE_LIMIT_S = 15.0
"""How long a part may take to end what it has started."""
LAST_BYTES = 4000
"""Of what it has printed, where its last words are looked for."""
_DROPPED_VARIABLES = (
    "SLURM_LABELIO", "SLURM_UNBUFFEREDIO", "SLURM_STDINMODE", "SLURM_STDOUTMODE", "SLURM_STDERRMODE",
    "SLURM_CPU_BIND", "SLURM_MEM_BIND", "SLURM_GPU_BIND", "SLURM_DISTRIBUTION", "SLURM_EXPORT_ENV",
)  # fmt: skip
"""Beginnings of variables by which users, or the srun that has started this process, tell a further srun what to do. A
part's input must be left as it is; it is bound to CPUs of its own node, which have other numbers there; and it needs
the environment of this process."""
_SRUN_NOISE = re.compile(r"srun: .*(: Exited with exit code \d+|Terminating StepId\S*|Job step aborted.*)")
"""What srun says of any end, behind what tells of its cause."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PartCommand:
    """How a process is started on one further node."""

    name: str
    """What the node is called until it has told its name."""
    before: tuple[str, ...]
    """The command before gpubench's own: `srun … -w n2`, `ssh n2`, `ip netns exec b`; none: on this machine."""


class PartLostError(Exception):
    """The part is gone, or can't be understood. The text says how, without the node's name."""

    def __init__(self, node: str, text: str) -> None:
        super().__init__(text)
        self.node = node


class PartProcess:
    """A part that was started."""

    def __init__(
        self,
        command: PartCommand,
        folder: PartsFolder,
        number: int,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        """`number`: of its node, from 1. Raises PartLostError where the command can't be run."""
        self.name = command.name
        self.number = number
        self._folder = folder
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115 - it goes with the part
        environment = make_gpubench_environment(environ)
        environment = {
            name: value for name, value in environment.items() if not name.startswith(_DROPPED_VARIABLES)
        }
        argv = [*command.before, sys.executable, "-P", "-m", "gpubench.node.further_node"]
        try:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=self._printed,
                stderr=self._printed,
                env=environment,
                start_new_session=True,
                bufsize=0,
            )
        except OSError as error:
            self._printed.close()
            raise PartLostError(self.name, f"{argv[0]} can't be run: {error.strerror}") from None
        assert self._process.stdin is not None
        self._input = self._process.stdin
        os.set_blocking(self._input.fileno(), False)  # a node that hangs would stop this one, too

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def send(self, request: PreparePart | RunPart) -> None:
        """Raises PartLostError where the part is gone, or takes nothing in."""
        rest = memoryview(files.encode_json_line(request))
        try:
            while rest:
                if not select.select([], [self._input], [], SEND_LIMIT_S)[1]:
                    raise PartLostError(self.name, f"it took nothing in for {SEND_LIMIT_S:g} s")
                with contextlib.suppress(BlockingIOError):
                    rest = rest[os.write(self._input.fileno(), rest) :]
        except OSError:
            raise self._make_lost_error() from None

    def await_node_info(self, should_stop: Callable[[], bool]) -> NodeInfo:
        """Waits until trials can be started there. Raises PartLostError, LaunchStoppedError."""
        deadline = time.monotonic() + START_LIMIT_S
        while (info := self._read_answer(NodeInfo, self._folder.make_info_path(self.number))) is None:
            if should_stop():
                raise LaunchStoppedError
            if self.has_ended:
                raise self._make_lost_error()
            if time.monotonic() > deadline:
                raise PartLostError(self.name, f"it was not ready within {START_LIMIT_S:g} s")
            time.sleep(LOOK_S)
        self.name = info.machine.host
        return info

    def read_attempt(self) -> Attempt:
        """What happened there, once it `has_ended`. Raises PartLostError where it has written nothing."""
        deadline = time.monotonic() + (SEEN_LIMIT_S if self._process.poll() == 0 else 0.0)
        while (done := self._read_answer(Attempt, self._folder.make_attempt_path(self.number))) is None:
            if time.monotonic() > deadline:
                raise self._make_lost_error()
            time.sleep(0.05)
        # What is worked out on the first node alone is none of a part's to say.
        watched = replace(done.watched, windows=(), parts=(), passed_mib={})
        return replace(done, watched=watched, nodes=(), cut_by=None)

    def _read_answer(self, kind: type[T], path: Path) -> T | None:
        """What the part has written there; None: nothing yet. Raises PartLostError where no part writes that."""
        data = self._folder.read_if_present(path)
        try:
            return None if data is None else files.parse_answer(kind, data)
        except files.OtherVersionError as error:
            raise PartLostError(self.name, f"it has gpubench {error}, the first node {__version__}") from None
        except (ValueError, RecursionError) as error:
            raise PartLostError(
                self.name, f"it has written what no part of gpubench writes ({clean_line(str(error), 200)})"
            ) from None

    def _make_lost_error(self) -> PartLostError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(2)
        code = self._process.poll()
        ending = f"its part ended with exit code {code}"
        if code is None:
            ending = "its input was closed"
        elif code < 0:
            ending = f"its part was ended by {name_signal(-code)}"
        last_words = self._read_last_words()
        return PartLostError(self.name, f"{ending}; it said: {last_words}" if last_words else ending)

    def _read_last_words(self) -> str:
        """The last line that it has printed that may tell why it has ended."""
        printed = self._printed.fileno()
        # The position in this file is the part's, too.
        data = os.pread(printed, LAST_BYTES, max(0, os.fstat(printed).st_size - LAST_BYTES))
        lines = [
            line for raw in data.decode(errors="replace").splitlines() if (line := clean_line(raw).strip())
        ]
        telling = [line for line in lines if not _SRUN_NOISE.fullmatch(line)]
        return (telling or lines or [""])[-1][:300]

    def close_input(self) -> None:
        """Has it end whatever it has started, and itself. Safe to call twice."""
        with contextlib.suppress(OSError):
            self._input.close()

    def wait_or_kill(self) -> None:
        """Waits for its end, after `close_input`, and forces it in the end."""
        for number, patience_s in ((None, CLOSE_LIMIT_S), (signal.SIGTERM, 5.0), (signal.SIGKILL, None)):
            if number is not None and not self.has_ended:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(patience_s)
        self._printed.close()


def close_all_parts(parts: Sequence[PartProcess]) -> None:
    """Ends all of them, side by side."""
    for part in parts:
        part.close_input()
    for part in parts:
        part.wait_or_kill()


# ---------------------------------------------------------------- which further nodes there are


LIST_LIMIT_S = 30.0
"""How long SLURM may take to spell a list of nodes out."""


def list_part_commands(given: Sequence[str], environ: Mapping[str, str]) -> list[PartCommand]:
    """One for each further node: those that were given (`ssh n2`), else those of the SLURM job that this is in.

    Raises UsageError for one that can't be read, UnusableError where SLURM does not tell its nodes.
    """
    if given:
        return [_parse_agent_command(text) for text in given]
    nodes, own_node = environ.get("SLURM_JOB_NODELIST", ""), environ.get("SLURMD_NODENAME", "")
    if not nodes or environ.get("SLURM_JOB_NUM_NODES", "1") == "1":
        return []
    if not own_node:
        raise UnusableError(
            "this is no node of the SLURM job, so nothing can be measured from here: start gpubench on its first node, "
            "in the batch script or by srun --nodes=1 --ntasks=1 --overlap"
        )
    return [_make_srun_command(name, environ) for name in _expand_host_list(nodes) if name != own_node]


def _parse_agent_command(text: str) -> PartCommand:
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"--agent {text!r}: {error}") from None
    if not words:
        raise UsageError(
            "--agent wants the command that starts a process on a further node, such as 'ssh n2'"
        )
    return PartCommand(name=text, before=words)


def _make_srun_command(name: str, environ: Mapping[str, str]) -> PartCommand:
    """All of the job's part of that node; --overlap, for this step holds it already."""
    task_cpus = environ.get("SLURM_CPUS_PER_TASK", "")
    cpus = (f"--cpus-per-task={task_cpus}",) if task_cpus.isdigit() else ()
    fixed = ("srun", "--overlap", "--nodes=1", "--ntasks=1", f"--nodelist={name}", "--kill-on-bad-exit=1")
    return PartCommand(name=name, before=(*fixed, *cpus))


def _expand_host_list(nodes: str) -> list[str]:
    """`n[1-3]` as names."""
    try:
        done = subprocess.run(
            ["scontrol", "show", "hostnames", nodes],
            capture_output=True,
            text=True,
            timeout=LIST_LIMIT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise UnusableError(f"scontrol does not spell the job's nodes out ({nodes}): {error}") from None
    return done.stdout.split()
