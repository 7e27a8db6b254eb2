"""The clock of a window: step times, edges, and the share in which the device starved."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
import torch

from gpubench.node.launch.channel import LARGEST
from gpubench.schema.validation import convert_to_plain
from gpubench.train.device_assignment import DeviceAssignment
from gpubench.train.loop import list_step_messages
from gpubench.train.timing import CudaStepClock, TimedWindow, make_step_clock

STEPS = 12


def assignment(device):
    return DeviceAssignment(rank=0, world=1, devices=(torch.device(device),), rendezvous=Path("none"))


def window(clock, load, step):
    clock.begin_window()
    for _ in range(STEPS):
        load()
        clock.mark_batch()
        step()
        clock.mark_step()
    return clock.end_window()


def test_on_the_host_all_of_next_is_wait():
    found = window(make_step_clock(assignment("cpu")), lambda: time.sleep(0.02), lambda: time.sleep(0.01))
    # A sleep may last longer beside other tests, never shorter.
    assert sum(found.wait_s) >= STEPS * 0.02
    assert found.seconds - sum(found.wait_s) >= STEPS * 0.01
    assert sum(found.step_s) == pytest.approx(found.seconds, rel=0.01)
    assert len(found.step_s) == STEPS
    assert 0.02 <= found.first_batch_s <= sum(found.wait_s) - (STEPS - 1) * 0.02


def test_the_steps_of_a_long_epoch_fit_into_messages():
    """40,000 of them, as ImageNet has in batches of 32, and each slow enough to need many digits."""
    count = 40_000
    long = TimedWindow(
        t0=0.0, t1=5.0 * count, step_s=[5.0] * count, wait_s=[4.123456789] * count, first_batch_s=4.123456789
    )
    messages = list(list_step_messages(long, 63, 89))
    for message in messages:
        sent = json.dumps(convert_to_plain(message), separators=(",", ":"))
        assert len(sent) <= LARGEST
    ends = [end for message in messages for end in message.end_us]
    waits = [wait for message in messages for wait in message.wait_us]
    assert ends == [5_000_000 * (k + 1) for k in range(count)]
    assert waits == [4_123_457] * count


def slow_to_start():
    """A loader whose first batch alone takes long."""
    waits = iter([0.3])
    return lambda: time.sleep(next(waits, 0))


class HostEvent:
    """A CUDA event that the host's clock stands in for."""

    def __init__(self):
        self.at = time.monotonic()

    def elapsed_time(self, later):
        return 1e3 * (later.at - self.at)

    def synchronize(self):
        pass


@pytest.mark.parametrize("kind", ["host", "events", pytest.param("gpu", marks=pytest.mark.gpu)])
def test_the_wait_for_the_first_batch_is_a_wait_too(kind, request, monkeypatch):
    step = request.getfixturevalue("busy") if kind == "gpu" else time.sleep
    if kind == "events":
        monkeypatch.setattr(CudaStepClock, "_record_event", lambda _: HostEvent())
    clock = (
        CudaStepClock(assignment("cpu"))
        if kind == "events"
        else make_step_clock(assignment("cuda:0" if kind == "gpu" else "cpu"))
    )
    found = window(clock, slow_to_start(), lambda: step(0.01))
    assert len(found.wait_s) == STEPS
    assert sum(found.wait_s) == pytest.approx(0.3, abs=0.05)
    assert found.wait_s[0] == pytest.approx(found.first_batch_s, abs=0.05)


@pytest.fixture
def busy():
    """Keeps the GPU busy for so many seconds, as the device's own clock counts them."""
    torch.cuda._sleep(300_000_000)  # until its clock has gone up
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    torch.cuda._sleep(100_000_000)
    end.record()
    end.synchronize()
    cycles_a_second = 100_000_000 / (start.elapsed_time(end) / 1e3)
    return lambda seconds: torch.cuda._sleep(int(seconds * cycles_a_second))


@pytest.mark.gpu
def test_a_loader_that_keeps_up_behind_the_step_is_no_wait(busy):
    found = window(make_step_clock(assignment("cuda:0")), lambda: time.sleep(0.005), lambda: busy(0.03))
    # The device must starve for the first batch; nothing can be in flight yet.
    assert sum(found.wait_s) == pytest.approx(0.005, abs=0.01)
    assert sorted(found.step_s)[STEPS // 2] == pytest.approx(0.03, rel=0.15)
    assert sum(found.step_s) == pytest.approx(found.seconds, rel=0.05)


@pytest.mark.gpu
def test_a_loader_that_is_too_slow_is_waited_for_only_while_the_device_idles(busy):
    found = window(make_step_clock(assignment("cuda:0")), lambda: time.sleep(0.03), lambda: busy(0.01))
    assert 0.02 * (STEPS - 1) * 0.8 < sum(found.wait_s) < 0.03 * STEPS * 1.1
    assert sum(found.wait_s) / found.seconds > 0.5


@pytest.mark.gpu
def test_a_host_that_is_too_slow_to_launch_is_no_data_wait(busy):
    def step():
        time.sleep(0.02)  # Python, between batch and launch: the device idles, but not for data
        busy(0.005)

    found = window(make_step_clock(assignment("cuda:0")), lambda: None, step)
    assert sum(found.wait_s) < 0.02


@pytest.mark.gpu
def test_at_most_two_steps_are_in_flight(busy):
    ahead = []
    clock = make_step_clock(assignment("cuda:0"))
    clock.begin_window()
    began = time.monotonic()
    for number in range(STEPS):
        clock.mark_batch()
        busy(0.02)
        clock.mark_step()
        ahead.append(number + 1 - (time.monotonic() - began) / 0.02)
    clock.end_window()
    assert max(ahead[3:]) < 1.6
