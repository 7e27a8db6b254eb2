"""The pictures on the pages of the committed results. They are drawn anew, where they lie, by

PYTHONPATH=tests python -m docs_pages.gallery
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from gpubench.analyze.folder import read_folder
from gpubench.analyze.questions import make_folder_reports
from gpubench.basics.errors import GpubenchError, UnusableError
from gpubench.basics.safe_name import make_safe_file_name
from gpubench.render.draw import draw_file_bytes
from gpubench.render.pictures.pictures import Picture, list_pictures
from gpubench.results.whole_file import write_whole

PICTURES: Mapping[str, tuple[str, ...]] = {
    "h200-batch-size-2026": ("batch-size-growth",),
    "h200-copies-2026": ("mobilenet_v2-copies-together",),
    "h200-copies-rounds-2026": ("mobilenet_v2-copies-together",),
    "h200-copies-steady-2026": ("mobilenet_v2-copies-together",),
    "h200-cpus-2026": ("batch-size-together", "batch-size-ways-variant-pre-resized"),
    "h200-cpus-rounds-2026": ("batch-size-together", "batch-size-ways-variant-pre-resized"),
    "h200-pairs-2026": ("batch-size-together",),
    "h200-pairs-rounds-2026": ("batch-size-together",),
    "h200-pairs-steady-2026": ("batch-size-together",),
    "h200-target-2026": ("mobilenet_v2-until-top1-target",),
    "h200-until-top1-2026": ("mobilenet_v2-until-top1-target",),
    "h200-variants-2026": ("batch-size-ways-variant-pre-resized",),
    "h200x2-2026": ("mobilenet_v2-2gpu-growth", "mobilenet_v2-2gpu-ways-strategy-ddp"),
    "h200x2-network-size-2026": ("network-size-networks",),
    "h200x4-2026": ("resnet34-4gpu-growth", "mobilenet_v2-4gpu-growth"),
    "h200x4-groups-2026": ("mobilenet_v2-together-together", "mobilenet_v3_large-together-together"),
    "h200x4-scaling-2026": ("batch-size-devices-ddp", "batch-size-breakdown"),
    "titan-xp-2021": ("resnet34-4gpu-growth", "mobilenet_v2-v7-v11-ways-variant-pre-resized"),
}
"""Results folder -> the pictures on its page."""


def draw_pictures(folder: Path, pictures: Iterable[Picture]) -> Iterator[tuple[Path, bytes]]:
    """Each path in a results folder with what is to stand there."""
    for picture in pictures:
        path = folder / "plots" / f"{make_safe_file_name(picture.name, 'picture')}.svg"
        yield path, draw_file_bytes(picture.description, "svg")


def list_main(home: Path, name: str) -> list[Picture]:
    """The pictures of a folder's page, in their order there. `home`: the folder that holds the results folders."""
    pictures = {
        picture.name: picture
        for report in make_folder_reports([read_folder(home / name, _refuse)])
        for picture in list_pictures(report)
    }
    return [pictures[wanted] for wanted in PICTURES[name]]


def begin_page(pictures: Sequence[Picture]) -> str:
    """What stands below the heading of a folder's page: what was found, and its pictures."""
    found = " ".join(f"**{picture.title}.**" for picture in pictures)
    shown = [
        f"![{picture.title}](plots/{make_safe_file_name(picture.name, 'picture')}.svg)"
        for picture in pictures
    ]
    return "\n\n".join([found, *shown])


def _refuse(line: str) -> None:
    raise UnusableError(line)


if __name__ == "__main__":
    try:
        home = Path(sys.argv[1] if len(sys.argv) > 1 else "results")
        for name in PICTURES:
            for path, content in draw_pictures(home / name, list_main(home, name)):
                write_whole(path, content)
                print(path)
    except GpubenchError as error:
        sys.exit(f"gpubench: {error}")
