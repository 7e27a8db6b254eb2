"""Image files, decoded one at a time.

EXIF orientation is ignored: pixels come as they are stored, which is what torchvision's ImageFolder does, and it keeps
the work per image the same.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image

from gpubench.basics.errors import UnusableError
from gpubench.datasets import square
from gpubench.train.data.decoders import DECODER, Mode

_BROKEN = (*square.BROKEN, RuntimeError)
"""All that Pillow and `DECODER` raise for a file that is not, or not wholly, an image."""
_FOR_DECODER = (b"\xff\xd8\xff", b"\x89PNG", b"GIF8", b"RIFF")  # RIFF: WebP


class FolderSource:
    """Files of (absolute path, class), as `gpubench.datasets.folder.list_images` gives them."""

    def __init__(self, images: Sequence[tuple[str, int]], channels: int = 3) -> None:
        # One array instead of a million strings: workers forked from here then share its pages for good.
        self._paths = np.array([path.encode(errors="surrogateescape") for path, _ in images], dtype=np.bytes_)
        self.labels = np.array([label for _, label in images], dtype=np.int64)
        self._mode: Mode = "GRAY" if channels == 1 else "RGB"

    def __len__(self) -> int:
        return len(self.labels)

    def load_image(self, index: int) -> torch.Tensor:
        """Image `index` as uint8 C × H × W. Raises UnusableError, naming the file, where it can't be read."""
        return read_image(self.name_image(index), self._mode)

    def name_image(self, index: int) -> str:
        """The file of that image, for messages."""
        path: bytes = self._paths[index]
        return path.decode(errors="surrogateescape")


def read_image(path: str, mode: Mode = "RGB") -> torch.Tensor:
    """The image file at `path` as uint8 C × H × W. Raises UnusableError where it can't be read."""
    try:
        return decode_image_bytes(np.fromfile(path, np.uint8), mode)
    except _BROKEN as error:
        # In the words of those who look at it beforehand; a missing file is nothing that they look at.
        missing = isinstance(error, OSError) and error.errno is not None
        reason = None if missing else find_defect(path)
        raise UnusableError(describe_broken_image(path, reason or _shorten_decoder_error(error))) from error


def describe_broken_image(path: str, reason: str) -> str:
    """What is said of an image that ends a trial."""
    return (
        f"broken image {path}: {reason}; repair or remove it, or leave all such images out with "
        "--bad-images skip"
    )


def find_defect(path: str) -> str | None:
    """Why an image can't be used, in a few words: None where it can be read here and copied by Pillow.

    Every variant of a data set reads the same images, and some read copies of them. So what only one of the two refuses
    is bad for both. Pillow comes first: where a PNG's checksum is wrong it raises an error, which torchvision 0.29
    answers with a SIGSEGV.
    """
    try:
        encoded = np.fromfile(path, np.uint8)
        square.open_square(path, _SIDE)
        decode_image_bytes(encoded, "RGB")
    except square.BROKEN as error:
        # The disk's or the network's fault may pass.
        if isinstance(error, OSError) and error.errno is not None:
            raise UnusableError(
                f"the image {path} can't be read: {error.strerror}; start again once it can, or remove it"
            ) from None
        return square.format_decode_error(error)
    except MemoryError:
        raise UnusableError(_NO_MEMORY.format(path)) from None
    except RuntimeError as error:
        if "allocate memory" in str(error):  # the machine's fault, not the image's
            raise UnusableError(_NO_MEMORY.format(path)) from None
        return _shorten_decoder_error(error)
    return None


_NO_MEMORY = "no memory is left to try the image {}: start again when less of it is used"
_SIDE = 32
"""The side of the square that `find_defect` has Pillow make, in pixels: made fast, and of the whole file even so."""


def _shorten_decoder_error(error: BaseException) -> str:
    text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    text = re.sub(r"^\S+, \S+\.cpp:\d+, ", "", text)  # where in the decoder's own source
    return re.sub(r" <_io\.\w+ object at 0x[0-9a-f]+>", "", text)  # what Pillow calls the file


def decode_image_bytes(encoded: npt.NDArray[np.uint8], mode: Mode) -> torch.Tensor:
    """The encoded bytes of one image as uint8 C × H × W; of an animation its first frame.

    Raises RuntimeError or one of `square.BROKEN` where they are no image.
    """
    if not len(encoded):
        raise ValueError("the file is empty")
    head = encoded[:4].tobytes()
    if head.startswith(_FOR_DECODER):
        image = DECODER.decode(encoded, mode)
        image = image if image.dim() == 3 else image[0]
        if image.dtype == torch.uint16:  # a PNG with 16 bits a channel
            image = (image.to(torch.int32) >> 8).to(torch.uint8)
        return image
    with Image.open(io.BytesIO(encoded.tobytes())) as opened:
        pixels = np.array(opened.convert("L" if mode == "GRAY" else "RGB"))
    return torch.from_numpy(pixels if pixels.ndim == 3 else pixels[..., None]).permute(2, 0, 1)
