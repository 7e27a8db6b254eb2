"""Image files, decoded one at a time.

EXIF orientation is ignored: pixels come as they are stored, which is what torchvision's ImageFolder with
`decode_image` does, and it keeps the work per image the same.
"""

from __future__ import annotations

import io
import re
import struct
import warnings
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torchvision.io import ImageReadMode, decode_image, decode_jpeg

from gpubench.datasets.square import BROKEN
from gpubench.errors import UnusableError

# torchvision 0.29 announces that its decoders will move to a package of their own.
warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"torchvision\.io")
# Pillow warns of half as many pixels as it refuses; such an image is large, and trained on.
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)

_JPEG = (b"\xff\xd8\xff",)
_PNG = b"\x89PNG\r\n\x1a\n"
_TORCHVISION = (b"\x89PNG", b"GIF8", b"RIFF")  # RIFF: WebP
MOST_PIXELS = 2 * (Image.MAX_IMAGE_PIXELS or 1 << 27)
"""More are no photograph but a mistake or a trap, which would fill the host's memory: where Pillow refuses, too."""
_MAY_BE_LARGE = 256 << 10
"""Bytes below which no JPEG has as many: the emptiest needs a bit for each of its blocks."""


class FolderSource:
    """Files of (absolute path, class), as `gpubench.datasets.folder.listing` gives them."""

    def __init__(self, images: Sequence[tuple[str, int]], channels: int = 3) -> None:
        # One array instead of a million strings: workers forked from here then share its pages for good.
        self._paths = np.array([path.encode(errors="surrogateescape") for path, _ in images], dtype=np.bytes_)
        self.labels = np.array([label for _, label in images], dtype=np.int64)
        self._mode = ImageReadMode.GRAY if channels == 1 else ImageReadMode.RGB

    def __len__(self) -> int:
        return len(self.labels)

    def image(self, index: int) -> torch.Tensor:
        return read(self.place(index), self._mode)

    def place(self, index: int) -> str:
        path: bytes = self._paths[index]
        return path.decode(errors="surrogateescape")


def read(path: str, mode: ImageReadMode = ImageReadMode.RGB) -> torch.Tensor:
    """The image file at `path` as uint8 C × H × W. Raises UnusableError where it can't be read."""
    try:
        return decode(np.fromfile(path, np.uint8), mode)
    except (*BROKEN, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        reason = re.sub(r"^\w+, \S+\.cpp:\d+, ", "", reason)  # where in torchvision's own source
        reason = re.sub(r" <_io\.\w+ object at 0x[0-9a-f]+>", "", reason)  # what Pillow calls the file
        raise UnusableError(f"broken image {path}: {reason}") from error


def decode(encoded: npt.NDArray[np.uint8], mode: ImageReadMode) -> torch.Tensor:
    """The encoded bytes of one image as uint8 C × H × W; of an animation its first frame.

    Raises RuntimeError or one of `square.BROKEN` where they are no image, or one of more than MOST_PIXELS.
    """
    if not len(encoded):
        raise ValueError("the file is empty")
    _refuse_huge(encoded)
    head = encoded[:4].tobytes()
    if head.startswith(_JPEG):
        image: torch.Tensor = decode_jpeg(torch.from_numpy(encoded), mode=mode)
        return image
    if head.startswith(_TORCHVISION):
        image = decode_image(torch.from_numpy(encoded), mode=mode)
        image = image if image.dim() == 3 else image[0]
        if image.dtype == torch.uint16:  # a PNG with 16 bits a channel
            image = (image.to(torch.int32) >> 8).to(torch.uint8)
        return image
    with Image.open(io.BytesIO(encoded.tobytes())) as opened:
        pixels = np.array(opened.convert("L" if mode == ImageReadMode.GRAY else "RGB"))
    return torch.from_numpy(pixels if pixels.ndim == 3 else pixels[..., None]).permute(2, 0, 1)


def _refuse_huge(encoded: npt.NDArray[np.uint8]) -> None:
    """Raises one of `square.BROKEN` for a PNG or a JPEG whose header tells of more than MOST_PIXELS.

    torchvision decodes any size, and the host's memory runs out without anybody knowing at which file.
    """
    head = encoded[:24].tobytes()
    if head.startswith(_PNG) and len(head) == 24:
        width, height = struct.unpack(">II", head[16:])
        if width * height > MOST_PIXELS:
            raise ValueError(
                f"{width:,} × {height:,} pixels are more than the {MOST_PIXELS:,} that are decoded"
            )
    elif head.startswith(_JPEG) and len(encoded) >= _MAY_BE_LARGE:
        with Image.open(io.BytesIO(encoded.tobytes())):
            pass  # Pillow has looked at the header, and refuses what is larger
