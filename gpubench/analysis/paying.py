"""Which batch sizes pay, over all steps, decided over processes: GPU memory × time per image of steady steps.

A step leads from one batch size to the next. It pays where memory × time is shown to fall, does not pay where it is
shown to grow, or to stay the same inside the margin, and is open else. Memory is taken for exact: it hardly differs
from process to process. Where something pays after a size that did not, the sizes before and after are compared
straight, too: the answer is that over all steps, not the first refusal.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gpubench.analysis.certainty.interval import Interval
from gpubench.analysis.decided import change
from gpubench.analysis.doubted import of_time
from gpubench.analysis.growth import gpu_mem, time_growth_pct
from gpubench.analysis.holes import beyond, unknown
from gpubench.analysis.noise import processes, resting
from gpubench.analysis.over_processes import MARGIN, MARGIN_WORDS, steady, steady_ratio
from gpubench.analysis.settle import Further
from gpubench.analysis.settle import sentence as settling
from gpubench.basics.rounding import half_up
from gpubench.basics.words import listed
from gpubench.schema.row import Row

Word = Literal["pays", "not", "same", "open"]
WORDS: dict[str, Word] = {"faster": "pays", "slower": "not", "same": "same", "open": "open"}
"""What the word of a decision on memory × time says of a larger batch."""
OPEN = "Open"
"""How an answer begins where no step is decided."""
APART = "by steady steps (growth in the table: whole epochs, with their fill)"
"""By which times the answer is, where the table's growth says another change."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Move:
    """From one batch size to a larger one."""

    before: Row
    after: Row
    memory: float
    """GPU memory of the second over that of the first; 1 where memory is not weighed."""
    time: Interval
    """Time per image of the second over that of the first."""
    hole: tuple[Row, ...] = ()
    """Sizes between them that have no figures: over these no step leads."""

    @property
    def cost(self) -> Interval:
        """Memory × time per image of the second over that of the first."""
        return self.time.times(self.memory)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Ladder:
    """The batch sizes of one series, ascending, with the claims that its answer rests on."""

    rows: Sequence[Row]
    """All that were asked for."""
    weighed: Sequence[Row]
    """Those that have figures."""
    moves: Sequence[Move]
    leap: Move | None
    """Straight over what does not seem to pay; None where nothing beyond it seems to."""
    by_time: str | None
    """Why memory is not weighed; None where it is."""

    @property
    def ratios(self) -> list[Interval]:
        """Those of the steps, one claim each."""
        return [move.cost for move in self.moves if not move.hole]

    @property
    def beside(self) -> list[float]:
        """The p-value of the leap, which always counts: which sizes it is between was chosen among all after looking.

        Empty where there are too few sizes for one.
        """
        count = len(self.weighed)
        if count < 3:
            return []
        leaps = count * (count - 1) // 2 - (count - 1)
        return [min(1.0, leaps * self.leap.cost.log.chance_equal(0.0)) if self.leap else 1.0]


def ladder(ordered: Sequence[Row], weighed: Sequence[Row], by_time: str | None = None) -> Ladder | None:
    """The ladder of these sizes; None where one of them is of one process. `by_time`: why memory does not count."""
    moves = []
    for before, after in itertools.pairwise(weighed):
        move = _move(before, after, _between(ordered, before, after), weigh=by_time is None)
        if move is None:
            return None
        moves.append(move)
    return Ladder(
        rows=ordered,
        weighed=weighed,
        moves=moves,
        leap=_leap(weighed, moves, by_time is None),
        by_time=by_time,
    )


def _move(before: Row, after: Row, hole: Sequence[Row] = (), *, weigh: bool) -> Move | None:
    time = steady_ratio(after, before)
    old, new = gpu_mem(before), gpu_mem(after)
    if time is None or (weigh and (old is None or new is None)):
        return None
    memory = new / old if weigh and old and new else 1.0
    return Move(before=before, after=after, memory=memory, time=time, hole=tuple(hole))


def _leap(weighed: Sequence[Row], moves: Sequence[Move], weigh: bool) -> Move | None:
    """From the size before the first step that seems not to pay by more than the margin to the cheapest beyond it."""
    costs = [0.0, *itertools.accumulate(move.cost.log.center for move in moves)]
    wide = math.log1p(MARGIN)
    refused = next((place for place, move in enumerate(moves, 1) if move.cost.log.center > -wide), None)
    if refused is None or refused + 1 >= len(costs):
        return None
    last = min(range(refused + 1, len(costs)), key=costs.__getitem__)
    if costs[last] >= costs[last - 1]:
        return None  # nothing beyond seems to pay
    return _move(weighed[refused - 1], weighed[last], weigh=weigh)


