"""What belongs to a trial's identity but lies outside the plan: the images' facts, a user's model file."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpubench.datasets import locate
from gpubench.datasets.facts import DataFacts
from gpubench.errors import UsageError


class Disk:
    """Looks on the disk, once for each name."""

    def __init__(self) -> None:
        self.data = functools.cache(locate.facts_of)
        self.model = functools.cache(_model_fingerprint)


class Stored:
    """What a stored plan says, so that it can be expanded where its images do not lie."""

    def __init__(self, data: Mapping[str, Mapping[str, Any]], models: Mapping[str, str]) -> None:
        self._data = {
            name: DataFacts(**{"root": None, "size": None, **facts}) for name, facts in data.items()
        }
        self._models = models

    def data(self, name: str) -> DataFacts:
        return self._data[name]

    def model(self, name: str) -> str:
        return self._models.get(name, "")


def _model_fingerprint(name: str) -> str:
    """Hash of the file behind `path/to/file.py:function`, with the function; empty for a model by name."""
    if ".py:" not in name:
        return ""
    path, _, function = name.rpartition(":")
    if not Path(path).is_file():
        raise UsageError(f"model {name!r}: there is no file {path}")
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16] + ":" + function
