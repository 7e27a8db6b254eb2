"""Who writes into a results folder: one sweep, or several that have joined; a file that exists as long as they do.

It names its holder. A holder in this boot and this pid namespace is looked up, one in a SLURM job is asked after; of
any other only its heartbeat tells, and that is told by the clock of whoever looks: has it changed while I looked?
Clocks of two hosts are never compared.

Sweeps that join hold the folder together: whoever comes first makes the file, all of them show in it that they live,
and the last one that goes takes it away. Who they are stands beside it (`members.py`).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gpubench.basics.errors import UnusableError
from gpubench.results.locks.lock_file import CONFIRM_S, HEARTBEAT_S, STALE_S, LockFile, Seen
from gpubench.results.locks.members import Members
from gpubench.store.holder import Fate, Holder, began_s

POLL_S = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class Holding:
    """Who holds a folder, as far as a look from outside tells."""

    who: str
    """`process 7 on host`."""
    fate: Fate
    quiet_s: float
    """Seconds since it was last heard of, by this host's clock."""
    began_s: float | None
    """When its process began, in seconds of the epoch; None where this host can't know."""

    @property
    def is_alive(self) -> bool:
        """Whether it is taken for alive: of another host's, if its heart has beaten of late."""
        return self.fate == "alive" or (self.fate == "unknown" and self.quiet_s < STALE_S)


def held(folder: Path) -> Holding | None:
    """Who writes into a results folder; None where nobody does. Writes nothing, and waits for nobody."""
    seen = LockFile(folder / ".lock").glance()
    if seen is None:
        return None
    fate = _fate(folder, seen)
    began = began_s(seen.holder) if seen.holder and fate == "alive" else None
    return Holding(who=_who(folder, seen), fate=fate, quiet_s=seen.quiet_s, began_s=began)


