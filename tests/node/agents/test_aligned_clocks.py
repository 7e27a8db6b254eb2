"""Clocks of several nodes: times of another one, brought onto the first one's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from gpubench.node.agents.clock import ROUND_TRIPS, Clocks, best, reading, same

WINDOWS_AGREE_S = 0.005


@dataclass
class Far:
    """Another node's clock beside a true time, which is the first node's: shifted, too fast or too slow."""

    shift: float
    pace: float

    def at(self, now: float) -> float:
        return (1 + self.pace) * now + self.shift


def round_trips(far: Far, now: float, ways: Iterator[float]) -> Iterator[tuple[float, float, float]]:
    """Questions one after the other from `now` on: sent, what the far clock said, received."""
    for _ in range(ROUND_TRIPS):
        there, back = next(ways), next(ways)
        yield now, far.at(now + there), now + there + back
        now += there + back


ways = st.lists(st.floats(0, 0.004), min_size=4 * ROUND_TRIPS, max_size=4 * ROUND_TRIPS)


@given(
    shift=st.floats(-1e6, 1e6),
    pace=st.floats(-1e-4, 1e-4),
    began=st.floats(0, 1e6),
    lasted=st.floats(1.0, 1e5),
    where=st.floats(0, 1),
    delays=ways,
)
def test_windows_of_both_nodes_agree_within_5_ms(
    shift: float, pace: float, began: float, lasted: float, where: float, delays: list[float]
) -> None:
    """Whatever the far clock shows, and however differently fast both ways are: 4 ms at most each."""
    far, each = Far(shift, pace), iter(delays)
    first, last = (
        best(reading(*one) for one in round_trips(far, now, each)) for now in (began, began + lasted)
    )
    clocks = Clocks(begin=first, end=last)
    moment = began + where * lasted
    off = abs(clocks.aligned(far.at(moment)) - moment)
    # Rounding of clocks that show up to 1e6 s, and their drift within the round trips themselves.
    assert off <= clocks.error_s + 1e-5
    assert off < WINDOWS_AGREE_S


def test_the_surest_round_trip_counts_and_half_of_it_is_the_error() -> None:
    slow, fast = reading(10.0, 115.0, 10.8), reading(20.0, 125.02, 20.04)
    found = best([slow, fast])
    assert found == fast
    assert (round(found.offset, 9), round(found.error, 9), found.at) == (-105.0, 0.02, 20.02)


def test_the_first_node_s_own_times_stay() -> None:
    assert same().aligned(123.456) == 123.456
    assert same().error_s == same().drift_s == 0.0


def test_drift_counts_by_how_much_of_the_trial_has_passed_and_not_beyond_it() -> None:
    clocks = Clocks(begin=reading(100.0, 0.0, 100.0), end=reading(200.0, 99.0, 200.0))
    assert clocks.drift_s == 1.0
    assert [clocks.aligned(t) for t in (0.0, 49.5, -5.0)] == [100.0, 150.0, 95.0]
    assert clocks.aligned(110.0) == 211.0
