"""Which number each attempt gets where several folders become one. Pure.

Where two folders number different attempts at one unit alike, the later ones get new numbers behind all others. Further
rounds belong to the first round of their own folder, and so stay behind it: a first round goes with its further ones,
and is as late as the last of them. What lies in the target keeps its numbers; an attempt that is older than one of the
target on the same machine, under the same allowance of CPUs, and would count in its place for its number alone, is left
out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from gpubench.results.merging.attempts import FoundAttempt, Identity

MOST_TRACES = 100_000
"""More attempts in a row that left no record no folder holds."""


def placed(
    chains: Sequence[list[FoundAttempt]], is_free: Callable[[FoundAttempt, int], bool]
) -> list[tuple[list[FoundAttempt], list[int | None]]]:
    """The number of each attempt at one unit, chain by chain: one for each folder, in its order. None: left out.

    Whichever order the folders are given in, the numbers are the same, but that the target's stay. `is_free`: whether
    no files of another attempt, which left no record, lie under a number.
    """
    order = sorted(
        chains,
        key=lambda chain: (chain[0].source != 0, chain[0].started_at, [one.identity for one in chain]),
    )
    leaders = _leaders(order)
    late = _lateness(order, leaders)
    first = {
        one.identity: (late[one.identity], -rank, -one.number, one)
        for rank, chain in reversed(list(enumerate(order)))
        for one in chain
    }
    in_order = sorted(first, key=lambda own: (first[own][0], -first[own][1], -first[own][2]))
    place = {own: index for index, own in enumerate(in_order)}
    known: dict[Identity, int | None] = {
        one.identity: one.number for chain in chains for one in chain if one.source == 0
    }
    taken = {number for number in known.values() if number is not None}
    for own in in_order:
        if own in known:
            continue
        one = first[own][3]
        rivals = [
            (place[other], number)
            for other, number in known.items()
            if number is not None and _may_displace(one, first[other][3], leaders)
        ]
        low = max((number for index, number in rivals if index < place[own]), default=0)
        high = min((number for index, number in rivals if index > place[own]), default=None)
        behind = max(taken, default=0) + 1
        if high is None:
            wanted = [one.number, *range(behind, behind + MOST_TRACES)]
        else:
            wanted = [one.number, *range(low + 1, high)]
        known[own] = next(
            (
                number
                for number in wanted
                if low < number
                and (high is None or number < high)
                and number not in taken
                and is_free(one, number)
            ),
            None,
        )
        if (number := known[own]) is not None:
            taken.add(number)
    return [(chain, [known[one.identity] for one in chain]) for chain in chains]


def _leaders(chains: Iterable[Sequence[FoundAttempt]]) -> dict[Identity, Identity]:
    """The attempt of the first round to which each attempt belongs; its own for one of the first round."""
    found: dict[Identity, Identity] = {}
    for chain in chains:
        last: dict[Hashable, Identity] = {}
        for one in chain:
            place = one.machines, one.allowance
            if one.begins:
                if one.is_final:
                    last[place] = one.identity
                found.setdefault(one.identity, one.identity)
            else:
                found.setdefault(one.identity, last.setdefault(place, one.identity))
    return found


def _lateness(
    chains: Sequence[Sequence[FoundAttempt]], leaders: Mapping[Identity, Identity]
) -> dict[Identity, str]:
    """How late each attempt is: as the last final one of its first round, and never earlier than those before it."""
    last: dict[Identity, str] = {}
    for one in (one for chain in chains for one in chain):
        if one.is_final or leaders[one.identity] == one.identity:
            leader = leaders[one.identity]
            last[leader] = max(last.get(leader, ""), one.started_at)
    found: dict[Identity, str] = {}
    for chain in chains:
        until = ""  # clocks may be set back; numbers only go up
        for one in chain:
            until = max(until, last.get(leaders[one.identity], one.started_at))
            found[one.identity] = max(found.get(one.identity, ""), until)
    return found


def _may_displace(one: FoundAttempt, other: FoundAttempt, leaders: Mapping[Identity, Identity]) -> bool:
    """Whether one of the two doesn't count any more, or counts, for their order alone."""
    if not (one.is_final and other.is_final) or (one.machines, one.allowance) != (
        other.machines,
        other.allowance,
    ):
        return False
    is_own = leaders[one.identity] == leaders[other.identity]
    same = (one.round, one.is_reference) == (other.round, other.is_reference)
    return not is_own or one.begins or other.begins or same
