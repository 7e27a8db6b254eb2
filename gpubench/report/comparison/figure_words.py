"""How a figure of two rows is told: its name, its unit, its change, its word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpubench.analysis.comparing import Basis, Beside, FigureBeside, FigureName, Word
from gpubench.basics.words import signed


@dataclass(frozen=True, kw_only=True, slots=True)
class FigureWords:
    """How a figure is told."""

    title: str
    unit: str
    words: Mapping[Word, str]
    digits: int
    scale: float = 1.0


TOLD: Mapping[FigureName, FigureWords] = {
    "time": FigureWords(
        title="Time per image",
        unit="ms",
        words={"less": "faster", "more": "slower", "same": "same", "open": "open"},
        digits=4,
        scale=1000,
    ),
    "memory": FigureWords(
        title="GPU memory",
        unit="MiB",
        words={"less": "less", "more": "more", "same": "same", "open": "open"},
        digits=0,
    ),
    "energy": FigureWords(
        title="Energy per image",
        unit="J",
        words={"less": "less", "more": "more", "same": "same", "open": "open"},
        digits=4,
    ),
    "top1": FigureWords(
        title="Top-1",
        unit="%",
        words={"less": "lower", "more": "higher", "same": "equal", "open": "open"},
        digits=1,
    ),
}

_WHY_OPEN: Mapping[Basis, str] = {
    "one process": "open, one process",
    "too few seeds": "open, few seeds",
    "unlike": "open, unlike",
}


def title(name: FigureName, pairs: Sequence[Beside]) -> str:
    """What is told of these rows, as a heading."""
    return "Epoch time" if per_epoch(name, pairs) else TOLD[name].title


def per_epoch(name: FigureName, pairs: Sequence[Beside]) -> bool:
    """Whether epochs are told of, for in some row nobody knows how many images they have."""
    return name == "time" and any("time" in one.figures and is_epoch(one) for one in pairs)


def is_epoch(one: Beside) -> bool:
    """Whether times of these rows are of an epoch."""
    return not (one.a.images_per_epoch and one.b.images_per_epoch)


def answer_word(found: FigureBeside, told: FigureWords) -> str:
    """What B is, in a cell."""
    word = _WHY_OPEN.get(found.basis, told.words[found.word])
    return f"{word}, regression" if found.beyond else word


def change(found: FigureBeside, name: FigureName) -> str:
    """`+1.2 (+0.8 to +1.6) %`."""
    unit = "points" if name == "top1" else "%"
    said = size(found.change)
    if found.low is None or found.high is None:
        return f"{said} {unit}"
    return f"{said} ({size(found.low)} to {size(found.high)}) {unit}"


def size(value: float) -> str:
    """A change with as many digits as tell: `+0.3`, `−120`, `>+10,000`."""
    if value > 10_000:
        return ">+10,000"
    return signed(value, 1 if abs(value) < 99.95 else 0)
