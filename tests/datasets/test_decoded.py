from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gpubench.basics.errors import UnusableError
from gpubench.datasets import decoded, folder
from gpubench.datasets.square import open_square


def test_arrays_hold_the_images_in_the_order_of_the_listing(flat: Path) -> None:
    place = decoded.decode_folder(flat, size=16)
    for split in ("train", "val"):
        listing = folder.list_images(flat, split)
        images, labels = decoded.open_decoded_split(place, split)
        assert images.shape == (len(listing), 3, 16, 16)
        assert (images.dtype, labels.dtype) == (np.uint8, np.int64)
        assert labels.tolist() == [label for _, label in listing]
        for k, (path, _) in enumerate(listing):
            assert np.array_equal(images[k].transpose(1, 2, 0), np.asarray(open_square(path, 16)))
        assert not images.flags.writeable


def test_no_validation_images_give_an_empty_array(tmp_path: Path) -> None:
    (tmp_path / "one" / "a").mkdir(parents=True)
    Image.new("RGB", (9, 9)).save(tmp_path / "one" / "a" / "1.png")
    images, labels = decoded.open_decoded_split(decoded.decode_folder(tmp_path / "one", size=8), "val")
    assert (images.shape, labels.shape) == ((0, 3, 8, 8), (0,))


def test_a_folder_that_lost_bytes_is_refused(flat: Path) -> None:
    place = decoded.decode_folder(flat, size=8)
    with (place / "train.u8").open("r+b") as file:
        file.truncate(100)
    with pytest.raises(UnusableError, match="or not all of them"):
        decoded.open_decoded_split(place, "train")
    with pytest.raises(UnusableError, match="no decoded images"):
        decoded.open_decoded_split(flat, "train")
