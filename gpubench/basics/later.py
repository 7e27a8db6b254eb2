"""What takes long to make, and not everybody asks for: made once somebody does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar, overload

Item = TypeVar("Item")


class Later(Sequence[Item]):
    """The items of a tuple that is made when somebody first looks at them, and then kept."""

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[], tuple[Item, ...]]) -> None:
        self._make: Callable[[], tuple[Item, ...]] | None = make
        self._made: tuple[Item, ...] = ()

    def _items(self) -> tuple[Item, ...]:
        if self._make is not None:
            self._made, self._make = self._make(), None  # what it was made of is let go
        return self._made

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Item, ...]: ...
    def __getitem__(self, index: int | slice) -> Item | tuple[Item, ...]:
        return self._items()[index]

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items())

    def __len__(self) -> int:
        return len(self._items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (tuple, Later)) and self._items() == tuple(other)

    def __hash__(self) -> int:
        return hash(self._items())

    def __repr__(self) -> str:
        return repr(self._items())
