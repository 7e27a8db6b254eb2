"""The hosts of a trial over several nodes, which records name in one text: `n1 + n2`, the first rank's first. Pure."""

from __future__ import annotations

from collections.abc import Iterable

_BETWEEN = " + "


def joined(hosts: Iterable[str]) -> str:
    """As a record names them."""
    return _BETWEEN.join(hosts)


def count(host: str) -> int:
    """Of how many nodes it tells; 1 where no host is on record."""
    return len(host.split(_BETWEEN))


def first(host: str) -> str:
    """The node of the first rank, on which the same sweep measures trials of one node."""
    return host.split(_BETWEEN)[0]
