"""One attack from beginning to end: start, wait for the moment, strike, wait, look, lift, start again, look again."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace

import found as finding
import gpus
import psutil
import roles
from found import Found, Start
from kinds import Attack, Damage, Strike
from room import Room
from sweeps import TIMEOUT_S

POLL_S = 0.02
NEXT_S = 90.0
"""Within what the next start must have ended."""
RETRY = ("--retry", "failed,timeout")
SETTLE_S = 3.0
"""How long others' short-lived segments may take to go before shared memory counts as left."""


TRIES = 4


def attack_until_struck(attack: Attack, patience: float = 1.0) -> Found:
    """Makes it again with half the delay, up to four times in all, where the sweep was quicker than the moment.

    How quick a sweep is, the machine decides.
    """
    for _ in range(TRIES - 1):
        found = attack_once(attack, patience)
        if found.struck:
            return found
        attack = replace(attack, delay_s=round(attack.delay_s / 2, 3))
    return attack_once(attack, patience)


def attack_once(attack: Attack, patience: float = 1.0) -> Found:
    """Makes the attack in folders of its own, and removes them and every process at the end.

    `patience` stretches all limits on a busy machine. Raises NoNamespacesError where the attack needs one.
    """
    place = attack.kind.place if isinstance(attack.kind, Damage) and attack.kind.fault != "removed" else None
    room = Room(place)
    try:
        return _attacked(attack, room, patience)
    finally:
        roles.end(room.token)
        room.close()


def _attacked(attack: Attack, room: Room, patience: float) -> Found:
    limit_s = attack.limit_s * patience
    segments = finding.shared_memory()
    driver = gpus.look() if attack.sweep.gpus else None
    seen: set[int] = set()
    options = ("--timeout", f"{TIMEOUT_S}s", *attack.sweep.options)

    sweep = room.start(options, "first")
    began = time.monotonic()
    struck = _await_moment(attack, room, sweep, seen, limit_s)
    before = finding.folder(room.results)
    struck = struck and _strike(attack, room, sweep)
    first = _ending(room, sweep, began, "first", seen, limit_s)
    processes = [roles.told(one) for one in roles.left(room.token)]
    roles.end(room.token)
    if struck and isinstance(attack.kind, Damage):
        room.lift(attack.kind)
    middle = finding.folder(room.results)

    began = time.monotonic()
    again = room.start((*RETRY, *options), "second")
    second = _ending(room, again, began, "second", seen, NEXT_S * patience)
    late = [roles.told(one) for one in roles.left(room.token)]
    roles.end(room.token)
    return Found(
        attack=attack,
        struck=struck,
        first=first,
        second=second,
        before=before,
        middle=middle,
        last=finding.folder(room.results),
        processes=processes,
        late_processes=late,
        files=finding.litter(room),
        shared_memory=_left_segments(segments, seen),
        gpus=gpus.left(driver) if driver is not None else (),
    )


def _await_moment(
    attack: Attack, room: Room, sweep: subprocess.Popen[bytes], seen: set[int], limit_s: float
) -> bool:
    """Waits until so many units are stored, the process to strike is there, and the delay is over.

    False where the sweep ends before.
    """
    own = psutil.Process(sweep.pid)

    def has_come() -> bool:
        if len(list(room.results.glob("records/*/[!.]*.json"))) < attack.stored:
            return False
        if isinstance(attack.kind, Strike):
            return bool(roles.of_role(own, attack.kind.role))
        return room.results.exists() and (attack.sweep.name != "images" or bool(roles.of_role(own, "maker")))

    if not _wait(has_come, sweep, room, seen, limit_s):
        return False
    over = time.monotonic() + attack.delay_s
    return _wait(lambda: time.monotonic() >= over, sweep, room, seen, limit_s)


def _strike(attack: Attack, room: Room, sweep: subprocess.Popen[bytes]) -> bool:
    """Does it; False where nobody of that role is there just now."""
    if isinstance(attack.kind, Damage):
        room.damage(attack.kind)
        return True
    victims = roles.of_role(psutil.Process(sweep.pid), attack.kind.role)
    if not victims:
        return False
    victim = victims[attack.pick % len(victims)]
    try:
        victim.send_signal(attack.kind.signal)  # psutil compares the time at which it began: never another's
        if attack.kind.role == "parent" and attack.kind.signal == signal.SIGSTOP:
            time.sleep(attack.hold_s)
            victim.send_signal(signal.SIGCONT)
    except psutil.NoSuchProcess:
        return False
    return True


def _ending(
    room: Room, sweep: subprocess.Popen[bytes], began: float, said: str, seen: set[int], limit_s: float
) -> Start:
    """Waits for the end of a start; kills it where that does not come."""
    _wait(lambda: False, sweep, room, seen, limit_s)
    code = sweep.poll()
    seconds = time.monotonic() - began
    if code is None:
        with contextlib.suppress(ProcessLookupError):
            sweep.kill()
        sweep.wait()
    out, err = ((room.home / f"{said}.{ending}").read_text(errors="replace") for ending in ("out", "err"))
    return Start(code=code, seconds=seconds, out=out, err=err)


def _wait(
    until: Callable[[], bool], sweep: subprocess.Popen[bytes], room: Room, seen: set[int], limit_s: float
) -> bool:
    """Looks on until it is so; False where the sweep has ended before, or time is up. Notes all of its processes."""
    deadline = time.monotonic() + limit_s
    next_look = 0.0
    while sweep.poll() is None and time.monotonic() < deadline:
        if until():
            return True
        if time.monotonic() >= next_look:
            seen |= {process.pid for process in roles.marked(room.token)}
            next_look = time.monotonic() + 0.5
        time.sleep(POLL_S)
    return False


def _left_segments(before: set[str], pids: set[int]) -> list[str]:
    deadline = time.monotonic() + SETTLE_S
    while found := finding.own_segments(finding.shared_memory() - before, pids):
        if time.monotonic() >= deadline:
            return found
        time.sleep(0.1)
    return []