def _between(ordered: Sequence[Row], before: Row, after: Row) -> list[Row]:
    places = {id(row): place for place, row in enumerate(ordered)}
    return list(ordered[places[id(before)] + 1 : places[id(after)]])


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """Where a larger batch stops paying."""

    best: int | None
    """The batch size to take, where all is decided."""
    refused: Move | None
    firm: bool
    sentence: str


def answer(of: Ladder, words: Sequence[str], leap_holds: bool, family: int, how: Further) -> Answer:
    """The answer in words. `words`: of the decisions on `of.ratios`; `leap_holds`: on `of.beside`."""
    each, leaped = _words(of, words, leap_holds)
    leap = of.leap
    below = _between_first(of)
    holes = [*below, *(row for move in of.moves for row in move.hole)]
    opens = _open_steps(of, each)
    still = opened(of, words, leap_holds)
    firm = not holes and not still
    said, best, refused = _said(of, each, leap, leaped)
    parts = [said]
    if opens:
        product = _product(of)
        found = [
            f"from {_both(move)}{'' if number else f' {product}'} {change(move.cost)}"
            for number, move in enumerate(opens)
        ]
        may = "each of these" if len(opens) > 1 else "that"
        parts.append(
            f"{listed(found)[0].upper()}{listed(found)[1:]}; {may} may be chance{_judged_together(opens, family)}"
        )
    if holes:
        parts.append(unknown(holes))
    some_decided = any(word != "open" for word in each)
    if settle := settling([move.cost for move in still], family, how, some_decided=some_decided):
        parts.append(f"{settle[0].upper()}{settle[1:]}")
    doubted = "; some of these rows have doubts about their times" if any(map(of_time, of.weighed)) else ""
    steady_steps = all(map(steady, of.weighed))
    apart = steady_steps and any(map(_grows_otherwise, of.moves))
    if apart:
        parts[0] = _apart(said)
    steps = ""
    if steady_steps and not apart:
        steps = "; times are of steady steps, without the fill of each epoch"
    elif not steady_steps and any(steady(move.before) and steady(move.after) for move in of.moves):
        without = listed([str(row.batch_size) for row in of.weighed if not steady(row)])
        steps = f"; times are of steady steps, but from and to {without}, which have none, of whole epochs"
    end = f"{_rests(of.weighed)}{steps}{doubted}."
    more = f" Whether a larger batch pays can't be said: {of.by_time}." if of.by_time else ""
    return Answer(
        best=best if firm else None, refused=refused, firm=firm, sentence=". ".join(parts) + end + more
    )


def _apart(said: str) -> str:
    """The answer with what it goes by, before anything else that it says."""
    if said.startswith(OPEN):
        return f"{OPEN}, {APART}, {said.removeprefix(OPEN).lstrip()}"
    return f"{APART[0].upper()}{APART[1:]} {said[0].lower()}{said[1:]}"


def _judged_together(opens: Sequence[Move], family: int) -> str:
    """Why a step may be chance whose interval leaves out no change."""
    clear = any(move.cost.low > 1 or move.cost.high < 1 for move in opens)
    return (
        f", for this table makes {family} claims, which are judged together" if clear and family > 1 else ""
    )


def _grows_otherwise(move: Move) -> bool:
    """Whether the table's growth says another change of time per image than this step does."""
    grown = None if move.hole else time_growth_pct(move.before, move.after)
    return grown is not None and half_up(grown) != half_up(100 * (move.time.value - 1))


def opened(of: Ladder, words: Sequence[str], leap_holds: bool) -> list[Move]:
    """What more processes could decide: the steps that are open, and the leap if it is and the answer rests on it.

    `words` and `leap_holds`: as for `answer`.
    """
    each, leaped = _words(of, words, leap_holds)
    leap = [of.leap] if of.leap is not None and leaped == "open" and _bears(each, leaped) else []
    return [*_open_steps(of, each), *leap]


def _words(of: Ladder, words: Sequence[str], leap_holds: bool) -> tuple[list[Word], Word]:
    """The word of each move, and that of the leap."""
    told = iter(words)
    each: list[Word] = ["open" if move.hole else WORDS[next(told)] for move in of.moves]
    if not leap_holds or of.leap is None:
        return each, "open"
    return each, "pays" if of.leap.cost.log.center < 0 else "not"


def _open_steps(of: Ladder, each: Sequence[Word]) -> list[Move]:
    return [move for move, word in zip(of.moves, each, strict=True) if word == "open" and not move.hole]


def _between_first(of: Ladder) -> list[Row]:
    """Sizes without figures below all that have some."""
    return list(itertools.takewhile(lambda row: row is not of.weighed[0], of.rows))


def _bears(each: Sequence[Word], leaped: Word) -> bool:
    """Whether a leap bears on the answer: something may pay after a step that does not, or several small ones do."""
    refused = next((place for place, word in enumerate(each) if word in ("not", "same")), None)
    if refused is None:
        return False
    return leaped == "pays" or any(word in ("pays", "open") for word in each[refused + 1 :])


