"""gpubench: trains real networks over a grid of configurations and leaves a table that can be trusted."""

from __future__ import annotations

import typing

if typing.TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from gpubench.notebook import LoadedFolders

__version__ = "0.2.0"


def load(*folders: str | Path) -> LoadedFolders:
    """Results folders (none: the newest one), read for a notebook: frames of pandas, tables and findings."""
    from gpubench import notebook

    return notebook.load(*folders)


def epoch() -> AbstractContextManager[None]:
    """`with gpubench.epoch(): …` in a script that a sweep runs: the block is an epoch. Elsewhere it does nothing."""
    from gpubench.script.epoch import mark_epoch

    return mark_epoch()
