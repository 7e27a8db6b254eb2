"""Small image folders for the tests of the input pipeline."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from gpubench.schema.order import DataSpec, parse_transforms
from gpubench.train.data import Data, LoaderSettings, open_data


def _write(root: Path, counts: dict[str, int], size: tuple[int, int] = (60, 45)) -> Path:
    """`counts` JPEGs a split in three classes; `size` is (width, height)."""
    draw = np.random.default_rng(0)
    for split, count in counts.items():
        for k in range(count):
            folder = root / split / f"class{k % 3}"
            folder.mkdir(parents=True, exist_ok=True)
            small = draw.integers(0, 256, (6, 8, 3), dtype=np.uint8)
            Image.fromarray(small).resize(size, Image.Resampling.BICUBIC).save(
                folder / f"{k:03}.jpg", quality=90
            )
    return root


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """48 training and 13 validation images of 60 × 45."""
    return _write(tmp_path_factory.mktemp("images"), {"train": 48, "val": 13})


@pytest.fixture(scope="session")
def squares(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """12 training and 5 validation images of 32 × 32."""
    return _write(tmp_path_factory.mktemp("squares"), {"train": 12, "val": 5}, (32, 32))


@pytest.fixture
def write_images() -> Callable[..., Path]:
    """Writes other images: (folder, {split: count}, size)."""
    return _write


@pytest.fixture
def opened() -> Iterator[Callable[..., Data]]:
    """open_data with defaults for the CPU; closed after the test."""
    held: list[Data] = []

    def open_(root: Path | None, *, kind: str = "folder", cpu: Any = (), gpu: Any = (), **share: Any) -> Data:
        keys = ("train_images", "channels", "name", "num_classes", "input_size")
        fields = {key: share.pop(key) for key in keys if key in share}
        values: dict[str, Any] = {
            "kind": kind,
            "root": root and str(root),
            "input_size": 32,
            "num_classes": 3,
            **fields,
        }
        device = share.pop("device", torch.device("cpu"))
        settings = {"rank": 0, "world": 1, "batch_size": 8, "workers": 0, "prefetch": 2, "seed": 7, **share}
        lists = {
            name: parse_transforms(given, values["input_size"])
            for name, given in (("cpu", cpu), ("gpu", gpu))
        }
        data = open_data(
            DataSpec(**values, **lists),
            LoaderSettings(val_batch_size=settings["batch_size"], **settings),
            device=device,
            memory_format=torch.channels_last,
        )
        held.append(data)
        return data

    yield open_
    held.clear()  # torch ends a loader's workers with the loader
