"""From what network size more devices are faster: the order of the steps, the two ends, and the smallest network."""

from __future__ import annotations

from typing import Any

import pytest
from made_up_tables import make_table, scatter

from gpubench.analyze import network_size
from gpubench.analyze.table_rows import TableRows
from gpubench.core.findings import NetworkSizeFinding
from gpubench.stats.decisions import decide_claims

QUIET = (-0.01, 0.0, 0.012)
LOUD = (-0.4, 0.0, 0.5)


def measure(
    *networks: tuple[str, float, float], deviations: tuple[float, ...] = QUIET, **facts: Any
) -> list[dict[str, Any]]:
    """Rows on one GPU and on two of networks with these names, GMACs and speed-ups."""
    rows: list[dict[str, Any]] = []
    for name, gmacs, speed_up in networks:
        common = {"model": name, "gmacs_per_image": gmacs, "batch_size": 64, **facts}
        first = len(rows) + 10
        rows += [
            {**common, "gpus": 1, "strategy": "single", "epoch_time_s": [1.0] * len(deviations)},
            {
                **common, "gpus": 2, "strategy": "ddp", "strong_baseline": first,
                "epoch_time_s": scatter(1 / speed_up, *deviations),
            },
        ]  # fmt: skip
    return rows


def answer(table: TableRows) -> list[NetworkSizeFinding]:
    return network_size.make_findings(table, decide_claims(network_size.make_claims(table)))


def test_the_smallest_network_from_which_on_all_are_faster() -> None:
    table = make_table(
        measure(("large", 8.0, 1.7), ("tiny", 0.1, 0.7), ("small", 0.5, 0.8), ("middle", 2.0, 1.5))
    )
    (finding,) = answer(table)
    assert [table.get(claim.candidate, "model") for claim in finding.claims] == [
        "tiny",
        "small",
        "middle",
        "large",
    ]
    assert [claim.decided.direction for claim in finding.claims] == ["less", "less", "more", "more"]
    assert [claim.design for claim in finding.claims] == ["ordered"] * 4
    assert all(claim.evidence.welch is None for claim in finding.claims)
    assert finding.first_faster is not None
    assert table.get(finding.first_faster, "model") == "middle"
    assert (finding.gmacs, finding.devices, finding.strategy, finding.word) == (2.0, 2, "ddp", "sure")


def test_a_gap_ends_the_chain_of_faster_networks() -> None:
    faster = measure(("tiny", 0.1, 1.9), ("small", 0.5, 1.8))
    table = make_table([*faster, *shift(measure(("middle", 2.0, 1.05), deviations=LOUD), 4),
                        *shift(measure(("large", 8.0, 1.7)), 6)])  # fmt: skip
    (finding,) = answer(table)
    assert finding.first_faster is not None
    assert table.get(finding.first_faster, "model") == "large"
    assert finding.claims[2].decided.word == "unknown"


def shift(rows: list[dict[str, Any]], places: int) -> list[dict[str, Any]]:
    """Rows that stand further down in a table."""
    return [
        {**row, "strong_baseline": row["strong_baseline"] + places} if "strong_baseline" in row else row
        for row in rows
    ]


def test_where_the_largest_is_not_faster_no_network_is_named() -> None:
    networks = ("tiny", 0.1, 0.7), ("small", 0.5, 0.75), ("middle", 2.0, 0.8)
    (finding,) = answer(make_table(measure(*networks)))
    assert (finding.first_faster, finding.gmacs, finding.word) == (None, None, "sure")
    (unknown,) = answer(make_table(measure(*networks, deviations=LOUD)))
    assert (unknown.first_faster, unknown.word) == (None, "unknown")


def test_fewer_than_three_networks_ask_nothing_and_unknown_sizes_are_in_none() -> None:
    networks = ("tiny", 0.1, 0.7), ("small", 0.5, 0.8)
    assert answer(make_table(measure(*networks))) == []
    assert answer(make_table(measure(*networks, ("unknown", float("nan"), 1.5)))) == []
    assert len(answer(make_table(measure(*networks, ("middle", 2.0, 1.5))))) == 1


@pytest.mark.parametrize("speed_up", [1.6, 0.6])
def test_of_one_process_it_is_likely_beyond_the_noise(speed_up: float) -> None:
    networks = ("tiny", 0.1, 0.6), ("small", 0.5, 1.0), ("middle", 2.0, speed_up)
    (finding,) = answer(make_table(measure(*networks, deviations=(0.0,))))
    assert finding.word == "likely"
    assert (finding.first_faster is not None) == (speed_up > 1)
