"""The short form of the attack: every role, signal, fault and kind of sweep once. `attack.py` is the long one.

One of them in every run. The others are slow and go on side by side, for most of their time is waiting; each test looks
at one.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import pytest
import sweeps
from found import Found
from kinds import KINDS, with_moment
from known import known
from once import attack_until_struck
from room import NoNamespacesError
from verdicts import broken

SEED = 7
AT_ONCE = 3
PATIENCE = 3.0
"""Several attacks share the CPUs, perhaps with other tests."""
LONGEST_DELAY_S = 0.4
"""After a moment's beginning: a trial of these sweeps takes longer on any machine, as a rule."""

SHORT: tuple[tuple[str, str, int], ...] = (
    ("stop-rank", "ddp", 1),
    ("stop-command", "command-read", 1),
    ("kill-maker", "images", 0),
    ("full-results", "plain", 1),
    ("kill-parent", "group", 1),
    ("kill-server", "plain", 1),
    ("term-leader", "plain", 0),
    ("kill-leader", "command-group", 1),
    ("kill-child", "command-marks", 0),
    ("kill-rank", "command", 0),
    ("kill-loader", "loaders", 1),
    ("removed-results", "plain", 1),
    ("readonly-tmp", "plain", 0),
    ("inodes-images", "images", 0),
)
"""(attack, sweep, units that are stored by then): the slow ones first."""
OFTEN = "readonly-tmp"
"""The fault that every run of the tests has: other tests signal the processes of their sweeps."""
BY_NAME = {kind.name: kind for kind in KINDS}


@pytest.fixture(scope="module")
def attacks() -> Iterator[dict[str, Future[Found]]]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {kind: pool.submit(made, kind) for kind, *_ in SHORT if kind != OFTEN}


def made(kind: str) -> Found:
    """The attack, at a moment that changes neither between runs nor with the others in the list."""
    ((sweep, stored),) = [(sweep, stored) for name, sweep, stored in SHORT if name == kind]
    drawn = with_moment(SEED, zlib.crc32(kind.encode()), sweeps.BY_NAME[sweep], BY_NAME[kind])
    attack = replace(drawn, stored=stored, delay_s=min(drawn.delay_s, LONGEST_DELAY_S))
    return attack_until_struck(attack, PATIENCE)


@pytest.mark.slow
def test_a_fault_loses_nothing_and_hurts_nobody() -> None:
    with skipped_without_namespaces():
        check(made(OFTEN))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", [kind for kind, *_ in SHORT if kind != OFTEN])
def test_nothing_is_lost_and_nobody_is_hurt(attacks: dict[str, Future[Found]], kind: str) -> None:
    with skipped_without_namespaces():
        check(attacks[kind].result())


@contextlib.contextmanager
def skipped_without_namespaces() -> Iterator[None]:
    try:
        yield
    except NoNamespacesError as error:
        pytest.skip(f"user namespaces are not allowed here: {error}")


def check(found: Found) -> None:
    assert found.struck, "the sweep ended first"
    breaks = broken(found).items()
    news = {promise: why for promise, why in breaks if known(found.attack, promise, why) is None}
    assert news == {}, f"{found.attack}\n{found.first.err}\n{found.second.err}"
