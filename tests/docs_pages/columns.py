"""docs/columns.md, from the definitions in schema/columns.py.

`PYTHONPATH=tests python -m docs_pages.columns > docs/columns.md` writes it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from gpubench.schema.columns import (
    ALLOCATION,
    CPU_SPEED,
    DERIVED,
    ENVIRONMENT,
    EPOCH_COLUMNS,
    GPU_SETTINGS,
    IDENTITY,
    IMAGES,
    LATER,
    LATEST,
    MEASURED,
    NODE_COLUMNS,
    ROUNDS,
    TRIAL,
    Column,
)

SECTIONS: tuple[tuple[str, str, Sequence[Column]], ...] = (
    ("Identity", "`trials.csv`", IDENTITY),
    (
        "The trial's fields",
        "`trials.csv`: as asked for, or as the machine filled in",
        [column for column in TRIAL if column not in (*LATER, *LATEST)],
    ),
    ("Measured", "`trials.csv`; the record says under `missing` why one is empty", MEASURED),
    ("Environment", "`trials.csv`", ENVIRONMENT),
    ("Images", "`trials.csv`", IMAGES),
    ("Later fields of the trial", "`trials.csv`, behind all others, which keep their places", LATER),
    ("Rounds", "`trials.csv`, behind these", ROUNDS),
    ("Allocation", "`trials.csv`, behind these", ALLOCATION),
    ("The newest fields of the trial", "`trials.csv`, behind these", LATEST),
    ("CPU speed", "`trials.csv`, behind these", CPU_SPEED),
    ("What GPUs are set to", "`trials.csv`, at its end", GPU_SETTINGS),
    ("Derived", "tables only, worked out from the rows shown", DERIVED),
    ("Epochs", "`epochs.csv`", EPOCH_COLUMNS),
    ("Nodes", "the record's `nodes`, of a trial over several; `gpu_uuids` beside them", NODE_COLUMNS),
)

INTRODUCTION = """# Columns

`trials.csv` has every column of every trial, with a row for each round, `table.csv` those that `gpubench table` prints
for the folder, and `epochs.csv` a row for each epoch, or for warm-up and window. This page gives the unit and the
meaning of each column; it is made from `gpubench/schema/columns.py`, the only place where columns are defined.

CSVs are UTF-8 with commas and dots; empty is unknown, never 0; lists read `0+1`. Text that a spreadsheet would run as a
formula has an apostrophe in front. No figure is written with exactly three decimals (18.457 is written 18.4570), so
that none can pass for thousands. A spreadsheet that expects a comma in numbers reads a dot as the mark of thousands, or
12.5 as a date: write a file for it with `gpubench export --format csv --excel-eu`, or import this one as text and say
that the dot is the decimal mark (in Excel *Data, From Text/CSV, Transform Data*, then *Change Type, Using Locale,
English (United States)*; in LibreOffice the language *English (USA)*).
"""


def text() -> str:
    """The whole page."""
    parts = [INTRODUCTION]
    for title, where, columns in SECTIONS:
        rows = "\n".join(f"| `{c.name}` | {c.unit} | {c.meaning} |" for c in columns)
        parts.append(f"## {title}\n\n{where}\n\n| column | unit | meaning |\n| --- | --- | --- |\n{rows}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    sys.stdout.write(text())
