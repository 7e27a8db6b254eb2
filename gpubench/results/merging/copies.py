"""Unreadable records of which another folder has the same attempt whole: copies of one sweep, one of them damaged."""

from __future__ import annotations

import filecmp
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic_core import from_json

from gpubench.results.merging.attempts import FoundAttempt
from gpubench.results.merging.files import BESIDE
from gpubench.results.store import Results


@dataclass(frozen=True, kw_only=True, slots=True)
class Copy:
    """One attempt in two folders."""

    damaged: FoundAttempt
    whole: FoundAttempt


def copies(folders: Sequence[Results], attempts: Sequence[FoundAttempt]) -> list[Copy]:
    """The unreadable attempts at one unit that lie whole in another of the folders."""
    found = []
    for damaged in (one for one in attempts if one.told is None):
        others = (
            one
            for one in attempts
            if one.told is not None and one.number == damaged.number and one.source != damaged.source
        )
        if whole := next((one for one in others if _is_same(folders, damaged, one, attempts)), None):
            found.append(Copy(damaged=damaged, whole=whole))
    return found


def _is_same(
    folders: Sequence[Results], damaged: FoundAttempt, whole: FoundAttempt, attempts: Sequence[FoundAttempt]
) -> bool:
    """Whether two attempts of one number are one and the same, though one can't be read.

    Nothing that lies beside them differs, and either the time series, which no two attempts have alike, are equal, or
    the record is the beginning of the other, and both folders have some other attempt in common.
    """
    alike: set[str] = set()
    try:
        for trial_id in whole.trials:
            for kind, ending in BESIDE.items():
                mine, other = (
                    folders[one.source].part(kind, trial_id, whole.number, ending) for one in (damaged, whole)
                )
                if mine.exists() and other.exists():
                    if not filecmp.cmp(mine, other, shallow=False):
                        return False
                    alike |= {kind} if mine.stat().st_size else set()
        text = damaged.path.read_bytes()
        if _is_json(text):  # of another trial, say: nothing takes its place
            return False
        if "samples" in alike:
            return True
        cut_off = whole.path.read_bytes().startswith(text)
    except OSError:
        return False
    here, there = (
        {(one.identity, one.number) for one in attempts if one.source == side.source and one.told is not None}
        for side in (damaged, whole)
    )
    return cut_off and bool(here & there)


def _is_json(text: bytes) -> bool:
    try:
        from_json(text)
    except ValueError:
        return False
    return True
