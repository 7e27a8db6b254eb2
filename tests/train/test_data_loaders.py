"""Batches: their order, their seeds, their shares, and the processes that make them."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import signal
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
import scripted
import torch
from hypothesis import given
from hypothesis import strategies as st

from gpubench.basics.errors import UnusableError, UsageError
from gpubench.datasets import folder
from gpubench.schema import catalog
from gpubench.schema.order import DataSpec, SteadyWindow
from gpubench.train.data.folder_source import FolderSource, read_image
from gpubench.train.data.loaders import LoaderSettings
from gpubench.train.data.opened import LoadedData
from gpubench.train.failure import classify_error
from gpubench.train.protocols import SteadyProtocol

CROP_RESIZE = catalog.VARIANTS["crop-resize"].make_definition()["cpu"]


def take(batches: Any) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [(images, labels) for images, labels in batches]


def same(a: list[tuple[torch.Tensor, torch.Tensor]], b: list[tuple[torch.Tensor, torch.Tensor]]) -> bool:
    return len(a) == len(b) and all(
        torch.equal(x, p) and torch.equal(y, q) for (x, y), (p, q) in zip(a, b, strict=True)
    )


def identities(batches: list[tuple[torch.Tensor, torch.Tensor]]) -> list[bytes]:
    """Each image by its pixels; only for pixels that are not drawn."""
    return [image.contiguous().numpy().tobytes() for images, _ in batches for image in images]


def test_a_seed_gives_the_same_pixels_anew_in_each_epoch(opened: Any, images: Path) -> None:
    data, again = (opened(images, cpu=CROP_RESIZE, workers=2) for _ in range(2))
    epochs = [take(data.iterate_epoch(epoch)) for epoch in range(2)]
    assert len(epochs[0]) == data.steps_per_epoch == 6
    assert all(same(batches, take(again.iterate_epoch(epoch))) for epoch, batches in enumerate(epochs))
    assert not same(*epochs)
    assert not same(epochs[0], take(opened(images, cpu=CROP_RESIZE, seed=8).iterate_epoch(0)))


def test_an_epoch_has_every_image_once_with_its_class(opened: Any, squares: Path) -> None:
    batches = take(opened(squares, batch_size=4, workers=1).iterate_epoch(0))
    labels = torch.cat([labels for _, labels in batches]).tolist()
    seen = sorted(zip(identities(batches), labels, strict=True))
    listed = folder.list_images(squares, "train")
    assert seen == sorted((read_image(path).contiguous().numpy().tobytes(), label) for path, label in listed)


def test_ranks_make_the_same_global_batch_whatever_their_number(opened: Any, squares: Path) -> None:
    shares = [take(opened(squares, batch_size=2, rank=r, world=2).iterate_epoch(1)) for r in range(2)]
    whole = take(opened(squares, batch_size=4).iterate_epoch(1))
    for batch, *parts in zip(whole, *shares, strict=True):
        assert sorted(identities(parts)) == sorted(identities([batch]))


# ---------------------------------------------------------------- a stream


class Pixels:
    """Images of one pixel, which is their number."""

    def __init__(self, count: int) -> None:
        self.labels = torch.zeros(count, dtype=torch.int64)

    def __len__(self) -> int:
        return len(self.labels)

    def load_image(self, index: int) -> torch.Tensor:
        return torch.full((1, 1, 1), index, dtype=torch.uint8)

    def name_image(self, index: int) -> str:
        return str(index)


@given(batch_size=st.integers(1, 5), world=st.integers(1, 3), more=st.integers(0, 20), seed=st.integers(0, 9))
def test_a_stream_is_epoch_after_epoch_and_each_is_a_permutation(
    batch_size: int, world: int, more: int, seed: int
) -> None:
    count, passes = batch_size * world + more, 3
    spec = DataSpec(kind="folder", channels=1, input_size=1, num_classes=1)
    how = {"batch_size": batch_size, "val_batch_size": 1, "workers": 0, "prefetch": 2, "seed": seed}
    ranks = [
        LoadedData(
            spec,
            Pixels(count),
            LoaderSettings(rank=rank, world=world, **how),
            device=torch.device("cpu"),
            memory_format=torch.channels_last,
        )
        for rank in range(world)
    ]
    steps = count // world // batch_size
    assert {rank.steps_per_epoch for rank in ranks} == {steps}
    streams, epochs = [], []
    for rank in ranks:
        own = itertools.chain.from_iterable(rank.iterate_epoch(number) for number in range(passes))
        epochs.append([images.flatten().tolist() for images, _ in own])
        streams.append(
            [
                images.flatten().tolist()
                for images, _ in itertools.islice(rank.iterate_stream(), passes * steps)
            ]
        )
    assert streams == epochs
    assert all(len(batch) == batch_size for stream in streams for batch in stream)
    seen = []
    for number in range(passes):
        part = slice(number * steps, (number + 1) * steps)
        seen.append([image for stream in streams for batch in stream[part] for image in batch])
        assert len(set(seen[-1])) == len(seen[-1]) == steps * batch_size * world
        assert set(seen[-1]) <= set(range(count))
    if count >= 20:
        assert seen[0] != seen[1] != seen[2] != seen[0]


@pytest.mark.parametrize("workers", [0, 2])
def test_what_is_drawn_on_the_device_follows_the_pass_of_the_batch_at_hand(
    opened: Any, squares: Path, workers: int
) -> None:
    """Loaders are a pass ahead: 12 images are two batches of 5, and four are held ready."""
    fields = {"gpu": ["RandomResizedCrop"], "batch_size": 5, "workers": workers}
    by_epochs, by_stream = opened(squares, **fields), opened(squares, **fields)
    expected = [
        by_epochs.move_and_transform(batch) for epoch in range(3) for batch in by_epochs.iterate_epoch(epoch)
    ]
    stream = by_stream.iterate_stream()
    assert same(expected, [by_stream.move_and_transform(next(stream)) for _ in range(6)])


@pytest.mark.parametrize(
    "device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)], ids=["plain", "pinned"]
)
def test_a_stream_that_is_closed_ends_its_workers_in_the_midst_of_their_batches(
    opened: Any, squares: Path, monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    at_once = FolderSource.load_image

    def slowly(source: FolderSource, index: int) -> torch.Tensor:
        time.sleep(0.2)
        return at_once(source, index)

    monkeypatch.setattr(FolderSource, "load_image", slowly)
    before = set(psutil.Process().children())
    data = opened(squares, batch_size=12, workers=2, device=torch.device(device))
    loop = SimpleNamespace(data=data)
    protocol = SteadyProtocol(scripted.order(workers=2), SteadyWindow(window_s=1.0), loop)
    next(protocol._stream)
    workers = set(psutil.Process().children()) - before
    assert len(workers) == 2
    began = time.monotonic()
    protocol.close()
    assert time.monotonic() - began < 1, "a batch takes 2.4 s"
    assert not workers & set(psutil.Process().children())


# ---------------------------------------------------------------- validation, and what can't be read


@pytest.mark.parametrize(("world", "batch_size"), [(1, 4), (2, 2), (3, 4)])
def test_validation_covers_every_image_once(opened: Any, images: Path, world: int, batch_size: int) -> None:
    seen = []
    for rank in range(world):
        data = opened(images, cpu=CROP_RESIZE, rank=rank, world=world, batch_size=batch_size, workers=1)
        for _ in range(2):  # a second time too
            found = take(data.iterate_validation())
        seen += identities(found)
    assert len(seen) == len(set(seen)) == 13


@pytest.mark.parametrize("workers", [0, 2])
def test_a_broken_image_is_named(opened: Any, tmp_path: Path, write_images: Any, workers: int) -> None:
    root = write_images(tmp_path, {"train": 6, "val": 1})
    broken = root / "train" / "class1" / "001.jpg"
    broken.write_bytes(broken.read_bytes()[:200])
    data = opened(root, cpu=CROP_RESIZE, batch_size=6, workers=workers)
    with pytest.raises(UnusableError) as caught:
        take(data.iterate_epoch(0))
    kind, reason = classify_error(caught.value)
    assert kind == "failed"
    assert re.fullmatch(f"broken image {broken}: [^\n]+", reason)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cpu", "words"),
    [
        (
            ["RandomHorizontalFlip"],
            r"\.jpg is 3 × 45 × 60 after its transforms, not 3 × 32 × 32: add RandomResizedCrop",
        ),
        (["ToPILImage"], r"\.jpg is Image after its transforms, not uint8"),
        ([{"RandomCrop": {"size": 400}}], r"a transform failed on /.*\.jpg: "),
    ],
)
def test_transforms_that_do_not_fit_name_the_image(
    opened: Any, images: Path, cpu: list[Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        take(opened(images, cpu=cpu, workers=1).iterate_epoch(0))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"batch_size": 8, "world": 2}, "12 training images don't fill a batch of 16"),
        ({"num_classes": 2}, "num_classes is 2, but the data have 3"),
    ],
)
def test_too_few_images_or_classes_are_refused(
    opened: Any, squares: Path, settings: dict[str, int], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        opened(squares, **settings)


def test_workers_have_one_thread_and_ignore_interrupts(opened: Any, images: Path) -> None:
    before = set(psutil.Process().children())
    data = opened(images, cpu=CROP_RESIZE, workers=2)
    take(data.iterate_epoch(0))
    workers = set(psutil.Process().children()) - before
    assert len(workers) == 2
    for worker in workers:
        worker.send_signal(signal.SIGINT)
    assert len(take(data.iterate_epoch(1))) == 6  # persistent, and unmoved
    assert set(psutil.Process().children()) - before == workers


def test_workers_die_with_their_rank(opened: Any, images: Path) -> None:
    read, write = os.pipe()
    rank = os.fork()
    if rank == 0:
        with contextlib.suppress(BaseException):
            data = opened(images, cpu=CROP_RESIZE, workers=2)
            batches = data.iterate_epoch(0)
            next(batches)
            pids = [child.pid for child in psutil.Process().children()]
            os.write(write, " ".join(map(str, pids)).encode())
            time.sleep(60)
        os._exit(1)
    try:
        workers = [psutil.Process(int(pid)) for pid in os.read(read, 100).split()]
        assert len(workers) == 2
    finally:
        os.kill(rank, signal.SIGKILL)
        os.waitpid(rank, 0)
        os.close(read)
        os.close(write)
    deadline = time.monotonic() + 10
    while any(w.is_running() and w.status() != psutil.STATUS_ZOMBIE for w in workers):
        assert time.monotonic() < deadline, "loader workers outlive their rank"
        time.sleep(0.02)
