"""How fast the host's CPU was while each row was measured, against its fastest in the same folder. Pure.

Jobs of groups are held against each other: their neighbours' processes take the other halves of the cores.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gpubench.schema.doubts import SLOW_CPU_PCT
from gpubench.schema.record import Record
from gpubench.schema.row import Row, replace

SLOW_CPU = "slow-cpu"

Place = tuple[str | None, bool]
"""A host, and whether other jobs ran beside."""


def fastest_probes_ms(records: Iterable[Record]) -> dict[Place, float]:
    """The fastest `cpu_probe_ms` at each place."""
    fastest: dict[Place, float] = {}
    for record in records:
        if (probe_ms := record.result.cpu_probe_ms) is not None:
            place = record.environment.get("host"), record.group is not None
            fastest[place] = min(probe_ms, fastest.get(place, probe_ms))
    return fastest


def with_cpu_speed(rows: Sequence[Row], fastest_ms: Mapping[Place, float]) -> list[Row]:
    """The rows with `cpu_speed_pct`, and with the doubt where the CPU was slow. `fastest_ms`: of the whole folder."""
    return [
        _with_speed(row, 100 * fastest_ms[row.host, row.group is not None] / row.cpu_probe_ms)
        if row.cpu_probe_ms
        else row
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
