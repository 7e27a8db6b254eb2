"""The pictures on the pages of the committed results are those that gpubench draws of them."""

from __future__ import annotations

from pathlib import Path

import committed
import pytest
from docs_pages import gallery

LARGEST = 60_000


@pytest.fixture(scope="module")
def drawn() -> dict[Path, bytes]:
    for name in gallery.PICTURES:
        committed.folder(name)
    return dict(gallery.draw_pictures(committed.HOME))


@pytest.mark.slow
def test_they_are_up_to_date(drawn: dict[Path, bytes]) -> None:
    """If not: `PYTHONPATH=tests python -m docs_pages.gallery`."""
    for path, content in drawn.items():
        assert path.read_bytes() == content, path


def test_they_are_small_and_load_nothing(drawn: dict[Path, bytes]) -> None:
    for path, content in drawn.items():
        assert len(content) < LARGEST, path
        assert b'href="http' not in content


@pytest.mark.parametrize("name", gallery.PICTURES)
def test_each_page_begins_with_what_was_found_and_the_main_picture(name: str) -> None:
    page = (committed.folder(name) / "README.md").read_text("utf-8")
    _, _, text = page.partition("\n\n")
    assert text.startswith(gallery.begin_page(committed.HOME, name) + "\n\n")


def test_no_other_picture_lies_there(drawn: dict[Path, bytes]) -> None:
    listed = {path for name in gallery.PICTURES for path in (committed.HOME / name / "plots").iterdir()}
    assert listed == set(drawn)
