"""A results folder whose samples and logs lie in one zip file, which every command that reads takes as it is.

The members have the names that the files had (`samples/xx/….csv`), so that any program can unpack them. What lies there
as a file of its own goes before the member of its name: a sweep goes on beside the zip file.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import io
import os
import stat
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from gpubench.basics.errors import UnusableError
from gpubench.basics.litter import make_temporary_path
from gpubench.basics.quoted import clean_line
from gpubench.basics.regular_file import LARGEST
from gpubench.results.file_names import is_plain_file, parse_file_name
from gpubench.results.whole_file import write_new

PACKED = "samples-and-logs.zip"
ENDINGS: Mapping[str, str] = {"samples": "csv", "logs": "log"}
"""What lies beside records, a file for each job, and how its names end."""
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of every member, so that the same files make the same zip file."""
_DAMAGED = (zipfile.BadZipFile, EOFError, OSError, ValueError, RuntimeError, NotImplementedError)
"""What is raised over a zip file that is damaged, encrypted or compressed in another way."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PackedFolder:
    """What became of a folder's samples and logs."""

    files: int
    """That went into the zip file, or came out of it."""
    bytes_before: int
    bytes_after: int


# ---- reading ----


def is_file_or_member(path: Path) -> bool:
    """Whether this file of samples, or log, is there: as a file (no link), or as a member of the folder's zip file."""
    return is_plain_file(path) or _make_member_name(path) in _list_attempt_members(path.parents[2])


def open_file_or_member(path: Path) -> IO[bytes]:
    """Opens such a file to be read. Raises FileNotFoundError where there is none, OSError where it can't be read."""
    if is_plain_file(path):
        return path.open("rb")
    folder, name = path.parents[2], _make_member_name(path)
    if name not in _list_attempt_members(folder):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))
    return io.BytesIO(_read_member(folder / PACKED, name))


def list_files_and_members(folder: Path, kind: str) -> list[Path]:
    """All samples, or logs, of a results folder, by their names: files and members."""
    loose = {path for path in (folder / kind).glob("*/*-*.*") if parse_file_name(path) is not None}
    return sorted(loose | {path for path in list_packed_paths(folder) if path.parts[-3] == kind})


def list_packed_paths(folder: Path) -> list[Path]:
    """Where the members of its zip file would lie."""
    return [folder / name for name in _list_attempt_members(folder)]


def _make_member_name(path: Path) -> str:
    """The name of its member: `samples/xx/NAME`."""
    return "/".join(path.parts[-3:])


def _list_attempt_members(folder: Path) -> frozenset[str]:
    """The members of a folder's zip file that have the name of an attempt's samples or log; none where it has none, or
    where it can't be read: whoever packs or unpacks is told."""
    path = folder / PACKED
    try:
        facts = path.lstat()
    except OSError:
        return frozenset()
    return _read_member_names(path, facts.st_mtime_ns, facts.st_size)


@functools.lru_cache(maxsize=64)
def _read_member_names(path: Path, _time: int, _size: int) -> frozenset[str]:
    try:
        with _open_zip(path) as archive:
            return frozenset(filter(_is_attempt_member, archive.namelist()))
    except _DAMAGED:
        return frozenset()


def _is_attempt_member(name: str) -> bool:
    """Whether a member has the name of an attempt's samples or log, and so leads nowhere else."""
    kind, _, rest = name.partition("/")
    path = Path(name)
    return rest.count("/") == 1 and path.suffix[1:] == ENDINGS.get(kind) and parse_file_name(path) is not None


