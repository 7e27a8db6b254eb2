"""What `gpubench export` does: results folders are read and handed over in the format of another program."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from gpubench.basics.collector import pause_garbage_collector
from gpubench.basics.errors import UnusableError, make_unknown_name_error
from gpubench.basics.safe_name import make_safe_file_name
from gpubench.basics.words import clean_line
from gpubench.commands.folders import choose_read_exit_code, print_warning, read_named_folders
from gpubench.export.formats import TRACKERS, FormatOptions, check_package_installed, find_format
from gpubench.results.whole_file import write_whole

STDOUT = Path("-")


@pause_garbage_collector()
def export(paths: Sequence[Path], *, form: str | None, out: Path | None, options: FormatOptions) -> int:
    """`gpubench export`. `form`: a name of FORMATS; None: as `out` ends. `out`: a file, or `-` for stdout; None: stdout
    for text, else a file in the working directory that is called as the first folder is."""
    chosen = find_format(form, out if out != STDOUT else None, options)
    folders = read_named_folders(paths)
    content = chosen.write(folders, options)
    code = choose_read_exit_code(paths, folders)
    if out == STDOUT or (out is None and chosen.is_text):
        sys.stdout.buffer.write(content)
        return code
    if out is None:
        out = Path(f"{make_safe_file_name(folders[0].path.resolve().name, 'results')}{chosen.suffix}")
        if out.exists():
            raise UnusableError(f"{clean_line(str(out))} is there already; name a file with --out")
    write_output_file(out, content)
    print(clean_line(str(out)))
    return code


def write_output_file(out: Path, content: bytes) -> None:
    """The file is there whole, or as it was. Raises UnusableError."""
    whole = out.resolve()  # a link stays one
    if whole.is_dir():
        raise UnusableError(f"{out} can't be written: it is a folder; name a file in it with --out")
    if not whole.parent.is_dir():
        raise UnusableError(f"{out} can't be written: there is no folder {out.parent}")
    if whole.is_file() or not whole.exists():
        write_whole(whole, content)
        return
    try:  # a pipe or a device, in whose place no file may be put
        whole.write_bytes(content)
    except OSError as error:
        raise UnusableError(f"{out} can't be written: {error.strerror}") from None


@pause_garbage_collector()
def export_to_tracker(paths: Sequence[Path], *, to: str, place: str | None) -> int:
    """`gpubench export --to`: each attempt that counts becomes a run of an experiment tracker.

    `to`: a name of TRACKERS. `place`: a folder or an address; None: where the tracker puts runs by itself.
    """
    if to not in TRACKERS:
        raise make_unknown_name_error("tracker", to, TRACKERS)
    check_package_installed("this", to)
    from gpubench.export import mlflow_runs  # imports mlflow

    folders = read_named_folders(paths)
    print(mlflow_runs.export_runs(folders, place, print_warning))
    return choose_read_exit_code(paths, folders)
