"""The pictures on the pages of the committed results. They are drawn anew, where they lie, by

PYTHONPATH=tests python -m docs_pages.gallery
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from gpubench.analyze.folder import read_folder
from gpubench.basics.errors import GpubenchError, UnusableError
from gpubench.plot import files
from gpubench.plot.paper.figure import drawn
from gpubench.plot.paper.file import written
from gpubench.plot.pictures import described
from gpubench.plot.subject import subjects

PICTURES: Mapping[str, tuple[str, ...]] = {
    "h200-copies-2026": ("mobilenet_v2-copies-slowdowns",),
    "h200-copies-rounds-2026": ("mobilenet_v2-copies-slowdowns",),
    "h200-cpus-2026": ("batch-size-alternatives-variant",),
    "h200-pairs-2026": ("batch-size-pairs",),
    "h200-pairs-rounds-2026": ("batch-size-pairs",),
    "h200-until-top1-2026": ("mobilenet_v2-until-top1-learning",),
    "h200x2-2026": ("mobilenet_v2-2gpu-growth",),
    "h200x2-network-size-2026": ("network-size-networks",),
    "h200x4-2026": ("resnet34-4gpu-growth", "mobilenet_v2-4gpu-growth"),
    "h200x4-groups-2026": ("mobilenet_v2-together-slowdowns",),
    "h200x4-scaling-2026": ("batch-size-scaling",),
    "titan-xp-2021": ("resnet34-4gpu-growth", "mobilenet_v2-v7-v11-alternatives-variant"),
}
"""Results folder -> the pictures on its page."""
DRAWN_WITH = "3.11.2"
"""The matplotlib with which they were drawn: another one may set a letter elsewhere."""


def pictures(home: Path) -> Iterator[tuple[Path, bytes]]:
    """Each path with what is to stand there. `home`: the folder that holds the results folders."""
    for name, wanted in PICTURES.items():
        found = {
            picture.file_name: picture
            for subject in subjects(read_folder(home / name, _refuse))
            for picture in described(subject)
        }
        for one in wanted:
            yield home / name / "plots" / f"{files.safe(one)}.svg", written(drawn(found[one]), "svg")


def _refuse(line: str) -> None:
    raise UnusableError(line)


if __name__ == "__main__":
    try:
        for path, made in pictures(Path(sys.argv[1] if len(sys.argv) > 1 else "results")):
            files.write(path, made)
            print(path)
    except GpubenchError as error:
        sys.exit(f"gpubench: {error}")
