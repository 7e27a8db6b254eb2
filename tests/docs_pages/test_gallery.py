"""The pictures on the pages of the committed results are those that gpubench draws of them."""

from __future__ import annotations

import committed
import pytest
from docs_pages import gallery

LARGEST = 60_000


@pytest.mark.slow
def test_they_are_up_to_date() -> None:
    """If not: `PYTHONPATH=tests python -m docs_pages.gallery`."""
    folders = [committed.folder(name) for name in gallery.PICTURES]
    drawn = dict(gallery.draw_pictures(committed.HOME))
    assert set(drawn) == {path for folder in folders for path in (folder / "plots").iterdir()}
    for path, content in drawn.items():
        assert path.read_bytes() == content, path


@pytest.mark.parametrize("name", gallery.PICTURES)
def test_they_are_small_and_load_nothing(name: str) -> None:
    for path in (committed.folder(name) / "plots").iterdir():
        content = path.read_bytes()
        assert len(content) < LARGEST, path
        assert b'href="http' not in content


@pytest.mark.parametrize("name", gallery.PICTURES)
def test_each_page_begins_with_what_was_found_and_the_main_picture(name: str) -> None:
    page = (committed.folder(name) / "README.md").read_text("utf-8")
    _, _, text = page.partition("\n\n")
    assert text.startswith(gallery.begin_page(committed.HOME, name) + "\n\n")
