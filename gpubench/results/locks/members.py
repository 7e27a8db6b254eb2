"""Who works through a folder together: a file each, as long as they do.

Whoever leaves removes its own file first and looks for others afterwards. Of two that leave at once at least one sees
nobody else, so that the last one knows that it is.
"""

from __future__ import annotations

import contextlib
import functools
import secrets
from collections.abc import Iterator
from pathlib import Path

from gpubench.basics.errors import UnusableError
from gpubench.basics.rights import why
from gpubench.results.locks.lock_file import STALE_S, LockFile, Seen
from gpubench.store.holder import Fate, Holder


class Members:
    """The members of one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / ".joined"
        self._own: LockFile | None = None

    def enter(self, own: Holder) -> None:
        """Makes this process a member. Raises UnusableError where the folder can't be written."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UnusableError(f"{self._folder} can't be made: {why(error, self._folder)}") from None
        file = LockFile(self._folder / f"{own.pid}-{secrets.token_hex(6)}")
        if not file.create(own):  # 48 random bits
            raise UnusableError(f"{file.path} exists already: start once more")
        self._own = file

    def beat(self, own: Holder) -> None:
        """Shows that this process works. Whom others took for dead, in a long silence, is a member again."""
        if self._own is not None:
            self._own.touch()
            if self._own.look() is None:
                self._own.create(own)

    def leave(self) -> None:
        """Takes this process's own file away. Safe to call twice."""
        if self._own is not None:
            with contextlib.suppress(OSError):  # left behind, it is a dead member's
                self._own.path.unlink(missing_ok=True)
            self._own = None

    def others(self) -> list[Seen]:
        """All other members that are not known to be dead, by their names."""
        found = []
        now = functools.cache(LockFile(self._folder / "clock").file_time)
        for file in self._files():
            seen = file.look(now)
            if seen is None or (self._own is not None and file.path == self._own.path):
                continue
            if _fate(seen) == "dead":
                file.set_aside(seen)
            else:
                found.append(seen)
        return found

    def fate(self) -> Fate:
        """Of all of them together: dead where none is left, alive where one is known to live. Writes nothing."""
        fates = {_fate(seen) for file in self._files() if (seen := file.glance()) is not None}
        if "alive" in fates:
            return "alive"
        return "unknown" if "unknown" in fates else "dead"

    def names(self) -> list[str]:
        """`process 7 on host`, of each that is not known to be dead. Writes nothing."""
        every = [seen for file in self._files() if (seen := file.glance()) is not None]
        return [str(seen) for seen in every if _fate(seen) != "dead"]

    def _files(self) -> Iterator[LockFile]:
        try:
            paths = sorted(self._folder.iterdir())
        except FileNotFoundError:
            return
        except OSError as error:
            raise UnusableError(f"{self._folder} can't be read: {why(error, self._folder)}") from None
        for path in paths:
            if "." not in path.name:  # not one that is just being made, or taken away
                yield LockFile(path)


def _fate(seen: Seen) -> Fate:
    """One that was not heard of for minutes is taken for dead: should it live after all, it joins again."""
    fate = seen.holder.fate if seen.holder else "unknown"
    return "dead" if fate == "unknown" and seen.quiet_s >= STALE_S else fate
