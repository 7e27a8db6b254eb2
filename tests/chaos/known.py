"""What breaks today, by attack: each with the promise that breaks and the number of the fault behind it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kinds import Attack


@dataclass(frozen=True, kw_only=True, slots=True)
class Known:
    """A promise that is known to break."""

    promise: str
    fault: int
    """Its number in the list of docs/reliability.md."""
    why: str
    kinds: tuple[str, ...] = ()
    """Names of the attacks; empty: every one."""
    sweeps: tuple[str, ...] = ()
    """Names of the sweeps; empty: every one."""
    says: str = ".*"
    """Pattern of what breaks it, in the verdict's words."""

    def covers(self, attack: Attack, promise: str, why: str) -> bool:
        return (
            promise == self.promise
            and re.fullmatch(self.says, why) is not None
            and (not self.kinds or attack.kind.name in self.kinds)
            and (not self.sweeps or attack.sweep.name in self.sweeps)
        )


KNOWN_TO_BREAK: tuple[Known, ...] = (
    Known(
        promise="forgotten",
        fault=1,
        why="a process was killed in the moment in which the C library makes a semaphore",
        says=r"sem\.\w{6}",
    ),
)


def known(attack: Attack, promise: str, why: str) -> Known | None:
    """The entry that lists it; None: it is news. `why`: what breaks the promise."""
    return next((one for one in KNOWN_TO_BREAK if one.covers(attack, promise, why)), None)
