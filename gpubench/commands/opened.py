"""Results folders, opened for a command that reads them."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from gpubench.basics.words import clean
from gpubench.report.choice import SHOW, Choice
from gpubench.report.reading import EVERYTHING, Kept, Reading, reading_all
from gpubench.results.home import newest_results


def readings(
    folders: Sequence[Path],
    *,
    choice: Choice = SHOW,
    keep: Collection[Kept] = EVERYTHING,
) -> list[Reading]:
    """Results folders (none: the newest one) with all that can be read of them, in the order in which they are named.

    Of several, one that can't be read is named on stderr, and the others are read. Raises UnusableError where none is.
    `choice`: of columns. `keep`: what is looked at besides rows and tables.
    """
    found = reading_all(folders or [newest_results()], warn, choice=choice, keep=keep)
    gc.freeze()  # it stays until the command ends: to look for garbage in it would take as long as to read it
    return found


def all_of(folders: Sequence[Path], found: Sequence[Reading]) -> bool:
    """Whether all folders that were named could be read, of which these are the readings."""
    return len(found) >= len({folder.resolve() for folder in folders})


def warn(line: str) -> None:
    """Says on stderr what is wrong, in one line, while the command goes on."""
    with contextlib.suppress(OSError):  # nobody may be there to read it
        print(f"gpubench: {clean(line)}", file=sys.stderr)
