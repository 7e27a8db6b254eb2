"""Epochs of a stored record and their windows: checked when it is read, and kept as the text that they were.

Of 100,000 records of ten epochs their values take 800 MB, and the text a third of it. Few ask for them, and a table
only for their times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar, overload

from pydantic_core import from_json

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
    measured = [one for one in epochs if not one["warmup"]]
    return MeasuredTimes(
        tuple([one["epoch_time_s"] for one in measured]),
        tuple([one.get("steady_step_s") for one in measured if one.get("steady_steps")]),
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
    """Epochs as they were stored. `measured`: what a row has of them."""

    __slots__ = ("measured",)

    def __init__(self, text: bytes, measured: MeasuredTimes) -> None:
        super().__init__(text)
        self.measured = measured

    def _lines(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = from_json(self._text)
        return found


class StoredWindows(_StoredLines[EpochWindow]):
    """Their windows, likewise."""

    __slots__ = ()

    def _lines(self) -> list[EpochWindow]:
        return [EpochWindow(**one) for one in from_json(self._text)]
