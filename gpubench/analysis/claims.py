"""All claims that one table makes over processes, decided together, and the sentences that follow.

They are one family, chosen before any figure is seen: each batch size against the next (and, of a series, one more that
leads straight over what does not pay), each row on several devices against its baseline, each value along another
ordered axis against the one before, each value of a field whose values are alternatives (variants, strategies, …)
against the one named first, in time and of variants in CPU time, each row on ever more devices against a bound of
efficiency, each group's word.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as changed

from gpubench.analysis import amdahl, efficiency, network_size, slowdown
from gpubench.analysis.alternatives import Alternative, told_apart_by
from gpubench.analysis.certainty.decision import Decision
from gpubench.analysis.certainty.interval import Interval
from gpubench.analysis.cpu_use import CpuUse, cpu_use
from gpubench.analysis.decided import Decided, between, change, decided
from gpubench.analysis.efficiency import Scaled, scaled
from gpubench.analysis.knee import Batches, Knee, told
from gpubench.analysis.network_size import by_network
from gpubench.analysis.over_processes import MARGIN_WORDS, time_ratio
from gpubench.analysis.paying import opened as open_moves
from gpubench.analysis.repeats import alone_of
from gpubench.analysis.scaling import Comparison, named
from gpubench.analysis.settle import Further, of_gain
from gpubench.analysis.settle import sentence as settling
from gpubench.analysis.varied import label
from gpubench.basics.rounding import half_up
from gpubench.schema.row import Row, TableRow, replace

SPEED = {"slower": "faster", "faster": "slower", "same": f"the same {MARGIN_WORDS}", "open": "open"}
"""What the word of a decision on baseline / row, in times, says of the row."""
STEP = {"slower": "slower", "faster": "faster", "same": f"the same {MARGIN_WORDS}", "open": "open"}
CPU_USE = {"slower": "more", "faster": "less", "same": f"the same {MARGIN_WORDS}", "open": "open"}
"""What the word of a decision on CPU times says of the row."""
BORDERS = (slowdown.CONCURRENT, slowdown.PARALLEL)
FEWEST = 3
"""Processes from which a claim may count as settled, so that its rows need not be measured again."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class GroupClaims:
    """Jobs that ran together, each of several processes, as its trial alone."""

    rows: Sequence[TableRow]
    gain: Interval


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Claims:
    """What a table claims over processes. Rows of one process are in none of it."""

    batches: Sequence[Batches]
    steps: Sequence[tuple[TableRow, Interval]]
    """Along an ordered axis that is not the batch size: rows with their time by that of the row before."""
    speedups: Sequence[tuple[Comparison, Interval]]
    alternatives: Sequence[Alternative]
    cpu: Sequence[CpuUse]
    scaled: Sequence[Scaled]
    groups: Sequence[GroupClaims]

    @property
    def of_several(self) -> Claims:
        """The same without batch sizes of one process each, of which nothing is claimed: their rows take room."""
        return changed(self, batches=[of for of in self.batches if of.ladder])

    @property
    def made(self) -> Decided:
        """All of them decided."""
        return decided(self._ratios, self._beside)

    def settled(self, each: int = 1) -> Decided:
        """All of them as they count for whether their rows are measured again: what is not decided here is open.

        Each claim is judged as at its j-th look, which is a stricter one than that of the words below the table
        (`certainty/decision.py`). Its looks are the rounds that its rows have gone through since the first after which
        FEWEST processes were there. `each`: how many processes of a row one round makes.
        """
        leaps = [of.ladder.leap for of in self.batches if of.ladder for _ in of.beside]
        seen = [
            *(one.processes for one in self._ratios),
            *(leap.cost.processes if leap else () for leap in leaps),
            *(ratio.processes for one in self.scaled for ratio in one.ratios),
            *(one.gain.processes for one in self.groups),
        ]
        return decided(self._ratios, self._beside, [_look(one, each) for one in seen])

    @property
    def count(self) -> int:
        """How many they are."""
        return len(self._ratios) + len(self._beside)

    @property
    def _ratios(self) -> list[Interval]:
        return [
            *(one for of in self.batches for one in of.ratios),
            *(ratio for _, ratio in self.steps),
            *(ratio for _, ratio in self.speedups),
            *(one.ratio for one in self.alternatives),
            *(one.ratio for one in self.cpu),
        ]

    @property
    def _beside(self) -> list[float]:
        return [
            *(one for of in self.batches for one in of.beside),
            *(chance for one in self.scaled for chance in one.chances),
            *(slowdown.word_chance(one.gain) for one in self.groups),
        ]


def _look(processes: Sequence[int], each: int) -> int:
    """Which look at a claim it is that rests on so many processes of its rows; 0 where they are too few for one."""
    if min(processes, default=0) < FEWEST:
        return 0
    return math.ceil(max(processes) / each) - math.ceil(FEWEST / each) + 1


