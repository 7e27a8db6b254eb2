"""What a sweep in rounds shows on a real terminal of 80 columns, and what it leaves there."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from screen import Screen
from warm_command import WarmCommand

SWEEP = (
    "sweep", "--device", "cpu", "--variant", "synthetic", "--model", "lenet", "--set", "input_size=28",
    "--set", "num_classes=4", "--set", "train_images=64", "--epochs", "1", "--set", "warmup_epochs=0",
    "--batch-size", "16,32",
)  # fmt: skip


class Terminal:
    """A sweep on a terminal of 80 × 24; `pictures` are all different screens that it showed.

    Without a warm process that starts it, it imports torch itself.
    """

    def __init__(self, folder: Path, *more: str, warm: WarmCommand | None = None) -> None:
        self._file, terminal = os.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "CI")}
        words = [*SWEEP, *more, "--out", str(folder)]
        streams = {"stdin": terminal, "stdout": terminal, "stderr": terminal, "start_new_session": True}
        if warm is None:
            cold = [sys.executable, "-m", "gpubench", *words]
            self.sweep = subprocess.Popen(cold, env=env | {"TERM": "xterm", "PYTHONUTF8": "1"}, **streams)
        else:
            self.sweep = warm.start(words, cwd=folder.parent, env=env | {"TERM": "xterm"}, **streams)
        os.close(terminal)
        self.screen = Screen(80, 24)
        self.pictures: list[str] = []
        self._rest = b""

    def until(self, pattern: str) -> None:
        """Reads on until the screen shows this, or the sweep has ended; `$` alone: until it has ended."""
        with contextlib.suppress(OSError):  # the other end is closed
            while some := os.read(self._file, 100_000):
                self._feed(some)
                if pattern != "$" and re.search(pattern, self.pictures[-1]):
                    return

    def _feed(self, some: bytes) -> None:
        # One write may come in pieces, cut inside a sign or a sequence.
        whole, cut, rest = (self._rest + some).rpartition(b"\n" if b"\n" in some else b"\r")
        self.screen.feed((whole + cut).decode())
        self._rest = rest
        self.pictures.append("\n".join(self.screen.seen))

    def end(self) -> int:
        self.until("$")
        self.screen.feed(self._rest.decode())
        os.close(self._file)
        return self.sweep.wait()


@pytest.mark.slow
def test_the_table_stands_from_the_start_and_is_gone_in_the_end(
    tmp_path: Path, warm_command: WarmCommand
) -> None:
    terminal = Terminal(tmp_path / "out", "--rounds", "3", warm=warm_command)
    assert terminal.end() == 0
    first = [picture for picture in terminal.pictures if "round 1 of 3  " in picture]
    empty = r"batch  images/s .*epoch s.*\n─.*\n +16.*\n +32\n\nround 1 of 3  "
    assert any(re.search(empty, picture) for picture in first)
    second = [one for one in terminal.pictures if "round 2 of 3  ━" in one]
    assert second, "a bar for each round"
    rows = r"\n +16 +\d.*\n +32 +\d.*\nso far: (16|32) leads\n\nround 2 of 3  ━"
    assert any(re.search(rows, one) for one in second)
    third = [one for one in terminal.pictures if "round 3 of 3  ━" in one]
    assert any(re.search(r"\n +16 .*±.*\n +32 .*±.*\n", one) for one in third)
    assert any(re.search(r"about \d+ (s|min) left", one) for one in third)
    left = "\n".join(terminal.screen.lines)
    assert "━" not in left, "the live one has gone"
    assert left.count("epoch s") == 1, "the table is printed once"
    assert "3 processes a row" in left
    widest = r"widest interval ±.* %? ?\(batch \d\d\)"
    endings = ["each row is of one process; about", rf"{widest}; about .* left", rf"{widest}\n"]
    for number, ending in enumerate(endings, start=1):
        assert re.search(rf"round {number} of 3: (16|32) leads; {ending}", left)
    assert terminal.screen.cursor


@pytest.mark.slow
def test_ctrl_c_takes_the_live_table_away_and_prints_the_whole_one(
    tmp_path: Path, warm_command: WarmCommand
) -> None:
    terminal = Terminal(tmp_path / "out", "--rounds", "50", warm=warm_command)
    terminal.until("round 2 of 50  ")
    terminal.sweep.send_signal(signal.SIGINT)
    assert terminal.end() == 75
    left = "\n".join(terminal.screen.lines)
    assert "of 2 done" not in left
    assert left.count("epoch s") == 1
    assert left.splitlines()[-1].startswith("stopped; ")
