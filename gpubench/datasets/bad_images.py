"""Images that can't be used: every file is tried once, by what copies images and by what trains on them, and told.

The outcome is kept in the data home under a name that stands for the files as they are (paths, sizes, times of their
last change) and for the decoders' versions: as long as nothing of that changes, nobody tries them again.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from gpubench.basics import litter
from gpubench.basics.errors import UnusableError
from gpubench.basics.quoted import escape_unprintable
from gpubench.basics.regular_file import read_regular_file
from gpubench.datasets import folder
from gpubench.datasets.marker import ensure_writable_folder, make_data_home_path
from gpubench.datasets.pool import Progress, map_on_cpus

VERSION = 1
"""Goes up when the same file may be found bad, or usable, otherwise than before."""
TRY = "gpubench.train.data.folder_source:find_defect"
"""By name: it imports torch, which this process never does."""
IMPORT_LIMIT_S = 300.0
"""A worker's first answer comes after torch is imported, which can take minutes from a network file system."""


@dataclass(frozen=True, slots=True)
class BadImage:
    """An image that is left out."""

    path: str
    """Relative to the folder."""
    reason: str


def find_bad_images(root: Path, progress: Progress | None = None) -> tuple[BadImage, ...]:
    """All bad images of the folder `root`, by path; tries every file unless that was done before.

    Raises as `folder.everything` does; UnusableError where the outcome can't be kept, or a worker is killed.
    """
    odd: dict[str, str] = {}
    key_lines = [
        " ".join([str(VERSION), *map(_find_package_version, ("torchcodec", "torchvision", "pillow"))])
    ]
    for path in folder.list_image_named_files(root):
        status = _stat_or_describe_problem(f"{root}/{path}")
        if isinstance(status, str):
            odd[path] = status
        else:
            key_lines.append(f"{path}\0{status.st_size}\0{status.st_ctime_ns}")
    key = hashlib.sha256("\n".join(key_lines).encode(errors="surrogateescape")).hexdigest()[:16]
    kept = make_data_home_path() / f"bad-images-{key}.json"
    broken = _read_kept_outcome(kept)
    if broken is None:
        ensure_writable_folder(kept.parent)
        files = [line.partition("\0")[0] for line in key_lines[1:]]
        reasons = map_on_cpus(
            TRY,
            [f"{root}/{path}" for path in files],
            shared={},
            progress=progress,
            stall_s=IMPORT_LIMIT_S,
            silent=True,  # the decoders' libraries have their say about each such file
        )
        broken = {path: reason for path, reason in zip(files, reasons, strict=True) if reason is not None}
        _write_kept_outcome(kept, broken)
    return tuple(BadImage(path, reason) for path, reason in sorted((odd | dict(broken)).items()))


def _stat_or_describe_problem(path: str) -> os.stat_result | str:
    """What is known of a file that can be opened, or why it can't be. Nothing is opened: a pipe would wait for ever."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError as error:
        return error.strerror or str(error)
    if not stat.S_ISREG(status.st_mode):
        return "not a file"
    # Only where the mode leaves it open: asking costs as much as all the rest.
    if not status.st_mode & stat.S_IROTH and not os.access(path, os.R_OK):
        return "no permission"
    return status


@functools.cache
def _find_package_version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _read_kept_outcome(kept: Path) -> Mapping[str, str] | None:
    """The outcome that was kept; None where there is none, or something else lies there."""
    try:
        outcome = json.loads(read_regular_file(kept))
        return {str(path): str(reason) for path, reason in outcome["bad"].items()}
    except (FileNotFoundError, NotADirectoryError, ValueError, TypeError, KeyError, AttributeError):
        return None
    except OSError as error:
        raise UnusableError(
            f"{kept} can't be read: {error.strerror}; set GPUBENCH_DATA to another folder"
        ) from None


def _write_kept_outcome(kept: Path, broken: Mapping[str, str]) -> None:
    aside = litter.make_temporary_path(kept)
    try:
        aside.write_text(json.dumps({"bad": broken}, indent=1) + "\n", encoding="utf-8")
        aside.replace(kept)
    except OSError as error:
        raise UnusableError(
            f"{kept} can't be written: {error.strerror}; free some room, or set GPUBENCH_DATA to a larger disk"
        ) from None
    finally:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)


# ---- how those that are left out are told ----

NAMED = 20
"""So many are named on a terminal; a file names them all."""


def describe_bad_images(bad: Sequence[BadImage], used: int, folder: Path, names: Path | None) -> list[str]:
    """What is said of a folder whose bad images are left out. `used`: its other images. `names`: where all stand."""
    if not bad:
        return []
    verb = "is" if len(bad) == 1 else "are"
    counted = f"{len(bad):,} of {len(bad) + used:,} images in {folder} can't be used and {verb} left out"
    text_lines = [f"{counted} (--bad-images skip):"]
    text_lines += [
        f"  {escape_unprintable(image.path)}: {escape_unprintable(image.reason)}" for image in bad[:NAMED]
    ]
    where = f"; {names} names them all" if names else ""
    if len(bad) > NAMED:
        text_lines.append(f"  and {len(bad) - NAMED:,} more{where}")
    return text_lines


def format_bad_images_file(bad: Sequence[BadImage]) -> str:
    """All of them as a text file: a path and the reason in a line, a tab between them."""
    return "".join(f"{escape_unprintable(image.path)}\t{escape_unprintable(image.reason)}\n" for image in bad)
