"""Parquet: the table, the trials or the epochs of results folders, each column with its type, unit and meaning."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyarrow import parquet

from gpubench.analyze.folder import Folder
from gpubench.export.formats import FormatOptions
from gpubench.export.sheets import SHEETS


def make_parquet(folders: Sequence[Folder], options: FormatOptions) -> bytes:
    """One sheet. `unit` and `meaning` stand in the metadata of each field."""
    sheet = SHEETS[options.sheet](folders)
    table = pa.Table.from_pandas(sheet.to_frame(), preserve_index=False)
    metadata = {column.name: {"unit": column.unit, "meaning": column.meaning} for column in sheet.columns}
    schema = pa.schema(
        [field.with_metadata(metadata[field.name]) for field in table.schema], metadata=table.schema.metadata
    )
    out = pa.BufferOutputStream()
    parquet.write_table(table.cast(schema), out, compression="zstd")
    content: bytes = out.getvalue().to_pybytes()
    return content
