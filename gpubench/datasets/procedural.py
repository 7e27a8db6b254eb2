"""One procedural photograph: drawn from (seed, split, index) alone, in classes that a network can learn.

A class is a shape covered with a texture, in a loose preference of hue. Everything else varies from image to
image: how many objects there are and where, their size, turn and colours, what lies behind and in front of
them, the light and the grain. Pixels are made by integer arithmetic, tables and exact float operations, so
that machines agree on them.
"""

from __future__ import annotations

import colorsys
import io
import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageChops, ImageDraw

QUALITY = 91
"""JPEG quality: with the grain below it gives 500×375 images the 80 to 110 KB of photographs."""

SHAPES = ("disc", "block", "star", "ring")
TEXTURES = ("stripes", "checks", "dots", "patches")
SPLITS = ("train", "val")

_BANK = 1024
_SINE = np.array([round(127 * math.sin(2 * math.pi * k / 256)) for k in range(256)], np.int16)

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int16]


def make_class_name(label: int, num_classes: int) -> str:
    """Folder name of a class; names sort in the order of their labels."""
    shape, texture, _ = _choose_traits(label)
    return f"{label:0{len(str(num_classes - 1))}d}-{SHAPES[shape]}-{TEXTURES[texture]}"


def draw_image(
    seed: int, split: str, index: int, num_classes: int, width: int = 500, height: int = 375
) -> Image.Image:
    """Image `index` of a split, RGB. Its longer side is the longer of `width` and `height`, in pixels.

    Classes take turns, so that every one has as many images, to one. Most images are `width`×`height`, some upright,
    some of another aspect, as in a collection of photographs.
    """
    rng = np.random.default_rng([seed, SPLITS.index(split), index])
    label = index % num_classes
    shape, texture, fineness = _choose_traits(label)
    size = _sample_size(rng, width, height)
    frame = _draw_background(rng, size)
    hue = (label * 0.618 + rng.normal(0, 0.08)) % 1.0
    members = int(rng.integers(2, 5))
    strangers = int(rng.integers(2, 6))
    # Strangers lie behind most of the time; the last of them may cover a member.
    for kind in "s" * (strangers - 1) + "m" * (members - 1) + "sm":
        side = int(max(size) * rng.uniform(0.14, 0.42))
        at = (_sample_offset(rng, side, size[0]), _sample_offset(rng, side, size[1]))
        if kind == "m":
            wavelength = max(3.0, max(size) * (0.065, 0.04, 0.1)[fineness] * rng.uniform(0.75, 1.35))
            own_hue = hue if rng.random() < 0.85 else rng.random()
            cover = _draw_textured_square(rng, side, texture, wavelength, own_hue)
            mask = _draw_class_mask(rng, side, shape)
        else:
            rough = _sample_noise(rng, side, side)  # without a regular texture
            colours = _sample_colour(rng), _sample_colour(rng)
            cover = _draw_lit_square(rng, rough, *colours, _sample_noise(rng, side, side))
            mask = _draw_blob_mask(rng, side)
        _draw_shadow(rng, frame, mask, at)
        frame.paste(cover, at, mask)
    return _light_scene(rng, frame)


