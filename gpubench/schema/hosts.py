"""The hosts of a trial over several nodes, which records name in one text: `n1 + n2`, the first rank's first. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

_BETWEEN = " + "


def make_distinct_node_names(hosts: Sequence[str]) -> list[str]:
    """What nodes are called: as their hosts, with their numbers where two are of one host."""
    count = Counter(hosts)
    return [host if count[host] == 1 else f"{host} (node {number})" for number, host in enumerate(hosts)]


def join_hosts(hosts: Iterable[str]) -> str:
    """As a record names them."""
    return _BETWEEN.join(hosts)


def count_nodes(host: str) -> int:
    """Of how many nodes it tells; 1 where no host is on record."""
    return len(host.split(_BETWEEN))


def find_first_node(host: str) -> str:
    """The node of the first rank, on which the same sweep measures trials of one node."""
    return host.split(_BETWEEN)[0].removesuffix(" (node 0)")
