"""Who writes into a results folder: a file that exists as long as its sweep does, with a heartbeat.

The file comes into being whole: it is written aside and then linked, so that a full disk leaves none. It names its
holder. A holder in this boot and this pid namespace is looked up; of any other one only its heartbeat tells, and that
is told by the clock of whoever looks: has it changed while I looked? Clocks of two hosts are never compared.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import socket
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

from gpubench.basics.errors import UnusableError
from gpubench.basics.linux import pid_namespace
from gpubench.basics.regular_file import read_regular

HEARTBEAT_S = 30.0
"""How often a holder shows that it is alive."""
STALE_S = 300.0
"""A holder that shows no sign of life for so long has died."""
CONFIRM_S = 2 * HEARTBEAT_S + 5
"""How long somebody looks who finds a heartbeat that old: its age is another clock's word."""
POLL_S = 0.5
NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
"""What file systems answer that know no hard links."""

Fate = Literal["alive", "dead", "unknown"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Holder:
    """The process that holds a folder."""

    host: str
    boot: str
    """The kernel's id of this boot; empty where it tells none."""
    pid_namespace: str
    """Process ids mean something only inside it; empty where the kernel tells none."""
    pid: int
    began: str | None
    """When the process began, in clock ticks since the boot: ids are used again."""

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"

    @property
    def fate(self) -> Fate:
        """What can be known at once: of processes of this boot and this pid namespace all, of others nothing."""
        if not self.boot or (self.boot, self.pid_namespace) != (_boot(), pid_namespace()):
            return "unknown"
        return "alive" if _began(self.pid) == self.began else "dead"


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
    path = folder / ".lock"
    try:
        text = read_regular(path).decode("utf-8", errors="replace")
        quiet_s = max(0.0, time.time() - path.stat().st_mtime)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnusableError(f"{path} can't be read: {error.strerror}") from None
    seen = _Seen(text=text, beat_ns=0, quiet_s=quiet_s)
    holder = seen.holder
    fate: Fate = holder.fate if holder else "unknown"
    began_s = _began_s(holder) if holder and fate == "alive" else None
    return Holding(who=str(seen), fate=fate, quiet_s=quiet_s, began_s=began_s)


class FolderLock:
    """The lock of one folder. `say`: told, in whole lines, what is waited for and what was taken over.

    `owner`: what takes it, as those lines call it.
    """

    def __init__(
        self,
        path: Path,
        *,
        say: Callable[[str], None],
        owner: str = "sweep",
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._path = path
        self._say = say
        self._owner = owner
        self._clock = clock
        self._sleep = sleep
        self._own = Holder(
            host=socket.gethostname(),
            boot=_boot(),
            pid_namespace=pid_namespace(),
            pid=os.getpid(),
            began=_began(os.getpid()),
        )
        self._held = False
        self._last_beat = 0.0

    def take(self, *, wait: bool = False) -> None:
        """Takes the folder. Raises UnusableError while another sweep holds it; with `wait`, waits for its end."""
        folder = self._path.parent
        told = False
        while not self._create():
            seen = self._look()
            if seen is None:
                continue  # it went meanwhile
            fate = seen.holder.fate if seen.holder else "unknown"
            if fate == "dead":
                self._say(
                    f"{seen} was writing into {folder} and has died; this {self._owner} goes on in its place"
                )
                self._set_aside(seen)
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
                    f"{seen} has shown no sign of life; this {self._owner} goes on in {folder} in its place"
                )
                self._set_aside(seen)
            elif not wait:
                raise self._refusal(seen)
        self._held = True
        self._last_beat = self._clock()

    def beat(self) -> None:
        """Shows that the holder is alive. Call it often; it acts every half minute.

        Raises UnusableError where the folder is no longer this sweep's.
        """
        now = self._clock()
        if not self._held or now - self._last_beat <= HEARTBEAT_S:
            return
        self._last_beat = now
        self.check()
        with contextlib.suppress(OSError):  # a file system that stumbles is asked again in half a minute
            os.utime(self._path)

    def check(self) -> None:
        """Raises UnusableError where the folder is no longer this sweep's: it was removed, or taken over."""
        if not self._held:
            return
        seen = self._look()
        if seen is None:
            raise UnusableError(
                f"{self._path.parent} was removed, or its lock was, while this {self._owner} wrote into it: what had "
                f"been stored there may be gone; this {self._owner} ends"
            )
        if seen.holder != self._own:
            raise UnusableError(f"another sweep ({seen}) has taken {self._path.parent} over; this one ends")

    def release(self) -> None:
        """Gives the folder up. Safe to call twice, and where another sweep has taken it over."""
        if self._held:
            self._held = False
            with contextlib.suppress(
                OSError, UnusableError
            ):  # left behind, it is a dead holder's, and that is told
                seen = self._look()
                if seen is not None and seen.holder == self._own:
                    self._path.unlink(missing_ok=True)

    # ---- the file ----

    def _create(self) -> bool:
        """Whether the file could be made: False where there is one."""
        aside = self._aside("new")
        try:
            with aside.open("x", encoding="utf-8") as file:
                json.dump(asdict(self._own), file)
                file.flush()
                os.fsync(file.fileno())
            try:
                os.link(aside, self._path)
            except FileExistsError:
                return False
            except OSError as error:
                if error.errno not in NO_LINKS:
                    raise
                return self._create_in_place()
        except OSError as error:
            raise UnusableError(f"{self._path} can't be written: {error.strerror}") from None
        finally:
            with contextlib.suppress(OSError):
                aside.unlink(missing_ok=True)
        return True

    def _create_in_place(self) -> bool:
        """Creates the file on a file system without links: its readers may find half a file, which counts as held."""
        try:
            with self._path.open("x", encoding="utf-8") as file:
                json.dump(asdict(self._own), file)
        except FileExistsError:
            return False
        except OSError:
            self._path.unlink(missing_ok=True)  # made just now, by this call
            raise
        return True

    def _aside(self, what: str) -> Path:
        """A name beside the lock that no other process uses: process ids are not enough across pid namespaces."""
        return self._path.with_name(f"{self._path.name}.{secrets.token_hex(6)}.{what}")

    def _look(self) -> _Seen | None:
        """What stands there now; None where there is no lock."""
        try:
            text = read_regular(self._path).decode("utf-8", errors="replace")
            beat_ns = self._path.stat().st_mtime_ns
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UnusableError(f"{self._path} can't be read: {error.strerror}") from None
        return _Seen(text=text, beat_ns=beat_ns, quiet_s=self._file_time() - beat_ns / 1e9)

    def _file_time(self) -> float:
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

    def _changes(self, seen: _Seen, limit_s: float | None) -> bool:
        """Whether the lock goes, or its heartbeat moves, within so many seconds; None: looks until it does."""
        began = self._clock()
        while limit_s is None or self._clock() - began < limit_s:
            self._sleep(POLL_S)
            now = self._look()
            if now is None or (now.text, now.beat_ns) != (seen.text, seen.beat_ns):
                return True
            if now.holder is not None and now.holder.fate == "dead":
                return True
        return False

    def _set_aside(self, stale: _Seen) -> None:
        """Moves a stale lock away. Where another sweep has replaced it in the meantime, that one gets it back."""
        aside = self._aside("stale")
        try:
            self._path.rename(aside)
        except FileNotFoundError:
            return
        try:
            if aside.read_text(encoding="utf-8", errors="replace") != stale.text:
                with contextlib.suppress(FileExistsError):
                    os.link(aside, self._path)
        finally:
            aside.unlink(missing_ok=True)

    # ---- words ----

    def _refusal(self, seen: _Seen) -> UnusableError:
        return UnusableError(
            f"another sweep writes into {self._path.parent} ({seen}); "
            "--wait waits for its end, or name another folder with --out"
        )

    def _waits(self, seen: _Seen, fate: Fate, quiet_s: float, *, wait: bool) -> str:
        if fate == "alive":
            return f"waiting until {seen} has ended, which writes into {self._path.parent}"
        limit = CONFIRM_S if quiet_s >= STALE_S else STALE_S
        until = "waiting until it ends" if wait else "looking"
        return (
            f"{seen} holds {self._path.parent} and was last heard of {quiet_s:.0f} s ago: {until}; "
            f"without a sign of life for {limit:.0f} s more it counts as dead"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Seen:
    """A lock as somebody found it."""

    text: str
    beat_ns: int
    quiet_s: float
    """Age of the heartbeat by the file system's clock, in seconds."""

    @property
    def holder(self) -> Holder | None:
        """None where the file tells none: of another version, or damaged."""
        try:
            told: Any = json.loads(self.text)
            found = {field.name: told[field.name] for field in fields(Holder)}
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        return Holder(**found)

    def __str__(self) -> str:
        if self.holder is not None:
            return str(self.holder)
        try:
            told = json.loads(self.text)
            return f"process {told['pid']} on {told['host']}"
        except (ValueError, KeyError, TypeError, RecursionError):
            return "a sweep that left no name"


def _began_s(holder: Holder) -> float | None:
    """When a process of this boot began, in seconds of the epoch."""
    try:
        up_s = float(Path("/proc/uptime").read_text().split()[0])
        ticks = int(holder.began or "")
    except (OSError, ValueError):
        return None
    return time.time() - up_s + ticks / os.sysconf("SC_CLK_TCK")


def _boot() -> str:
    path = Path("/proc/sys/kernel/random/boot_id")
    return path.read_text().strip() if path.exists() else ""


def _began(pid: int) -> str | None:
    """When process `pid` began, in clock ticks since the boot; None where there is none, or only its zombie."""
    try:
        facts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if facts[0] in ("Z", "X") else facts[19]
