"""How far results folders are, in words and as JSON."""

from __future__ import annotations

import datetime
import time
from typing import Any

import msgspec

from gpubench.basics.folding import wrap_sentence
from gpubench.basics.quoted import clean_line
from gpubench.plan.estimate import format_seconds
from gpubench.render.words import count_things, join_words, name_ending
from gpubench.results.status import ENDINGS, FolderStatus
from gpubench.store.work_claims import Worker

MOST_NAMED = 5
STATES = {
    "complete": "complete",
    "failed": "finished, with failures",
    "running": "running",
    "unfinished": "not finished, and nobody runs it",
}


def format_status(status: FolderStatus, width: int) -> str:
    """One folder, the answer in its first line, of at most so many columns: paths stay whole. Ends in a newline."""
    why = "a plan can't be read" if status.unread_plans else "no plan is stored in it"
    state = STATES.get(status.state, f"{why}, so it is not known whether all is done")
    lines = wrap_sentence(clean_line(f"{status.folder}: {state}{_describe_remaining_work(status)}"), width)
    for detail in _list_detail_lines(status):
        lines += wrap_sentence(clean_line(detail), width, indent="  ")
    return "\n".join(lines) + "\n"


def _describe_remaining_work(status: FolderStatus) -> str:
    if not status.remaining:
        is_going_on = status.is_open_ended and status.state == "running"
        return "; further rounds until they are sure enough, or time is up" if is_going_on else ""
    rest = f"; {status.remaining} of {count_things(status.all, 'measurement')} left"
    if status.remaining_s is None:
        return f"{rest}, nobody knows how long that takes"
    return f"{rest}, about {format_seconds(status.remaining_s)} by what the others took"


def _list_detail_lines(status: FolderStatus) -> list[str]:
    counts = [f"{status.counts[name]} {name_ending(name)}" for name in ENDINGS if status.counts[name]]
    details = [f"trials and groups: {', '.join(counts) or 'none yet'}"]
    if status.parts:
        details.append(
            f"it holds part {join_words(status.parts)} of a plan, and the other parts are not counted; "
            "gpubench merge puts them together"
        )
    if len(status.rounds) > 1 or status.is_open_ended:
        parts = [
            f"round {part.number}: {part.done} done"
            + (f", {part.failed} failed" if part.failed else "")
            + (f", {part.remaining} left" if part.remaining else "")
            for part in status.rounds
        ]
        details.append("; ".join(parts))
    if status.stale:
        were, again = ("was", "it") if status.stale == 1 else ("were", "them")
        details.append(
            f"{status.stale} {were} measured under other versions; --retry stale measures {again} again"
        )
    details += dict.fromkeys(map(_describe_worker, status.workers))
    details += [
        f"now: {trial.label}{f', {trial.who}' if trial.who else ''} ({trial.log})" for trial in status.running
    ]
    details += [f"{unit.status}: {unit.label}: {unit.reason}" for unit in status.failures[:MOST_NAMED]]
    if len(status.failures) > MOST_NAMED:
        details.append(f"and {len(status.failures) - MOST_NAMED} more that ended badly")
    if status.last_start:
        details.append(f"the last one that has ended began at {status.last_start}")
    if status.state == "unfinished":
        details.append("the same gpubench sweep goes on with what is left")
    elif status.failures and status.state in ("failed", "unknown"):
        details.append("gpubench sweep … --retry failed,timeout runs those again")
    return details


def _describe_worker(worker: Worker) -> str:
    if worker.fate == "dead":
        return f"{worker.who} was at work in it and has died; the next sweep goes on in its place"
    heard = f"last heard of {format_seconds(worker.quiet_s)} ago"
    if not worker.is_alive:
        return f"{worker.who} was at work in it and is probably dead: {heard}"
    if worker.fate == "unknown":
        return f"at work in it: {worker.who}, {heard}"
    if worker.began_s is None:
        return f"at work in it: {worker.who}"
    began = datetime.datetime.fromtimestamp(worker.began_s).strftime("%Y-%m-%d %H:%M:%S")
    seconds = max(0.0, time.time() - worker.began_s)
    return f"at work in it: {worker.who}, since {began} ({format_seconds(seconds)})"


def status_to_data(status: FolderStatus) -> dict[str, Any]:
    """One folder as an object of JSON."""
    workers = [
        {
            "who": worker.who, "fate": worker.fate, "alive": worker.is_alive, "quiet_s": worker.quiet_s,
            "began_s": worker.began_s,
        }
        for worker in status.workers
    ]  # fmt: skip
    return dict(msgspec.to_builtins(status, enc_hook=str), workers=workers)
