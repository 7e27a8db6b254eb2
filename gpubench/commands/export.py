"""What `gpubench export` does: results folders are read and handed over in the format of another program."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from gpubench.basics.errors import UnusableError
from gpubench.basics.words import many
from gpubench.commands.opened import readings
from gpubench.export.formats import Asked, format_of
from gpubench.export.trackers import tracker_of


def export(folders: Sequence[Path], *, form: str | None, out: Path | None, asked: Asked) -> int:
    """`gpubench export`. `form`: a name of FORMATS; None: as `out` ends. `out`: a file; None: stdout for text,
    else a file in the working directory that is called as the first folder is."""
    chosen = format_of(form, out)
    found = readings(folders)
    made = chosen.made(found, asked)
    if out is None and chosen.is_text:
        sys.stdout.buffer.write(made)
        return 0
    out = out or Path(f"{found[0].name}{chosen.suffix}")
    try:
        out.write_bytes(made)
    except OSError as error:
        raise UnusableError(f"can't write {out}: {error.strerror}") from error
    print(out)
    return 0


def hand_over(folders: Sequence[Path], *, to: str, place: str | None) -> int:
    """`gpubench export --to`: each attempt that counts becomes a run of an experiment tracker.

    `to`: a name of TRACKERS. `place`: a folder or an address; None: where the tracker puts runs by itself.
    """
    tracker = tracker_of(to)
    tracker.check()
    from gpubench.export.runs import runs  # reads samples by need, so not before anything is refused

    done = tracker.take(runs(readings(folders)), place)
    left = f", {many(done.known, 'run')} there already" if done.known else ""
    print(f"{many(done.new, 'run')} written{left}; to look at them: {done.where}")
    return 0
