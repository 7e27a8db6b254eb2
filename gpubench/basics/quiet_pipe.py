"""Standard output and errors whose reader may leave: `gpubench table | head` ends quietly, with its own exit code."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import IO, Any, TextIO

from gpubench.basics.errors import UnusableError


class OutlivingStream:
    """A text stream that outlives its reader: what is written after that goes nowhere.

    Writing raises UnusableError where the stream fails for another reason, a full disk, say.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        self._call_unless_broken(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        self._call_unless_broken(self._stream.flush)

    def _call_unless_broken(self, act: Callable[[], object]) -> None:
        try:
            act()
        except BrokenPipeError:
            redirect_to_devnull(self._stream)
        except OSError as error:
            redirect_to_devnull(self._stream)
            raise UnusableError(f"the output can't be written: {error.strerror}") from None


def redirect_to_devnull(stream: IO[str]) -> None:
    """All further text of a stream, and what is still held back, which the interpreter would write at its end.

    Raises OSError or ValueError for a stream without a descriptor, as of one that is closed.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, stream.fileno())
    finally:
        os.close(nowhere)


@contextlib.contextmanager
def outlive_output_readers() -> Iterator[None]:
    """Within it, `sys.stdout` and `sys.stderr` outlive their readers. At its end all is written."""
    out: Any = OutlivingStream(sys.stdout)
    errors: Any = OutlivingStream(sys.stderr)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            yield
        finally:
            out.flush()
            errors.flush()


@contextlib.contextmanager
def ignore_lost_output() -> Iterator[None]:
    """Around what is printed after everything was stored: where nobody can read it any more, that is no failure."""
    try:
        yield
        sys.stdout.flush()
    except OSError:
        redirect_all_to_devnull(sys.stdout, sys.stderr)
    try:
        sys.stderr.flush()  # it may hold back what could not be written before
    except OSError:
        redirect_all_to_devnull(sys.stderr)


def redirect_all_to_devnull(*streams: IO[str]) -> None:
    """Sends these streams nowhere, so that the interpreter's own flush at its end has no complaint."""
    for stream in streams:
        with contextlib.suppress(OSError, ValueError):  # a stream that is closed has no number
            redirect_to_devnull(stream)
