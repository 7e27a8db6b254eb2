"""What belongs to a trial's identity but lies outside the plan: the images' facts, a user's model file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpubench import catalog
from gpubench.datasets import locate
from gpubench.datasets.facts import DataFacts
from gpubench.errors import UsageError


class Disk:
    """Looks on the disk, once for each name, and remembers every answer."""

    def __init__(self) -> None:
        self.known_data: dict[str, DataFacts] = {}
        self.known_models: dict[str, str] = {}

    def data(self, name: str) -> DataFacts:
        if name not in self.known_data:
            self.known_data[name] = locate.facts_of(name)
        return self.known_data[name]

    def model(self, name: str) -> str:
        if name not in self.known_models:
            self.known_models[name] = _model_fingerprint(name)
        return self.known_models[name]

    def stored(self) -> dict[str, Any]:
        """All that a plan asked for, dropped combinations included, as `Stored` reads it back from TOML."""
        data = {name: facts.as_dict() for name, facts in self.known_data.items()}
        return {
            "data": {
                name: {k: v for k, v in facts.items() if v is not None and k != "root"}
                for name, facts in data.items()
            },
            "models": {name: found for name, found in self.known_models.items() if found},
        }


class Stored:
    """What a stored plan says, so that it can be expanded where its images do not lie."""

    def __init__(self, data: Mapping[str, DataFacts], models: Mapping[str, str]) -> None:
        self._data = data
        self._models = models

    def data(self, name: str) -> DataFacts:
        return self._data[name]

    def model(self, name: str) -> str:
        return self._models.get(name, "")


def _model_fingerprint(name: str) -> str:
    """Hash of the file behind `path/to/file.py:function`, with the function; empty for a model by name."""
    if not catalog.is_user_model(name):
        return ""
    path, _, function = name.rpartition(":")
    if not Path(path).is_file():
        raise UsageError(f"model {name!r}: there is no file {path}")
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16] + ":" + function
