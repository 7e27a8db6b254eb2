"""Files of attempts, copied under their new numbers."""

from __future__ import annotations

import contextlib
import filecmp
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpubench.basics.errors import UnusableError
from gpubench.results.file_names import Numbered, is_plain, numbered
from gpubench.results.merging.attempts import FoundAttempt, with_numbers
from gpubench.results.store import Results
from gpubench.results.whole_file import write_whole

BESIDE: Mapping[str, str] = {"samples": "csv", "logs": "log"}
"""What lies beside records, a file for each job, and how its names end."""


def write_record(
    target: Results, attempt: FoundAttempt, number: int, numbers: Mapping[tuple[int, str, int], int | None]
) -> None:
    """The record under its number, byte by byte as it was where no number in it changes."""
    path = target.part("records", attempt.unit_id, number, "json")
    if attempt.told is not None:

        def of_solo(solo: Mapping[str, Any]) -> int | None:
            own = solo.get("attempt")
            return numbers.get((attempt.source, str(solo.get("trial_id")), own), own)  # type: ignore[arg-type]

        made = with_numbers(
            attempt.told, number if number != attempt.number else attempt.told.get("attempt"), of_solo
        )
        if made != attempt.told:
            write_whole(path, json.dumps(made, indent=1, ensure_ascii=False) + "\n")
            return
    copy_whole(attempt.path, path)


def is_free(folders: Sequence[Results], attempt: FoundAttempt, number: int) -> bool:
    """Whether what lies beside the records under a number is the attempt's own, as an interrupted merge left it."""
    target, source = folders[0], folders[attempt.source]
    pairs = [
        (source.part(kind, own, attempt.number, ending), target.part(kind, own, number, ending))
        for own in {attempt.unit_id, *attempt.trials}
        for kind, ending in BESIDE.items()
    ]
    try:
        return all(
            is_plain(mine) and filecmp.cmp(mine, other, shallow=False)
            for mine, other in pairs
            if other.exists()
        )
    except OSError:
        return False


def copy_beside(source: Results, target: Results, attempt: FoundAttempt, number: int) -> None:
    """Samples and logs of an attempt, where the target has none of it."""
    for trial_id in attempt.trials:
        for kind, ending in BESIDE.items():
            mine = source.part(kind, trial_id, attempt.number, ending)
            other = target.part(kind, trial_id, number, ending)
            if is_plain(mine) and not other.exists():
                copy_whole(mine, other)


def copy_traces(source: Results, target: Results, known: set[Numbered]) -> None:
    """Logs and samples of attempts that left no record: they show that there was one."""
    traces: dict[Numbered, list[tuple[str, Path]]] = {}
    for kind in BESIDE:
        for path in sorted((source.folder / kind).glob("*/*-*.*")):
            name = numbered(path)
            if name is not None and name not in known and is_plain(path):
                traces.setdefault(name, []).append((kind, path))
    for (trial_id, number), files in sorted(traces.items()):
        if all(_is_there(target, kind, trial_id, path) for kind, path in files):
            continue
        free = number
        taken = [target.part("records", trial_id, number, "json")]
        taken += [target.part(kind, trial_id, number, ending) for kind, ending in BESIDE.items()]
        if any(path.exists() for path in taken):
            free = target.next_attempt(trial_id)
        for kind, path in files:
            copy_whole(path, target.part(kind, trial_id, free, BESIDE[kind]))


def _is_there(target: Results, kind: str, trial_id: str, path: Path) -> bool:
    """Whether the target has such a file under whatever number."""
    there = (target.folder / kind / trial_id[1:3]).glob(f"{trial_id}-*{path.suffix}")
    return any(filecmp.cmp(path, other, shallow=False) for other in there)


def copy_left_out(source: Results, target: Results) -> None:
    """The names of images that were left out, by the fingerprint of their data."""
    for path in sorted((source.folder / "left-out").glob("*.txt")):
        other = target.folder / "left-out" / path.name
        if is_plain(path) and not other.exists():
            copy_whole(path, other)


def copy_whole(source: Path, target: Path) -> None:
    """Copies a file so that a reader sees all of it or none. Raises UnusableError where that can't be done."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, temporary)
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(target)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise UnusableError(f"{source} can't be copied to {target}: {error.strerror}") from None
