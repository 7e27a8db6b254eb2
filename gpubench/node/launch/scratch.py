"""A trial's temporary files: a private folder that goes with the trial; if this sweep is killed, with the next one.

Whoever uses such a folder holds a lock on a file in it, which the kernel gives free when the process ends in any way.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from gpubench.basics.errors import UnusableError
from gpubench.node.launch import shared_memory

PREFIX = "gpubench-"
LOCK_FILE = ".in-use"
COMPILE_CACHE = "TORCHINDUCTOR_CACHE_DIR"
"""Names the folder where torch keeps what it compiles. Without it, importing torch makes one that nobody removes."""


@contextlib.contextmanager
def open_scratch_folder() -> Iterator[Path]:
    """A new folder that only this user can read, and that is removed at the end with all that is in it.

    Raises UnusableError where none can be made.
    """
    folder: Path | None = None
    try:
        try:
            folder = Path(tempfile.mkdtemp(prefix=PREFIX))
            mark = (folder / LOCK_FILE).open("w")
        except OSError as error:
            raise UnusableError(
                f"no folder for temporary files can be made: {error.strerror}; free some room there, or set TMPDIR to "
                "another folder"
            ) from None
        with mark:
            fcntl.flock(mark, fcntl.LOCK_EX)
            yield folder
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def open_compile_cache(environ: Mapping[str, str]) -> Iterator[Path | None]:
    """A folder for what torch compiles, which goes at the end.

    None where the user has named one, which stays, and where none can be made: most models need none.
    """
    with contextlib.ExitStack() as endings:
        folder = None
        if not environ.get(COMPILE_CACHE):
            with contextlib.suppress(UnusableError):
                folder = endings.enter_context(open_scratch_folder())
        yield folder


def make_compile_environment(environ: Mapping[str, str], folder: Path | None) -> Mapping[str, str]:
    """The environment of a process whose torch keeps what it compiles in this folder."""
    return environ if folder is None else {**environ, COMPILE_CACHE: str(folder)}


def remove_abandoned_folders() -> None:
    """Removes what sweeps of this user that were killed have left, and nothing that may be in use."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(
            OSError
        ):  # another's, in use, gone meanwhile, or of a version that left no mark
            if folder.is_symlink() or folder.lstat().st_uid != os.getuid():
                continue
            with (folder / LOCK_FILE).open("r+") as mark:
                fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
                for notes in folder.glob(f"*/{shared_memory.NOTES}"):
                    shared_memory.remove_leftover_segments(notes.parent)
                shutil.rmtree(folder, ignore_errors=True)
