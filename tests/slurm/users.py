"""Users whom only the tests' own SLURM knows, and a way for them to the interpreter that runs the tests.

They stand in a passwd and a group file that its servers see in place of the machine's, in mount namespaces of their
own: nothing of the machine is changed. Where the interpreter lies in a folder that only this user may enter (a root's
home, a folder of mktemp), the servers see that folder with nothing in it but what is needed.
"""

from __future__ import annotations

import os
import shlex
import stat
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import gpubench

GROUP, GROUP_ID = "lab", 61000


@dataclass(frozen=True, kw_only=True, slots=True)
class User:
    """A user without rights, with a home."""

    name: str
    uid: int
    home: Path

    @property
    def before(self) -> Sequence[str]:
        """What stands before a command that this user is to run."""
        return ("setpriv", f"--reuid={self.uid}", f"--regid={GROUP_ID}", "--clear-groups", "--no-new-privs")


def made(folder: Path) -> list[User]:
    """Two users in one group, in files and homes below `folder`; only root can make them."""
    users = [User(name=name, uid=uid, home=folder / name) for name, uid in (("ada", 61001), ("bo", 61002))]
    passwd = "".join(f"{one.name}:x:{one.uid}:{GROUP_ID}::{one.home}:/bin/bash\n" for one in users)
    (folder / "passwd").write_text(Path("/etc/passwd").read_text() + passwd)
    (folder / "group").write_text(Path("/etc/group").read_text() + f"{GROUP}:x:{GROUP_ID}:\n")
    for one in users:
        one.home.mkdir(mode=0o755)
        os.chown(one.home, one.uid, GROUP_ID)
    return users


def mounts(folder: Path) -> list[str]:
    """Shell commands, for a mount namespace of its own, that show a server these users, and them the interpreter."""
    steps = [f"mount --bind {folder}/{name} /etc/{name}" for name in ("passwd", "group")]
    needed = {
        Path(one).resolve() for one in (sys.prefix, sys.base_prefix, Path(gpubench.__file__).parents[1])
    }
    needed |= {Path(__file__).resolve().parents[1]}
    closed = {one: found for one in needed if (found := _closed_above(one)) is not None}
    for number, one in enumerate(closed):  # aside first: the covers hide them
        aside = shlex.quote(str(folder / f"needed{number}"))
        steps += [f"mkdir -p {aside}", f"mount --bind {shlex.quote(str(one))} {aside}"]
    for cover in sorted(set(closed.values())):
        steps.append(f"mount -t tmpfs -o mode=755 tmpfs {shlex.quote(str(cover))}")
    for number, one in enumerate(closed):
        place = shlex.quote(str(one))
        steps += [f"mkdir -p {place}", f"mount --bind {shlex.quote(str(folder / f'needed{number}'))} {place}"]
    return steps


def _closed_above(path: Path) -> Path | None:
    """The highest folder above it that others may not enter."""
    for above in [*reversed(path.parents), path]:
        if not above.stat().st_mode & stat.S_IXOTH:
            return above
    return None
