"""The images that the trials of a sweep read: where they lie, what is to be made of them first, which are left out.

Made ready once; what can't be made is remembered with its reason.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TextIO

from gpubench.basics.errors import GpubenchError
from gpubench.datasets import bad_images, built, locate
from gpubench.datasets.facts import DataFacts
from gpubench.datasets.locate import MakingStep
from gpubench.datasets.pool import Progress
from gpubench.plan.sources import DiskSources
from gpubench.results.store import Results
from gpubench.results.whole_file import write_whole
from gpubench.schema.catalog import Files

Wanted = tuple[str, Files, int, frozenset[str]]
"""Data, which files of them, the side of resized ones in pixels, and the images that are left out."""


class ImageFolders:
    """The image folders of one sweep."""

    def __init__(self) -> None:
        self._folders: dict[Wanted, Path | GpubenchError] = {}

    def ensure_folder(self, wanted: Wanted, progress: Progress | None = None) -> Path:
        """The folder, made if need be. Raises the same GpubenchError each time for one that can't be made."""
        if wanted not in self._folders:
            try:
                self._folders[wanted] = locate.ensure_variant_files(*wanted, progress=progress)
            except GpubenchError as error:
                self._folders[wanted] = error
        folder = self._folders[wanted]
        if isinstance(folder, GpubenchError):
            raise folder
        return folder


def list_making_steps(wanted: Iterable[Wanted]) -> list[MakingStep]:
    """What is to be made before these images can be read, each step once. It looks at the disk.

    Images that can't be made are left out: whoever makes them says why, and so do the rows of their trials.
    """
    steps: dict[MakingStep, None] = {}
    for images in wanted:
        with contextlib.suppress(GpubenchError):
            steps |= dict.fromkeys(locate.plan_making_steps(*images))
    return list(steps)


def describe_making_steps(steps: Sequence[MakingStep]) -> str:
    """How much the images take that are to be made, where, and what else one may do."""
    size = built.format_bytes(sum(step.estimate_bytes for step in steps))
    return (
        f"Making these images takes about {size} in {steps[0].place.parent}; it is done once. To make fewer, give "
        "--data procedural:640; to use your own, give --data FOLDER. GPUBENCH_DATA names another place."
    )


MUCH_BYTES = 200_000_000
"""Fewer are made without a question."""


def has_many_images(steps: Sequence[MakingStep]) -> bool:
    """Whether these images are many enough to ask first."""
    return sum(step.estimate_bytes for step in steps) > MUCH_BYTES


def is_interactive() -> bool:
    """Whether somebody sits there: the question and its answer are on a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask_to_make_images(steps: Sequence[MakingStep], *, answers: TextIO | None = None) -> bool:
    """Asks on stderr whether to make these images, until the answer is yes (or nothing) or no (or its end)."""
    source = answers or sys.stdin
    size = built.format_bytes(sum(step.estimate_bytes for step in steps))
    while True:
        question = f"Make about {size} of images in {steps[0].place.parent}? [Y/n] "
        print(question, end="", file=sys.stderr, flush=True)
        line = source.readline()
        word = line.strip().lower()
        if not line or word in ("n", "no"):
            return False
        if word in ("", "y", "yes"):
            return True


def make_left_out_images_path(results: Results, facts: DataFacts) -> Path:
    """Names the images that are left out of the data with this fingerprint, as it stands in the records."""
    return results.folder / "left-out" / f"{facts.fingerprint}.txt"


def list_left_out_lines(sources: DiskSources, results: Results | None) -> list[str]:
    """What is said of images that are left out. `results`: where all their names will stand."""
    lines = []
    for name, bad in sources.bad_images.items():
        facts = sources.find_data_facts(name)
        used = facts.train_images + facts.val_images
        names = make_left_out_images_path(results, facts) if results else None
        lines += bad_images.describe_bad_images(bad, used, Path(str(facts.root)), names)
    return lines


def store_left_out_names(sources: DiskSources, results: Results) -> None:
    """Keeps the names of the images that are left out with the results."""
    for name, bad in sources.bad_images.items():
        if bad:
            path = make_left_out_images_path(results, sources.find_data_facts(name))
            write_whole(path, bad_images.format_bad_images_file(bad))
