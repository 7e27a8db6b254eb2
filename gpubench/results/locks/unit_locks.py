"""Which unit of a plan is whose, in which round, while several sweeps work through it together.

A unit's lock lies beside its records, in a folder that this host changes when it makes the lock. So a network's file
system reads that folder anew: a record that another host stored before it gave the unit back is seen.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gpubench.basics.errors import UnusableError
from gpubench.basics.rights import why
from gpubench.results.locks.lock_file import CONFIRM_S, HEARTBEAT_S, STALE_S, LockFile, Seen
from gpubench.store.holder import Holder

Answer = Literal["mine", "theirs", "quiet"]
"""Whose a unit is. `quiet`: somebody's who has not been heard of for a while, and may have died."""


@dataclass(frozen=True, slots=True)
class Lot:
    """What is taken as one: a unit, or units that stay on one machine, in one round, for one kind of machine."""

    unit_id: str
    """Of the first of them."""
    round: int
    machine: str
    """Kind of machine: `Record.machine_key`. Another kind measures the plan for itself."""

    def path(self, folder: Path) -> Path:
        kind = hashlib.sha256(self.machine.encode()).hexdigest()[:8]
        return folder / "records" / self.unit_id[1:3] / f".{self.unit_id}-round-{self.round}-{kind}.lock"


class UnitLocks:
    """The lots of one folder, as one sweep takes them: one at a time. `say`: told of what is taken over."""

    def __init__(
        self,
        folder: Path,
        *,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._say = say
        self._clock = clock
        self._own = Holder.here()
        self._mine: LockFile | None = None
        self._lot: Lot | None = None
        self._last_beat = 0.0
        self._there: set[str] = set()
        self._met: dict[Path, tuple[Seen, float]] = {}
        """Locks of holders about whom nothing is known but heartbeats: as they were when their last change was seen."""

    def take(self, lot: Lot) -> Answer:
        """Takes a lot, and gives the one back that was taken before. `mine` where it is this sweep's already, too."""
        if lot == self._lot:
            return "mine"
        self.give_back()
        file = self._file(lot)
        answer = self._take(file)
        if answer == "mine":
            self._mine, self._lot, self._last_beat = file, lot, self._clock()
        return answer

    def is_taken(self, lot: Lot) -> bool:
        """Whether anybody else has it now, dead or alive."""
        return lot != self._lot and lot.path(self._folder).exists()

    def look_around(self) -> None:
        """Notes which lots are taken, all at once: to ask after each of thousands by itself takes long."""
        self._there = {path.name for path in self._folder.glob("records/*/.*.lock")}

    def was_taken(self, lot: Lot) -> bool:
        """Whether somebody else had it when this sweep last looked around."""
        return lot != self._lot and lot.path(self._folder).name in self._there

    def give_back(self) -> None:
        """Gives up all that was taken last."""
        if self._mine is not None:
            self._mine.remove(self._own)
        self._mine = self._lot = None

    def beat(self) -> None:
        """Shows that this sweep is still at it. Call it often; it acts every half minute."""
        if self._clock() - self._last_beat <= HEARTBEAT_S:
            return
        if self._mine is not None:
            self._last_beat = self._clock()
            self._mine.touch()

    def _file(self, lot: Lot) -> LockFile:
        path = lot.path(self._folder)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UnusableError(f"{path.parent} can't be made: {why(error, path.parent)}") from None
        return LockFile(path)

    def _take(self, file: LockFile) -> Answer:
        while not file.create(self._own):
            seen = file.look()
            if seen is None:
                return "quiet"  # it was given back just now, or a cache does not show it yet
            fate = seen.holder.fate if seen.holder else "unknown"
            if fate == "alive":
                return "theirs"
            if fate == "unknown" and not self._is_stale(file.path, seen):
                return "quiet" if seen.quiet_s > CONFIRM_S else "theirs"
            self._say(f"{seen} has died while it measured; this sweep measures it in its place")
            file.set_aside(seen)
        self._met.pop(file.path, None)
        return "mine"

    def _is_stale(self, path: Path, seen: Seen) -> bool:
        """Whether its heartbeat has stood still long enough, by this host's clock."""
        then, since = self._met.get(path, (None, 0.0))
        if then is None or (then.text, then.beat_ns) != (seen.text, seen.beat_ns):
            self._met[path] = seen, self._clock()
            return False
        limit = CONFIRM_S if seen.quiet_s >= STALE_S else STALE_S
        return self._clock() - since >= limit


def takers(folder: Path) -> dict[str, str]:
    """Id of a unit that somebody is at -> who; of units that are taken as one, that of the first. Writes nothing."""
    found = {}
    for path in sorted(folder.glob("records/*/.*.lock")):
        seen = LockFile(path).glance()
        if seen is not None and not (seen.holder is not None and seen.holder.fate == "dead"):
            found[path.name[1:].partition("-round-")[0]] = str(seen)
    return found


def remove_dead(folder: Path) -> None:
    """Removes the locks of owners that are known to be dead: of units that are done nobody else asks after them."""
    for path in folder.glob("records/*/.*.lock"):
        file = LockFile(path)
        seen = file.glance()
        if seen is not None and seen.holder is not None and seen.holder.fate == "dead":
            file.set_aside(seen)


def remove_all(folder: Path) -> None:
    """Removes the locks of all units. Only for who knows that nobody else works in the folder."""
    for path in folder.glob("records/*/.*.lock"):
        path.unlink(missing_ok=True)
