"""Batches: their order, their seeds, their shares, and the processes that make them."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gpubench.basics.errors import UnusableError, UsageError
from gpubench.datasets import folder
from gpubench.schema import catalog
from gpubench.schema.order import DataSpec, SteadyWindow
from gpubench.train.data.folder_source import FolderSource, read_image
from gpubench.train.data.loaders import LoaderSettings, TrainLoaders
from gpubench.train.failure import classify
from gpubench.train.protocols import Steady, Stream, TrainingSetup

CROP_RESIZE = catalog.VARIANTS["crop-resize"].definition()["cpu"]


def take(batches: Any) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [(images, labels) for images, labels in batches]


def same(a: list[tuple[torch.Tensor, torch.Tensor]], b: list[tuple[torch.Tensor, torch.Tensor]]) -> bool:
    return len(a) == len(b) and all(
        torch.equal(x, p) and torch.equal(y, q) for (x, y), (p, q) in zip(a, b, strict=True)
    )


def identities(batches: list[tuple[torch.Tensor, torch.Tensor]]) -> list[bytes]:
    """Each image by its pixels; only for pixels that are not drawn."""
    return [image.contiguous().numpy().tobytes() for images, _ in batches for image in images]


def test_the_same_seed_gives_the_same_pixels(opened: Any, images: Path) -> None:
    one, other = (opened(images, cpu=CROP_RESIZE, workers=2) for _ in range(2))
    for epoch in range(2):
        first = take(one.train_epoch(epoch))
        assert len(first) == one.steps_per_epoch == 6
        assert same(first, take(other.train_epoch(epoch)))


def test_epochs_and_seeds_differ(opened: Any, images: Path) -> None:
    data = opened(images, cpu=CROP_RESIZE)
    first = take(data.train_epoch(0))
    assert not same(first, take(data.train_epoch(1)))
    assert not same(first, take(opened(images, cpu=CROP_RESIZE, seed=8).train_epoch(0)))


def test_an_epoch_has_every_image_once_with_its_class(opened: Any, squares: Path) -> None:
    data = opened(squares, batch_size=4, workers=1)
    batches = take(data.train_epoch(0))
    assert len(set(identities(batches))) == 12
    assert sorted(torch.cat([labels for _, labels in batches]).tolist()) == sorted([0, 1, 2] * 4)


def test_the_last_partial_batch_of_training_is_dropped(opened: Any, squares: Path) -> None:
    data = opened(squares, batch_size=5)
    assert data.steps_per_epoch == 2
    assert [len(labels) for _, labels in take(data.train_epoch(0))] == [5, 5]


def test_ranks_see_disjoint_images_that_make_the_same_global_batch(opened: Any, squares: Path) -> None:
    shares = [take(opened(squares, batch_size=2, rank=r, world=2).train_epoch(1)) for r in range(2)]
    a, b = (identities(share) for share in shares)
    assert not set(a) & set(b)
    assert len(set(a) | set(b)) == 12
    whole = take(opened(squares, batch_size=4).train_epoch(1))
    for step, (batch, _) in enumerate(whole):
        together = identities([(shares[r][step][0], shares[r][step][1]) for r in range(2)])
        assert sorted(together) == sorted(identities([(batch, batch)]))


# ---------------------------------------------------------------- a stream


class Pixels:
    """Images of one pixel, which is their number."""

    def __init__(self, count: int) -> None:
        self.labels = torch.zeros(count, dtype=torch.int64)

    def __len__(self) -> int:
        return len(self.labels)

    def image(self, index: int) -> torch.Tensor:
        return torch.full((1, 1, 1), index, dtype=torch.uint8)

    def place(self, index: int) -> str:
        return str(index)


@given(batch_size=st.integers(1, 5), world=st.integers(1, 3), more=st.integers(0, 20), seed=st.integers(0, 9))
def test_a_stream_is_epoch_after_epoch_and_each_is_a_permutation(
    batch_size: int, world: int, more: int, seed: int
) -> None:
    count, passes = batch_size * world + more, 3
    spec = DataSpec(kind="folder", channels=1, input_size=1, num_classes=1)
    ranks = [
        TrainLoaders(
            spec,
            Pixels(count),
            LoaderSettings(batch_size=batch_size, rank=rank, world=world, workers=0, prefetch=2, seed=seed),
            pin=False,
        )
        for rank in range(world)
    ]
    steps = count // world // batch_size
    assert {rank.steps_per_epoch for rank in ranks} == {steps}
    streams, epochs = [], []
    for rank in ranks:
        own = itertools.chain.from_iterable(rank.epoch(number) for number in range(passes))
        epochs.append([images.flatten().tolist() for images, _ in own])
        streams.append(
            [images.flatten().tolist() for images, _ in itertools.islice(rank.stream(), passes * steps)]
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
    expected = [by_epochs.to_device(batch) for epoch in range(3) for batch in by_epochs.train_epoch(epoch)]
    stream = by_stream.stream()
    assert same(expected, [by_stream.to_device(next(stream)) for _ in range(6)])


@pytest.mark.parametrize(
    "device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)], ids=["plain", "pinned"]
)
def test_a_stream_that_is_closed_ends_its_workers_in_the_midst_of_their_batches(
    opened: Any, squares: Path, monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    at_once = FolderSource.image

    def slowly(source: FolderSource, index: int) -> torch.Tensor:
        time.sleep(0.2)
        return at_once(source, index)

    monkeypatch.setattr(FolderSource, "image", slowly)
    before = set(psutil.Process().children())
    data = opened(squares, batch_size=12, workers=2, device=torch.device(device))
    stream = Stream(workers=2, prefetch=2, sync_every=None, breakdown=False)
    training = TrainingSetup(loop=None, data=data, strategy=None, report=None, evaluate=None)  # type: ignore[arg-type]
    protocol = Steady(SteadyWindow(window_s=1.0), training, stream)
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
            found = take(data.validation())
        seen += identities(found)
    assert len(seen) == len(set(seen)) == 13


def test_training_images_can_be_limited(opened: Any, images: Path) -> None:
    data = opened(images, cpu=CROP_RESIZE, train_images=9, batch_size=9)
    ((_, labels),) = take(data.train_epoch(0))
    assert sorted(labels.tolist()) == [0, 0, 0, 1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_broken_image_is_named(opened: Any, tmp_path: Path, write_images: Any, workers: int) -> None:
    root = write_images(tmp_path, {"train": 6, "val": 1})
    broken = root / "train" / "class1" / "001.jpg"
    broken.write_bytes(broken.read_bytes()[:200])
    data = opened(root, cpu=CROP_RESIZE, batch_size=6, workers=workers)
    with pytest.raises(UnusableError) as caught:
        take(data.train_epoch(0))
    kind, reason = classify(caught.value)
    assert kind == "failed"
    assert re.fullmatch(f"broken image {broken}: [^\n]+", reason)


def test_images_of_the_wrong_size_are_named_with_advice(opened: Any, images: Path) -> None:
    data = opened(images, cpu=["RandomHorizontalFlip"], workers=1)
    with pytest.raises(UsageError, match=r"\.jpg is 3 × 45 × 60 .* not 3 × 32 × 32: add .*RandomResizedCrop"):
        take(data.train_epoch(0))


def test_a_conversion_on_the_cpu_is_refused(opened: Any, squares: Path) -> None:
    data = opened(squares, cpu=["ToPILImage"])
    with pytest.raises(UsageError, match=r"\.jpg is Image after its transforms, not uint8"):
        take(data.train_epoch(0))


def test_a_transform_that_fails_names_the_image(opened: Any, squares: Path) -> None:
    data = opened(squares, cpu=[{"RandomCrop": {"size": 40}}], workers=1)
    with pytest.raises(UsageError, match=r"a transform failed on /.*\.jpg: "):
        take(data.train_epoch(0))


def test_a_batch_larger_than_the_data_is_refused(opened: Any, squares: Path) -> None:
    with pytest.raises(UsageError, match="12 training images don't fill a batch of 16"):
        opened(squares, batch_size=8, world=2)


def test_too_few_classes_are_refused(opened: Any, squares: Path) -> None:
    with pytest.raises(UsageError, match="num_classes is 2, but the data have 3"):
        opened(squares, num_classes=2)


def test_workers_have_one_thread_and_ignore_interrupts(opened: Any, images: Path) -> None:
    before = set(psutil.Process().children())
    data = opened(images, cpu=CROP_RESIZE, workers=2)
    take(data.train_epoch(0))
    workers = set(psutil.Process().children()) - before
    assert len(workers) == 2
    for worker in workers:
        worker.send_signal(signal.SIGINT)
    assert len(take(data.train_epoch(1))) == 6  # persistent, and unmoved
    assert set(psutil.Process().children()) - before == workers


def test_workers_die_with_their_rank(opened: Any, images: Path) -> None:
    read, write = os.pipe()
    rank = os.fork()
    if rank == 0:
        with contextlib.suppress(BaseException):
            data = opened(images, cpu=CROP_RESIZE, workers=2)
            batches = data.train_epoch(0)
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


def test_listing_and_labels_agree(opened: Any, squares: Path) -> None:
    by_pixels = dict(
        zip(
            identities(take(opened(squares, batch_size=12).train_epoch(0))),
            torch.cat([y for _, y in take(opened(squares, batch_size=12).train_epoch(0))]).tolist(),
            strict=True,
        )
    )
    for path, label in folder.list_images(squares, "train"):
        assert by_pixels[read_image(path).contiguous().numpy().tobytes()] == label
