"""The readings behind a record, as their file has them."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from gpubench.basics.words import many
from gpubench.results.packed import open_stored
from gpubench.schema.record import Record
from gpubench.schema.samples import SAMPLE_HEADER, STEP_TIME, damaged

LARGEST = 1e15
"""No reading is as large; what is no number is not smaller, either."""

Samples = Mapping[tuple[str, str], Sequence[tuple[float, float]]]
"""Device and metric -> time and value, in order."""


def readings(path: Path, record: Record, tell: Callable[[str], None]) -> Samples:
    """All of an attempt's readings that can be read; `tell` is given a line where the file is damaged or cut off.
    Without a file there are none."""
    damages: list[str] = []
    samples = read(path, damages.append)
    steps = sum(len(values) for (_, metric), values in samples.items() if metric == STEP_TIME)
    if samples and not damages and (cut := _describe_cut(path, steps, record)):
        damages.append(cut)
    for line in damages:
        tell(line)
    return samples


def read(path: Path, tell: Callable[[str], None]) -> Samples:
    """A samples file. Readings that can't be read are left out, and `tell` is given a line; without a file there are
    none."""
    samples: dict[tuple[str, str], list[tuple[float, float]]] = {}
    readings = kept = 0
    if path.is_symlink():
        tell(f"{path} can't be read: a link, which is not followed")
        return {}
    try:
        with io.TextIOWrapper(open_stored(path), encoding="utf-8", errors="replace", newline="") as file:
            whole = (line if line.endswith("\n") else "" for line in file)
            for line in csv.reader(whole):
                if tuple(line) == SAMPLE_HEADER:
                    continue
                readings += 1
                try:
                    when, device, metric, what = line
                    time, value = float(when), float(what)
                except ValueError:
                    continue
                if abs(time) < LARGEST and abs(value) < LARGEST:
                    kept += 1
                    samples.setdefault((device, metric), []).append((time, value))
    except FileNotFoundError:
        return {}
    except (OSError, csv.Error) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no CSV"
        tell(f"{path} can't be read: {why}")
        return {}
    if kept < readings or not readings:
        tell(damaged(path, readings - kept, readings))
    return {key: sorted(values) for key, values in samples.items()}


def _describe_cut(path: Path, steps: int, record: Record) -> str | None:
    """What is told of a file that holds fewer step times than its record has measured: it was cut off, also where that
    was between two lines. None where it is whole, or its record does not tell.

    `steps`: how many step times it holds.
    """
    counts = [epoch.get("steps") for epoch in record.epochs if not epoch["warmup"]]
    known = [count for count in counts if count is not None]
    if record.status != "ok" or len(known) < len(counts) or steps >= sum(known):
        return None
    return (
        f"{path} is damaged: it holds {steps:,} of {many(sum(known), 'measured step')}, so it was cut off; "
        "what it lacks at its end is not known"
    )
