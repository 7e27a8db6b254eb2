"""The short form of the attack: every role, signal, fault and kind of sweep once. `attack.py` is the long one.

The attacks go on side by side, for most of their time is waiting; each test looks at one.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
import sweeps
from found import Found
from kinds import DAMAGES, KINDS, ROLES, STRIKES, Damage, Strike, with_moment
from known import known
from once import attack_once
from room import NoNamespacesError
from verdicts import broken

SEED = 7
AT_ONCE = 3
PATIENCE = 3.0
"""Several attacks share the CPUs, perhaps with other tests."""

SHORT: tuple[tuple[str, str], ...] = (
    ("stop-server", "plain"),
    ("stop-rank", "ddp"),
    ("kill-maker", "images"),
    ("full-results", "plain"),
    ("kill-parent", "group"),
    ("term-parent", "ddp"),
    ("kill-server", "plain"),
    ("term-leader", "plain"),
    ("kill-loader", "loaders"),
    ("removed-results", "plain"),
    ("readonly-tmp", "plain"),
    ("inodes-images", "images"),
)
"""(attack, sweep): the slow ones first."""
BY_NAME = {kind.name: kind for kind in KINDS}


@pytest.fixture(scope="module")
def attacks() -> Iterator[dict[tuple[str, str], Future[Found]]]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {(kind, sweep): pool.submit(made, kind, sweep) for kind, sweep in SHORT}


def made(kind: str, sweep: str) -> Found:
    """The attack, at a moment that changes neither between runs nor with the others in the list."""
    number = zlib.crc32(f"{kind} {sweep}".encode())
    return attack_once(with_moment(SEED, number, sweeps.BY_NAME[sweep], BY_NAME[kind]), PATIENCE)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("kind", "sweep"), SHORT)
def test_nothing_is_lost_and_nobody_is_hurt(
    attacks: dict[tuple[str, str], Future[Found]], kind: str, sweep: str
) -> None:
    try:
        found = attacks[kind, sweep].result()
    except NoNamespacesError as error:
        pytest.skip(f"user namespaces are not allowed here: {error}")
    assert found.struck, "the sweep had ended before the moment came"
    news = {promise: why for promise, why in broken(found).items() if known(found.attack, promise) is None}
    assert news == {}, f"{found.attack}\n{found.first.err}\n{found.second.err}"


def test_the_short_form_has_every_role_signal_fault_and_sweep() -> None:
    chosen = [BY_NAME[kind] for kind, _ in SHORT]
    strikes = [kind for kind in chosen if isinstance(kind, Strike)]
    damages = [kind for kind in chosen if isinstance(kind, Damage)]
    assert {strike.role for strike in strikes} == set(ROLES)
    assert {strike.signal for strike in strikes} == {strike.signal for strike in STRIKES}
    assert {damage.fault for damage in damages} == {damage.fault for damage in DAMAGES}
    assert {damage.place for damage in damages} == {damage.place for damage in DAMAGES}
    assert {sweep for _, sweep in SHORT} == {sweep.name for sweep in sweeps.on(0)}
    assert all(BY_NAME[kind].suits(sweeps.BY_NAME[sweep]) for kind, sweep in SHORT)