def _said(
    of: Ladder, each: Sequence[Word], leap: Move | None, leaped: Word
) -> tuple[str, int | None, Move | None]:
    """The answer without what is open; the batch size to take, if nothing is; the step that refuses."""
    first, last = (row.batch_size or 0 for row in (of.weighed[0], of.weighed[-1]))
    above = beyond(of.rows[[id(row) for row in of.rows].index(id(of.weighed[-1])) + 1 :])
    verb, no_verb = ("pays", "does not pay") if of.by_time is None else ("is faster", "is not faster")
    if all(word == "open" for word in each):
        if len(each) == 1:
            than = "after" if of.by_time is None else "than"
            return f"{OPEN} whether {last} {verb} {than} {first}{above}", None, None
        return f"{OPEN} whether any batch larger than {first} {verb}, up to {last}{above}", None, None
    if all(word == "pays" for word in each):
        least = min(of.moves, key=lambda move: -move.cost.log.center)
        return (
            f"Every larger batch {verb}, up to {last}{above}: {_product(of)} {change(least.cost)} "
            f"from {_both(least)}{', and more at each other step' if len(each) > 1 else ''}",
            last,
            None,
        )
    refused = next((place for place, word in enumerate(each) if word in ("not", "same")), None)
    pure = refused is not None and all(w == "pays" for w in each[:refused]) and not _bears(each, leaped)
    if pure and refused is not None:
        move = of.moves[refused]
        best = move.before.batch_size
        start = (
            f"A larger batch {'stops paying' if of.by_time is None else 'is no longer faster'} after {best}: from"
            if refused
            else f"A larger batch never {'pays' if of.by_time is None else 'is faster'}: already from"
        )
        return f"{start} {_both(move)} {_why(of, move, each[refused])}{above}", best, move
    said = f"A larger batch {_ranges(of, each, verb, no_verb)}{above}"
    if leap is None or not _bears(each, leaped):
        best = of.moves[refused].before.batch_size if refused is not None else last
        return said, best, None
    straight = {"pays": verb, "not": no_verb, "same": no_verb, "open": "is open, too"}[leaped]
    said += f"; from {leap.before.batch_size} straight to {leap.after.batch_size} {straight}"
    said += f" ({_product(of)} {change(leap.cost)})"
    best = (leap.after if leaped == "pays" else leap.before).batch_size
    return said, best, None


def _ranges(of: Ladder, each: Sequence[Word], verb: str, no_verb: str) -> str:
    """`pays from 16 to 64 and does not pay from 64 to 256 (the same inside 2 % from 64 to 128); it is open from …`."""
    paid, refused, opened = (_runs(of, each, words) for words in (("pays",), ("not", "same"), ("open",)))
    same = _runs(of, each, ("same",))
    if of.by_time is not None and not same:
        no_verb = "is slower"
    where = f" {listed(same)}" if "not" in each else ""
    alike = f" (the same {MARGIN_WORDS}{where})" if same else ""
    decided = [f"{verb} {listed(paid)}"] if paid else []
    decided += [f"{no_verb} {listed(refused)}{alike}"] if refused else []
    return f"{listed(decided)}{f'; it is open {listed(opened)}' if opened else ''}"


def _runs(of: Ladder, each: Sequence[Word], words: Sequence[Word]) -> list[str]:
    """`from 16 to 64`: the steps of which one of these words is said, those that follow each other in one."""
    found = []
    for told, places in itertools.groupby(range(len(each)), key=lambda place: each[place] in words):
        run = [of.moves[place] for place in places]
        if told:
            found.append(f"from {run[0].before.batch_size} to {run[-1].after.batch_size}")
    return found


def _why(of: Ladder, move: Move, word: Word) -> str:
    """`memory grows 58 % while time per image falls 7 % (5 to 9 %), so that memory × time grows 47 %`."""
    same = f", the same {MARGIN_WORDS}" if word == "same" else ""
    if of.by_time is not None:
        return f"time per image {change(move.time)}{same}"
    memory = 100 * (move.memory - 1)
    much = f"{half_up(abs(memory), 1 if abs(memory) < 1 else 0)} %"
    grown = f"memory {'stays the same' if not memory else f'grows {much}' if memory > 0 else f'falls {much}'}"
    return (
        f"{grown} while time per image {change(move.time)}, so that memory × time {change(move.cost)}{same}"
    )


def _product(of: Ladder) -> str:
    return "memory × time per image" if of.by_time is None else "time per image"


def _both(move: Move) -> str:
    return f"{move.before.batch_size} to {move.after.batch_size}"


def _rests(rows: Sequence[Row]) -> str:
    """Of how many processes each row is."""
    if few := resting(rows):
        return few
    counts = sorted({processes(row) for row in rows})
    each = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"; each row is of {each} processes"
