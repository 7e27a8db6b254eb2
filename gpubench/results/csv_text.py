"""Values as the text of a CSV that every spreadsheet reads in the same way."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

from gpubench.schema.cell import cell

_THREE_DECIMALS = re.compile(r"\.\d{3}(?!\d)")


def csv_cell(value: Any, digits: int = 6) -> str:
    """A value as a cell of a CSV: no figure has exactly three decimals, 18.457 is written 18.4570.

    A spreadsheet that takes commas reads 18.457 as eighteen thousand. Whoever reads dots gets the same value.
    """
    text = cell(value, digits)
    return text if isinstance(value, str) else _THREE_DECIMALS.sub(r"\g<0>0", text)


def csv_text(header: Sequence[str], rows: Iterable[Iterable[Any]], digits: int = 6) -> str:
    """A CSV with this header and these values, as `csv_cell` writes them; lines end in one newline."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    # The csv module leaves a lone carriage return unquoted, and readers end the row there.
    writer.writerows([csv_cell(value, digits).replace("\r", " ") for value in values] for values in rows)
    return out.getvalue()