def _open_zip(path: Path) -> zipfile.ZipFile:
    """Raises OSError for what is no file, and BadZipFile."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    file = os.fdopen(descriptor, "rb")
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "no regular file", os.fspath(path))
        return zipfile.ZipFile(file)
    except BaseException:
        file.close()
        raise


def _read_member(path: Path, name: str, archive: zipfile.ZipFile | None = None) -> bytes:
    """All of a member of this zip file, which may be open already. Raises OSError where it is damaged, or larger than
    any file of gpubench is."""
    if archive is None:
        with _open_zip(path) as opened:
            return _read_member(path, name, opened)
    try:
        with archive.open(name) as file:
            content = file.read(LARGEST + 1)
    except _DAMAGED as error:
        raise OSError(errno.EIO, f"its place in {PACKED} is damaged ({error})") from None
    if len(content) > LARGEST:
        raise OSError(errno.EFBIG, f"larger than {LARGEST >> 20} MiB")
    return content


# ---- packing ----


def pack_folder(folder: Path, tell: Callable[[str], None]) -> PackedFolder:
    """Puts samples and logs of a results folder into its zip file, and removes the files once all of them can be read
    from there. Nobody may be at work in the folder.

    A file that can't be read, or of which the zip file holds another version, stays as it is; `tell` is given a line.
    Raises UnusableError where the zip file can't be read or written: then nothing has changed.
    """
    target = folder / PACKED
    old = _list_checked_members(target) if target.exists() or target.is_symlink() else []
    loose = [path for kind in ENDINGS for path in list_files_and_members(folder, kind) if is_plain_file(path)]
    if not loose:
        return PackedFolder(files=0, bytes_before=0, bytes_after=_read_file_size(target))
    contents = {}
    for path in loose:
        name = _make_member_name(path)
        if _read_file_size(path) > LARGEST or not os.access(path, os.R_OK):
            tell(f"{path} stays as it is: it can't be read, or is larger than {LARGEST >> 20} MiB")
        elif name in old and path.read_bytes() != _read_member(target, name):
            tell(f"{path} stays as it is: {PACKED} holds something else under its name")
        else:
            contents[name] = path
    temporary = make_temporary_path(target)
    try:
        with zipfile.ZipFile(temporary, "x", zipfile.ZIP_BZIP2) as archive:
            for name in sorted({*old, *contents}):
                info = zipfile.ZipInfo(name, _EPOCH)
                info.compress_type, info.external_attr = zipfile.ZIP_BZIP2, 0o100644 << 16
                is_file = name in contents
                archive.writestr(info, contents[name].read_bytes() if is_file else _read_member(target, name))
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        with _open_zip(temporary) as archive:  # all is read back, byte by byte
            for name, path in contents.items():
                if _read_member(temporary, name, archive) != path.read_bytes():
                    raise OSError(errno.EIO, f"{path} changed while it was packed")
        temporary.replace(target)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except _DAMAGED as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UnusableError(f"{target} can't be written: {reason}; nothing was packed") from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
    before = sum(map(_read_file_size, contents.values()))
    for path in contents.values():
        path.unlink(missing_ok=True)
    for kind in ENDINGS:
        for inside in (*(folder / kind).glob("*"), folder / kind):
            with contextlib.suppress(OSError):  # it holds something
                inside.rmdir()
    return PackedFolder(files=len(contents), bytes_before=before, bytes_after=_read_file_size(target))


def unpack_folder(folder: Path, tell: Callable[[str], None]) -> PackedFolder:
    """Makes files of all members of a folder's zip file, and removes it once they are there.

    Where a file holds something else than the member of its name the zip file stays, and `tell` is given a line. Raises
    UnusableError where it can't be read, or a file can't be written.
    """
    target = folder / PACKED
    if not target.exists():
        return PackedFolder(files=0, bytes_before=0, bytes_after=0)
    before, after, files, is_whole = _read_file_size(target), 0, 0, True
    for name in _list_checked_members(target):
        content, path = _read_member(target, name), folder / name
        if not path.exists() and not path.is_symlink():
            write_new(path, content)
            files, after = files + 1, after + len(content)
        elif not is_plain_file(path) or path.read_bytes() != content:
            tell(f"{path} holds something else than {PACKED}, which stays")
            is_whole = False
    if is_whole:
        target.unlink()
    return PackedFolder(files=files, bytes_before=before, bytes_after=after)


def _list_checked_members(path: Path) -> list[str]:
    """The names of its members. Raises UnusableError where one can't be read, or is none of ours."""
    try:
        with _open_zip(path) as archive:
            names = archive.namelist()
            for name in names:
                if not _is_attempt_member(name):
                    raise ValueError(f"its member {clean_line(name, 100)!r} is no attempt's samples or log")
                _read_member(path, name, archive)
    except _DAMAGED as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UnusableError(f"{path} can't be read: {reason}; nothing was changed") from None
    return sorted(set(names))


def _read_file_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
