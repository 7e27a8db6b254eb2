"""How fast the host's CPU was while each row was measured, against its fastest in the same folder. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.schema.doubts import SLOW_CPU_PCT
from gpubench.schema.row import Row, replace

SLOW_CPU = "slow-cpu"


def with_cpu_speed(rows: Sequence[Row]) -> list[Row]:
    """The rows with `cpu_speed_pct`, and with the doubt where the CPU was slow."""
    fastest_ms: dict[str | None, float] = {}
    for row in rows:
        if row.cpu_probe_ms:
            fastest_ms[row.host] = min(row.cpu_probe_ms, fastest_ms.get(row.host, row.cpu_probe_ms))
    return [
        _with_speed(row, 100 * fastest_ms[row.host] / row.cpu_probe_ms) if row.cpu_probe_ms else row
        for row in rows
    ]


def _with_speed(row: Row, speed_pct: float) -> Row:
    row = replace(row, cpu_speed_pct=speed_pct)
    if speed_pct >= SLOW_CPU_PCT:
        return row
    sentence = (
        f"the host's CPU ran at {speed_pct:.0f} % of its fastest in this folder, and with it what waits for launches; "
        "run it again on a quiet host"
    )
    return replace(
        row,
        doubts="+".join(sorted({*(row.doubts or "").split("+"), SLOW_CPU} - {""})),
        doubt_texts={**row.doubt_texts, SLOW_CPU: (sentence,)},
    )
