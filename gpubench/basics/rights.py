"""Why a file can't be used, with what to do where it is another user's."""

from __future__ import annotations

import errno
import os
import pwd
from pathlib import Path


def why(error: OSError, path: Path) -> str:
    """The system's words for what went wrong with `path`; behind them whose it is, if it is another user's.

    Users who work in one folder need files there that their group may write. What they are does not follow from a
    path: the advice names what stands in the way, which is the first that is there of the path and all above it.
    """
    reason = error.strerror or str(error)
    if error.errno not in (errno.EACCES, errno.EPERM):
        return reason
    for place in (path, *path.absolute().parents):
        try:
            owner = place.stat().st_uid
        except OSError:
            continue
        if owner == os.getuid() or _may_be_used(place):
            return reason
        return (
            f"{reason} ({place} is {_name(owner)}'s); to work in one folder, have {_name(owner)} run chmod -R g+rwX on "
            "it, and all who do start with umask 002"
        )
    return reason


def _may_be_used(place: Path) -> bool:
    wanted = os.R_OK | os.W_OK | (os.X_OK if place.is_dir() else 0)
    return os.access(place, wanted)


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
