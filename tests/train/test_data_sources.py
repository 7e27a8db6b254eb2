"""Where images come from."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from gpubench.basics.errors import UnusableError, UsageError
from gpubench.datasets import copies, folder
from gpubench.train.data.array_source import ArraySource, open_decoded_source, open_or_fetch_named_source
from gpubench.train.data.folder_source import FolderSource, find_defect, read_image

PIXELS = np.random.default_rng(1).integers(0, 256, (20, 30, 3), dtype=np.uint8)
_file = io.BytesIO()
Image.fromarray(PIXELS).save(_file, "JPEG")
JPEG = _file.getvalue()


@pytest.mark.parametrize("suffix", ["png", "webp", "gif", "bmp", "tif"])
def test_every_format_gives_its_pixels(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"image.{suffix}"
    flat = np.full((20, 30, 3), 200, dtype=np.uint8) if suffix == "gif" else PIXELS
    Image.fromarray(flat).save(path, **({"lossless": True} if suffix == "webp" else {}))
    image = read_image(str(path))
    assert image.dtype == torch.uint8
    assert np.array_equal(image.permute(1, 2, 0).numpy(), flat)


def test_grey_and_cmyk_jpegs_have_three_channels(tmp_path: Path) -> None:
    for mode in ("L", "CMYK"):
        path = tmp_path / f"{mode}.jpg"
        Image.fromarray(PIXELS).convert(mode).save(path)
        assert read_image(str(path)).shape == (3, 20, 30)


def test_a_16_bit_png_is_scaled_not_cut(tmp_path: Path) -> None:
    Image.fromarray(np.full((4, 4), 0x8001, dtype=np.uint16)).save(tmp_path / "deep.png")
    assert set(read_image(str(tmp_path / "deep.png")).unique().tolist()) == {0x80}


def test_orientation_in_exif_is_ignored(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # rotate by 90°
    Image.fromarray(PIXELS).save(tmp_path / "turned.jpg", exif=exif)
    assert read_image(str(tmp_path / "turned.jpg")).shape == (3, 20, 30)


@pytest.mark.parametrize(
    "content",
    [b"", JPEG[: len(JPEG) // 2], b"\xff\xd8\xff\xe0 no jpeg", b"\x89PNG\r\n\x1a\n no png", b"plain text"],
    ids=["empty", "cut", "no jpeg", "no png", "text"],
)
def test_broken_files_are_named_in_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.jpg"
    path.write_bytes(content)
    with pytest.raises(UnusableError) as caught:
        read_image(str(path))
    # Whoever tries all images beforehand (--bad-images skip) says the same.
    assert str(caught.value).startswith(f"broken image {path}: {find_defect(str(path))}; repair")
    assert "\n" not in str(caught.value)
    assert "<_io" not in str(caught.value)


def test_decoded_images_equal_their_files(squares: Path, tmp_path: Path, opened: Any) -> None:
    root = copies.make_copy("decoded", squares, tmp_path / "decoded", size=32, processes=1)
    source = open_decoded_source(str(root), "train")
    files = FolderSource(folder.list_images(squares, "train"))
    assert source.labels.tolist() == files.labels.tolist()
    for k in range(len(files)):
        off = (source.load_image(k).int() - files.load_image(k).int()).abs().max()
        assert off <= 2  # two JPEG decoders
    data = opened(root, kind="decoded", cpu=["RandomHorizontalFlip"], batch_size=12, workers=1)
    assert data.steps_per_epoch == 1
    assert sum(len(labels) for _, labels in data.iterate_validation()) == 5


def test_an_array_can_be_limited() -> None:
    pixels = np.arange(6 * 3 * 2 * 2, dtype=np.uint8).reshape(6, 3, 2, 2)
    source = ArraySource(pixels, [0, 0, 0, 1, 1, 1], "test", 2)
    assert source.labels.tolist() == [0, 1]
    assert np.array_equal(source.load_image(1).numpy(), pixels[3])


@pytest.fixture
def cifar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A CIFAR-10 on disk, 50 images a file, as torchvision reads it."""
    from torchvision.datasets import CIFAR10

    base = tmp_path / CIFAR10.base_folder
    base.mkdir()
    draw = np.random.default_rng(0)
    for name, _ in CIFAR10.train_list + CIFAR10.test_list:
        entry = {
            "data": draw.integers(0, 256, (50, 3072), dtype=np.uint8),
            "labels": [k % 10 for k in range(50)],
        }
        (base / name).write_bytes(pickle.dumps(entry))
    (base / "batches.meta").write_bytes(pickle.dumps({"label_names": [str(k) for k in range(10)]}))
    monkeypatch.setattr("torchvision.datasets.cifar.check_integrity", lambda *_: True)
    return tmp_path


def test_a_named_data_set_on_disk(cifar: Path, opened: Any) -> None:
    source = open_or_fetch_named_source("cifar10", str(cifar), "train", limit=20)
    assert len(source) == 20
    assert sorted(source.labels.tolist()) == sorted(list(range(10)) * 2)
    crop = [{"RandomCrop": {"size": 32, "padding": 4}}, "RandomHorizontalFlip"]
    data = opened(cifar, kind="named", name="cifar10", num_classes=10, batch_size=50, cpu=crop, workers=1)
    assert data.steps_per_epoch == 5
    images, labels = data.move_and_transform(next(data.iterate_epoch(0)))
    assert images.shape == (50, 3, 32, 32)
    assert labels.shape == (50,)


def test_colour_images_for_a_grey_model_are_refused(cifar: Path) -> None:
    with pytest.raises(UsageError, match="3 channels, the model takes 1"):
        open_or_fetch_named_source("cifar10", str(cifar), "val", channels=1)


def test_grey_images_are_repeated_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Fake:
        def __init__(self, *_: Any, **__: Any) -> None:
            self.data = torch.arange(2 * 28 * 28).reshape(2, 28, 28).to(torch.uint8)
            self.targets = torch.tensor([4, 5])

    monkeypatch.setattr("torchvision.datasets.MNIST", Fake)
    assert open_or_fetch_named_source("mnist", str(tmp_path), "train", channels=1).load_image(1).shape == (
        1,
        28,
        28,
    )
    source = open_or_fetch_named_source("mnist", str(tmp_path), "train", channels=3)
    image = source.load_image(1)
    assert source.labels[1] == 5
    assert torch.equal(image[0], image[2])


def test_a_data_set_that_cannot_be_fetched_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(*_: Any, **__: Any) -> None:
        raise OSError("no network")

    monkeypatch.setattr("torchvision.datasets.cifar.download_and_extract_archive", offline)
    with pytest.raises(
        UnusableError, match=r"cifar10 is not in .* can't be fetched \(no network\): put it there"
    ):
        open_or_fetch_named_source("cifar10", str(tmp_path), "train")


def test_synthetic_costs_nothing(opened: Any) -> None:
    data = opened(None, kind="none", batch_size=16, world=2)
    batches = list(data.iterate_epoch(0))
    assert len(batches) == data.steps_per_epoch == 320
    images, labels = data.move_and_transform(batches[0])
    assert images is batches[-1][0]
    assert (images.shape, images.dtype) == ((16, 3, 32, 32), torch.float32)
    assert images.is_contiguous(memory_format=torch.channels_last)
    assert labels.max() < 3
    assert data.iterate_validation() is None