def claims(
    batches: Sequence[Batches],
    rows: Sequence[TableRow],
    compared: Sequence[Comparison],
    side_by_side: Sequence[Alternative],
    groups: Sequence[Sequence[TableRow]],
    *,
    along: bool,
    bound_pct: float = efficiency.BOUND_PCT,
) -> Claims:
    """Those of a table. `along`: whether its rows, with the rows before them, stand along an axis that is told.

    `bound_pct`: the efficiency that several devices are judged by.
    """
    steps = [
        (row, ratio)
        for row in rows
        if along and row.before is not None and (ratio := time_ratio(row, row.before)) is not None
    ]
    of_groups = []
    for jobs in groups:
        gain = slowdown.gain_over_processes([alone_of(row) for row in jobs], jobs)
        if gain is not None and all(row.verdict and row.verdict.over_processes for row in jobs):
            of_groups.append(GroupClaims(rows=jobs, gain=gain))
    return Claims(
        batches=batches,
        steps=steps,
        speedups=[(one, ratio) for one in compared if (ratio := one.ratio) is not None],
        alternatives=side_by_side,
        cpu=cpu_use(side_by_side),
        scaled=scaled(compared, bound_pct),
        groups=of_groups,
    )


def opened(of: Claims, made: Decided) -> list[list[Row]]:
    """The rows of each claim that is open: both of a ratio; a group's jobs and their trials alone."""
    words, holds = iter(made.ratios), iter(made.beside)
    found: list[list[Row]] = []
    for one in of.batches:
        if one.ladder is not None:
            own = [next(words).word for _ in one.ratios]
            beside = [next(holds) for _ in one.beside]
            found += [[move.before, move.after] for move in open_moves(one.ladder, own, any(beside))]
    for row, _ in of.steps:
        if next(words).word == "open" and row.before is not None:
            found.append([row.before, row])
    for compared, _ in of.speedups:
        if next(words).word == "open":
            found.append([compared.baseline, compared.row])
    for other in of.alternatives:
        if next(words).word == "open":
            found.append([other.baseline, other.row])
    for same in of.scaled:
        sure = [next(holds) for _ in same.ratios]
        pairs: list[list[Row]] = [[one.baseline, one.row] for one in same.steps]
        # Whether it is faster may be open, too, and then that is asked of these rows already.
        found += [pair for pair, shown in zip(pairs, sure, strict=False) if not shown and pair not in found]
    for group in of.groups:
        if not next(holds):
            found.append([*group.rows, *map(alone_of, group.rows)])
    return found


def knees(of: Claims, made: Decided, how: Further) -> list[Knee]:
    """The answers on batch sizes."""
    return told(of.batches, made, how)


def rejudged(of: Claims, made: Decided) -> dict[int, TableRow]:
    """By `id`: each job whose verdict is another one among all claims of its table."""
    found: dict[int, TableRow] = {}
    holds = made.beside[len(made.beside) - len(of.groups) :]
    for group, word_holds in zip(of.groups, holds, strict=True):
        for row in group.rows:
            if row.verdict is not None:
                verdict = slowdown.decided(row.verdict, group.gain, word_holds, made.family)
                found[id(row)] = replace(row, verdict=verdict, sharing=verdict.cell)
    return found


def unsettled(of: Claims, made: Decided, how: Further) -> Mapping[str, str]:
    """By the id of a group: what it would take to decide it, if it is open."""
    holds = made.beside[len(made.beside) - len(of.groups) :]
    return {
        str(group.rows[0].group_id): of_gain(group.gain, BORDERS, made.family, how)
        for group, word_holds in zip(of.groups, holds, strict=True)
        if not word_holds
    }


def along_axis(of: Claims, made: Decided, axis: str, fields: Collection[str], how: Further) -> list[str]:
    """Whether each value along an axis is faster than the one before: a sentence for each series."""
    first = sum(len(one.ratios) for one in of.batches)
    decisions = made.ratios[first : first + len(of.steps)]
    others = [field for field in fields if field != axis]
    said = []
    pairs = zip(of.steps, decisions, strict=True)
    for name, steps in itertools.groupby(pairs, key=lambda pair: label(pair[0][0], others)):
        found = list(steps)
        parts = [
            f"from {label(row.before, (axis,))} to {row.value(axis)} it {change(ratio)}, {STEP[decision.word]}"
            for (row, ratio), decision in found
            if row.before is not None
        ]
        opened = [ratio for (_, ratio), decision in found if decision.word == "open"]
        said.append(
            _closed(
                f"Time per image{f' of {name}' if name else ''}: {'; '.join(parts)}",
                opened,
                made,
                how,
                some_decided=len(opened) < len(found),
            )
        )
    return said


