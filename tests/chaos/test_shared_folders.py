"""Attacks on what several sweeps and merges share: a results folder."""

from __future__ import annotations

import json
import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from earlier_version import as_earlier_version
from swept import merge_records, swept

from gpubench.results.store import Results
from gpubench.store.holder import HolderProcess
from gpubench.store.work_claims import WorkClaims, WorkItem

GONE = replace(HolderProcess.make_current(), pid=2**22 + 1, began="1")


def open_claims(folder: Path, owner: HolderProcess | None = None) -> WorkClaims:
    return WorkClaims(folder, owner=owner)


def take_all(folder: Path, items: list[WorkItem], seed: int, out: Path) -> None:
    """A sweep that takes what it can, in an order of its own, with pauses, and never gives anything back."""
    chance, names = random.Random(seed), []
    order = list(items)
    chance.shuffle(order)
    for item in order:
        time.sleep(chance.random() * 0.001)
        claims = WorkClaims(folder, say=lambda _: None)
        if claims.claim_item(item) == "mine":
            names.append(item.unit_id)
    out.write_text("\n".join(names))


def fork(work: Callable[[], None]) -> int:
    if (pid := os.fork()) == 0:
        try:
            work()
        finally:
            os._exit(0)
    return pid


@pytest.mark.parametrize("turn", [0, *(pytest.param(turn, marks=pytest.mark.slow) for turn in range(1, 10))])
def test_of_six_that_come_for_sixty_dead_units_at_once_exactly_one_takes_each(
    turn: int, tmp_path: Path
) -> None:
    items = [WorkItem(f"t{number:010d}a", 1, "a machine") for number in range(60)]
    for item in items:
        open_claims(tmp_path, GONE).claim_item(item)
    outs = [tmp_path / f"out-{number}" for number in range(6)]
    # Whoever ends early must not be taken for dead by the others: they wait for each other in the end.
    ready, go = os.pipe()
    pids = []
    for number, out in enumerate(outs):

        def work(number: int = number, out: Path = out) -> None:
            os.close(go)
            take_all(tmp_path, items, 100 * turn + number, out)
            os.read(ready, 1)

        pids.append(fork(work))
    os.close(ready)
    deadline = time.monotonic() + 60
    while not all(out.exists() and out.stat().st_size for out in outs) and time.monotonic() < deadline:
        if sum(len(out.read_text().split()) for out in outs if out.exists()) >= len(items) and all(
            out.exists() for out in outs
        ):
            break
        time.sleep(0.02)
    os.close(go)
    for pid in pids:
        os.waitpid(pid, 0)
    taken = Counter(name for out in outs for name in out.read_text().split())
    assert taken == Counter(item.unit_id for item in items)


STRANGE: tuple[Callable[[Path, random.Random], Path], ...] = (
    lambda path, _: path.parent.parent / "old" / path.name,
    lambda path, chance: path.with_name(path.name.replace("-1", f"-0{chance.randrange(1, 9)}", 1)),
    lambda path, _: path.with_name(path.name.replace("-1", "-\u0661", 1)),
    lambda path, _: path.with_name(path.name.upper()),
    lambda path, _: path.with_name(f"{path.stem} (copy).json"),
    lambda path, _: path.with_name(f"{path.name}.json"),
)
"""Where a second file of an attempt may lie: in another folder, under another number, as programs name copies."""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], Path]:
    """Three folders, each with one round and with two."""
    home = tmp_path_factory.mktemp("measured")
    folders = {(name, rounds): home / f"{name}{rounds}" for name in "abc" for rounds in (1, 2)}
    for (_, rounds), folder in folders.items():
        swept(folder, "one", "16,32", rounds=rounds)
    return folders


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 20))])
def test_whatever_else_lies_there_no_merge_loses_a_measured_record(
    seed: int, measured: dict[tuple[str, int], Path], tmp_path: Path
) -> None:
    chance = random.Random(seed)
    sources = []
    for name in "abc":
        folder = shutil.copytree(measured[name, chance.randrange(1, 3)], tmp_path / name)
        if chance.random() < 0.5:
            as_earlier_version(folder)
        for path in sorted(folder.glob("records/*/*.json")):
            record = json.loads(path.read_text()) | {"reason": f"{name} {path.name}"}
            path.write_text(json.dumps(record))
            for place in chance.sample(STRANGE, 2):
                copy = place(path, chance)
                copy.parent.mkdir(exist_ok=True)
                if not copy.exists():
                    copy.write_text(json.dumps(record | {"reason": "a stranger's"}))
        sources.append(folder)
    measured = Counter(
        record.reason for folder in sources for record in Results(folder).read_records(lambda _: None)
    )
    chance.shuffle(sources)
    target = sources[0] if chance.random() < 0.5 else tmp_path / "target"
    for _ in range(2):
        merge_records(sources, out=target)
        assert Counter(record.reason for record in Results(target).read_records(lambda _: None)) == measured
    assert set(measured.values()) == {1}
    assert not any("stranger" in reason for reason in measured)
    shutil.rmtree(tmp_path, ignore_errors=True)
