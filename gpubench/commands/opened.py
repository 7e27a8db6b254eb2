"""A results folder, opened for a command that reads it."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

from gpubench.basics.errors import UnusableError
from gpubench.basics.words import clean
from gpubench.results.home import newest_results, results_home
from gpubench.results.store import Results
from gpubench.schema.record import Record


def opened(folder: Path | None) -> tuple[Results, list[Record]]:
    """A results folder (None: the newest one) and its records. Raises UnusableError where there are none."""
    results = Results(folder or newest_results())
    if not results.folder.is_dir():
        raise no_results_folder(results.folder)
    told: list[str] = []
    records = results.records(told.append)
    for line in told:
        warn(line)
    if not records:
        raise UnusableError(f"{results.folder} holds no record{' that can be read' if told else 's'}")
    return results, records


def no_results_folder(folder: Path) -> UnusableError:
    """That this is none, and where those lie that there are."""
    return UnusableError(
        f"{folder} is not a results folder; name one that gpubench sweep has written, such as {results_home()}/NAME"
    )


def warn(line: str) -> None:
    """Says on stderr what is wrong, in one line, while the command goes on."""
    with contextlib.suppress(OSError):  # nobody may be there to read it
        print(f"gpubench: {clean(line)}", file=sys.stderr)