def speedups(of: Claims, made: Decided, fields: Collection[str], how: Further) -> list[str]:
    """What more devices bring: a sentence for each kind of scaling and baseline.

    Where networks differ it is one for all of them: from what size on more devices pay.
    """
    first = sum(len(one.ratios) for one in of.batches) + len(of.steps)
    decisions = made.ratios[first : first + len(of.speedups)]
    told = [(one, ratio, decision) for (one, ratio), decision in zip(of.speedups, decisions, strict=True)]
    by_size = by_network([(one, ratio, decision.word) for one, ratio, decision in told])
    sized = {id(one) for same in by_size for one, *_ in same}
    found: dict[tuple[str, int], list[tuple[Comparison, Interval, Decision]]] = {}
    for one, ratio, decision in told:
        if id(one) not in sized:
            found.setdefault((one.kind, id(one.baseline)), []).append((one, ratio, decision))
    said = []
    for networks in by_size:
        opened = [ratio for _, ratio, word in networks if word == "open"]
        whole = network_size.sentence(network_size.sizes(networks, fields), networks[0][0])
        said.append(_closed(whole, opened, made, how, some_decided=len(opened) < len(networks)))
    for (kind, _), same in found.items():
        baseline = same[0][0].baseline
        device = "rank" if baseline.device == "cpu" else "GPU"
        apart = [field for field in fields if len({str(one.row.value(field)) for one, *_ in same}) > 1]
        parts = [
            f"{label(one.row, apart) or named(one.row, device)} is {SPEED[decision.word]}, "
            f"{half_up(ratio.value, 2)} times ({between(ratio.low, ratio.high, 2)}), {_efficiency(one)}"
            for one, ratio, decision in same
        ]
        opened = [ratio for _, ratio, decision in same if decision.word == "open"]
        batch = f", batch size {baseline.batch_size:,}" if baseline.batch_size else ""
        start = f"Against {named(baseline, device)}{batch} ({kind} scaling)"
        whole = f"{start}: {'; '.join(parts)}"
        said.append(_closed(whole, opened, made, how, some_decided=len(opened) < len(same)))
    return said


def efficiencies(of: Claims, made: Decided) -> list[str]:
    """From how many devices on efficiency lies under the bound, and what Amdahl's law makes of it."""
    first = sum(len(one.beside) for one in of.batches)
    holds = iter(made.beside[first:])
    return [
        " ".join(
            filter(
                None,
                (
                    efficiency.sentence(same, [next(holds) for _ in same.ratios]),
                    amdahl.sentence(amdahl.shares(same.steps)),
                ),
            )
        )
        for same in of.scaled
    ]


def alternatives(of: Claims, made: Decided, fields: Collection[str], how: Further) -> list[str]:
    """Which of several ways to do the same work is faster: a sentence for each value beside the one named first."""
    end = len(made.ratios) - len(of.cpu)
    decisions = made.ratios[end - len(of.alternatives) : end]
    by_cpu = {id(use.of): (use.ratio, each) for use, each in zip(of.cpu, made.ratios[end:], strict=True)}
    found: dict[tuple[str, str, str], list[tuple[Alternative, Decision]]] = {}
    for one, decision in zip(of.alternatives, decisions, strict=True):
        names = (label(one.row, [one.field]), label(one.baseline, [one.field]))
        found.setdefault((one.field, *names), []).append((one, decision))
    said = []
    for (field, name, first), same in found.items():
        apart = told_apart_by(field, fields)
        parts, of_cpu = [], []
        for one, decision in same:
            at = f"at {place} " if (place := label(one.row, apart)) else ""
            parts.append(f"{at}it {change(one.ratio)}, {STEP[decision.word]}")
            if id(one) in by_cpu:
                ratio, use = by_cpu[id(one)]
                of_cpu.append(f"{at}it {change(ratio)}, {CPU_USE[use.word]}")
        opened = [one.ratio for one, decision in same if decision.word == "open"]
        opened += [
            by_cpu[id(one)][0] for one, _ in same if id(one) in by_cpu and by_cpu[id(one)][1].word == "open"
        ]
        also = f". CPU time per image: {'; '.join(of_cpu)}" if of_cpu else ""
        whole = f"Time per image with {name} against {first}: {'; '.join(parts)}{also}"
        some_decided = len(opened) < len(parts) + len(of_cpu)
        said.append(_closed(whole, opened, made, how, some_decided=some_decided))
    return said


def _efficiency(one: Comparison) -> str:
    found = one.efficiency
    ends = f" ({between(found.low, found.high, 0)} %)" if found else ""
    return f"an efficiency of {half_up(one.efficiency_pct)} %{ends}"


def _closed(said: str, opened: Sequence[Interval], made: Decided, how: Further, *, some_decided: bool) -> str:
    """The sentence, and what those of its claims would take that are open."""
    more = settling(opened, made.family, how, some_decided=some_decided)
    return f"{said}. {more[0].upper()}{more[1:]}." if more else f"{said}."
