"""Many images: announced, asked for on a terminal, made."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
from collections.abc import Sequence

import pytest
from place import LIMIT_S, Place


@pytest.mark.slow
def test_without_a_terminal_many_images_are_announced_and_made(place: Place) -> None:
    started = place.start("sweep", "--device", "cpu", "--data", "procedural:3000")
    assert started.stderr is not None
    lines = [started.stderr.readline() for _ in range(3)]
    started.kill()
    started.communicate()
    assert "3,000 + 300 images" in lines[1]
    assert re.match(
        rf".* 0\.3 GB in {place.home}/images; .*"
        r"--data procedural:640.*--data FOLDER.* no terminal .*\n",
        lines[2],
    )


def _on_a_terminal(place: Place, answer: bytes, *arguments: str) -> tuple[int, str]:
    """Exit code and screen of a sweep whose user types `answer` where they are asked; Ctrl-C once images are made."""
    ours, theirs = pty.openpty()
    running = place.warm.start(
        ("sweep", "--device", "cpu", *arguments), cwd=place.home, env=place.environment,
        stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    screen, answered, stopped = "", False, False
    while select.select([ours], [], [], LIMIT_S)[0]:
        try:
            screen += os.read(ours, 4096).decode(errors="replace")
        except OSError:  # nobody holds the other end any more
            break
        if "[Y/n]" in screen and not answered:
            answered = True
            os.write(ours, answer)
        if "making images" in screen and not stopped:
            stopped = True
            running.send_signal(signal.SIGINT)
    os.close(ours)
    return running.wait(LIMIT_S), screen


@pytest.mark.slow
@pytest.mark.parametrize("answer", [b"n\n", b"\x04"])
def test_on_a_terminal_it_asks_before_it_makes_many_images(place: Place, answer: bytes) -> None:
    code, screen = _on_a_terminal(place, answer, "--data", "procedural")
    assert code == 75
    assert "about 1.1 GB" in screen
    assert f"GB of images in {place.home}/images? [Y/n]" in screen.replace("\r\n", "")
    assert "nothing was made" in screen
    assert place.files() <= {"results"}


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [("--data", "procedural:3000", "--yes"), ()])
def test_nobody_is_asked_with_yes_and_for_few_images(place: Place, arguments: Sequence[str]) -> None:
    code, screen = _on_a_terminal(place, b"", *arguments)
    assert code == 75
    assert "[Y/n]" not in screen
    assert "There is no terminal" not in screen
