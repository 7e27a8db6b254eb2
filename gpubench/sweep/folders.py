"""Where the images of each trial lie. Made ready once; what can't be made is remembered with its reason."""

from __future__ import annotations

from pathlib import Path

from gpubench.basics.errors import GpubenchError
from gpubench.datasets import locate
from gpubench.datasets.pool import Progress
from gpubench.schema.catalog import Files

Wanted = tuple[str, Files, int, frozenset[str]]
"""Data, which files of them, the side of resized ones in pixels, and the images that are left out."""


class Folders:
    """The image folders of one sweep."""

    def __init__(self) -> None:
        self._found: dict[Wanted, Path | GpubenchError] = {}

    def ready(self, wanted: Wanted, progress: Progress | None = None) -> Path:
        """The folder, made if need be. Raises the same GpubenchError each time for one that can't be made."""
        if wanted not in self._found:
            try:
                self._found[wanted] = locate.make_ready(*wanted, progress=progress)
            except GpubenchError as error:
                self._found[wanted] = error
        found = self._found[wanted]
        if isinstance(found, GpubenchError):
            raise found
        return found
