"""What `gpubench pack` and `gpubench unpack` do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpubench.basics.errors import UnusableError
from gpubench.basics.words import clean_line, format_count
from gpubench.commands.folders import print_warning
from gpubench.results import packed
from gpubench.results.home import find_newest_results_folder, make_no_results_error
from gpubench.results.store import Results
from gpubench.store.work_claims import list_workers


def pack(folders: Sequence[Path]) -> int:
    """`gpubench pack`: samples and logs of each folder in one zip file."""
    for folder in _list_idle_folders(folders):
        done = packed.pack_folder(folder, print_warning)
        sizes = (
            f"{_format_size(done.bytes_before)} as files, {_format_size(done.bytes_after)} in {packed.PACKED}"
        )
        print(clean_line(f"{folder}: {format_count(done.files, 'file')} packed: {sizes}"))
    return 0


def unpack(folders: Sequence[Path]) -> int:
    """`gpubench unpack`: files again."""
    for folder in _list_idle_folders(folders):
        unpacked = packed.unpack_folder(folder, print_warning)
        print(
            clean_line(
                f"{folder}: {format_count(unpacked.files, 'file')} unpacked, {_format_size(unpacked.bytes_after)}"
            )
        )
    return 0


def _list_idle_folders(folders: Sequence[Path]) -> Sequence[Path]:
    """The folders, or the newest one. Raises UnusableError for what is none, and where a sweep is at work in one."""
    named = list(dict.fromkeys(folders or [find_newest_results_folder()]))
    for folder in named:
        if not (folder / "records").is_dir():
            raise make_no_results_error(folder)
        Results(folder).check_no_linked_folders()
        for worker in list_workers(folder):
            if worker.is_alive:
                raise UnusableError(
                    f"{worker.who} measures into {folder}: pack or unpack it once that has ended"
                )
    return named


def _format_size(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.1f} kB"
