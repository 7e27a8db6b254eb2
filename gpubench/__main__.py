"""`python -m gpubench`, and the command's entry point: hears Ctrl-C from the first import on."""

from __future__ import annotations

import contextlib
import sys
from typing import NoReturn


def main() -> NoReturn:
    """The command line. What it imports takes a moment, in which Ctrl-C ends it as it does later."""
    try:
        from gpubench.cli.main import main as command
    except KeyboardInterrupt:
        from gpubench.basics.stopping import AT_ONCE

        with contextlib.suppress(OSError):  # nobody may be there to read it
            after_echo = "\n" if sys.stderr.isatty() else ""  # a terminal has just shown `^C`
            print(f"{after_echo}gpubench: stopped", file=sys.stderr, flush=True)
        sys.exit(AT_ONCE)
    command()


if __name__ == "__main__":
    main()
