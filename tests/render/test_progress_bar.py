"""How far work on many images is, where stderr is no terminal."""

from __future__ import annotations

import sys

import pytest

from gpubench.render.progress_bar import show_progress


def test_off_a_terminal_a_line_says_what_is_done_and_one_every_ten_seconds_how_far_it_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    times = iter([0.0, 0.3, 9.9, 10.1, 15.0, 20.2])
    with show_progress("making images", work="making some here", clock=lambda: next(times)) as progress:
        for done in (0, 100, 3000, 3200, 5000, 6400):
            progress(done, 11_264)
    out, err = capsys.readouterr()
    assert (out, err.splitlines()) == (
        "",
        [
            "making some here (11,264 in all)",
            "making images: 3,200 of 11,264",
            "making images: 6,400 of 11,264",
        ],
    )


def test_nothing_is_said_of_what_was_done_before_or_is_done_soon_nor_where_it_shall_be_quiet(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with show_progress("making images", work="making images in here"):
        pass
    with show_progress("trying all images", clock=lambda: 0.0) as progress:
        progress(0, 5)
        progress(5, 5)
    with show_progress("making images", quiet=True) as progress:
        progress(0, 5)
    assert capsys.readouterr() == ("", "")


def test_a_reader_who_has_left_does_not_end_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone:
        encoding = "utf-8"

        def isatty(self) -> bool:
            return False

        def write(self, _: str) -> int:
            raise BrokenPipeError

        def flush(self) -> None:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Gone())
    with show_progress("resizing", work="resizing a in b") as progress:
        progress(0, 5)
