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
    """What was decided, as `of_networks` groups the comparisons."""
    told = {id(one): (one, ratio, word) for one, ratio, word in decided}
    return [[told[id(one)] for one in same] for same in of_networks([one for one, *_ in decided])]


def of_networks(found: Sequence[Comparison]) -> list[list[Comparison]]:
    """The comparisons of one network each, from FEWEST_NETWORKS networks on, by ascending size.

    Each list is of one kind of scaling, of one strategy on equally many devices, and of one batch size where networks
    were measured with several. A network whose size is not known is in none.
    """
    places: dict[tuple[object, ...], list[Comparison]] = {}
    for one in found:
        row, base = one.row, one.baseline
        if gmacs(row):
            places.setdefault((one.kind, devices(row), devices(base), row.strategy, row.device), []).append(
                one
            )
    made = []
    for same in itertools.chain.from_iterable(map(_once, places.values())):
        networks = {network(one.row) for one in same}
        if len(same) == len(networks) >= FEWEST_NETWORKS:
            made.append(sorted(same, key=lambda one: by_size(one.row)))
    return made


def _once(same: Sequence[Comparison]) -> list[list[Comparison]]:
    """As they are where each network is there once, else those of each batch size by themselves."""
    if len({network(one.row) for one in same}) == len(same):
        return [list(same)]
    found: dict[object, list[Comparison]] = {}
    for one in same:
        found.setdefault((one.row.batch_size, one.baseline.batch_size), []).append(one)
    return list(found.values())


def by_size(row: Row) -> tuple[float, tuple[str, ...]]:
    """What networks are sorted by."""
    return gmacs(row), network(row)


def network(row: Row) -> tuple[str, ...]:
    """What tells networks apart."""
    return tuple(str(known(row, field)) for field in NETWORK)


def sizes(same: Sequence[tuple[Comparison, Interval, Word]], fields: Collection[str]) -> list[Sized]:
    """These comparisons as sizes. `fields`: those that vary in the table, by which networks are named."""
    return [
        Sized(name=name_of(one.row, fields), gmacs=gmacs(one.row), ratio=ratio, word=word)
        for one, ratio, word in same
    ]


def sentence(same: Sequence[Sized], one: Comparison) -> str:
    """From what size on more devices are faster, and every speed-up with its word.

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
        f"{sized.name} ({short(sized.gmacs)}) {half_up(sized.ratio.value, 2)} "
        f"({between(sized.ratio.low, sized.ratio.high, 2)}), {SAID[sized.word]}"
        for sized in same
    )
    return f"{said}. Speed-ups by GMACs an image: {each}"


def gmacs(row: Row) -> float:
    """The work of an image, 10⁹ operations; 0 where it is not known."""
    return row.gmacs_per_image or 0.0


def _sized(one: Sized) -> str:
    return f"{one.name} ({short(one.gmacs)} GMACs an image)"


def short(gmacs: float) -> str:
    """With two digits that count."""
    return f"{gmacs:.2g}" if gmacs < 10 else f"{half_up(gmacs)}"


def name_of(row: Row, fields: Collection[str]) -> str:
    """`resnet18`, or `mlp, width 4.0` where the width is among these fields."""
    more = [f"{field} {known(row, field)}" for field in NETWORK[1:] if field in fields and field == "width"]
    return ", ".join([str(row.model), *more])
