"""What decodes image files: torchcodec where it can, else torchvision, with the same pixels.

Those of torchcodec itself run where it is installed (the extra `images`).
"""

from __future__ import annotations

import io
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from gpubench.train.data.decoders import Decoder, _load_torchcodec, _load_torchvision, hide_exif, load_decoder

ORIENTATION = 0x0112
NOISE = np.random.default_rng(0).integers(0, 256, (6, 9, 3), np.uint8)
PICTURE = Image.fromarray(NOISE).resize((90, 60), Image.Resampling.BICUBIC)

FAKE = """
import io
import numpy, torch
from PIL import Image

def decode_image(source, *, mode, output_dtype):
    pixels = numpy.array(Image.open(io.BytesIO(source.numpy().tobytes())).convert(mode))
    return torch.from_numpy(pixels).permute(2, 0, 1)
"""


def encode(image: Image.Image, kind: str, **more: Any) -> np.ndarray[Any, np.dtype[np.uint8]]:
    file = io.BytesIO()
    image.save(file, kind, **more)
    return np.frombuffer(file.getvalue(), np.uint8).copy()


def encode_turned(kind: str, orientation: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    return encode(PICTURE, kind, exif=exif.tobytes())


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Installs a torchcodec 9.9 with that text as its `decoders`."""
    modules = ("torchcodec", "torchcodec.decoders")

    def install_(decoders: str) -> None:
        package = tmp_path / "site" / "torchcodec"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "decoders.py").write_text(textwrap.dedent(decoders))
        facts = tmp_path / "site" / "torchcodec-9.9.dist-info"
        facts.mkdir()
        (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: torchcodec\nVersion: 9.9\n")
        monkeypatch.syspath_prepend(str(tmp_path / "site"))

    for name in modules:
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield install_
    for name in modules:
        sys.modules.pop(name, None)


def test_torchcodec_decodes_where_it_has_image_decoders(install: Callable[[str], None]) -> None:
    install(FAKE)
    decoder = load_decoder()
    assert decoder.name == "torchcodec 9.9"
    assert np.array_equal(decoder.decode(encode(PICTURE, "PNG"), "RGB").permute(1, 2, 0), np.array(PICTURE))


@pytest.mark.parametrize(
    "decoders",
    [
        "class VideoDecoder: ...",  # before 0.16
        "raise RuntimeError('Could not load libtorchcodec')",  # as before 0.16 without FFmpeg
        "raise OSError('libcudart.so.13: cannot open shared object file')",
        "import a_module_that_is_not_there",
    ],
)
def test_torchvision_decodes_where_torchcodec_can_not(install: Callable[[str], None], decoders: str) -> None:
    install(decoders)
    assert load_decoder().name.startswith("torchvision ")


def test_torchvision_s_warnings_are_not_printed() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        decoder = _load_torchvision()
        for _ in range(3):
            decoder.decode(encode(PICTURE, "JPEG"), "RGB")
    assert caught == []


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_hidden_exif_is_found_by_nobody_and_the_pixels_are_the_same(kind: str) -> None:
    turned = encode_turned(kind, 6)
    as_stored = turned.copy()
    hidden = hide_exif(turned)
    assert np.array_equal(turned, as_stored)
    with (
        Image.open(io.BytesIO(turned.tobytes())) as before,
        Image.open(io.BytesIO(hidden.tobytes())) as after,
    ):
        assert before.getexif()[ORIENTATION] == 6
        assert ORIENTATION not in after.getexif()
        assert np.array_equal(np.array(before), np.array(after))
    assert torch.equal(*(_load_torchvision().decode(encoded, "RGB") for encoded in (turned, hidden)))


def test_exif_behind_other_segments_is_hidden() -> None:
    whole = encode_turned("JPEG", 6).tobytes()
    fill, comment = b"\xff" * 3, b"\xff\xfe\x00\x06\xff\xd8ab"
    behind = np.frombuffer(whole[:2] + comment + fill + whole[2:], np.uint8)
    with Image.open(io.BytesIO(hide_exif(behind).tobytes())) as image:
        assert ORIENTATION not in image.getexif()


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_exif_is_looked_for_in_any_spoiled_file(kind: str) -> None:
    draw = np.random.default_rng(0)
    whole = encode_turned(kind, 6)
    for _ in range(300):
        spoiled = whole[: draw.integers(1, len(whole))].copy()
        spoiled[draw.integers(0, len(spoiled), 4)] = draw.integers(0, 256, 4)
        assert len(hide_exif(spoiled)) == len(spoiled)


# ---------------------------------------------------------------- torchcodec itself


@pytest.fixture
def both() -> tuple[Decoder, Decoder]:
    pytest.importorskip("torchcodec.decoders", reason="the extra `images` is not installed")
    return _load_torchcodec(), _load_torchvision()


SAVED = {
    "grey JPEG": ("JPEG", "L", {}),
    "CMYK JPEG": ("JPEG", "CMYK", {}),
    "progressive JPEG": ("JPEG", "RGB", {"progressive": True}),
    "JPEG 4:4:4": ("JPEG", "RGB", {"subsampling": "4:4:4", "quality": 95}),
    "JPEG 4:2:2": ("JPEG", "RGB", {"subsampling": "4:2:2", "quality": 40}),
    "PNG": ("PNG", "RGB", {}),
    "PNG with alpha": ("PNG", "RGBA", {}),
    "PNG with a palette": ("PNG", "P", {}),
    "PNG of one bit": ("PNG", "1", {}),
    "PNG of 16 bits": ("PNG", "I;16", {}),
    "GIF": ("GIF", "P", {}),
    "GIF of two": ("GIF", "P", {"save_all": True, "append_images": [PICTURE.rotate(180)]}),
    "WebP": ("WEBP", "RGB", {}),
    "WebP with alpha": ("WEBP", "RGBA", {"lossless": True}),
}


@pytest.mark.parametrize("case", SAVED)
def test_both_give_the_same_pixels(both: tuple[Decoder, Decoder], case: str) -> None:
    kind, mode, more = SAVED[case]
    image = PICTURE.convert("L").convert("I").convert(mode) if mode == "I;16" else PICTURE.convert(mode)
    encoded = encode(image, kind, **more)
    ours, theirs = (decoder.decode(encoded, "RGB") for decoder in both)
    assert ours.dtype == theirs.dtype
    assert torch.equal(ours.int(), theirs.int())


def test_both_refuse_what_is_cut_off(both: tuple[Decoder, Decoder]) -> None:
    for kind in ("JPEG", "PNG", "GIF", "WEBP"):
        encoded = encode(PICTURE, kind)
        for decoder in both:
            with pytest.raises(RuntimeError):
                decoder.decode(encoded[: len(encoded) // 2].copy(), "RGB")
