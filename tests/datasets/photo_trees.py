"""Little image folders for the tests beside."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image


def save_photo(path: Path, seed: int, width: int = 48, height: int = 36) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    small = np.random.default_rng(seed).integers(0, 256, (6, 8, 3), np.uint8)
    Image.fromarray(small).resize((width, height)).save(path)


def find_defect(path: str) -> str | None:
    """Why Pillow can't read an image; None: it can."""
    try:
        Image.open(path).load()
    except OSError as error:
        return str(error)
    return None


def tree(root: Path) -> dict[str, bytes]:
    """Every file below `root` with its bytes."""
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}
