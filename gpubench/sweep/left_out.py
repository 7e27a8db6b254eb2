"""Images that are left out: what a sweep says of them, and their names beside its results."""

from __future__ import annotations

from pathlib import Path

from gpubench.datasets import bad_images
from gpubench.datasets.facts import DataFacts
from gpubench.plan.sources import Disk
from gpubench.results.store import Results
from gpubench.results.whole_file import write_whole


def left_out_file(results: Results, facts: DataFacts) -> Path:
    """Names the images that are left out of the data with this fingerprint, as it stands in the records."""
    return results.folder / "left-out" / f"{facts.fingerprint}.txt"


def left_out_lines(sources: Disk, results: Results | None) -> list[str]:
    """What is said of images that are left out. `results`: where all their names will stand."""
    found = []
    for name, bad in sources.bad_images.items():
        facts = sources.data(name)
        used = facts.train_images + facts.val_images
        found += bad_images.describe_bad_images(
            bad, used, Path(str(facts.root)), left_out_file(results, facts) if results else None
        )
    return found


def store_left_out(sources: Disk, results: Results) -> None:
    """Keeps the names of the images that are left out with the results."""
    for name, bad in sources.bad_images.items():
        if bad:
            write_whole(left_out_file(results, sources.data(name)), bad_images.write_list(bad))
