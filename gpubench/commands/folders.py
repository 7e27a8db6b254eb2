"""What commands that read results folders share: how these are opened, how names are read, how answers are printed."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpubench.basics.collector import pause_garbage_collector
from gpubench.basics.encodable import replace_unencodable_signs
from gpubench.basics.errors import UnusableError, make_unknown_name_error
from gpubench.basics.words import clean_line
from gpubench.results.home import find_newest_results_folder

if TYPE_CHECKING:
    from gpubench.analyze.folder import Folder


def read_named_folders(paths: Sequence[Path]) -> list[Folder]:
    """Results folders (none: the newest one), read, in the order in which they are named.

    Of several, one that can't be read is named on stderr, and the others are read. Raises UnusableError where none is.
    """
    from gpubench.analyze.folder import read_folders  # imports pandas, which not every command needs

    with pause_garbage_collector():
        folders = read_folders(paths or [find_newest_results_folder()], print_warning)
    gc.freeze()  # it stays until the command ends: to look for garbage in it would take as long as to read it
    return folders


def choose_read_exit_code(paths: Sequence[Path], folders: Sequence[Folder]) -> int:
    """0 where all folders that were named could be read, of which these were."""
    return 0 if len(folders) >= len({path.resolve() for path in paths}) else UnusableError.exit_code


def print_warning(line: str) -> None:
    """Says on stderr, in one line, what is wrong or worth a note, while the command goes on."""
    with contextlib.suppress(OSError):  # nobody may be there to read it
        print(f"gpubench: {clean_line(line)}", file=sys.stderr)


def print_text(text: str) -> None:
    """Prints an answer on stdout, with plain signs in place of those that its encoding lacks."""
    sys.stdout.write(replace_unencodable_signs(text, sys.stdout.encoding or "utf-8"))


def parse_known_names(noun: str, text: str | None, valid: Collection[str]) -> list[str]:
    """The names in a text with commas. Raises UsageError for one that is none of `valid`."""
    names = [] if text is None else [part.strip() for part in text.split(",")]
    for name in names:
        if name not in valid:
            raise make_unknown_name_error(noun, name, valid)
    return list(dict.fromkeys(names))
