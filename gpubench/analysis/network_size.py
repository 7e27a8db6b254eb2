"""From what network size on several devices are faster than one: one comparison a network, all else equal. Pure.

Its figures are the decided speed-ups of the table, so that it makes no claim of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from gpubench.analysis.alike import devices
from gpubench.analysis.certainty.decision import Word
from gpubench.analysis.certainty.interval import Interval
from gpubench.analysis.decided import between
from gpubench.analysis.over_processes import MARGIN_WORDS
from gpubench.analysis.scaling import Comparison, named
from gpubench.analysis.varied import known
from gpubench.basics.rounding import half_up
from gpubench.schema.row import Row

FEWEST_NETWORKS = 3
"""Networks from which a table asks from what size on more devices pay."""
NETWORK = ("model", "width", "input_size", "num_classes")
"""The fields that make a network what it is."""


SAID: dict[Word, str] = {
    "open": "open",
    "same": f"the same {MARGIN_WORDS}",
    "faster": "slower",
    "slower": "faster",
}
"""What the word of a decision on baseline / row, in times, says of the row."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sized:
    """What one network gains from more devices."""

    name: str
    gmacs: float
    """Multiply-accumulate operations an image, in 10⁹."""
    ratio: Interval
    """Speed-up."""
    word: Word
    """Of the time of one device by that of several: `slower` is a gain."""


def by_network(
    decided: Sequence[tuple[Comparison, Interval, Word]],
) -> list[list[tuple[Comparison, Interval, Word]]]:
    """The comparisons of one network each, from FEWEST_NETWORKS networks on, by ascending size.

    Each list is of one kind of scaling, of one strategy on equally many devices, and of one batch size where networks
    were measured with several. A network whose size is not known is in none.
    """
    found: dict[tuple[object, ...], list[tuple[Comparison, Interval, Word]]] = {}
    for one, ratio, word in decided:
        row, base = one.row, one.baseline
        place = (one.kind, devices(row), devices(base), row.strategy, row.device)
        if _gmacs(row):
            found.setdefault(place, []).append((one, ratio, word))
    made = []
    for same in itertools.chain.from_iterable(map(_once, found.values())):
        networks = {network(one.row) for one, *_ in same}
        if len(same) == len(networks) >= FEWEST_NETWORKS:
            made.append(sorted(same, key=lambda each: (_gmacs(each[0].row), network(each[0].row))))
    return made


def _once(
    same: Sequence[tuple[Comparison, Interval, Word]],
) -> list[list[tuple[Comparison, Interval, Word]]]:
    """As they are where each network is there once, else those of each batch size by themselves."""
    if len({network(one.row) for one, *_ in same}) == len(same):
        return [list(same)]
    found: dict[object, list[tuple[Comparison, Interval, Word]]] = {}
    for each in same:
        found.setdefault((each[0].row.batch_size, each[0].baseline.batch_size), []).append(each)
    return list(found.values())


def network(row: Row) -> tuple[str, ...]:
    """What tells networks apart."""
    return tuple(str(known(row, field)) for field in NETWORK)


def sizes(same: Sequence[tuple[Comparison, Interval, Word]], fields: Collection[str]) -> list[Sized]:
    """These comparisons as sizes. `fields`: those that vary in the table, by which networks are named."""
    return [
        Sized(name=_name(one.row, fields), gmacs=_gmacs(one.row), ratio=ratio, word=word)
        for one, ratio, word in same
    ]


def sentence(same: Sequence[Sized], one: Comparison) -> str:
    """From what size on more devices are faster, and every speed-up.

    `same`: by ascending size. `one`: any of their comparisons.
    """
    device = "rank" if one.row.device == "cpu" else "GPU"
    pair = f"{named(one.row, device)} is faster than {named(one.baseline, device)} ({one.kind} scaling)"
    count = sum(1 for _ in itertools.takewhile(lambda each: each.word == "slower", reversed(same)))
    rest, faster = same[: len(same) - count], same[len(same) - count :]
    if not faster:
        said = f"From no network on is it known that {pair}: the largest, {rest[-1].name}, is {SAID[rest[-1].word]}"
    elif not rest:
        said = f"{pair} for every network, down to {_sized(faster[0])}"
    else:
        said = (
            f"{pair} from {_sized(faster[0])} on: {rest[-1].name}, the next smaller, is {SAID[rest[-1].word]}"
        )
    each = "; ".join(
        f"{sized.name} ({_short(sized.gmacs)}) {half_up(sized.ratio.value, 2)} "
        f"({between(sized.ratio.low, sized.ratio.high, 2)})"
        for sized in same
    )
    return f"{said}. Speed-ups by GMACs an image: {each}"


def _gmacs(row: Row) -> float:
    return row.gmacs_per_image or 0.0


def _sized(one: Sized) -> str:
    return f"{one.name} ({_short(one.gmacs)} GMACs an image)"


def _short(gmacs: float) -> str:
    """With two digits that count."""
    return f"{gmacs:.2g}" if gmacs < 10 else f"{half_up(gmacs)}"


def _name(row: Row, fields: Collection[str]) -> str:
    """`resnet18`, `mlp, width=4`."""
    more = [f"{field} {known(row, field)}" for field in NETWORK[1:] if field in fields and field == "width"]
    return ", ".join([str(row.model), *more])
