"""The promises that are looked at after an attack: each one breaks where it should, and by itself."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from typing import Any

import pytest
import sweeps
from found import Folder, Found, Start
from gpus import Driver, more
from kinds import Attack, Damage, Strike
from verdicts import broken

from gpubench.schema.record import GroupRecord, Record

PLAIN = sweeps.BY_NAME["plain"]
TRIALS = ("ta1", "tb2", "tc3")


def record(trial: str, attempt: int = 1, status: Any = "ok", group: str | None = None) -> Record:
    return Record(
        trial_id=trial,
        config_id="c",
        attempt=attempt,
        experiment="e",
        status=status,
        machine_key="m",
        trial={},
        group_id=group,
        group="g" if group else None,
        job="1 of 1" if group else None,
    )


def folder(*records: Record, logs: tuple[str, ...] = ()) -> Folder:
    stored = {f"records/x/{r.trial_id}-{r.attempt}.json": json.dumps(r.to_stored()).encode() for r in records}
    return Folder(records=stored, logs=(*(f"{r.trial_id}-{r.attempt}" for r in records), *logs))


def start(*records: Record, code: int | None = 0, err: str = "") -> Start:
    told = [{"trial_id": r.trial_id, "status": r.status} for r in records]
    return Start(code=code, seconds=3, out="".join(json.dumps(line) + "\n" for line in told), err=err)


def attack(kind: Strike | Damage) -> Attack:
    return Attack(seed=1, number=2, sweep=PLAIN, kind=kind, stored=1, delay_s=0, pick=0, hold_s=1)


KILLED = attack(Strike(signal=signal.SIGKILL, role="parent"))
REMOVED = attack(Damage(fault="removed", place="results", sweeps=("plain",)))
ALL = [record(trial) for trial in TRIALS]
HELD = Found(
    attack=KILLED,
    struck=True,
    first=start(ALL[0], code=-9),
    second=start(*ALL),
    before=folder(ALL[0], logs=("tb2-1",)),
    middle=folder(ALL[0], logs=("tb2-1",)),
    last=folder(ALL[0], record("tb2", 2), ALL[2], logs=("tb2-1",)),
)


COPY = {**HELD.last.records, "records/y/ta1-1.json": HELD.last.records["records/x/ta1-1.json"]}
HALF = Folder(records={**HELD.middle.records, "records/x/tb2-1.json": b'{"trial'}, logs=HELD.middle.logs)

# (promise, what was found instead, words)
BREAKS: list[tuple[str, Found, str]] = [
    ("ended", replace(HELD, first=start(ALL[0], code=None)), "it had to be killed after 3 s"),
    ("told", replace(HELD, first=start(ALL[0], code=-11)), "exit code -11"),
    (
        "told",
        replace(HELD, first=start(ALL[0], code=1, err="Traceback (most recent call last)\n  x\nOSError: y\n")),
        "a traceback: OSError: y",
    ),
    ("whole", replace(HELD, middle=HALF, last=HALF), "records/x/tb2-1.json is not JSON (half written?)"),
    ("kept", replace(HELD, middle=Folder()), "records/x/ta1-1.json is gone"),
    (
        "kept",
        replace(HELD, last=folder(record("ta1", status="failed"), record("ta1", 2), *ALL[1:])),
        "records/x/ta1-1.json has changed",
    ),
    ("stored", replace(HELD, first=start(*ALL[:2], code=-9)), "tb2 told, but not stored; exit code -9"),
    (
        "stored",
        replace(HELD, attack=REMOVED, first=start(*ALL), middle=Folder()),
        "ta1, tb2, tc3 told, but not stored; exit code 0",
    ),
    ("single", replace(HELD, last=folder(*ALL, record("ta1", 2))), "twice: ta1 (ok 2 times)"),
    (
        "single",
        replace(HELD, last=replace(HELD.last, records=COPY)),
        "twice: ta1-1, ta1 (ok 2 times)",
    ),
    ("numbered", replace(HELD, last=folder(ALL[0], record("tb2", 3), ALL[2])), "gaps in the attempts of tb2"),
    ("gone", replace(HELD, processes=["12 (stopped, python)"]), "12 (stopped, python)"),
    ("gone", replace(HELD, late_processes=["12 (x)"]), "of the next start: 12 (x)"),
    ("clean", replace(HELD, files=["TMPDIR/gpubench-abc"]), "TMPDIR/gpubench-abc"),
    ("forgotten", replace(HELD, shared_memory=["torch_1_2"]), "torch_1_2"),
    ("given_back", replace(HELD, gpus=["GPU 0: 600 MiB more in use"]), "GPU 0: 600 MiB more in use"),
    (
        "goes_on",
        replace(HELD, second=start(code=4, err="gpubench: another sweep writes into it\n")),
        "the next start ended with 4 after 3 s: gpubench: another sweep writes into it",
    ),
    ("goes_on", replace(HELD, second=start(code=None)), "the next start did not end after 3 s: silent"),
    ("goes_on", replace(HELD, second=start(*ALL[:2])), "the next start left {'ok': 2}, not 3 ok"),
    (
        "goes_on",
        replace(HELD, last=folder(*ALL[:2])),
        "the next start told of tc3, which is not stored",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("promise", "found", "words"), BREAKS)
def test_each_promise_breaks_where_it_should(promise: str, found: Found, words: str) -> None:
    why = broken(found)
    assert words in why.pop(promise)
    # The others hold, but for what follows from it.
    assert not set(why) - {"single", "numbered", "stored"}


def test_a_group_counts_again_where_its_baseline_came_later() -> None:
    jobs = [record("td4", number, group="g1") for number in (1, 2)]
    groups = {
        f"records/1x/g1-{job.attempt}.json": json.dumps(
            GroupRecord(group_id="g1", attempt=job.attempt, jobs=[job]).to_stored()
        ).encode()
        for job in jobs
    }
    last = replace(HELD.last, records={**HELD.last.records, **groups})
    assert broken(replace(HELD, last=last)) == {}


def test_what_is_left_on_gpus() -> None:
    before = Driver(frozenset({"1"}), (600, 600))
    assert more(before, Driver(frozenset({"1"}), (610, 590))) == []
    assert more(before, Driver(frozenset({"1", "2"}), (610, 1400))) == [
        "process 2 on a GPU",
        "GPU 1: 800 MiB more in use",
    ]
