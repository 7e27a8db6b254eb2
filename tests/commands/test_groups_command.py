"""Jobs side by side as users run them: real processes on the CPU, and a killed job."""

from __future__ import annotations

import os
import re

import psutil
import pytest
from place import HELD, Place, all_gone, until
from warm_command import Started

from gpubench.results.counting import select_counting_of_first_round
from gpubench.results.store import Results
from gpubench.schema.record import Record

FIELDS = ("variant=synthetic", "input_size=28", "num_classes=4", "memory_format=contiguous")
BASE = ("--device", "cpu", "--cpus", "1", *(word for field in FIELDS for word in ("--set", field)))


def chosen(place: Place) -> list[Record]:
    """The attempts that count: trials alone, then jobs in their order."""
    found = select_counting_of_first_round(Results(place.home / "out").read_records()).values()
    return sorted(found, key=lambda r: (r.group or "", str(r.trial["cpu_sharing"]), r.job or ""))


def span(record: Record) -> tuple[float, float]:
    """Monotonic seconds of its first and last measured moment."""
    measured = {e["epoch"] for e in record.epochs if not e["warmup"]}
    windows = [w for w in record.windows if w.epoch in measured]
    return min(w.t0 for w in windows), max(w.t1 for w in windows)


@pytest.mark.slow
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_two_jobs_on_one_cpu_take_turns_and_on_cpus_of_their_own_they_do_not(place: Place) -> None:
    command = (
        "sweep", *BASE, "--model", "lenet", "--batch-size", "64", "--set", "train_images=2048", "--window", "0.3s",
        "--copies", "2", "--cpu-sharing", "shared,pinned", "--rounds", "1", "--out", "out", "-q",
    )  # fmt: skip
    ended = place.run(*command)
    assert ended.returncode == 0, ended.stderr
    alone, *jobs = chosen(place)
    pinned, shared = jobs[:2], jobs[2:]

    # Whoever else is on this host.
    assert [r.status for r in (alone, *jobs)] == ["ok"] * 5
    # One CPU alone is one baseline for both.
    assert {r.result["solo_id"] for r in jobs} == {alone.trial_id}
    assert [len(r.resolved["cpu_ids"]) for r in (alone, *jobs)] == [1] * 5
    assert pinned[0].resolved["cpu_ids"] != pinned[1].resolved["cpu_ids"]
    assert shared[0].resolved["cpu_ids"] == shared[1].resolved["cpu_ids"] == alone.resolved["cpu_ids"]
    for pair in (pinned, shared):
        (a0, a1), (b0, b1) = (span(record) for record in pair)
        # They measured at the same time.
        assert max(a0, b0) < min(a1, b1)
        assert pair[0].together["released"] <= min(a0, b0)
        step_s = max(record.epochs[-1]["steady_step_s"] for record in pair)
        # Figures are of the time that both measured.
        assert max(abs(a0 - b0), abs(a1 - b1)) < 5 * step_s
        for record in pair:
            assert record.result["epoch_time_source"] == "steady"
            expected = record.result["epoch_time_s"] / alone.result["epoch_time_s"]
            assert record.result["slowdown"] == pytest.approx(expected)
    # A CPU has a second of time a second: a tick of the kernel's clock more at either edge.
    used = [r.result["cpu_s_per_epoch"] / r.result["epoch_time_s"] for r in shared]
    assert sum(used) < 1.2

    # What the sweep predicted before the group ran is what the command says of it.
    fields = (*FIELDS, "model=lenet", "device=cpu", "cpus=1", "batch_size=64", "cpu_sharing=shared")
    before = place.files()
    told = place.run(
        "predict", "out", "--copies", "2", *(word for name in fields for word in ("--set", name))
    )
    assert told.returncode == 0, told.stderr
    assert "  slowdown  measured  error %\n" in told.stdout
    predicted = [f"{record.result['predicted_slowdown']:.2f}" for record in shared]
    assert re.findall(r"^\d of 2: .* 64 +\S+ +\S+ +(\S+) ", told.stdout, re.MULTILINE) == predicted
    assert place.files() == before, "nothing is run, nothing written"


def start(place: Place, *options: str) -> tuple[Started, list[psutil.Process]]:
    """A sweep whose group waits in its first epoch, and the ranks of its two jobs."""
    sweep = place.start(*options)

    def ranks() -> list[psutil.Process]:
        # Below the sweep: the fork server, a leader each, a rank each.
        try:
            own = psutil.Process(sweep.pid)
            depth = len(own.parents()) + 4
            return [p for p in own.children(recursive=True) if len([p, *p.parents()]) == depth]
        except psutil.NoSuchProcess:
            return []

    until(lambda: sweep.poll() is not None or len(ranks()) == 2, "both jobs to begin")
    assert sweep.poll() is None, sweep.communicate()[1]
    return sweep, ranks()


@pytest.mark.slow
def test_a_group_of_which_a_job_is_killed_goes_on(place: Place) -> None:
    hold = place.home / "hold"
    (place.home / "nets.py").write_text(HELD.format(hold=str(hold)))
    own = (*BASE, "--model", "nets.py:net", "--set", "train_images=64", "--epochs", "2")
    own += ("--rounds", "1", "--out", "out")
    together = ("sweep", *own, "--job", "batch_size=8", "--job", "batch_size=16")
    alone = place.run("sweep", *own, "--batch-size", "8,16", "-q")
    assert alone.returncode == 0, alone.stderr
    hold.touch()

    # One job is killed: the group ends, with rows for both.
    sweep, ranks = start(place, *together)
    family = psutil.Process(sweep.pid).children(recursive=True)
    ranks[0].kill()
    _, err = sweep.communicate(timeout=60)
    assert sweep.returncode == 1, err
    assert "(2 done already)" in err
    all_gone(family)
    *_, one, other = chosen(place)
    assert {one.status, other.status} == {"failed", "skipped"}
    failed, taken = sorted((one, other), key=lambda r: str(r.status))
    assert " by SIGKILL" in failed.reason
    assert taken.reason == f"job {failed.job} failed: {failed.reason}"

    hold.unlink()
    again = place.run(*together, "--retry", "failed", "-q")
    assert again.returncode == 0, again.stderr
    *solos, one, other = chosen(place)
    assert [(r.status, r.attempt) for r in (*solos, one, other)] == [("ok", 1)] * 2 + [("ok", 2)] * 2
    assert one.result["epochs_measured"] == 1
    assert {r.missing["top1_pct"].split()[-1] for r in (one, other)} == {r.trial_id for r in solos}
