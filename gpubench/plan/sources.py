"""What belongs to a trial's identity but lies outside the plan: the images' facts, a user's model file."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from gpubench.basics.errors import UsageError
from gpubench.datasets import bad_images, locate
from gpubench.datasets.bad_images import BadImage
from gpubench.datasets.facts import DataFacts
from gpubench.datasets.pool import Progress
from gpubench.schema import catalog
from gpubench.schema.command import SCRIPT_SUFFIXES, split_command

NONE_SKIPPED = ("skipped_images", 0)
"""Left out of a stored plan, so that earlier versions read it, too."""
Shown = Callable[[Path], AbstractContextManager[Progress | None]]
"""Tells how far somebody is who tries all images of a folder."""


class DiskSources:
    """Looks on the disk, once for each name, and remembers every answer.

    `policy`: with `skip` all images of a user's folder are tried, and those that can't be used play no part.
    """

    def __init__(self, policy: catalog.BadImages = "fail", shown: Shown = lambda _: nullcontext()) -> None:
        self.known_data: dict[str, DataFacts] = {}
        self.known_models: dict[str, str] = {}
        self.bad_images: dict[str, tuple[BadImage, ...]] = {}
        """The images that are left out of each data set that was asked for."""
        self._without: dict[str, frozenset[str]] = {}
        self._policy = policy
        self._shown = shown

    def find_data_facts(self, name: str) -> DataFacts:
        if name not in self.known_data:
            folder = locate.make_user_folder_path(name) if self._policy == "skip" else None
            if folder is not None and folder.is_dir():  # what else is wrong with it `collect_data_facts` says
                with self._shown(folder) as progress:
                    self.bad_images[name] = bad_images.find_bad_images(folder, progress)
            self._without[name] = frozenset(bad.path for bad in self.bad_images.get(name, ()))
            self.known_data[name] = locate.collect_data_facts(name, self._without[name])
        return self.known_data[name]

    def find_left_out_images(self, name: str) -> frozenset[str]:
        """Paths, relative to the folder, of the images that are left out."""
        self.find_data_facts(name)
        return self._without[name]

    def find_model_fingerprint(self, name: str) -> str:
        if name not in self.known_models:
            self.known_models[name] = _hash_model_file(name)
        return self.known_models[name]

    def find_command_fingerprint(self, command: str) -> str:
        if command not in self.known_models:
            self.known_models[command] = _hash_scripts(command)
        return self.known_models[command]

    def check_command_unchanged(self, command: str) -> None:
        """Raises UsageError where the scripts of a command are others than when it was planned."""
        if _hash_scripts(command) != self.find_command_fingerprint(command):
            raise UsageError(
                "a script of the command has changed since the sweep began: start the sweep again, and what has been "
                "measured of the script as it was stays apart"
            )

    def encode_sources(self) -> dict[str, Any]:
        """All that a plan asked for, dropped combinations included, as `StoredSources` reads it back from TOML."""
        return {
            "data": {
                name: {
                    key: value
                    for key, value in facts.as_dict().items()
                    if value is not None and key != "root" and (key, value) != NONE_SKIPPED
                }
                for name, facts in self.known_data.items()
            },
            "models": {name: fingerprint for name, fingerprint in self.known_models.items() if fingerprint},
        }


class StoredSources:
    """What a stored plan says, so that it can be expanded where its images do not lie."""

    def __init__(self, data: Mapping[str, DataFacts], models: Mapping[str, str]) -> None:
        self._data = data
        self._models = models

    def find_data_facts(self, name: str) -> DataFacts:
        return self._data[name]

    def find_model_fingerprint(self, name: str) -> str:
        return self._models.get(name, "")

    def find_command_fingerprint(self, command: str) -> str:
        return self._models.get(command, "")


def _hash_model_file(name: str) -> str:
    """Hash of the file behind `path/to/file.py:function`, with the function; empty for a model by name."""
    if not catalog.is_user_model(name):
        return ""
    path, _, function = name.rpartition(":")
    if not Path(path).is_file():
        raise UsageError(f"model {name!r}: there is no file {path}")
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16] + ":" + function


def _hash_scripts(command: str) -> str:
    """Hash of the scripts that a command names, and of its program where that is named by its path.

    What a script imports, and what it reads, is not looked at. Empty where it names none.
    """
    program, *words = split_command(command)
    files = [program] if "/" in program else []
    files += [word for word in (program, *words) if Path(word).suffix in SCRIPT_SUFFIXES]
    contents = [Path(file).read_bytes() for file in dict.fromkeys(files) if Path(file).is_file()]
    return hashlib.sha256(b"\0".join(contents)).hexdigest()[:16] if contents else ""
