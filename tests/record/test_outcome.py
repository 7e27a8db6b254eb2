"""What a trial's events amount to."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest
import scripted
from msgspec import structs

from gpubench.node.launch.trial_log import TrialLog
from gpubench.record.outcome import Outcome, classify_ending
from gpubench.record.training import make_outcome
from gpubench.schema.attempt import Attempt
from gpubench.schema.events import (
    AllocatorMemory,
    Error,
    Evaluated,
    Event,
    HeldMemory,
    KilledForMemory,
    LeaderExit,
    RankExit,
    Result,
    ServerExit,
)  # fmt: skip
from gpubench.schema.order import TrialOrder


def error(rank: int, reason: str, kind: Literal["failed", "oom"] = "failed", at: float = 1.0) -> Error:
    return Error(rank=rank, kind=kind, reason=reason, at=at)


def died(rank: int, code: int) -> RankExit:
    return RankExit(rank=rank, code=code, killed=False, at=0.0)


def kills(count: int) -> KilledForMemory:
    return KilledForMemory(count, "this cgroup")


OOM = error(0, "OutOfMemoryError: CUDA out of memory", "oom")
HELP = "; last line of its output: help"
DONE = scripted.RESULT


@pytest.mark.parametrize(
    ("events", "ranks", "status", "reason"),
    [
        ([DONE], 1, "ok", ""),
        ([DONE, died(0, -6)], 1, "ok", ""),  # gloo may abort while it is torn down: the result counts
        ([OOM, died(0, 1)], 1, "oom", "OutOfMemoryError: CUDA out of memory"),
        ([error(0, "ValueError: no"), died(0, 1)], 1, "failed", "ValueError: no"),
        ([error(1, "late", at=2.0), error(0, "first", at=1.0)], 2, "failed", "first (rank 0)"),
        ([DONE, error(1, "ValueError: no")], 2, "failed", "ValueError: no (rank 1)"),
        # A rank that loses its peer often says so before the peer's own end is seen.
        ([error(1, "RuntimeError: gloo: Connection closed by peer"), OOM], 2, "oom", f"{OOM.reason} (rank 0)"),
        ([error(1, "Connection reset by peer"), died(0, -11)], 2, "failed", "rank 0 was ended by SIGSEGV" + HELP),
        ([died(0, -9)], 1, "failed", "rank 0 was ended by SIGKILL (the host may have run out of memory)" + HELP),
        ([died(0, -7)], 1, "failed", "rank 0 was ended by SIGBUS (shared memory, /dev/shm, may be full)" + HELP),
        ([died(0, 3)], 1, "failed", "rank 0 ended with exit code 3" + HELP),
        ([died(0, 0)], 1, "failed", "rank 0 ended with exit code 0 before it had a result" + HELP),
        ([DONE, died(0, 0), died(1, 0)], 2, "failed", "rank 1 ended with exit code 0 before it had a result" + HELP),
        ([DONE, died(1, 0), died(0, -9)], 2, "failed", "rank 1 ended with exit code 0 before it had a result" + HELP),
        ([died(0, -24)], 1, "failed", "rank 0 was ended by SIGXCPU (a limit of CPU time, ulimit -t, was met)" + HELP),
        ([died(0, -9), kills(0)], 1, "failed", "rank 0 was ended by SIGKILL (not by the kernel for memory: it counts "
         "no such kill in this cgroup)" + HELP),
        ([died(0, -9), kills(1)], 1, "failed", "rank 0 was ended by SIGKILL (the kernel killed a process of this "
         "cgroup for memory meanwhile)" + HELP),
        ([error(0, "RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed."), kills(2)], 1, "failed",
         "RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed.; the kernel killed 2 processes of this "
         "cgroup for memory meanwhile"),
        ([error(0, "no"), kills(0)], 1, "failed", "no"),
        ([OOM, kills(1)], 1, "oom", OOM.reason),
        ([LeaderExit(-9), kills(0)], 1, "failed", "the process that leads the trial was ended by SIGKILL (not by "
         "the kernel for memory: it counts no such kill in this cgroup)" + HELP),
        ([LeaderExit(70)], 1, "failed", "the process that leads the trial ended with exit code 70" + HELP),
        ([ServerExit(-11)], 1, "failed", "the fork server was ended by SIGSEGV" + HELP),
        ([died(0, -6), LeaderExit(1)], 1, "failed", "rank 0 was ended by SIGABRT" + HELP),
        ([], 1, "failed", "its processes ended without a result" + HELP),
    ],
)  # fmt: skip
def test_endings(events: list[Event], ranks: int, status: str, reason: str) -> None:
    assert classify_ending(events, Result, ranks, "help") == (status, reason)


def test_an_unknown_signal_is_named_by_number() -> None:
    _, reason = classify_ending([died(0, -99)], Result, 1, "")
    assert reason == "rank 0 was ended by signal 99"


def told_by(order: TrialOrder) -> list[Event]:
    """What a trial tells that trains well."""
    return [line for line in scripted.trains(order) if not isinstance(line, scripted.Until)]


def told(events: list[Event], forced: Any = None, ranks: int = 1, until_top1: float | None = None) -> Outcome:
    trial = SimpleNamespace(workload="training", epochs=3, batch_size=16, until_top1=until_top1)
    job = SimpleNamespace(trial=trial, membership=None, variant=SimpleNamespace(files="none"))
    done = Attempt(events=events, launched=0.0, finished=0.0, last_words="help")
    return make_outcome(job, SimpleNamespace(processes=ranks), done, forced)


def test_a_whole_trial() -> None:
    found = told(told_by(scripted.order()))
    assert found.status == "ok"
    assert [(e.epoch, e.warmup, e.steps, e.images) for e in found.epochs] == [
        (0, True, 6, 96), (1, False, 6, 96), (2, False, 6, 96)
    ]  # fmt: skip
    assert found.result["epoch_time_s"] == pytest.approx(scripted.EPOCH_S)
    assert found.result["images_per_epoch"] == 96
    assert found.result["images_per_s"] == pytest.approx(96 / scripted.EPOCH_S)
    assert found.result["data_wait_pct"] == pytest.approx(20.0, rel=1e-4)
    assert found.result["epochs_measured"] == 2
    assert "top1_pct" in found.missing
    assert found.phases == {"start": 0.1}


def test_an_epochs_accuracy_stands_in_its_row() -> None:
    (*events, settle, result) = told_by(scripted.order())
    assert isinstance(result, Result)
    events.append(Evaluated(rank=0, epoch=1, top1_pct=61.5))
    assert [e.top1_pct for e in told([*events, settle, result]).epochs] == [None, 61.5, None]
    found = told([*events, settle, result], until_top1=60.0)
    assert found.result["epochs_to_top1"] == 2
    assert found.result["time_to_top1_s"] == pytest.approx(2 * scripted.EPOCH_S)


def test_what_each_gpus_allocator_held_and_the_slowest_probe() -> None:
    held = [
        HeldMemory(peak=30.0, at_settle=20.0, allocated_peak=9.0),
        HeldMemory(peak=40.0, at_settle=40.0, allocated_peak=9.0),
    ]  # fmt: skip

    def on_a_gpu(event: Event) -> Event:
        if not isinstance(event, Result):
            return event
        rank = event.rank
        memory = AllocatorMemory(
            allocated_mib=9.0, reserved_mib=30.0 + rank, retries=1, devices={str(rank): held[rank]}
        )
        return structs.replace(event, cpu_probe_ms=7.0 - rank, memory=memory)

    events = [on_a_gpu(event) for event in told_by(scripted.order(ranks=2))]
    found = told(events, ranks=2)
    assert found.held == {"0": held[0], "1": held[1]}
    assert found.result["gpu_mem_reserved_mib"] == 31.0
    assert found.result["gpu_alloc_retries"] == 2
    assert found.result["cpu_probe_ms"] == 7.0
    assert told(told_by(scripted.order())).held == {}


def test_what_the_parent_forced_beats_what_the_child_said() -> None:
    found = told([OOM], forced=("timeout", "did not end within 1 s"))
    assert (found.status, found.reason, found.result) == ("timeout", "did not end within 1 s", {})


def test_last_words(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    assert TrialLog(log).read_last_words() == ""
    log.write_bytes(b"x" * 9000 + b"\nfirst\n  the last \xff one  \n\n \n")
    assert TrialLog(log).read_last_words() == "the last \N{REPLACEMENT CHARACTER} one"
    log.write_text("long " * 200)
    assert len(TrialLog(log).read_last_words()) <= 300
