"""Transforms and normalisation of a batch, on the CPU and (marked) on a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F

from gpubench.basics.errors import UsageError
from gpubench.train.data import on_device

DEVICES = [torch.device("cpu"), pytest.param(torch.device("cuda"), marks=pytest.mark.gpu)]
pytestmark = pytest.mark.parametrize("device", DEVICES, ids=str)
SCALE, RATIO = (0.08, 1.0), (3 / 4, 4 / 3)


def generator(device: torch.device, seed: int = 0) -> torch.Generator:
    return torch.Generator(device).manual_seed(seed)


def batch(device: torch.device, count: int = 16, size: int = 32, channels: int = 3) -> torch.Tensor:
    one = torch.randint(
        0, 256, (1, channels, size, size), dtype=torch.uint8, generator=generator(torch.device("cpu"))
    )
    return one.expand(count, -1, -1, -1).contiguous(memory_format=torch.channels_last).to(device)


@pytest.mark.parametrize("name", sorted(on_device.TRANSFORMS))
def test_every_image_has_draws_of_its_own_and_seeds_repeat_them(device: torch.device, name: str) -> None:
    arguments = {"padding": 4} if name == "RandomCrop" else {}
    (step,) = on_device.build_device_transforms(((name, arguments),))
    images = batch(device)
    made = step(images, generator(device))
    assert made.shape == images.shape
    different = {image.cpu().contiguous().numpy().tobytes() for image in made}
    assert len(different) >= (2 if name == "RandomHorizontalFlip" else 10)
    assert torch.equal(made, step(images, generator(device)))
    assert not torch.equal(made, step(images, generator(device, 1)))


def test_a_flip_flips_half_of_them(device: torch.device) -> None:
    images = batch(device, count=400)
    flipped = on_device.random_horizontal_flip(images, generator(device))
    mirrored = sum(torch.equal(image, images[0].flip(-1)) for image in flipped)
    assert all(torch.equal(i, images[0]) or torch.equal(i, images[0].flip(-1)) for i in flipped)
    assert 150 < mirrored < 250


def test_crops_are_torchvisions_of_the_same_box(device: torch.device) -> None:
    images = batch(device, count=64, size=48)
    made = on_device.random_resized_crop(images, generator(device)).cpu()
    boxes = torch.cat(on_device.sample_crop_boxes(64, 48, generator(device), scale=SCALE, ratio=RATIO))
    for image, *box in zip(made, *(side.int().tolist() for side in boxes), strict=True):
        exact = F.resized_crop(images[0].cpu().float(), *box, size=[48, 48], antialias=False)
        assert (image - exact).abs().max() < 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scale", "ratio"),
    [(SCALE, RATIO), ((0.9, 1.0), (0.3, 3.0)), ((0.9, 1.0), (1.5, 2.0)), ((1, 1), (0.5, 0.6))],
)
def test_boxes_are_distributed_as_torchvisions(
    device: torch.device, scale: tuple[float, float], ratio: tuple[float, float]
) -> None:
    count, side = 4000, 64
    ours = torch.cat(
        on_device.sample_crop_boxes(count, side, generator(device), scale=scale, ratio=ratio)
    ).cpu()
    assert (ours == ours.round()).all()
    assert (ours[:2] >= 0).all()
    assert (ours[2:] >= 1).all()
    assert (ours[:2] + ours[2:] <= side).all()
    torch.manual_seed(0)
    crop = v2.RandomResizedCrop(side, scale=scale, ratio=ratio)
    image = torch.empty(3, side, side, dtype=torch.uint8)
    drawn = [crop.make_params([image]) for _ in range(count)]
    for name, values in zip(("top", "left", "height", "width"), ours, strict=True):
        theirs = torch.tensor([float(d[name]) for d in drawn])
        assert kolmogorov_smirnov(values, theirs) < 1.95 * (2 / count) ** 0.5, name  # p = 0.001


def kolmogorov_smirnov(a: torch.Tensor, b: torch.Tensor) -> float:
    at = torch.cat((a, b)).unique()
    shares = [torch.searchsorted(v.sort().values, at, right=True) / len(v) for v in (a, b)]
    return float((shares[0] - shares[1]).abs().max())


def test_a_padded_crop_shifts_each_image(device: torch.device) -> None:
    images = batch(device, count=8, size=16)
    padded = torch.nn.functional.pad(images[0], (2,) * 4)
    windows = [padded[:, y : y + 16, x : x + 16] for y in range(5) for x in range(5)]
    for image in on_device.random_crop(images, generator(device), padding=2):
        assert any(torch.equal(image, window) for window in windows)
    with pytest.raises(UsageError, match="doesn't fit"):
        on_device.random_crop(images, generator(device), size=30)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("memory_format", [torch.channels_last, torch.contiguous_format])
def test_normalisation_is_the_reference(
    device: torch.device, memory_format: torch.memory_format, channels: int
) -> None:
    images = batch(device, channels=channels)
    normalise = on_device.Normalise(channels=channels, device=device, memory_format=memory_format)
    mean, std = on_device.MEAN_STD[channels]
    expected = F.normalize(F.to_dtype(images.cpu(), torch.float32, scale=True), list(mean), list(std))
    for kind in (images, images.float(), images.contiguous()):
        made = normalise(kind)
        assert made.is_contiguous(memory_format=memory_format)
        assert torch.allclose(made.cpu(), expected, rtol=1e-6, atol=1e-5)


def test_no_augmentation_for_validation(device: torch.device, opened: Any, squares: Path) -> None:
    data = opened(squares, gpu=["RandomResizedCrop", "RandomHorizontalFlip"], device=device, batch_size=12)
    batch = next(data.iterate_epoch(0))
    plain, _ = data.move_and_transform(batch, augment=False)
    mean, std = on_device.MEAN_STD[3]
    expected = F.normalize(F.to_dtype(batch[0], torch.float32, scale=True), list(mean), list(std))
    assert torch.allclose(plain.cpu(), expected, atol=1e-5)
    first, labels = data.move_and_transform(batch)
    assert not torch.allclose(first, plain)
    assert torch.equal(labels.cpu(), batch[1])
    again = next(data.iterate_epoch(0))
    assert torch.equal(data.move_and_transform(again)[0], first)


@pytest.mark.gpu
def test_copies_make_the_host_wait_for_nothing(device: torch.device, opened: Any, images: Path) -> None:
    if device.type != "cuda":
        pytest.skip("a copy on the CPU has ended when it returns")
    gpu = ["RandomResizedCrop", "RandomHorizontalFlip", {"RandomCrop": {"padding": 2}}]
    data = opened(
        images, cpu=[{"RandomResizedCrop": {"size": 32}}], gpu=gpu, device=device, workers=2, batch_size=4
    )
    for batch in data.iterate_epoch(0):
        assert batch[0].is_pinned()
        data.move_and_transform(batch)
    batches = list(data.iterate_epoch(1))
    torch.cuda.set_sync_debug_mode("error")
    try:
        for batch in batches:
            data.move_and_transform(batch)
    finally:
        torch.cuda.set_sync_debug_mode("default")
