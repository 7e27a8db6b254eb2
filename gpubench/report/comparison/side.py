"""One of two sides that are compared, and what its rows were measured on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpubench.basics.words import many
from gpubench.schema.cell import cell
from gpubench.schema.row import Row, TableRow


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """One of two sides."""

    name: str
    """As its reader calls it."""
    rows: Sequence[TableRow]


ENVIRONMENT: Mapping[str, str] = {
    "driver": "driver",
    "cuda": "CUDA",
    "torch": "torch",
    "gpubench": "gpubench",
}
"""Software, column by column, as sentences call it."""


def environment(side: Side) -> dict[str, Any]:
    """What its rows were measured on and with, by column; a list where it is not one."""
    rows = measured_rows(side.rows)
    return {
        name: values_ if len(values_) != 1 else values_[0]
        for name in ("host", "gpu_name", "gpu_count", "cpu_name", "cpu_count", *ENVIRONMENT)
        for values_ in [list(dict.fromkeys(row.value(name) for row in rows if row.value(name) is not None))]
    }


def machine_of(side: Side) -> str:
    """The same in a sentence."""
    rows = measured_rows(side.rows)
    hardware = [each_once(told(row) for row in rows) for told in (gpus, cpus)]
    parts = [many(len(side.rows), "trial"), *filter(None, hardware)]
    for column, name in ENVIRONMENT.items():
        found = each_once(cell(row.value(column)) for row in rows)
        parts += [f"{name} {found}"] if found else []
    sources = sorted({row.source for row in rows} - {"measured"})
    parts += [f"taken from a {source}" for source in sources]
    return "; ".join(parts)


def measured_rows(rows: Sequence[TableRow]) -> list[TableRow]:
    """Those that tell of a machine; all, where none does."""
    return [row for row in rows if row.status not in ("missing", "skipped")] or list(rows)


def gpus(row: Row) -> str:
    """The GPUs of its machine: `8 × NVIDIA H200`; empty for a trial on the CPU."""
    if not row.gpu_name or row.device == "cpu":
        return ""
    return f"{row.gpu_count} × {row.gpu_name}" if row.gpu_count else str(row.gpu_name)


def cpus(row: Row) -> str:
    """The CPUs of its machine."""
    count = f" ({many(row.cpu_count, 'CPU')})" if row.cpu_count else ""
    return f"{row.cpu_name}{count}" if row.cpu_name else ""


def each_once(texts: Iterable[str]) -> str:
    """The texts that are there, each once."""
    found = list(dict.fromkeys(one for one in texts if one))
    # Where some rows tell how many and others don't, those that do tell both.
    return " and ".join(one for one in found if not any(other.endswith(f" × {one}") for other in found))
