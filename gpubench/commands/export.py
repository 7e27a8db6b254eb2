"""What `gpubench export` does: results folders are read and handed over in the format of another program."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from gpubench.basics.collector import collector_paused
from gpubench.basics.errors import UnusableError
from gpubench.basics.safe_name import safe_name
from gpubench.basics.words import clean, many
from gpubench.commands.folders import exit_code_of, read_named, warn
from gpubench.export.formats import FormatOptions, find_format
from gpubench.export.trackers import find_tracker
from gpubench.results.whole_file import write_whole

STDOUT = Path("-")


@collector_paused()
def export(paths: Sequence[Path], *, form: str | None, out: Path | None, options: FormatOptions) -> int:
    """`gpubench export`. `form`: a name of FORMATS; None: as `out` ends. `out`: a file, or `-` for stdout; None: stdout
    for text, else a file in the working directory that is called as the first folder is."""
    chosen = find_format(form, out if out != STDOUT else None, options)
    folders = read_named(paths)
    content = chosen.write(folders, options)
    code = exit_code_of(paths, folders)
    if out == STDOUT or (out is None and chosen.is_text):
        sys.stdout.buffer.write(content)
        return code
    if out is None:
        out = Path(f"{safe_name(folders[0].path.resolve().name, 'results')}{chosen.suffix}")
        if out.exists():
            raise UnusableError(f"{clean(str(out))} is there already; name a file with --out")
    _write(out, content)
    print(clean(str(out)))
    return code


def _write(out: Path, content: bytes) -> None:
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


@collector_paused()
def hand_over(paths: Sequence[Path], *, to: str, place: str | None) -> int:
    """`gpubench export --to`: each attempt that counts becomes a run of an experiment tracker.

    `to`: a name of TRACKERS. `place`: a folder or an address; None: where the tracker puts runs by itself.
    """
    tracker = find_tracker(to)
    tracker.check()
    from gpubench.export.runs import list_runs  # reads samples by need, so not before anything is refused

    folders = read_named(paths)
    done = tracker.export_runs(list_runs(folders, warn), place)
    known = f", {many(done.known, 'run')} there already" if done.known else ""
    print(f"{many(done.new, 'run')} written{known}; to look at them: {done.where}")
    return exit_code_of(paths, folders)
