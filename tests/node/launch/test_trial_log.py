"""A log keeps its beginning and its end, however much is printed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpubench.node.launch import trial_log
from gpubench.node.launch.trial_log import TrialLog


def test_a_short_log_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"first\nlast\n\n")
    log = TrialLog(path)
    log.punch_middle_hole()
    log.cut_middle()
    assert path.read_bytes() == b"first\nlast\n\n"
    assert log.read_last_words() == "last"


def test_of_a_long_log_the_first_and_the_last_megabytes_are_left(tmp_path: Path) -> None:
    path = tmp_path / "log"
    head, middle, tail = (letter * (2 << 20) for letter in (b"a", b"b", b"c"))
    path.write_bytes(head + 3 * middle + tail)
    TrialLog(path).cut_middle()
    told = "\n… gpubench left out 6,291,456 bytes of this log …\n".encode()
    assert path.read_bytes() == head + told + tail


def test_the_middle_takes_no_room_while_its_processes_still_print(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = TrialLog(path)
    with path.open("ab") as file:
        for number in range(60):
            file.write(bytes([65 + number % 26]) * (1 << 20))
            file.flush()
            os.fsync(file.fileno())
            log.punch_middle_hole()
            held = 512 * path.stat().st_blocks
            if held > number * (1 << 20) and number > 40:
                pytest.skip("this file system knows no holes")
            assert held < trial_log.HEAD_BYTES + trial_log.LOOSE_BYTES + trial_log.TAIL_BYTES + (3 << 20)
    log.cut_middle()
    kept = path.read_bytes()
    assert kept.startswith(b"A" * (1 << 20) + b"B" * (1 << 20))
    assert kept.endswith(b"G" * (1 << 20) + b"H" * (1 << 20))
    assert len(kept) < (5 << 20)
