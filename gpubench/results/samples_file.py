"""The readings behind a record, as their file has them."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from gpubench.results.packed import open_file_or_member
from gpubench.schema.samples import SAMPLE_HEADER, describe_damaged_samples

LARGEST = 1e15
"""No reading is as large; what is no number is not smaller, either."""

Samples = Mapping[tuple[str, str], Sequence[tuple[float, float]]]
"""Device and metric -> time and value, in order."""


def read_samples_file(path: Path, tell: Callable[[str], None]) -> Samples:
    """A samples file. Readings that can't be read are left out, and `tell` is given a line; without a file there are
    none."""
    samples: dict[tuple[str, str], list[tuple[float, float]]] = {}
    readings = kept = 0
    if path.is_symlink():
        tell(f"{path} can't be read: a link, which is not followed")
        return {}
    try:
        with io.TextIOWrapper(
            open_file_or_member(path), encoding="utf-8", errors="replace", newline=""
        ) as file:
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
        tell(describe_damaged_samples(path, readings - kept, readings))
    return {key: sorted(values) for key, values in samples.items()}
