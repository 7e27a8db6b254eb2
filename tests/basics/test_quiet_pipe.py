"""`gpubench table | head`: an answer whose reader leaves before its end."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import committed
import pytest
import typer

from gpubench.basics.errors import UnusableError
from gpubench.basics.quiet_pipe import OutlivingStream, outlive_output_readers
from gpubench.cli import usage
from gpubench.cli.app import app


@contextlib.contextmanager
def read_no_more(*, buffered: bool) -> Iterator[TextIO]:
    """The writing end of a pipe that nobody reads."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w", encoding="utf-8", buffering=-1 if buffered else 1) as stream:
        yield stream


@pytest.mark.parametrize("buffered", [True, False])
def test_what_comes_after_the_reader_has_left_goes_nowhere(buffered: bool) -> None:
    with (
        read_no_more(buffered=buffered) as out,
        read_no_more(buffered=buffered) as errors,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(errors),
    ):
        with outlive_output_readers():
            print("a line")
            print("a problem", file=sys.stderr)
            print("x" * 1_000_000)
            ended = "all said"
        assert (sys.stdout, sys.stderr) == (out, errors)
        out.flush()  # as the interpreter does at its end
        errors.flush()
    assert ended == "all said"


def test_a_reader_who_stays_reads_all_of_it(capfd: pytest.CaptureFixture[str]) -> None:
    with (
        os.fdopen(os.dup(1), "w", encoding="utf-8") as stream,
        contextlib.redirect_stdout(stream),
        outlive_output_readers(),
    ):
        print("half a line", end="")
        assert sys.stdout.encoding == "utf-8"
    assert capfd.readouterr().out == "half a line"


def test_a_full_disk_is_an_error_once() -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        stream = OutlivingStream(full)
        stream.write("a line\n")
        with pytest.raises(UnusableError, match="can't be written: No space left"):
            stream.flush()
        stream.write("another\n")
        stream.flush()


@pytest.mark.slow
def test_a_command_whose_reader_has_left_ends_quietly() -> None:
    command = [sys.executable, "-m", "gpubench", "table", str(committed.folder("h200-cpus-2026"))]
    with read_no_more(buffered=False) as gone:
        ended = subprocess.run(command, stdout=gone, stderr=subprocess.PIPE, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_every_command_that_reads_is_one_whose_reader_may_leave() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    reading = {name for name, one in commands.items() if one.rich_help_panel == "Read"}
    assert {"table", "audit", "predict", "doctor"} <= reading
    assert all(isinstance(commands[name], usage.ReadingCommand) for name in reading)
    assert isinstance(commands["data"].commands["list"], usage.ReadingCommand)
