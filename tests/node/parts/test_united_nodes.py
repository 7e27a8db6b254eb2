"""What happened on two nodes, as what happened to one trial."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest
import scripted
from msgspec import structs
from scripted import RESULT

from gpubench.node.parts.files import encode_json_line, parse_answer, write_answer
from gpubench.node.parts.merging import NodePart, merge_parts
from gpubench.node.watch import metrics
from gpubench.record.figures import compute_watched_figures
from gpubench.record.outcome import classify_ending
from gpubench.schema.attempt import Attempt
from gpubench.schema.events import (
    AllocatorMemory,
    Begin,
    End,
    Error,
    Event,
    HeldMemory,
    Hello,
    KilledForMemory,
    LeaderExit,
    RankExit,
    Result,
    Settle,
)
from gpubench.schema.samples import Samples
from gpubench.schema.watched import WatchedTrial, Window

T0, T1 = 100.0, 110.0
OFFSET = 5000.0
"""What is added to the second node's clock."""


def seen(
    begin: float, *, busy: float, tree: float, mib: float, joules: float, cpus: float = 4
) -> WatchedTrial:
    """What a watcher saw of one GPU and of its host in 10 s from `begin` on its node's clock."""
    samples = Samples()
    for k in range(11):
        t = begin + k
        samples.add_reading(t, metrics.CPU_BUSY, busy * k)
        samples.add_reading(t, metrics.CPU_TREE, tree * k)
        samples.add_reading(t, metrics.ENERGY, 1000 + joules * k, "0")
        samples.add_reading(t, metrics.PROCESS_MEMORY, mib, "0")
        for metric in ("gpu_util_pct", "gpu_mem_util_pct"):
            samples.add_reading(t, metric, 50.0 if mib < 900 else 100.0, "0")
    samples.add_reading(begin + 10, metrics.TREE_MEMORY, mib / 2)
    return WatchedTrial(
        samples=samples,
        gpus=("0",),
        uuids={"0": f"GPU-{begin:g}"},
        baseline_mib={"0": 10.0},
        cpus=cpus,
        cpu_metric=metrics.CPU_BUSY,
        gpu_settings={"gpu_power_limit_w": 700.0, "gpu_ecc": True, "gpu_pcie": f"x{mib:g}"},
        trained_until=begin + 10,
        skipped=[(metrics.TOTALS_S, [begin + 5])],
    )


def told(begin: float, *more: Event, steps: int = 6, index: str = "0") -> list[Event]:
    """The events of a node's only rank, trained to its end."""
    memory = AllocatorMemory(
        allocated_mib=1.0,
        reserved_mib=2.0,
        retries=0,
        devices={index: HeldMemory(peak=3.0, at_settle=2.0, allocated_peak=1.0)},
    )
    return [
        Hello(rank=0, pid=1, cuda=None, torch="2", decoder="torchvision 1"),
        Begin(rank=0, epoch=0, steps=steps, measured=True),
        scripted.steps(0, 0, steps, 10.0),
        End(rank=0, epoch=0, measured=True, t0=begin, t1=begin + 10, steps=steps, first_batch_s=0.0, train_loss=1.0),
        Settle(rank=0),
        structs.replace(RESULT, at=begin + 10, memory=memory),
        *more,
    ]  # fmt: skip


def part(node: int, done: Attempt | None, **fields: Any) -> NodePart:
    return NodePart(
        host=f"n{node + 1}",
        ranks=1,
        gpu_uuids=(f"GPU-{node}",),
        done=done,
        **fields,
    )


def attempt(begin: float, events: list[Event], **fields: Any) -> Attempt:
    watched = fields.pop("watched", seen(begin, busy=2.0, tree=1.0, mib=800.0, joules=100.0))
    return Attempt(events=events, launched=begin - 1, finished=begin + 11, watched=watched, **fields)


def whole(*parts: NodePart, is_stopped: bool = False) -> Attempt:
    return merge_parts(parts, is_stopped=is_stopped, launched=T0 - 1, finished=T1 + 2)


def both(first: list[Event], second: list[Event]) -> Attempt:
    far = seen(T0 - OFFSET, busy=4.0, tree=3.0, mib=1000.0, joules=300.0)
    return whole(
        part(0, attempt(T0, first)), part(1, attempt(T0 - OFFSET, second, watched=far), was_stopped=True)
    )