class FolderLock:
    """The lock of one folder. `say`: told, in whole lines, what is waited for and what was taken over.

    `owner`: what takes it, as those lines call it. `joins`: whether it is held together with others that join.
    """

    def __init__(
        self,
        path: Path,
        *,
        say: Callable[[str], None],
        owner: str = "sweep",
        joins: bool = False,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._file = LockFile(path)
        self._folder = path.parent
        self._say = say
        self._owner = owner
        self._clock = clock
        self._sleep = sleep
        here = Holder.here()
        self._own = here.joining() if joins else here
        self._members = Members(self._folder) if joins else None
        self._held = False
        self._has_left = False
        """Whether it has gone from the others, who may take the file away at any time now."""
        self._last_beat = 0.0

    def take(self, *, wait: bool = False) -> None:
        """Takes the folder. Raises UnusableError while another sweep holds it; with `wait`, waits for its end."""
        if self._members is not None:
            self._members.enter(self._own)
        try:
            self._take(wait=wait)
        except BaseException:
            if self._members is not None:
                self._members.leave()
            raise
        self._held = True
        self._last_beat = self._clock()

    def _take(self, *, wait: bool) -> None:
        told = False
        while not self._file.create(self._own):
            seen = self._file.look()
            if seen is None:  # it went meanwhile, or a network's cache does not show it yet
                self._sleep(POLL_S)
                continue
            if self._own.joins and seen.holder is not None and seen.holder.joins:
                self._file.touch()
                return
            fate = _fate(self._folder, seen)
            if fate == "dead":
                self._say(
                    f"{seen} was writing into {self._folder} and has died; this {self._owner} goes on in its place"
                )
                self._file.set_aside(seen)
                continue
            quiet_s = max(0.0, seen.quiet_s)
            if not wait and (fate == "alive" or quiet_s < STALE_S):
                raise self._refusal(seen)
            if not told:
                told = True
                self._say(self._waits(seen, fate, quiet_s, wait=wait))
            limit = None if fate == "alive" else CONFIRM_S if quiet_s >= STALE_S else STALE_S
            if not self._changes(seen, limit):
                self._say(
                    f"{seen} has shown no sign of life; this {self._owner} goes on in {self._folder} in its place"
                )
                self._file.set_aside(seen)
            elif not wait:
                raise self._refusal(seen)

    def beat(self) -> None:
        """Shows that the holder is alive. Call it often; it acts every half minute.

        Raises UnusableError where the folder is no longer this sweep's.
        """
        now = self._clock()
        if not self._held or self._has_left or now - self._last_beat <= HEARTBEAT_S:
            return
        self._last_beat = now
        if self._members is not None:
            self._members.beat(self._own)
        self.check()
        self._file.touch()

    def check(self) -> None:
        """Raises UnusableError where the folder is no longer this sweep's: it was removed, or taken over."""
        if not self._held or self._has_left:
            return
        seen = self._file.look()
        if seen is None and self._members is not None and self._folder.is_dir():
            # The last of those before has taken it away just now, or has taken all others for dead.
            self._file.create(self._own)
            seen = self._file.look()
        if seen is None:
            raise UnusableError(
                f"{self._folder} was removed, or its lock was, while this {self._owner} wrote into it: what had "
                f"been stored there may be gone; this {self._owner} ends"
            )
        together = self._own.joins and seen.holder is not None and seen.holder.joins
        if seen.holder != self._own and not together:
            raise UnusableError(f"another sweep ({seen}) has taken {self._folder} over; this one ends")

    def others(self) -> list[str]:
        """Who else works in the folder, as this one has joined them."""
        return [str(seen) for seen in self._members.others()] if self._members and self._held else []

    def leave(self) -> bool:
        """Goes from the others that have joined; whether nobody is left, so that this one makes the tables.

        One that holds the folder alone stays: nobody else is there. `release` gives the folder up.
        """
        if self._members is None or not self._held:
            return self._held
        self._has_left = True
        self._members.leave()
        return not self._members.others()

    def release(self) -> None:
        """Gives the folder up. Safe to call twice, and where another sweep has taken it over."""
        if not self._held:
            return
        if self._members is None:
            self._held = False
            self._file.remove(self._own)
            return
        with contextlib.suppress(UnusableError, OSError):  # what is left behind is of members that are gone
            if self.leave():
                seen = self._file.look()
                if seen is not None and seen.holder is not None and seen.holder.joins:
                    self._file.remove(seen.holder)
        self._held = False

    def abandon(self) -> None:
        """The same without asking after others: a file that stays is that of members who are gone."""
        if self._members is None:
            self.release()
        else:
            self._members.leave()
            self._held = False

    def _changes(self, seen: Seen, limit_s: float | None) -> bool:
        """Whether the lock goes, or its heartbeat moves, within so many seconds; None: looks until it does."""
        began = self._clock()
        while limit_s is None or self._clock() - began < limit_s:
            self._sleep(POLL_S)
            now = self._file.look()
            if now is None or (now.text, now.beat_ns) != (seen.text, seen.beat_ns):
                return True
            if _fate(self._folder, now) == "dead":
                return True
        return False

    # ---- words ----

    def _refusal(self, seen: Seen) -> UnusableError:
        if seen.holder is not None and seen.holder.joins:
            return UnusableError(
                f"{self._folder} is worked through by {_who(self._folder, seen)}; --join works with them, "
                "--wait waits for their end, or name another folder with --out"
            )
        return UnusableError(
            f"another sweep writes into {self._folder} ({seen}); "
            "--wait waits for its end, or name another folder with --out"
        )

    def _waits(self, seen: Seen, fate: Fate, quiet_s: float, *, wait: bool) -> str:
        if fate == "alive":
            return f"waiting until {_who(self._folder, seen)} has ended, which writes into {self._folder}"
        limit = CONFIRM_S if quiet_s >= STALE_S else STALE_S
        until = "waiting until it ends" if wait else "looking"
        return (
            f"{seen} holds {self._folder} and was last heard of {quiet_s:.0f} s ago: {until}; "
            f"without a sign of life for {limit:.0f} s more it counts as dead"
        )


def _fate(folder: Path, seen: Seen) -> Fate:
    """Whether whoever holds the folder lives: of sweeps that have joined, whether any of them does."""
    if seen.holder is None:
        return "unknown"
    return Members(folder).fate() if seen.holder.joins else seen.holder.fate


def _who(folder: Path, seen: Seen) -> str:
    """`process 7 on host`, or `2 sweeps (process 7 on host, process 8 on host)` of those that have joined."""
    names = Members(folder).names() if seen.holder and seen.holder.joins else []
    if not names:
        return str(seen)
    what = "a sweep" if len(names) == 1 else f"{len(names)} sweeps"
    named = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"{what} ({named})"
