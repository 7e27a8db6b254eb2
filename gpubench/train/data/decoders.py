"""What decodes JPEG, PNG, WebP and GIF files: torchcodec where it is there for this torch, else torchvision.

torchcodec has image decoders from 0.16 on; torchvision 0.29 announces that its own will be removed.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch

Mode = Literal["RGB", "GRAY"]


@dataclass(frozen=True, slots=True)
class Decoder:
    """Decodes the bytes of one file."""

    name: str
    """Package and version, as records keep it."""
    decode: Callable[[npt.NDArray[np.uint8], Mode], torch.Tensor]
    """C × H × W (of an animation with a frame more than one: N × C × H × W), of uint8 or, where a channel has 16 bits,
    uint16, as stored: a camera's orientation tag is not followed. Raises RuntimeError where the file is broken."""


def load_decoder() -> Decoder:
    """The decoder that this process uses."""
    try:
        return _load_torchcodec()
    except (ImportError, OSError, RuntimeError):  # not there; before 0.16; built for another torch or CUDA
        return _load_torchvision()


def _load_torchcodec() -> Decoder:
    from torchcodec.decoders import decode_image

    def decode(encoded: npt.NDArray[np.uint8], mode: Mode) -> torch.Tensor:
        # It turns images as their EXIF says, and can't be asked not to.
        image: torch.Tensor = decode_image(
            torch.from_numpy(hide_exif(encoded)), mode=mode, output_dtype="auto"
        )
        return image

    return Decoder(f"torchcodec {metadata.version('torchcodec')}", decode)


def _load_torchvision() -> Decoder:
    from torchvision.io import decode_image

    warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"torchvision\.io")  # at each call

    def decode(encoded: npt.NDArray[np.uint8], mode: Mode) -> torch.Tensor:
        image: torch.Tensor = decode_image(torch.from_numpy(encoded), mode=mode)
        return image

    return Decoder(f"torchvision {metadata.version('torchvision')}", decode)


# ---------------------------------------------------------------- without EXIF, by which decoders turn the pixels


Patch = tuple[int, bytes]
"""Where in a file which bytes are put."""

_APP1, _APP15, _START_OF_SCAN = 0xE1, 0xEF, 0xDA


def hide_exif(encoded: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """The bytes of a file in which every part with EXIF, which says how the camera was held, is of a kind that decoders
    pass over.

    They are a copy where there is one, else `encoded` itself. A file that is broken before that part stays as it is.
    """
    head = encoded[:12].tobytes()
    data = encoded.data
    if head.startswith(b"\xff\xd8\xff"):
        patches = list(_list_jpeg_patches(data))
    elif head.startswith(b"\x89PNG"):
        patches = list(_list_png_patches(data))
    elif head.startswith(b"RIFF") and head.endswith(b"WEBP"):
        patches = list(_list_webp_patches(data))
    else:
        patches = []
    if not patches:
        return encoded
    hidden = encoded.copy()
    for place, new in patches:
        hidden[place : place + len(new)] = np.frombuffer(new, np.uint8)
    return hidden


def _list_jpeg_patches(data: memoryview) -> Iterator[Patch]:
    place = 2
    while place + 4 <= len(data) and data[place] == 0xFF and (marker := data[place + 1]) != _START_OF_SCAN:
        if marker == 0xFF:  # before a marker there may be any number of them
            place += 1
            continue
        if marker == _APP1:
            yield place + 1, bytes([_APP15])
        place += 2 + int.from_bytes(data[place + 2 : place + 4], "big")


def _list_png_patches(data: memoryview) -> Iterator[Patch]:
    place = 8
    while place + 12 <= len(data):
        end = place + 8 + int.from_bytes(data[place : place + 4], "big")
        if bytes(data[place + 4 : place + 8]) == b"eXIf" and end + 4 <= len(data):
            private = b"exIf"
            checksum = zlib.crc32(data[place + 8 : end], zlib.crc32(private))
            yield place + 4, private
            yield end, checksum.to_bytes(4, "big")
        place = end + 4


def _list_webp_patches(data: memoryview) -> Iterator[Patch]:
    place = 12
    while place + 8 <= len(data):
        if bytes(data[place : place + 4]) == b"EXIF":
            yield place, b"exif"
        size = int.from_bytes(data[place + 4 : place + 8], "little")
        place += 8 + size + size % 2


DECODER = load_decoder()
"""Chosen once, before loader workers are forked."""
