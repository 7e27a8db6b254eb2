"""What `gpubench status` does: looks how far the sweeps of results folders are, and disturbs none."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from gpubench.basics.encodable import encodable
from gpubench.basics.errors import ResumableError, UnusableError
from gpubench.basics.words import listed
from gpubench.commands.opened import warn
from gpubench.report import status as report
from gpubench.report.reading import no_results_folder
from gpubench.results.home import newest_results, results_in
from gpubench.results.status import FolderStatus, State, status_of
from gpubench.results.store import Results

RUNNING = 5
CODES: dict[State, int] = {
    "complete": 0,
    "failed": 1,
    "running": RUNNING,
    "unfinished": ResumableError.exit_code,
    "unknown": UnusableError.exit_code,
}
"""Exit code by state. Of several folders that of the one which needs somebody the most: the last of these."""


def status(folders: Sequence[Path], *, as_json: bool = False) -> int:
    """`gpubench status`. A folder that can't be read is named, and the others are told; then it ends in 4."""
    found: list[FolderStatus] = []
    code = 0
    for folder in dict.fromkeys(folders or [newest_results()]):
        try:
            found.append(_of(folder))
        except UnusableError as error:
            if len(folders) < 2:
                raise
            warn(str(error))
            code = UnusableError.exit_code
    console = Console(highlight=False)
    width = console.width if console.is_terminal else None
    for one in found:
        made = (
            json.dumps(report.as_json(one), ensure_ascii=False) + "\n" if as_json else report.text(one, width)
        )
        sys.stdout.write(encodable(made, console.encoding))
    return code or max((CODES[one.state] for one in found), default=0, key=list(CODES.values()).index)


def _of(folder: Path) -> FolderStatus:
    if not folder.exists():
        raise UnusableError(
            f"{folder} is not there: no sweep has begun to write it yet, or it has another name (whether a batch job "
            "that is to write it still waits, squeue --me tells)"
        )
    if not folder.is_dir():
        raise no_results_folder(folder)
    if not any((folder / name).exists() for name in ("records", "plans", ".lock")):
        if inside := results_in(folder):
            raise UnusableError(
                f"{folder} holds results folders, and is none: name one of them, or several: "
                f"{listed([one.name for one in inside])}"
            )
        raise UnusableError(f"{folder} holds no plan and no record of a sweep")
    return status_of(Results(folder), warn)
