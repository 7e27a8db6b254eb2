"""One NVML for several watchers: how often the driver is asked, and that its answers are the same."""

from __future__ import annotations

from typing import Any

import pytest
from fake_nvml import Counted, FakeNvml, calls_of_the_seam, gpu, running
from hypothesis import given
from hypothesis import strategies as st

from gpubench.node.watch import metrics
from gpubench.node.watch.cached_nvml import CACHE_S, CachedNvml, uncached
from gpubench.node.watch.nvml import Nvml, NvmlError
from gpubench.node.watch.nvml_calls import CALLS, ENERGY, PROCESSES

G0, G1 = gpu(0).uuid, gpu(1).uuid
SEAM = sorted(calls_of_the_seam())
REMEMBERED = {name for name, call in CALLS.items() if call.is_cacheable}
"""Calls of which an answer that is a moment old serves several watchers."""


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def ask(nvml: Nvml, call: str, uuid: str) -> Any:
    return nvml.history(uuid, "power_w", 0.0) if call == "history" else nvml.ask(CALLS[call], uuid)


def busy() -> FakeNvml:
    return FakeNvml(
        answers={
            "utilisation": running({G0: 90, G1: 70}, {G0: 40, G1: 20}),
            "memory": {G0: 700, G1: 800},
            "power_w": {G0: 500, G1: 300},
            "processes": {G0: [(7, 5000)], G1: [(8, None)]},
            "energy_j": {G0: 1e6, G1: 2e6},
            "sm_clock_mhz": {G0: 1755, G1: 1980},
            "throttle_mask": {G0: 4},
        },
        buffers={(G0, "power_w"): [(1.0, 500.0)]},
    )


def test_what_watchers_sample_is_remembered() -> None:
    sampled = {metric.call.name for metric in (*metrics.RATES, *metrics.TOTALS)}
    assert {*sampled, "processes", "energy_j"} <= REMEMBERED


@pytest.mark.parametrize("call", SEAM)
def test_within_a_moment_the_driver_is_asked_once_a_gpu(call: str) -> None:
    inner, clock = Counted(busy()), Clock()
    shared: Nvml = CachedNvml(inner, clock)
    for _ in range(3):
        for uuid in (G0, G1):
            assert ask(shared, call, uuid) == ask(inner.inner, call, uuid)
        clock.now += CACHE_S / 4
    assert inner.made[call] == (2 if call in REMEMBERED else 6)
    clock.now += CACHE_S
    ask(shared, call, G0)
    assert inner.made[call] == (3 if call in REMEMBERED else 7)


@pytest.mark.parametrize("call", sorted(REMEMBERED))
def test_a_failure_is_remembered_as_one_and_passes(call: str) -> None:
    fake, clock = busy(), Clock()
    inner = Counted(fake)
    shared = CachedNvml(inner, clock)
    fake.broken = {call}
    for _ in range(2):
        with pytest.raises(NvmlError, match="Not Supported"):
            ask(shared, call, G0)
    assert inner.made[call] == 1
    fake.error = "GPU is lost"
    clock.now += 2 * CACHE_S
    for _ in range(2):
        with pytest.raises(NvmlError) as caught:
            ask(shared, call, G0)
        assert caught.value.kind == "lost"
    fake.broken = set()
    clock.now += 2 * CACHE_S
    assert ask(shared, call, G0) == ask(fake, call, G0)


def test_a_list_that_one_asker_changes_is_not_the_next_one_s() -> None:
    shared = CachedNvml(busy(), Clock())
    shared.ask(PROCESSES, G0).clear()
    assert shared.ask(PROCESSES, G0) == [(7, 5000)]


def test_what_is_no_call_is_the_driver_s_own() -> None:
    fake = busy()
    fake.unreadable = {3: "GPU is lost"}
    shared = CachedNvml(fake, Clock())
    assert (shared.devices, shared.driver, shared.unreadable, shared.power_source) == (
        fake.devices,
        fake.driver,
        fake.unreadable,
        fake.power_source,
    )


def test_what_must_be_exact_goes_to_the_driver() -> None:
    fake = busy()
    shared = CachedNvml(fake, Clock())
    assert shared.ask(PROCESSES, G0) == [(7, 5000)]
    fake.answers["processes"][G0] = [(7, 6000)]
    assert shared.ask(PROCESSES, G0) == [(7, 5000)]
    assert uncached(shared).ask(PROCESSES, G0) == [(7, 6000)]
    assert uncached(fake) is fake


def test_each_asker_gets_all_of_the_driver_s_samples() -> None:
    fake = busy()
    fake.buffers[G0, "power_w"] = [(float(t), 10.0 * t) for t in range(10)]
    shared = CachedNvml(fake, Clock())
    assert [t for t, _ in shared.history(G0, "power_w", 6.0)] == [7, 8, 9]
    assert [t for t, _ in shared.history(G0, "power_w", 3.0)] == [4, 5, 6, 7, 8, 9], (
        "though another asked for less"
    )


@given(st.lists(st.tuples(st.floats(0, 0.2), st.sampled_from([G0, G1])), max_size=60))
def test_no_answer_is_older_than_a_moment(asked: list[tuple[float, str]]) -> None:
    """The fake's counter is the time: an answer tells when it was given."""
    clock, fake = Clock(), FakeNvml()
    shared = CachedNvml(fake, clock)
    for pause, uuid in asked:
        clock.now += pause
        fake.answers["energy_j"] = {G0: clock.now, G1: -clock.now}
        age = clock.now - abs(shared.ask(ENERGY, uuid))
        assert 0 <= age < CACHE_S
        assert (shared.ask(ENERGY, uuid) > 0) == (uuid == G0)
