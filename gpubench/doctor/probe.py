"""The parent's side of `gpubench.train.probe`: starts it, listens with a limit, and always ends it."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from gpubench.node.launch.fork_server import make_torch_environment
from gpubench.node.launch.probe import describe_last_words

IMPORT_LIMIT_S = 300.0
"""A cold network file system can take minutes to import torch."""
LINE_LIMIT_S = 120.0
"""Between two lines after that: starting CUDA on a large host, and more than any limit of the child's own."""
END_LIMIT_S = 5.0


@dataclass(kw_only=True, slots=True)
class TorchReport:
    """What the child that tried torch said before it ended or came to hold its GPUs."""

    pid: int = 0
    imported: Mapping[str, Any] | None = None
    """Versions; None: the imports failed, and `trouble` says how."""
    ranks: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """Backend -> what became of an all-reduce."""
    gpus: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """uuid -> what became of a matrix product."""
    holding: bool = False
    """Whether it holds its CUDA contexts still."""
    trouble: str = ""
    """Why it said no more; empty: it said all."""

    def add_line(self, line: Mapping[str, Any]) -> None:
        """Takes down a line of the child's."""
        if "ranks" in line:
            self.ranks[line["ranks"]] = line
        elif "gpu" in line:
            self.gpus[line["gpu"]] = line
        else:
            self.imported = line.get("imported", self.imported)
            self.trouble = line.get("failed", self.trouble)
            self.holding = line.get("holding", self.holding)


@contextlib.contextmanager
def open_torch_probe(
    uuids: Sequence[str],
    *,
    environ: Mapping[str, str] = os.environ,
    import_limit_s: float = IMPORT_LIMIT_S,
    line_limit_s: float = LINE_LIMIT_S,
) -> Iterator[Callable[[], TorchReport]]:
    """Gives a function that tells what the child said; its first call starts the child, which ends with the block."""
    report = TorchReport()
    child: subprocess.Popen[bytes] | None = None
    with tempfile.TemporaryFile() as errors:

        @functools.cache
        def ask_torch() -> TorchReport:
            nonlocal child
            try:
                child = subprocess.Popen(
                    [sys.executable, "-P", "-m", "gpubench.train.probe", str(os.getpid()), ",".join(uuids)],
                    env=make_torch_environment(environ),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    start_new_session=True,
                )
                _receive_report(report, child, errors, (import_limit_s, line_limit_s))
            except OSError as error:
                report.trouble = f"no process can be started: {error.strerror or error}"
            return report

        try:
            yield ask_torch
        finally:
            if child is not None:
                _end_child(child, is_listening=report.holding)


def _receive_report(
    report: TorchReport, child: subprocess.Popen[bytes], errors: IO[bytes], limits_s: tuple[float, float]
) -> None:
    """Takes down the child's lines until it holds its GPUs, ends, or keeps one waiting for too long.

    `limits_s`: how long it may take to its first line, and to each that follows.
    """
    assert child.stdout is not None
    report.pid = child.pid
    limit, later_limit = limits_s
    rest = b""
    while not report.holding:
        if not select.select([child.stdout], [], [], limit)[0]:
            report.trouble = f"nothing was heard of it for {limit:g} s"
            return
        limit = later_limit
        part = os.read(child.stdout.fileno(), 1 << 16)
        if not part:  # it has closed its output
            try:
                code = child.wait(END_LIMIT_S)
            except subprocess.TimeoutExpired as error:
                report.trouble = str(error)
            else:
                died = f"it died ({describe_last_words(errors, code)})" if code else ""
                report.trouble = report.trouble or died
            return
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            if line.startswith(b"{"):  # no site's own greetings
                report.add_line(json.loads(line))


def _end_child(child: subprocess.Popen[bytes], *, is_listening: bool) -> None:
    """Ends the child, and with it whatever it forked."""
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.close()
    if not is_listening:
        child.kill()
    try:
        child.wait(END_LIMIT_S)
    except subprocess.TimeoutExpired:
        child.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # stuck in the driver: nothing can end it
            child.wait(END_LIMIT_S)
    child.stdout.close()