def _sample_offset(rng: np.random.Generator, side: int, length: int) -> int:
    """Where a square of `side` begins on an axis of `length`; it may stick out at both ends."""
    first = -side // 4
    return int(rng.integers(first, max(first + 1, length - side // 2)))


def encode_jpeg(image: Image.Image) -> bytes:
    """The image as a JPEG file, 4:2:0."""
    out = io.BytesIO()
    image.save(out, "JPEG", quality=QUALITY, subsampling="4:2:0")
    return out.getvalue()


def write(task: tuple[str, int], *, root: str, seed: int, classes: int, size: tuple[int, int]) -> None:
    """Draws one image of (split, index) and writes it into its class's folder below `root`."""
    split, index = task
    name = make_class_name(index % classes, classes)
    image = draw_image(seed, split, index, classes, *size)
    Path(root, split, name, f"{index:07d}.jpg").write_bytes(encode_jpeg(image))


def _choose_traits(label: int) -> tuple[int, int, int]:
    """Shape, texture and fineness of a class; neighbouring classes differ in more than one of them."""
    return label % 4, (label // 4 + label) % 4, (label // 16) % 3


def _sample_size(rng: np.random.Generator, width: int, height: int) -> tuple[int, int]:
    pick = rng.random()
    if pick < 0.55:
        return width, height
    if pick < 0.75:
        return height, width
    if pick < 0.92:
        return width, max(1, width * 2 // 3)
    return width, max(1, width * 4 // 5)


@cache
def _make_noise_bank() -> Bytes:
    """A square of noise whose octaves have equal contrast (1/f), as textures in nature have. Made once."""
    rng = np.random.default_rng(2026)
    total = np.zeros((_BANK, _BANK), np.float32)
    side = 8
    while side <= _BANK:
        cells = Image.fromarray(rng.integers(0, 256, (side, side), np.uint8))
        octave = np.asarray(cells.resize((_BANK, _BANK), Image.Resampling.BICUBIC), np.float32) - 127.5
        total += octave * np.float32(0.30 if side < _BANK // 2 else 0.22)
        side *= 2
    return _clip_to_bytes(total + np.float32(127.5))


def _sample_noise(rng: np.random.Generator, width: int, height: int) -> Ints:
    """A piece of the bank, height×width, about −110 to 110: placed, turned and mirrored at random."""
    bank = _make_noise_bank()
    bank = bank.T if rng.random() < 0.5 else bank
    step = -1 if rng.random() < 0.5 else 1
    if width > _BANK or height > _BANK:
        bank = np.tile(bank, (-(-height // _BANK), -(-width // _BANK)))
    x = int(rng.integers(0, bank.shape[1] - width + 1))
    y = int(rng.integers(0, bank.shape[0] - height + 1))
    piece: Ints = bank[y : y + height, x : x + width][:, ::step].astype(np.int16) - 128
    return piece


def _make_colour(hue: float, saturation: float, value: float) -> Ints:
    return np.array([round(255 * c) for c in colorsys.hsv_to_rgb(hue % 1.0, saturation, value)], np.int16)


def _sample_colour(rng: np.random.Generator) -> Ints:
    return _make_colour(rng.random(), rng.uniform(0.1, 0.75), rng.uniform(0.2, 0.95))


def _clip_to_bytes(values: npt.NDArray[Any]) -> Bytes:
    clipped: Bytes = np.clip(values, 0, 255).astype(np.uint8)
    return clipped


def _draw_background(rng: np.random.Generator, size: tuple[int, int]) -> Image.Image:
    """A blurred place: two colours that run into each other, with a rough surface."""
    near, far = _sample_colour(rng).astype(np.float32), _sample_colour(rng).astype(np.float32)
    rows, columns = int(rng.integers(3, 7)), int(rng.integers(3, 7))
    fall = np.linspace(0, 1, rows, dtype=np.float32)[:, None] * np.float32(rng.uniform(0.2, 1))
    share = np.clip(fall + rng.uniform(-0.35, 0.35, (rows, columns)), 0, 1)[..., None]
    place = Image.fromarray(_clip_to_bytes(near + (far - near) * share)).resize(
        size, Image.Resampling.BICUBIC
    )
    rough = _sample_noise(rng, *size) * np.int16(rng.integers(25, 120)) >> 7
    return _add_grey(place, rough)


def _add_grey(image: Image.Image, grey: Ints) -> Image.Image:
    """The image with `grey` (−128 to 127) added to every channel."""
    plane = Image.fromarray((grey + 128).astype(np.uint8))
    return ImageChops.add(image, Image.merge("RGB", (plane, plane, plane)), 1, -128)


def _draw_textured_square(
    rng: np.random.Generator, side: int, texture: int, wave: float, hue: float
) -> Image.Image:
    """A square with the texture of a class, turned, bent, coloured and shaded at random."""
    angle = rng.uniform(0, math.pi)
    along, across = 256 / wave * math.cos(angle), 256 / wave * math.sin(angle)
    line = np.arange(side, dtype=np.float32)
    bend = _sample_noise(rng, side, side)
    u = (line[None, :] * np.float32(along) + line[:, None] * np.float32(across)).astype(np.int16) + (
        bend >> 1
    )
    v = (line[:, None] * np.float32(along) - line[None, :] * np.float32(across)).astype(np.int16)
    a, b = _SINE[u & 255], _SINE[v & 255]
    if texture == 0:
        pattern = a
    elif texture == 1:
        pattern = np.clip(a * b // 40, -127, 127)
    elif texture == 2:
        pattern = np.clip((a + b - 60) * 2, -127, 127)
    else:
        coarse = Image.fromarray(rng.integers(0, 256, (int(side / wave * 1.2) + 3,) * 2, np.uint8))
        spots = coarse.resize((side, side), Image.Resampling.BICUBIC)
        pattern = np.clip((np.asarray(spots, np.int16) - 128) * 5, -127, 127)
    light = _make_colour(hue, rng.uniform(0.3, 0.9), rng.uniform(0.6, 1.0))
    dark = _make_colour(hue + rng.normal(0, 0.06), rng.uniform(0.2, 0.9), rng.uniform(0.1, 0.45))
    return _draw_lit_square(rng, pattern, light, dark, bend)


def _draw_lit_square(
    rng: np.random.Generator, pattern: Ints, light_colour: Ints, dark_colour: Ints, rough: Ints
) -> Image.Image:
    """A square that runs from the dark to the light colour as `pattern` does from −127 to 127, lit from a side."""
    side = len(pattern)
    slope_x, slope_y = rng.uniform(-45, 45, 2)
    line = np.linspace(-1, 1, side, dtype=np.float32)
    light = (line[None, :] * np.float32(slope_x) + line[:, None] * np.float32(slope_y)).astype(np.int16)
    light += rough * np.int16(rng.integers(20, 55)) >> 7
    # Channel by channel: numpy is slow where the innermost axis has three values.
    planes = [
        _clip_to_bytes((pattern * ((a - b) >> 1) >> 7) + (light + ((a + b) >> 1)))
        for a, b in zip(light_colour, dark_colour, strict=True)
    ]
    return Image.merge("RGB", [Image.fromarray(plane) for plane in planes])


def _draw_class_mask(rng: np.random.Generator, side: int, shape: int) -> Image.Image:
    """Where the object of a class lies in its square: its shape, turned and squeezed. Smooth edges."""
    mask = Image.new("L", (2 * side, 2 * side))
    pen = ImageDraw.Draw(mask)
    squeeze, turn = rng.uniform(0.7, 1.0), rng.uniform(0, 2 * math.pi)
    if shape == 1:
        corners = [(math.pi / 4 + k * math.pi / 2, 1.0) for k in range(4)]
    elif shape == 2:
        points = 5
        corners = [(k * math.pi / points, 1.0 if k % 2 == 0 else 0.42) for k in range(2 * points)]
    else:
        corners = [(k * math.pi / 20, 1.0) for k in range(40)]
    pen.polygon(_place_corners(corners, side, squeeze, turn), fill=255)
    if shape == 3:
        pen.polygon(_place_corners([(t, r * 0.52) for t, r in corners], side, squeeze, turn), fill=0)
    return mask.reduce(2)


def _draw_blob_mask(rng: np.random.Generator, side: int) -> Image.Image:
    """Where a stranger lies: an irregular outline of five to nine corners."""
    mask = Image.new("L", (2 * side, 2 * side))
    count = int(rng.integers(5, 10))
    corners = [(2 * math.pi * k / count, rng.uniform(0.5, 1.0)) for k in range(count)]
    ImageDraw.Draw(mask).polygon(
        _place_corners(corners, side, rng.uniform(0.6, 1.0), rng.uniform(0, 6.28)), fill=255
    )
    return mask.reduce(2)


def _place_corners(
    corners: list[tuple[float, float]], side: int, squeeze: float, turn: float
) -> list[tuple[float, float]]:
    """Polar corners (angle, radius 0 to 1) as points of a square of 2·side pixels."""
    cos, sin = math.cos(turn), math.sin(turn)
    points = []
    for angle, radius in corners:
        x, y = radius * math.cos(angle), radius * math.sin(angle) * squeeze
        points.append((side + 0.98 * side * (x * cos - y * sin), side + 0.98 * side * (x * sin + y * cos)))
    return points


def _draw_shadow(
    rng: np.random.Generator, frame: Image.Image, mask: Image.Image, at: tuple[int, int]
) -> None:
    """Darkens what lies under an object, a little to one side."""
    away = max(1, mask.width // 14)
    strength = float(rng.uniform(0.25, 0.6))
    soft = mask.point([int(k * strength) for k in range(256)])
    frame.paste((8, 8, 12), (at[0] + int(rng.integers(-away, away + 1)), at[1] + away), soft)


def _light_scene(rng: np.random.Generator, frame: Image.Image) -> Image.Image:
    """The whole scene under uneven light, with the grain of a sensor."""
    width, height = frame.size
    lamps = Image.fromarray(rng.integers(120, 256, (3, 3), np.uint8))
    light = lamps.resize((width, height), Image.Resampling.BICUBIC)
    seen = ImageChops.multiply(frame, Image.merge("RGB", (light, light, light)))
    grain = rng.integers(-128, 128, (height, width), np.int8).astype(np.int16)
    return _add_grey(seen, (grain * np.int16(rng.integers(8, 22)) >> 6) + np.int16(rng.integers(0, 30)))
