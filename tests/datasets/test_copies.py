"""Square copies of image folders: as JPEGs and as arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from photo_trees import save_photo, tree
from PIL import Image

from gpubench.basics.errors import UnusableError, UsageError
from gpubench.datasets import copies, folder
from gpubench.datasets.square import open_square


def stems(root: Path, split: str) -> list[tuple[str, str, int]]:
    return [(Path(p).parent.name, Path(p).name.split(".")[0], k) for p, k in folder.list_images(root, split)]


def test_a_resized_copy_has_the_same_classes_names_and_split_and_is_made_once(flat: Path, home: Path) -> None:
    small = copies.make_copy("resized", flat, size=24)
    facts = folder.collect_folder_facts(small)
    assert small.name == f"resized-{folder.collect_folder_facts(flat).fingerprint}-24"
    assert facts.size == 24
    for split in ("train", "val"):
        assert stems(small, split) == stems(flat, split)
        for path, _ in folder.list_images(small, split):
            with Image.open(path) as image:
                assert (image.size, image.mode, image.format) == ((24, 24), "RGB", "JPEG")
    before = tree(home)
    calls: list[int] = []
    assert copies.make_copy("resized", flat, size=24, progress=lambda done, _: calls.append(done)) == small
    assert (calls, tree(home)) == ([], before)
    other = folder.collect_folder_facts(copies.make_copy("resized", flat, size=20))
    assert other.root != facts.root
    assert other.fingerprint != facts.fingerprint


def test_the_centre_is_kept_and_all_kinds_of_images_become_rgb(tmp_path: Path) -> None:
    wide = np.zeros((40, 120, 3), np.uint8)
    wide[:, 40:80] = (200, 100, 50)
    (tmp_path / "in" / "a").mkdir(parents=True)
    Image.fromarray(wide).save(tmp_path / "in" / "a" / "wide.png")
    for k, mode in enumerate(("L", "RGBA", "P", "1", "CMYK")):
        path = tmp_path / "in" / "a" / f"{k}.{'jpg' if mode == 'CMYK' else 'png'}"
        Image.new(mode, (30, 20)).save(path)
    small = copies.make_copy("resized", tmp_path / "in", tmp_path / "out", size=20)
    assert folder.collect_folder_facts(small).train_images == 6
    with Image.open(small / "train" / "a" / "wide.png.jpg") as image:
        pixels = np.asarray(image, np.int16)
    # The outermost pixels average over the cut, as they do where an image is resized first and cut then.
    assert np.abs(pixels - (200, 100, 50))[1:-1, 1:-1].max() < 12


def test_broken_images_are_counted_and_the_first_is_named(flat: Path, tmp_path: Path) -> None:
    whole = (flat / "bee" / "001.jpg").read_bytes()
    (flat / "bee" / "001.jpg").write_bytes(whole[: len(whole) // 2])
    (flat / "bee" / "002.jpg").write_bytes(b"")
    (flat / "cat" / "000.png").write_bytes((flat / "cat" / "000.png").read_bytes()[:60])
    for kind in copies.VERSIONS:
        with pytest.raises(
            UsageError, match=r"^3 broken images, first: .*/bee/001\.jpg \(.*[Tt]runcated.*\)"
        ) as caught:
            copies.make_copy(kind, flat, tmp_path / "out", size=16)
        assert "\n" not in str(caught.value)
        assert not (tmp_path / "out").exists()
        assert not list(tmp_path.glob(".out.partial-*"))


def test_a_copy_inside_its_source_and_two_images_in_one_place_are_refused(flat: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="in its own source"):
        copies.make_copy("resized", flat, flat / "small", size=16)
    save_photo(flat / "ant" / "000.png.jpg", 1)
    with pytest.raises(
        UsageError, match=r"000\.png\.jpg and .*/000\.png would become one|000\.png and .*one"
    ):
        copies.make_copy("resized", flat, tmp_path / "small", size=16)


def test_arrays_hold_the_images_in_the_order_of_the_listing(flat: Path) -> None:
    place = copies.make_copy("decoded", flat, size=16)
    for split in ("train", "val"):
        listing = folder.list_images(flat, split)
        images, labels = copies.open_decoded_split(place, split)
        assert images.shape == (len(listing), 3, 16, 16)
        assert (images.dtype, labels.dtype) == (np.uint8, np.int64)
        assert labels.tolist() == [label for _, label in listing]
        for k, (path, _) in enumerate(listing):
            assert np.array_equal(images[k].transpose(1, 2, 0), np.asarray(open_square(path, 16)))
        assert not images.flags.writeable
    with (place / "train.u8").open("r+b") as file:
        file.truncate(100)
    with pytest.raises(UnusableError, match="or not all of them"):
        copies.open_decoded_split(place, "train")
    with pytest.raises(UnusableError, match="no decoded images"):
        copies.open_decoded_split(flat, "train")


def test_no_validation_images_give_an_empty_array(tmp_path: Path) -> None:
    save_photo(tmp_path / "one" / "a" / "1.png", 1)
    images, labels = copies.open_decoded_split(copies.make_copy("decoded", tmp_path / "one", size=8), "val")
    assert (images.shape, labels.shape) == ((0, 3, 8, 8), (0,))
