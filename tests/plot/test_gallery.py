"""The pictures on the pages of the committed results are those that gpubench draws of them."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import committed
import matplotlib
import pytest
from docs_pages import gallery

LARGEST = 60_000


@pytest.fixture(scope="module")
def drawn() -> dict[Path, bytes]:
    for name in gallery.PICTURES:
        committed.folder(name)
    return dict(gallery.pictures(committed.HOME))


def words(picture: bytes) -> list[str]:
    return [
        "".join(text.itertext())
        for text in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")
    ]


def test_they_are_up_to_date(drawn: dict[Path, bytes]) -> None:
    """If not: `PYTHONPATH=tests python -m docs_pages.gallery`."""
    for path, made in drawn.items():
        there = path.read_bytes()
        assert sorted(words(there)) == sorted(words(made)), path
        if matplotlib.__version__ == gallery.DRAWN_WITH:
            assert there == made, path


def test_they_are_small_and_load_nothing(drawn: dict[Path, bytes]) -> None:
    for path in drawn:
        told = path.read_text("utf-8")
        assert len(told) < LARGEST, path
        assert 'href="http' not in told


def test_each_stands_on_its_folder_s_page(drawn: dict[Path, bytes]) -> None:
    for path in drawn:
        page = path.parents[1] / "README.md"
        assert f"](plots/{path.name})" in page.read_text("utf-8"), path


def test_no_other_picture_lies_there(drawn: dict[Path, bytes]) -> None:
    listed = {path for name in gallery.PICTURES for path in (committed.HOME / name / "plots").iterdir()}
    assert listed == set(drawn)