def test_events_are_of_all_ranks_and_on_one_time_line() -> None:
    done = both(told(T0), told(T0 - OFFSET))
    ends = [e for e in done.events if isinstance(e, End)]
    assert [(e.rank, e.t0, e.t1) for e in ends] == [(0, T0, T1), (1, T0, T1)]
    results = [e for e in done.events if isinstance(e, Result)]
    assert [(e.rank, e.at, list(e.memory.devices)) for e in results if e.memory] == [
        (0, T1, ["0"]),
        (1, T1, ["1"]),
    ]
    assert sum(isinstance(e, Settle) for e in done.events) == 1, "it is told once"
    assert done.forced is None
    assert classify_ending(done.events, Result, 2, "", done.nodes) == ("ok", "")
    assert [(n.name, n.first_rank, n.clock_offset_s) for n in done.nodes] == [
        ("n1", 0, 0.0),
        ("n2", 1, OFFSET),
    ]


def test_figures_are_of_both_nodes() -> None:
    """Memory of the fullest GPU, energy of all, use of the CPUs of both, their seconds and memory in sum."""
    done = both(told(T0), told(T0 - OFFSET))
    found = compute_watched_figures(done.watched.replace_windows([Window(T0, T1, 0, measured=True)]))
    result = found.result
    assert result["gpu_mem_mib"] == 1000.0
    assert result["gpu_util_pct"] == pytest.approx(75.0)
    assert result["gpu_util_max_pct"] == 100.0
    assert result["energy_j"] == pytest.approx(4000.0)
    assert result["cpu_util_pct"] == pytest.approx(100 * (2 + 4) / 8)
    assert result["cpu_util_max_pct"] == pytest.approx(100.0)
    assert result["cpu_util_trial_pct"] == pytest.approx(100 * (1 + 3) / 8)
    assert result["cpu_s_per_epoch"] == pytest.approx(40.0)
    assert result["host_mem_mib"] == pytest.approx(900.0)
    assert found.cpu_s_by_epoch == {0: pytest.approx(40.0)}
    assert found.joules_by_gpu["energy_j"] == {
        "GPU-100": pytest.approx(1000),
        f"GPU-{T0 - OFFSET:g}": pytest.approx(3000),
    }
    assert found.provenance["cpu_util_pct"]["source"].endswith(", on each of 2 nodes")
    assert done.watched.gpu_settings == {"gpu_power_limit_w": 700.0, "gpu_ecc": True}, (
        "what they have in common"
    )
    # One late reading on each node.
    assert found.provenance["cpu_util_pct"]["gaps"] == 2
    assert found.provenance["gpu_mem_mib"]["gaps"] == 2


def test_the_use_of_unequal_cpus_is_weighed_by_their_number() -> None:
    first = seen(T0, busy=2.0, tree=1.0, mib=1.0, joules=1.0, cpus=2)
    far = seen(T0 - OFFSET, busy=0.0, tree=0.0, mib=1.0, joules=1.0, cpus=6)
    done = whole(
        part(0, attempt(T0, told(T0), watched=first)),
        part(1, attempt(T0 - OFFSET, told(T0 - OFFSET), watched=far)),
    )
    found = compute_watched_figures(done.watched.replace_windows([Window(T0, T1, 0, measured=True)]))
    assert found.result["cpu_util_pct"] == pytest.approx(25.0)


# ---- endings ----


def words(done: Attempt) -> tuple[str, str]:
    return done.forced or classify_ending(done.events, Result, 2, done.last_words, done.nodes)


def test_a_lost_node_is_named() -> None:
    lost = "its agent was ended by SIGKILL"
    done = whole(part(0, attempt(T0, [])), part(1, None, lost=lost))
    assert words(done) == ("failed", f"node n2 was lost: {lost}")
    assert done.watched.parts == ()


def test_a_rank_s_end_names_its_node_and_counts_before_what_others_heard_of_it() -> None:
    heard = Error(rank=0, kind="failed", reason="RuntimeError: Connection closed by peer", at=T0 + 1)
    died: list[Event] = [
        Hello(rank=0, pid=1, cuda=None, torch="2", decoder="torchvision 1"),
        RankExit(rank=0, code=-9, killed=False, at=T0 - OFFSET + 3),
        KilledForMemory(1, "the cgroup"),
    ]
    done = both([heard], died)
    assert words(done) == (
        "failed",
        "rank 1 on node n2 was ended by SIGKILL (the kernel killed a process of the cgroup for memory meanwhile)",
    )


