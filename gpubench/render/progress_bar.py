"""How far work on many images is: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from gpubench.basics.words import clean_line

EVERY_S = 10.0
"""How often a line tells how far it is, where there is no terminal."""


@contextmanager
def show_progress(
    label: str, *, quiet: bool = False, work: str = "", clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[int, int], None]]:
    """Shows (done, total) as long as the block lasts, on stderr: a bar on a terminal, plain lines elsewhere.

    `work`: what is done, in more words than `label`, to be said in the first of these lines as it begins.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _make_line_reporter(label, work, clock) if not quiet else lambda *_: None
        return
    with Progress(*columns, console=console, disable=quiet) as progress:
        task = progress.add_task(label, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _make_line_reporter(label: str, work: str, clock: Callable[[], float]) -> Callable[[int, int], None]:
    """Tells of (done, total) in a line every EVERY_S; before them in one at the first call, where `work` says of what.

    Where nothing is left to do there is no call, so nothing is said.
    """
    due: float | None = None

    def tell(done: int, total: int) -> None:
        nonlocal due
        now = clock()
        if due is not None and now < due:
            return
        first, due = due is None, now + EVERY_S
        line = f"{label}: {done:,} of {total:,}" if not first else f"{work} ({total:,} in all)" * bool(work)
        if line:
            with contextlib.suppress(OSError):  # nobody may be there to read it; the work goes on
                print(clean_line(line), file=sys.stderr, flush=True)

    return tell
