"""A bound on the CPU time of what would never end."""

from __future__ import annotations

import re
import signal
import time

import pytest

from gpubench.script.time_limit import CpuTimeError, limit_cpu_time


def test_a_search_that_would_take_years_ends() -> None:
    with pytest.raises(CpuTimeError), limit_cpu_time(0.2):
        re.search("(a+)+$", "a" * 100 + "b")
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0, 0)


def test_what_waits_uses_none_of_it_and_nothing_comes_later() -> None:
    with limit_cpu_time(0.2):
        time.sleep(0.3)
    end = time.process_time() + 0.3
    while time.process_time() < end:
        pass
