"""Epochs of a stored record and their windows: checked when it is read, and kept in little room until somebody asks.

The values of ten epochs take 7 KB as Python has them, as text 3 to 4, and as bare numbers one. Few ask for them, and a
table only for their times.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, compress, islice
from typing import Any, Generic, NamedTuple, TypeVar, overload

import msgspec

from gpubench.schema.record import EpochWindow

Line = TypeVar("Line")


class MeasuredTimes(NamedTuple):
    """What a row has of its epochs: of those that did not warm up."""

    epochs_s: tuple[float, ...]
    steady_steps_s: tuple[float | None, ...]
    """Of those that tell how many steps that is the mean of."""


def measured_times(epochs: Sequence[dict[str, Any]]) -> MeasuredTimes:
    """These, of a record's epochs."""
    if isinstance(epochs, StoredEpochs):
        return epochs.measured
    return _select_measured(
        [
            (epoch["warmup"], epoch["epoch_time_s"], epoch.get("steady_step_s"), epoch.get("steady_steps"))
            for epoch in epochs
        ]
    )


def times_of_checked(checked: Sequence[Any]) -> MeasuredTimes | None:
    """The same of epochs that a check has decoded, as objects with their names.

    None where a time is whole: the check does not tell whether its text has it as 2 or as 2.0.
    """
    epochs = [
        (epoch.warmup, epoch.epoch_time_s, epoch.steady_step_s, epoch.steady_steps) for epoch in checked
    ]
    if any(time == int(time) or (step is not None and step == int(step)) for _, time, step, _ in epochs):
        return None
    return _select_measured(epochs)


def _select_measured(epochs: Iterable[tuple[bool, float, float | None, int | None]]) -> MeasuredTimes:
    """These, of whether an epoch warmed up, its time, that of a steady step, and of how many steps that is."""
    measured = [epoch for epoch in epochs if not epoch[0]]
    return MeasuredTimes(
        tuple([time for _, time, _, _ in measured]), tuple([step for _, _, step, steps in measured if steps])
    )


class _StoredLines(Sequence[Line], Generic[Line]):
    """A list whose text was checked already. It is parsed by whoever asks, each time anew."""

    __slots__ = ("_text",)

    def __init__(self, text: bytes) -> None:
        self._text = text

    def _lines(self) -> list[Line]:
        raise NotImplementedError

    @overload
    def __getitem__(self, index: int) -> Line: ...
    @overload
    def __getitem__(self, index: slice) -> list[Line]: ...
    def __getitem__(self, index: int | slice) -> Line | list[Line]:
        return self._lines()[index]

    def __iter__(self) -> Iterator[Line]:
        return iter(self._lines())

    def __len__(self) -> int:
        return len(self._lines())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (list, _StoredLines)) and self._lines() == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._lines())


class StoredEpochs(_StoredLines[dict[str, Any]]):
    """Epochs as they were stored. `measured`: what a row has of them. `shape`: of numbers that stand for the text."""

    __slots__ = ("_shape", "measured")

    def __init__(self, text: bytes, measured: MeasuredTimes, shape: LineShape | None = None) -> None:
        super().__init__(text)
        self.measured = measured
        self._shape = shape

    def _lines(self) -> list[dict[str, Any]]:
        if self._shape is not None:
            return self._shape.lines(self._text)
        lines: list[dict[str, Any]] = msgspec.json.decode(self._text)
        return lines


class TimesAlone(StoredEpochs):
    """Epochs of which nobody will ask for more than rows have of them."""

    __slots__ = ()

    def __init__(self, measured: MeasuredTimes) -> None:
        super().__init__(b"", measured)

    def _lines(self) -> list[dict[str, Any]]:
        raise LookupError("of these epochs only the times were kept")

    def __repr__(self) -> str:
        return f"TimesAlone({self.measured!r})"


class LineShape:
    """Which names and which kinds of values the lines of a list have: alike in most records of a folder."""

    __slots__ = ("_is_number", "_names", "_numbers")

    def __init__(self, names: tuple[str, ...], kinds: tuple[type, ...]) -> None:
        """`names`: those of each line, alike in all. `kinds`: of the values of all lines, one after the other.

        Raises KeyError for values that are no numbers, nor yes, no or nothing.
        """
        self._names = names
        self._numbers = struct.Struct("=" + "".join(_CODES[kind] for kind in kinds))
        self._is_number = tuple(kind is not type(None) for kind in kinds)

    def packed(self, values: Iterable[Any]) -> bytes:
        """All values of the lines, one after the other, as bytes. Raises struct.error for what is too large."""
        return self._numbers.pack(*compress(values, self._is_number))

    def lines(self, data: bytes) -> list[dict[str, Any]]:
        """The lines again."""
        numbers = iter(self._numbers.unpack(data))
        values = iter([next(numbers) if is_number else None for is_number in self._is_number])
        width = len(self._names)
        return [
            dict(zip(self._names, islice(values, width), strict=True))
            for _ in range(len(self._is_number) // width)
        ]


_CODES = {float: "d", int: "q", bool: "?", type(None): ""}

LineShapes = dict[tuple[tuple[str, ...], tuple[type, ...]], LineShape | None]
"""Those that were met; None for what is no LineShape."""


def stored_epochs(text: bytes, epochs: Sequence[dict[str, Any]], shapes: LineShapes) -> StoredEpochs:
    """These epochs, whose text this is, in little room. `shapes`: of those that were read before."""
    measured = measured_times(epochs)
    names = [*map(tuple, epochs)]
    if not names or names.count(names[0]) < len(names):
        return StoredEpochs(text, measured)
    values = [*chain.from_iterable([epoch.values() for epoch in epochs])]
    key = names[0], tuple(map(type, values))
    try:
        shape = shapes[key]
    except KeyError:
        try:
            shape = shapes[key] = LineShape(*key)
        except KeyError:
            shape = shapes[key] = None
    try:
        return StoredEpochs(shape.packed(values), measured, shape) if shape else StoredEpochs(text, measured)
    except struct.error:
        return StoredEpochs(text, measured)


class StoredWindows(_StoredLines[EpochWindow]):
    """Their windows, likewise."""

    __slots__ = ()

    def _lines(self) -> list[EpochWindow]:
        return [make_window(line) for line in msgspec.json.decode(self._text)]


def make_window(line: dict[str, Any]) -> EpochWindow:
    """A window as it is stored; names of other versions are left out."""
    return EpochWindow(epoch=line["epoch"], t0=line["t0"], t1=line["t1"])
