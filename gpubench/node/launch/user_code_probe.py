"""A child that imports torch and tries what users wrote themselves, and what it tells."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

from gpubench.basics.errors import UnusableError
from gpubench.node.launch import scratch
from gpubench.node.launch.fork_server import START_LIMIT_S, make_torch_environment


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbeResult:
    """How far the child came."""

    verdicts: Sequence[Mapping[str, Any]]
    """Of each try that it ended: what is wrong, if anything."""
    code: int
    """Its exit code, or less than zero for a signal."""
    last_words: str
    """The last line of what it printed besides."""


def probe_user_code(tries: Sequence[Mapping[str, Any]], limit_s: int) -> ProbeResult:
    """What a child tells that tries all of them, each for `limit_s` seconds at most.

    Raises UnusableError where it takes too long to import torch.
    """
    with (
        _open_memory_file("order") as order,
        _open_memory_file("out") as out,
        _open_memory_file("errors") as errors,
        scratch.open_compile_cache(os.environ) as compiled,
    ):
        order.write(json.dumps(list(tries)).encode())
        order.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "gpubench.train.user_code_probe", str(os.getpid()), str(limit_s)],
            env=make_torch_environment(scratch.make_compile_environment(os.environ, compiled)),
            stdin=order,
            stdout=out,
            stderr=errors,
            start_new_session=True,
        )
        try:
            code = process.wait(START_LIMIT_S + limit_s * len(tries))
        except subprocess.TimeoutExpired:
            raise UnusableError(f"importing torch took more than {START_LIMIT_S:g} s") from None
        finally:
            if process.poll() is None:  # too slow, or Ctrl-C: with whatever it has started
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return ProbeResult(
            verdicts=[json.loads(line) for line in _read_lines(out)],
            code=code,
            last_words=describe_last_words(errors, code),
        )


def _open_memory_file(name: str) -> IO[bytes]:
    """A file that needs no disk: the one for temporary files may be full."""
    return os.fdopen(os.memfd_create(name), "w+b")


def describe_last_words(errors: IO[bytes], code: int) -> str:
    """The last line that a child has printed there; where it printed none, how it ended."""
    lines = _read_lines(errors)
    return lines[-1][:300] if lines else f"signal {-code}" if code < 0 else f"exit code {code}"


def _read_lines(file: IO[bytes]) -> list[str]:
    file.seek(0)
    return file.read().decode(errors="replace").strip().splitlines()
