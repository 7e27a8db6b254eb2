"""Where images and results go: whether one may write there, and whether there is room. Makes nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from gpubench.basics.errors import GpubenchError
from gpubench.datasets import locate
from gpubench.datasets.built import amount
from gpubench.datasets.home import data_home
from gpubench.doctor.context import CheckContext
from gpubench.doctor.finding import CheckResult, no, ok
from gpubench.plan.resolve import DEFAULT_SIZE
from gpubench.schema import catalog
from gpubench.schema.trial_fields import DEFAULTS

LOW_SPACE_BYTES = 1_000_000_000
"""Free bytes in the results folder below which it is worth a word; a large sweep takes some 100 MB."""


def images(context: CheckContext) -> Iterable[CheckResult]:
    """The built-in images: made or not, where, and whether they could be made."""
    try:
        place = data_home()
    except GpubenchError as error:
        yield no("images", str(error), forbids=True)
        return
    fixed = context.experiment.fixed
    data = str(fixed.get("data", DEFAULTS["data"]))
    variant = str(fixed.get("variant", DEFAULTS["variant"]))
    files = catalog.VARIANTS[variant].files
    if files == "none":
        sentence = f"the built-in sweep reads none: a resident batch ({variant})"
        yield ok("images", sentence)
        return
    try:
        to_make = locate.plan_steps(data, files, int(str(fixed.get("input_size", DEFAULT_SIZE))))
        root = locate.find_facts(data).root or place
    except GpubenchError as error:
        yield no("images", str(error), "as it says", forbids=True)
        return
    if not to_make:
        yield ok("images", f"the built-in ones lie in {root}")
        return
    blocked = cannot_write(place)
    free = shutil.disk_usage(nearest_existing(place)).free
    need = sum(step.estimate_bytes for step in to_make)
    if blocked or free < need:
        yield no(
            "images",
            f"not made yet, and {place} {blocked or f'has only {amount(free)} free'}",
            "set GPUBENCH_DATA to a folder with room",
            forbids=True,
        )
    else:
        yield ok(
            "images",
            f"the first sweep makes them in {place}: {'; '.join(map(str, to_make))}; {amount(free)} free",
        )


def results(context: CheckContext) -> Iterable[CheckResult]:
    """The folder of results."""
    place = Path(context.environ.get("GPUBENCH_OUT", "results")).absolute()
    free = shutil.disk_usage(nearest_existing(place)).free
    if blocked := cannot_write(place):
        yield no(
            "results",
            f"{place} {blocked}",
            "--out FOLDER, or set GPUBENCH_OUT to a folder that you may write into",
            forbids=True,
        )
    else:
        little = free < LOW_SPACE_BYTES
        yield CheckResult(
            name="results",
            verdict="doubt" if little else "ok",
            found=f"go to {place}; {amount(free)} free",
            remedy="free some room, or set GPUBENCH_OUT to a larger disk" if little else "",
        )


def nearest_existing(place: Path) -> Path:
    """`place`, or the nearest folder above it that is there."""
    return next(folder for folder in (place, *place.parents) if folder.exists())


def cannot_write(place: Path) -> str:
    """Why nothing can be written at `place`, which need not be there yet; empty: it can."""
    above = nearest_existing(place)
    if not above.is_dir():
        return f"can't be a folder: {above} is a file"
    if not os.access(above, os.W_OK | os.X_OK):
        return f"can't be written ({'read-only or ' if above == place else f'{above}: '}no permission)"
    return ""
