from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from photo_trees import tree
from PIL import Image

from gpubench.basics.errors import UsageError
from gpubench.datasets import folder, resize


def stems(root: Path, split: str) -> list[tuple[str, str, int]]:
    return [(Path(p).parent.name, Path(p).name.split(".")[0], k) for p, k in folder.list_images(root, split)]


def test_the_copy_has_the_same_classes_names_and_split(flat: Path, tmp_path: Path) -> None:
    facts = resize.resize_folder(flat, tmp_path / "small", size=24)
    assert facts.size == 24
    for split in ("train", "val"):
        assert stems(tmp_path / "small", split) == stems(flat, split)
        for path, _ in folder.list_images(tmp_path / "small", split):
            with Image.open(path) as image:
                assert (image.size, image.mode, image.format) == ((24, 24), "RGB", "JPEG")


def test_the_centre_is_kept_and_the_rest_cut_off(tmp_path: Path) -> None:
    wide = np.zeros((40, 120, 3), np.uint8)
    wide[:, 40:80] = (200, 100, 50)
    (tmp_path / "in" / "a").mkdir(parents=True)
    Image.fromarray(wide).save(tmp_path / "in" / "a" / "1.png")
    resize.resize_folder(tmp_path / "in", tmp_path / "out", size=20)
    with Image.open(tmp_path / "out" / "train" / "a" / "1.png.jpg") as image:
        pixels = np.asarray(image, np.int16)
    # The outermost pixels average over the cut, as they do where an image is resized first and cut then.
    assert np.abs(pixels - (200, 100, 50))[1:-1, 1:-1].max() < 12


def test_grey_transparent_and_palette_images_become_rgb(tmp_path: Path) -> None:
    for k, mode in enumerate(("L", "RGBA", "P", "1", "CMYK")):
        path = tmp_path / "in" / "a" / f"{k}.{'jpg' if mode == 'CMYK' else 'png'}"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new(mode, (30, 20)).save(path)
    assert resize.resize_folder(tmp_path / "in", tmp_path / "out", size=16).train_images == 5


def test_a_second_call_makes_nothing_and_another_size_lies_elsewhere(flat: Path, home: Path) -> None:
    first = resize.resize_folder(flat, size=16)
    before = tree(home)
    calls: list[int] = []
    assert resize.resize_folder(flat, size=16, progress=lambda done, _: calls.append(done)) == first
    assert not calls
    assert tree(home) == before
    other = resize.resize_folder(flat, size=20)
    assert other.root != first.root
    assert other.fingerprint != first.fingerprint
    assert Path(str(first.root)).name == f"resized-{folder.collect_folder_facts(flat).fingerprint}-16"


def test_broken_images_are_counted_and_the_first_is_named(flat: Path, tmp_path: Path) -> None:
    whole = (flat / "bee" / "001.jpg").read_bytes()
    (flat / "bee" / "001.jpg").write_bytes(whole[: len(whole) // 2])
    (flat / "bee" / "002.jpg").write_bytes(b"")
    (flat / "cat" / "000.png").write_bytes((flat / "cat" / "000.png").read_bytes()[:60])
    with pytest.raises(
        UsageError, match=r"^3 broken images, first: .*/bee/001\.jpg \(.*[Tt]runcated.*\)"
    ) as caught:
        resize.resize_folder(flat, tmp_path / "out", size=16)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob(".out.partial-*"))


def test_a_copy_inside_its_source_is_refused(flat: Path) -> None:
    with pytest.raises(UsageError, match="in its own source"):
        resize.resize_folder(flat, flat / "small", size=16)
