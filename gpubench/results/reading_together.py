"""The files of a records folder, read by several processes where there are many: one reads, others check for it."""

from __future__ import annotations

import marshal
import math
import os
from collections.abc import Collection, Iterator, Sequence

from gpubench.basics.helpers import share_out
from gpubench.results.stored_record import CheckedParts, KnownParts, check_file

MANY = 2_000
"""Files from which it pays to fork for them: fewer are read in a tenth of a second."""
PIECE = 200
"""Files at a time: half a megabyte is handed over."""


def check_in_pieces(
    paths: Sequence[str], without: Collection[str], *, together: bool
) -> Iterator[tuple[range, Sequence[CheckedParts | None]]]:
    """Places among these files, in pieces in any order, with what others have checked of each; None of one that is
    still to be read.

    `without`: as in KnownParts. `together`: whether other processes may help.
    """
    helpers = _spare_cpus() if together and len(paths) >= MANY else 0
    size = PIECE if helpers else max(1, len(paths))
    pieces = [range(first, min(first + size, len(paths))) for first in range(0, len(paths), size)]
    known = KnownParts(without=without)  # each helper has one of its own

    def checked(piece: range) -> bytes:
        # Of all ways to hand over plain values it takes the least time, and what is one object stays one.
        return marshal.dumps([check_file(paths[place], known) for place in piece])

    for piece, body in share_out(pieces, checked, helpers):
        yield piece, [None] * len(piece) if body is None else marshal.loads(body)


def _spare_cpus() -> int:
    """How many other CPUs this process may use."""
    from gpubench.node.cgroup import cgroup_quota  # 7 ms, which only large folders are worth

    quota = cgroup_quota()
    limits = [len(os.sched_getaffinity(0)), *([math.ceil(quota.cpus)] if quota else [])]
    return min(limits) - 1
