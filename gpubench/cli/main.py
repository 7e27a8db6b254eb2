"""The entry point: whatever goes wrong becomes one line on stderr and an exit code."""

from __future__ import annotations

import io
import os
import sys
from typing import NoReturn

import typer

from gpubench.basics.errors import GpubenchError, UnusableError
from gpubench.basics.stopping import AT_ONCE
from gpubench.cli.app import app
from gpubench.cli.usage import format_usage_error, print_error


def main() -> NoReturn:
    """Runs the command that was typed."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A path that the terminal's encoding can't say must not end a command whose work is done.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = app(standalone_mode=False)
    except GpubenchError as error:
        print_error(str(error))
        code = error.exit_code
    except OSError as error:
        if error.filename is None:
            raise
        # A path that somebody named: too long, a link in circles, on a disk that fails.
        path = os.fsdecode(error.filename)
        print_error(f"can't use {path}: {error.strerror or error}")
        code = UnusableError.exit_code
    except (typer.Abort, KeyboardInterrupt):  # Ctrl-C; a sweep that has begun hears it itself
        print_error("stopped", after_echo=True)
        code = AT_ONCE
    except Exception as error:
        # The command line library's own usage errors know their words and their exit code.
        if not hasattr(error, "format_message"):
            raise
        print_error(format_usage_error(error))
        code = getattr(error, "exit_code", 2)
    sys.exit(code if isinstance(code, int) else 0)
