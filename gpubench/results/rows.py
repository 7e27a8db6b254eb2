"""A stored record as the row that tables are made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpubench.analysis.slowdown import faster_together
from gpubench.results.store import Results
from gpubench.schema import result
from gpubench.schema.epoch_times import NO_SPREAD, median_of
from gpubench.schema.result import FEWEST_TIMES, Record

DETAILS = (
    "missing",
    "provenance",
    "facts",
    "together",
    "asked",
    "log",
    "epoch_times_s",
    "allowance",
    "judgement",
)
"""What `row_of` and a folder add for the reports on its sources and honesty; no column, and not for a JSON line."""


def row_of(record: Record) -> dict[str, Any]:
    """`result.row`, and what a table tells besides: `source`, `doubt_texts` (code -> sentence) and DETAILS.

    `missing` and `provenance` are the record's; `facts` are what it knows of the images, with `files` of the variant.
    `together` is the record's, for a job of a group. `asked` is the trial, with None for what the machine settles.
    `log` is where its processes' output is kept, from the results folder; None where gpubench did not measure it.
    `epoch_times_s` are the seconds of the epochs that its epoch time is the median of; empty where it is none.

    What earlier versions stored reads as this one would have it: fewer than FEWEST_TIMES epochs have no spread, nor the
    doubt about one, and a job that was faster than alone has the doubt about that.
    """
    measured = record.source == "measured"
    found = result.row(record)
    missing, doubts = dict(record.missing), dict(record.doubts)
    if found["epoch_time_iqr_s"] is not None and (found["epochs_measured"] or 0) < FEWEST_TIMES and measured:
        found["epoch_time_iqr_s"], missing["epoch_time_iqr_s"] = None, NO_SPREAD
        doubts.pop("spread", None)
    if measured and (faster := faster_together(found["slowdown"])):
        doubts.setdefault("faster-together", faster)
    measured_s = [e["epoch_time_s"] for e in record.epochs if not e["warmup"]]
    found["doubts"] = "+".join(sorted(doubts)) or None
    return {
        **found,
        "source": record.source,
        "doubt_texts": doubts,
        "missing": missing,
        "provenance": dict(record.provenance),
        "together": dict(record.together),
        "asked": dict(record.trial),
        "facts": {**record.data, "files": record.variant_definition.get("files")},
        "log": Results(Path()).log(record.trial_id, record.attempt).as_posix() if measured else None,
        "epoch_times_s": median_of(measured_s, record.result.get("epoch_time_source")),
    }
