"""A file that says who works on something, as long as they do: made by one alone, with a heartbeat.

It comes into being whole: it is written aside and then linked, so that a full disk leaves none. Making it is the one
thing that a network's file system decides for all hosts at once; nothing here relies on what lies in a cache, on
O_APPEND, or on clocks that agree.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from gpubench.basics.errors import UnusableError
from gpubench.basics.regular_file import read_regular
from gpubench.basics.rights import why
from gpubench.store.holder import Holder, read_holder

HEARTBEAT_S = 30.0
"""How often a holder shows that it is alive."""
STALE_S = 300.0
"""A holder that shows no sign of life for so long has died."""
CONFIRM_S = 2 * HEARTBEAT_S + 5
"""How long somebody looks who finds a heartbeat that old: its age is another clock's word."""
MOMENT_S = 60.0
"""What takes a moment is over by then, or its process has died."""
MOMENT_POLL_S = 0.05
NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
"""What file systems answer that know no hard links."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """A lock as somebody found it."""

    text: str
    beat_ns: int
    quiet_s: float
    """Age of the heartbeat by the file system's clock, in seconds."""

    @property
    def holder(self) -> Holder | None:
        """None where the file tells none: of another version, or damaged."""
        return read_holder(self.text)

    def __str__(self) -> str:
        return str(self.holder) if self.holder is not None else "a sweep that left no name"


class LockFile:
    """One such file. Raises UnusableError where it can't be written or read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def create(self, own: Holder) -> bool:
        """Whether it could be made: False where there is one."""
        aside = self._aside("new")
        try:
            with aside.open("x", encoding="utf-8") as file:
                json.dump(asdict(own), file)
                file.flush()
                os.fsync(file.fileno())
            try:
                os.link(aside, self.path)
            except FileExistsError:
                # Over a network a request may be sent twice, and the second answer is that of the first.
                return aside.stat().st_nlink > 1
            except OSError as error:
                if error.errno not in NO_LINKS:
                    raise
                return self._create_in_place(own)
        except OSError as error:
            raise UnusableError(f"{self.path} can't be written: {why(error, self.path.parent)}") from None
        finally:
            with contextlib.suppress(OSError):
                aside.unlink(missing_ok=True)
        return True

    def _create_in_place(self, own: Holder) -> bool:
        """Creates it on a file system without links: its readers may find half a file, which counts as held."""
        try:
            with self.path.open("x", encoding="utf-8") as file:
                json.dump(asdict(own), file)
        except FileExistsError:
            return False
        except OSError:
            self.path.unlink(missing_ok=True)  # made just now, by this call
            raise
        return True

    def look(self, now: Callable[[], float] | None = None) -> Seen | None:
        """What stands there now; None where there is none. `now`: what the file system takes for now, for who looks at
        many files at once; None: it is asked, by a file that is made for that."""
        return self._seen(now or self.file_time)

    def glance(self) -> Seen | None:
        """The same for who writes nothing there: the age is by this host's clock."""
        return self._seen(time.time)

    def _seen(self, clock: Callable[[], float]) -> Seen | None:
        try:
            text = read_regular(self.path).decode("utf-8", errors="replace")
            beat_ns = self.path.stat().st_mtime_ns
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UnusableError(f"{self.path} can't be read: {why(error, self.path)}") from None
        return Seen(text=text, beat_ns=beat_ns, quiet_s=max(0.0, clock() - beat_ns / 1e9))

    def touch(self) -> None:
        """A heartbeat. A file system that stumbles is asked again with the next one."""
        with contextlib.suppress(OSError):
            os.utime(self.path)

    def remove(self, own: Holder) -> None:
        """Removes it where it is `own`. Left behind, it is a dead holder's, and that is told."""
        with contextlib.suppress(OSError, UnusableError):
            seen = self.look()
            if seen is not None and seen.holder == own:
                self.path.unlink(missing_ok=True)

    def set_aside(self, stale: Seen) -> None:
        """Moves a stale one away. Where somebody has replaced it in the meantime, they get it back."""
        aside = self._aside("stale")
        try:
            self.path.rename(aside)
        except FileNotFoundError:
            return
        except OSError as error:
            raise UnusableError(f"{self.path} can't be taken away: {why(error, self.path.parent)}") from None
        try:
            if aside.read_text(encoding="utf-8", errors="replace") != stale.text:
                try:
                    os.link(aside, self.path)
                except FileExistsError:
                    pass
                except OSError as error:
                    if error.errno not in NO_LINKS:
                        raise
                    aside.rename(self.path)
        except OSError as error:
            raise UnusableError(f"{self.path} can't be given back: {why(error, self.path.parent)}") from None
        finally:
            aside.unlink(missing_ok=True)

    def _aside(self, what: str) -> Path:
        """A name beside it that no other process uses: process ids are not enough across pid namespaces."""
        return self.path.with_name(f"{self.path.name}.{secrets.token_hex(6)}.{what}")

    def file_time(self) -> float:
        """What the file system takes for now, in its own seconds: of a network's, that is the server's clock."""
        aside = self._aside("now")
        try:
            aside.touch()
            return aside.stat().st_mtime
        except OSError:
            return time.time()  # only how long to look for hangs on it
        finally:
            with contextlib.suppress(OSError):
                aside.unlink(missing_ok=True)


@contextlib.contextmanager
def for_a_moment(path: Path, sleep: Callable[[float], None] = time.sleep) -> Iterator[None]:
    """Holds a lock for what takes a moment; waits for whoever else does. One that has died is not waited for.

    Raises UnusableError where it can't be written.
    """
    file, own = LockFile(path), Holder.here()
    while not file.create(own):
        seen = file.look()
        if seen is not None and (seen.quiet_s > MOMENT_S or (seen.holder and seen.holder.fate == "dead")):
            file.set_aside(seen)
        else:
            sleep(MOMENT_POLL_S)
    try:
        yield
    finally:
        file.remove(own)