def test_the_first_of_two_errors_is_the_cause_by_the_time_of_one_clock() -> None:
    """By the second node's own clock its error came 5,000 s before the first node's."""
    early = Error(rank=0, kind="failed", reason="ValueError: early", at=T0 + 1)
    late = Error(rank=0, kind="failed", reason="ValueError: late", at=T0 - OFFSET + 2)
    assert words(both([early], [late])) == ("failed", f"{early.reason} (rank 0 on node n1)")


def test_nodes_that_trained_other_epochs_fail() -> None:
    done = both(told(T0), told(T0 - OFFSET, steps=5))
    assert words(done)[0] == "failed"
    assert "n2 has trained other epochs than node n1" in words(done)[1]


def test_nodes_are_put_together_by_their_barriers_whatever_their_clocks_do() -> None:
    """The second node's clock gains a part in a thousand, and the launch there came 3 s late."""
    begins = [T0, T0 + 20, T0 + 40]

    def there(t: float) -> float:
        return T0 - OFFSET + 1.001 * (t - T0)

    def events(clock: Any) -> list[Event]:
        return [
            End(rank=0, epoch=k, measured=True, t0=clock(t), t1=clock(t) + 10, steps=6, first_batch_s=0.0,
                train_loss=1.0)
            for k, t in enumerate(begins)
        ]  # fmt: skip

    watched = seen(there(T0), busy=1.0, tree=1.0, mib=1.0, joules=1.0)
    samples = Samples()
    for t in (T0 - 5, T0, T0 + 10, T0 + 20, T0 + 45):
        samples.add_reading(there(t), "power_w", 1.0, "0")
    far = Attempt(
        events=events(there),
        launched=there(T0) - 1,
        finished=there(T0) + 60,
        watched=dataclasses.replace(watched, samples=samples),
    )
    done = whole(part(0, attempt(T0, events(float))), part(1, far))
    ends = [e for e in done.events if isinstance(e, End) and e.rank == 1]
    assert [e.t0 for e in ends] == pytest.approx(begins, abs=1e-9)
    assert [e.t1 - e.t0 for e in ends] == pytest.approx([10.0] * 3, abs=1e-9), "by its own clock"
    placed = done.watched.samples.find_series("power_w", "1:0").times
    assert placed == pytest.approx([T0 - 5, T0, T0 + 10, T0 + 20, T0 + 45], abs=0.01)
    assert placed[1:4] == pytest.approx([T0, T0 + 10, T0 + 20], abs=1e-9)
    assert done.nodes[1].clock_offset_s == pytest.approx(OFFSET)
    assert done.nodes[1].clock_drift_s == pytest.approx(-0.04)


# ---- as a file ----


def test_an_attempt_is_read_as_it_was_written(tmp_path: Path) -> None:
    more: list[Event] = [LeaderExit(0), KilledForMemory(0, "x")]
    sent = attempt(T0, told(T0, *more), forced=("timeout", "late"), last_words="…", released=None)
    unending = dataclasses.replace(sent, watched=dataclasses.replace(sent.watched, trained_until=math.inf))
    for written in (sent, unending):
        write_answer(tmp_path / "attempt", written)
        back = parse_answer(Attempt, (tmp_path / "attempt").read_bytes())
        assert back.watched.samples == written.watched.samples
        assert list(back.events) == list(written.events)
        assert json.loads(encode_json_line(back)) == json.loads(encode_json_line(written))


@pytest.mark.parametrize(
    ("written", "instead"),
    [('"times": [100.0, ', '"times": [NaN, '), ('"launched": 99.0', '"launched": Infinity'),
     ('"trained_until": 110.0', '"trained_until": NaN'), ('"gaps": 0', '"gaps": -1')],
)  # fmt: skip
def test_an_attempt_is_refused_that_no_part_writes(written: str, instead: str) -> None:
    whole_file = json.dumps(json.loads(encode_json_line(attempt(T0, told(T0)))))
    assert written in whole_file
    with pytest.raises(ValueError):  # noqa: PT011 - whatever is wrong with it
        parse_answer(Attempt, whole_file.replace(written, instead).encode())
