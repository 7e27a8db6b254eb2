"""How far results folders are, in words and as JSON."""

from __future__ import annotations

import datetime
import time
from typing import Any

from gpubench.basics.folding import folded
from gpubench.basics.words import WORDS, clean, listed, many
from gpubench.plan.estimate import words
from gpubench.results.status import ORDER, FolderStatus

MOST_NAMED = 5
INDENT = "  "
UNREAD = "a plan can't be read"
NO_PLAN = "no plan is stored in it"
_STATES = {
    "complete": "complete",
    "failed": "finished, with failures",
    "running": "running",
    "unfinished": "not finished, and nobody runs it",
}


def text(of: FolderStatus, width: int | None = None) -> str:
    """One folder, the answer in its first line. `width`: of the terminal, if there is one."""
    lines = folded(clean(f"{of.folder}: {_state(of)}{_left(of)}"), width)
    for detail in _details(of):
        lines += folded(clean(detail), width, indent=INDENT)
    return "\n".join(lines) + "\n"


def _state(of: FolderStatus) -> str:
    if of.state == "unknown":
        return f"{UNREAD if of.unread_plans else NO_PLAN}, so it is not known whether all is done"
    return _STATES[of.state]


def _left(of: FolderStatus) -> str:
    if not of.left:
        return (
            "; further rounds until they are sure enough, or time is up"
            if of.is_open and of.state == "running"
            else ""
        )
    left = f"; {of.left} of {many(of.all, 'measurement')} left"
    if of.left_s is None:
        return f"{left}, nobody knows how long that takes"
    return f"{left}, about {words(of.left_s)} by what the others took"


def _details(of: FolderStatus) -> list[str]:
    said = [f"trials and groups: {_counts(of)}"]
    if of.parts:
        said.append(
            f"it holds part {listed(of.parts)} of a plan, and the other parts are not counted; "
            "gpubench merge puts them together"
        )
    if len(of.rounds) > 1 or of.is_open:
        parts = [
            f"round {one.number}: {one.done} done"
            + (f", {one.failed} failed" if one.failed else "")
            + (f", {one.left} left" if one.left else "")
            for one in of.rounds
        ]
        said.append("; ".join(parts))
    if of.firstless:
        does = "doesn't" if of.firstless == 1 else "don't"
        said.append(
            f"{many(of.firstless, 'measurement')} of further rounds {does} count: "
            "no record of their first round can be read"
        )
    said += _holder(of)
    said += [f"now: {one.label}{f', {one.who}' if one.who else ''} ({one.log})" for one in of.now]
    said += [f"{one.status}: {one.label}: {one.reason}" for one in of.bad[:MOST_NAMED]]
    more = len(of.bad) - MOST_NAMED
    said += [f"and {more} more that ended badly"] if more > 0 else []
    if of.last_start:
        said.append(f"the last one that has ended began at {of.last_start}")
    if of.state == "unfinished":
        said.append("the same gpubench sweep goes on with what is left")
    elif of.bad and of.state in ("failed", "unknown"):
        said.append("gpubench sweep … --retry failed,timeout runs those again")
    if of.state == "unknown":
        said.append(
            "the sweep of the plan that can't be read stores it anew and does what is left"
            if of.unread_plans
            else "the sweep that wrote it, given again, stores its plan anew and does what is left"
        )
    return said


def _counts(of: FolderStatus) -> str:
    told = [f"{of.counts[name]} {WORDS.get(name, name)}" for name in ORDER if of.counts[name]]
    return ", ".join(told) or "none yet"


def _holder(of: FolderStatus) -> list[str]:
    holder = of.holder
    if holder is None:
        return []
    if holder.fate == "dead":
        return [f"{holder.who} was writing into it and has died; the next sweep goes on in its place"]
    heard = f"last heard of {words(holder.quiet_s)} ago"
    if not holder.is_alive:
        return [f"{holder.who} was writing into it and is probably dead: {heard}"]
    if holder.fate == "unknown":
        return [f"at work in it: {holder.who}, {heard}"]
    if holder.began_s is None:
        return [f"at work in it: {holder.who}"]
    began = datetime.datetime.fromtimestamp(holder.began_s).strftime("%Y-%m-%d %H:%M:%S")
    return [f"at work in it: {holder.who}, since {began} ({words(max(0.0, time.time() - holder.began_s))})"]


def as_json(of: FolderStatus) -> dict[str, Any]:
    """One folder as an object of JSON."""
    holder = of.holder
    return {
        "folder": str(of.folder),
        "state": of.state,
        "counts": {name: of.counts[name] for name in ORDER},
        "rounds": [
            {"round": one.number, "done": one.done, "failed": one.failed, "left": one.left}
            for one in of.rounds
        ],
        "rounds_open": of.is_open,
        "left": of.left,
        "left_s": of.left_s,
        "without_first_round": of.firstless,
        "parts": of.parts,
        "unread_plans": of.unread_plans,
        "has_plan": of.has_plan,
        "failed": [{"label": one.label, "status": one.status, "reason": one.reason} for one in of.bad],
        "running": [
            {"trial_id": one.trial_id, "label": one.label, "log": str(one.log), "who": one.who or None}
            for one in of.now
        ],
        "holder": None
        if holder is None
        else {
            "who": holder.who,
            "fate": holder.fate,
            "alive": holder.is_alive,
            "quiet_s": holder.quiet_s,
            "began_s": holder.began_s,
        },
        "last_start": of.last_start or None,
    }
