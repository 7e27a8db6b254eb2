"""A view that outlives its terminal: who looked on has gone, and the measuring goes on."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Self

from gpubench.basics.quiet_pipe import send_nowhere
from gpubench.plan.rounds import Rounds
from gpubench.report.live import QuietView, View
from gpubench.report.live_progress import LiveProgress
from gpubench.report.table import Table
from gpubench.schema.row import Row


class OutlivingView:
    """Passes everything on until that can't be written any more; from then on it shows nothing."""

    def __init__(self, view: View) -> None:
        self._view = view

    def _try(self, show: Callable[[View], object]) -> None:
        try:
            show(self._view)
        except OSError:  # a closed pipe, a terminal that hung up, a full disk behind a redirected stderr
            self._view = QuietView()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def started(self, number: int, total: int, label: str) -> None:
        self._try(lambda view: view.started(number, total, label))

    def update(self, progress: LiveProgress) -> None:
        self._try(lambda view: view.update(progress))

    def finished(self, number: int, total: int, label: str, row: Row) -> None:
        self._try(lambda view: view.finished(number, total, label, row))

    def finished_group(self, number: int, total: int, label: str, rows: Sequence[Row]) -> None:
        self._try(lambda view: view.finished_group(number, total, label, rows))

    def began_round(self, number: int, rounds: Rounds) -> None:
        self._try(lambda view: view.began_round(number, rounds))

    def ended_round(self, line: str) -> None:
        self._try(lambda view: view.ended_round(line))

    def stands(self, make: Callable[[], Table | None], *, at_once: bool = False) -> None:
        self._try(lambda view: view.stands(make, at_once=at_once))

    def say(self, text: str) -> None:
        self._try(lambda view: view.say(text))

    def close(self) -> None:
        self._try(lambda view: view.close())


@contextlib.contextmanager
def outliving_output() -> Iterator[None]:
    """Around what is printed after everything was stored: where nobody can read it any more, that is no failure."""
    try:
        yield
        sys.stdout.flush()
    except OSError:
        silence()


def silence() -> None:
    """Sends standard output and errors nowhere, so that the interpreter's own flush at its end has no complaint."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # a stream that is closed has no number
            send_nowhere(stream)
