"""Parquet: the table, the trials or the epochs of results folders, each column with its type, unit and meaning."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyarrow import parquet

from gpubench.export.formats import Asked
from gpubench.frames.frame import frame, orders_of
from gpubench.report.reading import Reading
from gpubench.report.sheets import SHEETS


def made(readings: Sequence[Reading], asked: Asked) -> bytes:
    """One sheet. `unit` and `meaning` stand in the metadata of each field."""
    sheet = SHEETS[asked.sheet](readings)
    whole = pa.Table.from_pandas(frame(sheet, orders_of(readings)), preserve_index=False)
    told = {column.name: {"unit": column.unit, "meaning": column.meaning} for column in sheet.columns}
    schema = pa.schema(
        [field.with_metadata(told[field.name]) for field in whole.schema], metadata=whole.schema.metadata
    )
    out = pa.BufferOutputStream()
    parquet.write_table(whole.cast(schema), out, compression="zstd")
    found: bytes = out.getvalue().to_pybytes()
    return found
