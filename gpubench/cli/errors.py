"""An error as one line on stderr."""

from __future__ import annotations

import contextlib
import sys


def print_error(text: str, *, after_echo: bool = False) -> None:
    """One line on stderr. `after_echo`: a terminal has just shown `^C`, and not begun a new line."""
    with contextlib.suppress(OSError):  # nobody may be there to read it; the exit code tells as well
        if after_echo and sys.stderr.isatty():
            print(file=sys.stderr)
        print(f"gpubench: {' '.join(text.split())}", file=sys.stderr, flush=True)
