"""What `gpubench export` does: results folders are read and handed over in the format of another program."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from gpubench.basics.errors import UnusableError
from gpubench.commands.opened import readings
from gpubench.export.formats import Asked, format_of


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
