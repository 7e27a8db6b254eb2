"""Makes the net's data anew from the present code: `python tests/net/capture.py [PART …]`.

By hand, and only at a commit whose figures are known to hold: README.md says which.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path


def capture(parts: list[str]) -> None:
    """Writes these files of `data/`; all of them where none is named."""
    from adapters import analyze, write_csvs
    from held import DATA, as_plain, digest, list_parts, put, save

    for part, names in list_parts().items():
        if parts and part not in parts:
            continue
        folders = {}
        for name in names:
            with tempfile.TemporaryDirectory() as home:
                folder = put(name, Path(home))
                folders[name] = as_plain(write_csvs(folder), analyze(folder), digest(name))
        save(part, folders)
        print(f"{part}: {len(names)} folders, {(DATA / f'{part}.json.xz').stat().st_size:,} bytes")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as empty:
        # What a machine keeps at home must not stand in any figure.
        os.environ |= {
            "HOME": empty,
            "XDG_STATE_HOME": empty,
            "XDG_CACHE_HOME": empty,
            "XDG_CONFIG_HOME": empty,
        }
        os.environ.pop("GPUBENCH_STATE", None)
        capture(sys.argv[1:])
