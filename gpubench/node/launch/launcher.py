"""What starts trials, and what is started: the one launcher seam, in whose place tests may put their own."""

from __future__ import annotations

import select
from collections.abc import Callable, Sequence
from typing import Protocol

from gpubench.basics import stacks
from gpubench.schema.events import Answer, Event
from gpubench.schema.order import TrialOrder


class StoppedError(Exception):
    """The sweep was stopped while a trial was being started."""


def never_stop() -> bool:
    """Nobody stops it."""
    return False


class Running(Protocol):
    """One trial under way."""

    pid: int
    """The leader's process id: root of the trial's process tree."""

    def events(self, timeout: float) -> list[Event]:
        """What its processes said, waiting up to `timeout` seconds for the first."""
        ...

    @property
    def open_files(self) -> Sequence[int]:
        """What becomes readable when there is something in `events`; none where nobody can say more."""
        ...

    def reply(self, rank: int, answer: Answer) -> None:
        """Answers a rank that waits."""
        ...

    @property
    def ended(self) -> bool:
        """Whether the leader has ended."""
        ...

    def stacks(self) -> list[stacks.Stack]:
        """Where its processes are at this moment, in code; none where nobody can say. May take a second."""
        ...

    def end(self) -> None:
        """Kills what is left of the trial's processes and reaps them. Safe to call twice."""
        ...


class Launcher(Protocol):
    """Starts trials."""

    def launch(self, order: TrialOrder, should_stop: Callable[[], bool] = never_stop) -> Running:
        """Starts one trial. `should_stop` is asked while it waits, several times a second.

        Raises UnusableError where none can start, StoppedError where it was stopped.
        """
        ...

    def wait_ready(self, should_stop: Callable[[], bool] = never_stop) -> None:
        """Waits until trials can start. Raises UnusableError where none can, StoppedError where it was stopped."""
        ...

    def close(self) -> None: ...


def events(trials: Sequence[Running], timeout: float) -> list[list[Event]]:
    """What the processes of each trial said, waiting up to `timeout` seconds for the first word of any."""
    if len(trials) == 1:
        return [trials[0].events(timeout)]
    files = [file for trial in trials for file in trial.open_files]
    if files:
        looked = select.poll()
        for file in files:
            looked.register(file, select.POLLIN)
        looked.poll(1e3 * max(timeout, 0))
        timeout = 0
    return [trial.events(timeout / len(trials)) for trial in trials]
