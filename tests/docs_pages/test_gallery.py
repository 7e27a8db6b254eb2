"""The pictures on the pages of the committed results are those that gpubench draws of them."""

from __future__ import annotations

import re

import committed
import pytest
from docs_pages import gallery

LARGEST = 60_000


@pytest.mark.slow
@pytest.mark.parametrize("name", committed.cases(gallery.PICTURES))
def test_a_page_begins_with_what_was_found_and_its_pictures_are_up_to_date(name: str) -> None:
    """If not: `PYTHONPATH=tests python -m docs_pages.gallery`."""
    folder = committed.folder(name)
    pictures = gallery.list_main(committed.HOME, name)
    _, _, text = (folder / "README.md").read_text("utf-8").partition("\n\n")
    assert text.startswith(gallery.begin_page(pictures) + "\n\n")
    drawn = dict(gallery.draw_pictures(folder, pictures))
    assert set(drawn) == set((folder / "plots").iterdir())
    for path, content in drawn.items():
        assert round_coordinates(path.read_bytes()) == round_coordinates(content), path
        assert len(content) < LARGEST, path
        width = re.search(rb'width="([\d.]+)"', content)
        assert width is not None
        assert 560 <= float(width[1]) <= 720, "seven inches and a half at most"
        assert b'href="http' not in content, "it loads nothing"


def round_coordinates(svg: bytes) -> bytes:
    """Without the last digits of its long numbers, in which processors of different kinds differ."""
    return re.sub(rb"\d+\.\d{4,}", lambda number: b"%.6g" % float(number[0]), svg)
