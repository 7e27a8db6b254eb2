"""One image as a square: shorter side to `size`, centre cut out. The same for every copy of a folder."""

from __future__ import annotations

import os
import struct
import warnings
import zlib

import numpy as np
from PIL import Image, UnidentifiedImageError

QUALITY = 95

# Of images with more than 89 million pixels, which are large, but no attack; from twice as many on Pillow refuses them.
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)

BROKEN = (OSError, ValueError, SyntaxError, EOFError, struct.error, zlib.error, Image.DecompressionBombError)
"""All that Pillow raises for a file that is not, or not wholly, an image."""


def open_square(path: str, size: int) -> Image.Image:
    """The image at `path` as RGB of size×size pixels, as stored: a camera's orientation tag is not followed.

    Raises one of Pillow's exceptions where the file is broken.
    """
    with Image.open(path) as image:
        # A large JPEG is decoded at a fraction of its size, never below twice what is needed.
        image.draft("RGB", (2 * size, 2 * size))
        whole = image.convert("RGB")
    width, height = whole.size
    side = min(width, height)
    left_edge, top_edge = (width - side) / 2, (height - side) / 2
    return whole.resize(
        (size, size), Image.Resampling.BILINEAR, box=(left_edge, top_edge, left_edge + side, top_edge + side)
    )


def save_square(task: tuple[str, str], *, size: int) -> str | None:
    """Writes the square of (source, destination) as a JPEG. Returns why the source is broken, or None."""
    source, destination = task
    try:
        image = open_square(source, size)
    except BROKEN as error:
        return format_decode_error(error)
    image.save(destination, "JPEG", quality=QUALITY, subsampling="4:2:0")
    return None


def store_square(task: tuple[str, str, int], *, size: int) -> str | None:
    """Writes the square of `source` as uint8 3×S×S at its place in `file`. Returns as `save_square` does."""
    source, file, position = task
    try:
        image = open_square(source, size)
    except BROKEN as error:
        return format_decode_error(error)
    planes = np.ascontiguousarray(np.asarray(image).transpose(2, 0, 1)).tobytes()
    descriptor = os.open(file, os.O_WRONLY)
    try:
        # Not through a memory map: there a full disk is a SIGBUS instead of an error.
        written = os.pwrite(descriptor, planes, position * len(planes))
    finally:
        os.close(descriptor)
    if written != len(planes):
        raise OSError(f"wrote {written} of {len(planes)} bytes of {file}")
    return None


def format_decode_error(error: BaseException) -> str:
    """Why Pillow refuses a file, in one line."""
    if isinstance(error, UnidentifiedImageError):
        return "not an image"
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(text.split()) or type(error).__name__
