"""The parts of a step over several ranks."""

from __future__ import annotations

from typing import Any

import pytest
import scripted
from msgspec import structs

from gpubench.record.training import summarize_breakdown
from gpubench.schema.events import BreakdownTimes, Result

STEP_TIMES = {"copy_ms": 1.0, "forward_ms": 20.0, "backward_ms": 40.0, "optimizer_ms": 5.0, "step_ms": 80.0}
COMM = ("comm_ms", "comm_hidden_ms", "comm_pct", "slowest_rank")


def told(rank: int, *, comm: float | None = 10.0, alone: str | None = None, **more: Any) -> Result:
    times = STEP_TIMES | {"comm_ms": comm, "comm_hidden_ms": 2.0, "cost_pct": 0.5}
    return structs.replace(
        scripted.RESULT,
        rank=rank,
        breakdown=BreakdownTimes(**times | more),
        no_exchange=alone,
        exchange_mib=8.0,
    )


def without_breakdown(result: Result) -> Result:
    return structs.replace(result, breakdown=None)


def test_times_are_the_ranks_means() -> None:
    found, missing = summarize_breakdown([told(0, comm=12.0, copy_ms=3.0), told(1, comm=4.0)])
    assert found == {
        "copy_ms": 2.0, "forward_ms": 20.0, "backward_ms": 40.0, "optimizer_ms": 5.0,
        "comm_ms": 8.0, "comm_hidden_ms": 2.0, "comm_pct": pytest.approx(10.0), "comm_mib_per_step": 8.0,
        "slowest_rank": 1, "breakdown_cost_pct": 0.5,
    }  # fmt: skip
    assert missing == {}


@pytest.mark.parametrize(
    ("waits", "slowest"), [((9.0, 3.0, 8.0), 1), ((9.0, 9.0, 9.5), None), ((0.0, 1.6), 0)]
)
def test_the_slowest_rank_waits_least(waits: tuple[float, ...], slowest: int | None) -> None:
    found, missing = summarize_breakdown([told(rank, comm=wait) for rank, wait in enumerate(waits)])
    assert found["slowest_rank"] == slowest
    assert ("slowest_rank" in missing) is (slowest is None)


def test_ranks_are_named_not_counted() -> None:
    found, _ = summarize_breakdown([told(1, comm=9.0), told(0, comm=1.0)])
    assert found["slowest_rank"] == 0


def test_one_process_exchanges_nothing() -> None:
    found, missing = summarize_breakdown([told(0, alone="one process")])
    assert found["forward_ms"] == 20.0
    assert set(missing) == {*COMM, "comm_mib_per_step"}
    assert set(missing.values()) == {"one process"}


def test_without_a_breakdown_the_exchange_is_still_known() -> None:
    found, missing = summarize_breakdown([without_breakdown(told(rank)) for rank in range(2)])
    assert found == {"comm_mib_per_step": 8.0}
    assert set(missing) == {
        "copy_ms",
        "forward_ms",
        "backward_ms",
        "optimizer_ms",
        *COMM,
        "breakdown_cost_pct",
    }
    _, missing = summarize_breakdown([without_breakdown(told(0, alone="one process"))])
    assert missing["comm_ms"] == "one process"
    assert "--breakdown" in missing["copy_ms"]


def test_a_cost_that_could_not_be_told_says_why() -> None:
    found, missing = summarize_breakdown([told(0, cost_pct=None), told(1, cost_pct=None)])
    assert "breakdown_cost_pct" not in found
    assert missing["breakdown_cost_pct"].startswith("too few steps")


def test_ranks_that_say_nothing_of_it_have_no_figures() -> None:
    found, missing = summarize_breakdown([scripted.RESULT])
    assert not any(found.values())
    assert "comm_ms" in missing
