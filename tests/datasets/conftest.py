from __future__ import annotations

import os
from pathlib import Path

import pytest
from photo_trees import save_photo


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing that a test makes goes into the user's cache, and one process makes it, unless a test asks for more."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    folder = tmp_path / "home"
    monkeypatch.setenv("GPUBENCH_DATA", str(folder))
    return folder


@pytest.fixture
def flat(tmp_path: Path) -> Path:
    """A folder without a split: 25 `ant`, 12 `bee`, 3 `cat`; two sizes, two formats."""
    root = tmp_path / "flat"
    for name, count in {"ant": 25, "bee": 12, "cat": 3}.items():
        for k in range(count):
            suffix = "png" if k % 5 == 0 else "jpg"
            save_photo(root / name / f"{k:03d}.{suffix}", k, *((48, 36) if k % 2 else (36, 60)))
    return root
