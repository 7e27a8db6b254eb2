"""The published traces under power limits (tests/benchmarks/power-traces) as points, a group a network."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from gpubench.stats.power_limits import LimitPoints

FOLDER = Path(__file__).parent / "benchmarks" / "power-traces"
CARDS = ("v100", "a40")


def read_trace(card: str) -> dict[tuple[str, str, str], LimitPoints]:
    """(data set, network, optimizer) -> what was measured of it."""
    lines = pd.read_csv(FOLDER / f"{card}.csv")
    return {
        (str(data), str(network), str(optimizer)): LimitPoints(
            batch_size=rows["batch_size"].to_numpy("float64"),
            limit_w=rows["power_limit"].to_numpy("float64"),
            time_s=rows["time_per_epoch"].to_numpy("float64"),
            power_w=rows["average_power"].to_numpy("float64"),
        )
        for (data, network, optimizer), rows in lines.groupby(["dataset", "network", "optimizer"])
    }
