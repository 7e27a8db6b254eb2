"""Claims of one table, decided together: slower, faster, the same inside a margin, or open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpubench.analysis.certainty.decision import Decision, adjusted, at_look, decide
from gpubench.analysis.certainty.interval import Interval
from gpubench.analysis.certainty.mean_estimate import LEVEL
from gpubench.analysis.over_processes import MARGIN
from gpubench.basics.rounding import half_up
from gpubench.basics.words import MINUS

SMALL_PCT = 9.95
"""Below it a change has a tenth of a per cent."""
LARGE_PCT = LARGEST = 10_000.0
"""Above it nobody needs to know a change, or a ratio."""
SAME = "changes by less than 0.1 %"
"""What is said of a change that has no digit to show; it says nothing of whether both are the same."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Decided:
    """All claims of a table, at LEVEL together."""

    ratios: Sequence[Decision]
    """In the order in which their ratios were given."""
    beside: Sequence[bool]
    """Whether each of the other claims holds."""

    @property
    def family(self) -> int:
        """How many claims were corrected for."""
        return max(1, len(self.ratios) + len(self.beside))


def decided(
    ratios: Sequence[Interval], beside: Sequence[float] = (), looks: Sequence[int] | None = None
) -> Decided:
    """What may be said of these ratios, and of other claims with these p-values: one family, corrected by Holm.

    `looks`: how often each of them all, in this order, has been looked at, where they decide what is measured on.
    """
    chances = [one.log.chance_equal(0.0) for one in ratios]
    if looks is not None:
        chances = [at_look(chance, look) for chance, look in zip(chances, looks[: len(ratios)], strict=True)]
        beside = [at_look(chance, look) for chance, look in zip(beside, looks[len(ratios) :], strict=True)]
        looks = looks[: len(ratios)]
    others = adjusted([*chances, *beside])[len(ratios) :]
    return Decided(
        ratios=decide(ratios, MARGIN, beside=beside, looks=looks),
        beside=[chance <= LEVEL for chance in others],
    )


def change(ratio: Interval) -> str:
    """`falls 12 % (−15 to −9 %)`, `grows 1.4 % (−0.8 to +3.6 %)`: with its 95 % interval, whose ends have signs."""
    value, low, high = (100 * (end - 1) for end in (ratio.value, ratio.low, ratio.high))
    much = _digits(abs(value))
    shown = float(much.rpartition(" ")[2].replace(",", ""))
    return (
        f"{'grows' if value > 0 else 'falls'} {much} % ({_ends(low, high)})"
        if shown
        else f"{SAME} ({_ends(low, high)})"
    )


def plain_change(pct: float | None) -> str:
    """`grows 58 %`, `falls 0.4 %`, of figures without an interval; the same is only what is exactly so."""
    if not pct:
        return "stays the same"
    tenths = half_up(abs(pct), 1)
    much = f"{tenths if tenths < 1 else half_up(abs(pct))} %" if tenths else "less than 0.1 %"
    return f"{'grows' if pct > 0 else 'falls'} {much}"


def between(low: float, high: float, digits: int) -> str:
    """`1.80 to 1.94`."""
    far = f"more than {LARGEST:,.0f}"
    return " to ".join(
        far if end > LARGEST else f"{half_up(end, digits):,}".replace("-", MINUS) for end in (low, high)
    )


def _ends(low: float, high: float) -> str:
    """`−15 to −9 %`; with as many more digits, up to two, as tell the ends apart."""
    if not half_up(max(abs(low), min(abs(high), LARGE_PCT)), 3):
        return "within 0.001 %"
    fine = max(abs(low), abs(high)) < SMALL_PCT
    for more in range(3):
        ends = [_signed(end, more, fine=fine) for end in (low, high)]
        if ends[0] != ends[1]:
            break
    return f"{ends[0]} to {ends[1]} %"


def _signed(value: float, more: int, *, fine: bool) -> str:
    much = _digits(abs(value), more, fine=fine)
    if value > LARGE_PCT:
        return much.replace("than ", "than +")
    return f"{'' if not float(much.replace(',', '')) else '+' if value > 0 else MINUS}{much}"


def _digits(value: float, more: int = 0, *, fine: bool | None = None) -> str:
    """`fine`: with a tenth; those below SMALL_PCT where that is not said."""
    if value > LARGE_PCT:
        return f"more than {LARGE_PCT:,.0f}"
    return f"{half_up(value, more + (value < SMALL_PCT if fine is None else fine)):,}"
