"""One attempt at one trial: launch, watch, answer, deadline, end. A single-threaded event loop."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpubench.errors import UnusableError
from gpubench.launch.client import Launcher, Running
from gpubench.launch.outcome import Status
from gpubench.monitor.watcher import Watcher

VIEW_PERIOD_S = 0.25
TAIL_BYTES = 4000


@dataclass(kw_only=True, slots=True)
class Attempt:
    """What happened, as it happened."""

    events: list[dict[str, Any]] = field(default_factory=list)
    forced: tuple[Status, str] | None = None
    """The ending that the parent gave: timeout or interrupted."""
    launched: float = 0.0
    """Monotonic seconds when the order was given."""
    started: float = 0.0
    """When its first process answered."""
    finished: float = 0.0
    """When its last process was reaped."""


@dataclass(kw_only=True, slots=True)
class Progress:
    """How far the trial is, for whoever looks on."""

    epoch: int = 0
    step: int = 0
    steps: int = 0
    measured: bool = False
    judged: int = 0
    """Epochs that were evaluated, on the way to an accuracy."""
    top1_pct: float | None = None
    """What the last evaluation gave."""
    between: bool = False
    """An epoch has ended; neither is it judged yet, nor has the next one begun."""


def attempt(
    spec: dict[str, Any],
    launcher: Launcher,
    watcher: Watcher,
    *,
    timeout_s: float,
    should_stop: Callable[[], bool],
    look: Callable[[Progress], None],
) -> Attempt:
    """Runs one trial to its end, whatever that is; afterwards none of its processes is left."""
    done = Attempt(launched=time.monotonic())
    progress = Progress()
    watcher.before()
    try:
        running = launcher.launch(spec)
    except UnusableError as error:  # the server was there when the sweep began: this is this trial's ending
        done.forced = ("failed", str(error))
        done.finished = time.monotonic()
        return done
    try:
        watcher.start(running.pid)
        deadline = time.monotonic() + timeout_s
        next_look = 0.0
        results = 0
        while True:
            now = time.monotonic()
            if should_stop():
                done.forced = ("interrupted", "the sweep was stopped")
                break
            if now >= deadline:
                done.forced = ("timeout", f"did not end within {timeout_s:g} s")
                break
            if now >= next_look:
                look(progress)
                next_look = now + VIEW_PERIOD_S
            watcher.tick()
            wake = min(watcher.next_deadline(), deadline, next_look)
            over = running.ended
            events = running.events(0 if over else wake - time.monotonic())
            for event in events:
                if event["event"] != "progress":  # two a second and rank, for hours: only the view wants them
                    done.events.append(event)
                results += event["event"] == "result"
                _answer(event, running, watcher, progress, done)
            if results == spec["ranks"]:
                break  # what is left is teardown, which may hang or abort: it is not waited for
            if over and not events:
                break
    finally:
        running.end()
        watcher.after()
        done.finished = time.monotonic()
    return done


def _answer(
    event: dict[str, Any], running: Running, watcher: Watcher, progress: Progress, done: Attempt
) -> None:
    match event["event"]:
        case "hello":
            done.started = done.started or time.monotonic()
        case "begin" if event["rank"] == 0:  # all ranks stand at the same edge: once is enough
            progress.epoch, progress.step, progress.steps = event["epoch"], 0, event["steps"]
            first = event["measured"] and not progress.measured
            progress.measured = event["measured"]
            progress.between = False
            watcher.edge(first=first)
        case "progress":
            progress.step = event["step"]
        case "end" if event["rank"] == 0:
            progress.between = True
            watcher.edge()
        case "quality":
            progress.judged, progress.top1_pct = event["epoch"] + 1, event["top1_pct"]
            progress.between = False
        case "ask-memory":
            running.reply(event["rank"], {"driver_mib": watcher.process_gpu_mib()})
        case "settle":
            watcher.settle()
            running.reply(event["rank"], {"go": True})


def last_words(log: Path) -> str:
    """The last line of a log that says something; empty where there is none."""
    if not log.exists():
        return ""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - TAIL_BYTES))
        lines = file.read().decode(errors="replace").splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip()), "")[:300]
