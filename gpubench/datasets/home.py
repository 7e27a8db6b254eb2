"""The folder of everything that gpubench makes from images: `GPUBENCH_DATA`, or the user's cache."""

from __future__ import annotations

import os
from pathlib import Path

from gpubench.basics.errors import UnusableError


def make_data_home_path() -> Path:
    """Where data sets are made and kept: $GPUBENCH_DATA, else gpubench/data in the user's cache folder.

    The folder need not exist yet. Raises UnusableError where there is neither the variable nor a home.
    """
    if named := os.environ.get("GPUBENCH_DATA"):
        return Path(named).expanduser().absolute()
    if cache := os.environ.get("XDG_CACHE_HOME"):
        return Path(cache).absolute() / "gpubench" / "data"
    try:
        return Path.home() / ".cache" / "gpubench" / "data"
    except RuntimeError as error:
        raise UnusableError("no home folder to keep images in: set GPUBENCH_DATA to a folder") from error


def ensure_writable_folder(folder: Path) -> None:
    """Makes `folder` if need be. Raises UnusableError unless files can be written into it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK | os.X_OK)
        reason = "no permission"
    except OSError as error:
        writable, reason = False, error.strerror or str(error)
    if not writable:
        raise UnusableError(f"can't write into {folder} ({reason}): set GPUBENCH_DATA to a folder with room")
