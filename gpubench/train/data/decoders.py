"""What decodes JPEG, PNG, WebP and GIF files: torchcodec where it is there for this torch, else torchvision.

torchcodec has image decoders from 0.16 on; torchvision 0.29 announces that its own will be removed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch

from gpubench.train.data.exif import hide_exif

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


DECODER = load_decoder()
"""Chosen once, before loader workers are forked."""
