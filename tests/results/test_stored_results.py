"""What must hold in every stored result, whatever was measured: of the folders in `results/`, and of a fresh sweep."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import committed
import pytest
from benches import run_with, sweep_of
from folders import analyze
from msgspec import structs

from gpubench.core.prediction import classify_overlap
from gpubench.export.sheets import make_trial_sheet
from gpubench.node.environment import make_machine
from gpubench.node.launch.fork_server import ForkServer
from gpubench.plan.experiment_file import parse_experiment
from gpubench.plan.options import apply_options
from gpubench.plan.plan import expand_experiment
from gpubench.plan.sources import DiskSources
from gpubench.plan.sweep_options import ExperimentOptions
from gpubench.render.live import QuietView
from gpubench.results.counting import select_counting_records
from gpubench.results.csv_text import format_csv_cell
from gpubench.results.rows import make_row
from gpubench.results.store import Results
from gpubench.run.stored_plan import store_plan
from gpubench.schema.columns import BY_NAME, COLUMNS, MEASURED, OF_GROUPS
from gpubench.schema.record import Record, TrialSpan
from gpubench.schema.window import count_block_steps

SHARES = [c.name for c in COLUMNS if c.name.endswith(("util_pct", "util_max_pct", "util_trial_pct"))]
SHARES += ["data_wait_pct", "comm_pct", "throttled_pct", "top1_pct"]
NEVER_ZERO = (
    "epoch_time_s", "images_per_s", "gpu_mem_mib", "gpu_mem_allocated_mib", "gpu_mem_reserved_mib", "host_mem_mib",
    "energy_j", "energy_sampled_j", "power_w", "idle_power_w", "sm_clock_mhz", "temperature_c",
)  # fmt: skip
"""No trial that was measured has nothing of these. (CPU time comes in ticks of 10 ms: a tiny epoch may have none.)"""

NONE = [
    pytest.param(
        None, marks=pytest.mark.skip(reason="no stored results: they were deleted from this clone"), id="none"
    )
]


def measured() -> Iterator[tuple[Path, Record]]:
    """Every stored record that was measured, and its folder."""
    for folder in committed.folders():
        for record in Results(folder).read_records():
            if record.source == "measured":
                yield folder, record


@cache
def younger_than(folder: Path) -> frozenset[str]:
    """Columns on which no record of a committed folder says anything, neither value nor reason: they came later."""
    told = {
        column for record in Results(folder).read_records() for column in (*record.result, *record.missing)
    }
    return frozenset(column.name for column in MEASURED) - told


def folders() -> list[Any]:
    """Every folder that has tables."""
    return [
        pytest.param(f, id=f.name) for f in committed.folders("trials.csv") if (f / "records").is_dir()
    ] or NONE


def one_of(wanted: Callable[[Record], object]) -> tuple[Path, Record]:
    """The first stored record of this kind and its folder; without one the test is skipped."""
    found = next(((folder, record) for folder, record in measured() if wanted(record)), None)
    if found is None:
        pytest.skip("no stored result to break: they were deleted from this clone")
    return found


def test_the_committed_folders_are_named() -> None:
    """Where git can't be asked, the names stand in for it."""
    known = committed.tracked()
    if known is None:
        pytest.skip("git does not know this folder")
    assert known == committed.NAMES


# ---------------------------------------------------------------- what must hold


def broken(record: Record, younger: Collection[str] = ()) -> list[str]:
    """The rules that a record breaks, each with its figures. `younger`: columns on which it may be silent."""
    r = record.result
    return [
        *_time(record),
        *_memory(record),
        *(f"{c} = {r[c]}" for c in SHARES if r.get(c) is not None and not 0 <= r[c] <= 100),
        *(f"{c} = {v}" for c, v in r.items() if isinstance(v, float) and (not math.isfinite(v) or v < 0)
          and c not in ("loss", "breakdown_cost_pct", "overlap_gain")),
        *(f"{c} is 0" for c in NEVER_ZERO if r.get(c) == 0),
        *_pairs(r),
        *_part_of_the_cpus(record),
        *_windows(record),
        *_group(record),
        *_reasons(record, younger),
    ]  # fmt: skip


def _time(record: Record) -> list[str]:
    r = record.result
    if record.status != "ok":
        return []
    needed = ("epoch_time_s", "images_per_s", "images_per_epoch", "epoch_time_source")
    if wrong := [f"ok without {column}" for column in needed if r.get(column) is None]:
        return wrong
    images = r["images_per_s"] * r["epoch_time_s"]
    if images != pytest.approx(r["images_per_epoch"], rel=1e-6):
        wrong.append(f"images_per_s × epoch_time_s = {images}, not {r['images_per_epoch']}")
    if r["epoch_time_source"] == "steady":
        (window,) = (epoch for epoch in record.epochs if not epoch["warmup"])
        if r["images_per_s"] != pytest.approx(window["images"] / window["epoch_time_s"]):
            wrong.append(f"images_per_s {r['images_per_s']} of {window}")
    if r["images_per_epoch"] % record.trial["batch_size"]:
        wrong.append("an epoch of other than full batches")
    return wrong


def _memory(record: Record) -> list[str]:
    names = ("gpu_mem_allocated_mib", "gpu_mem_reserved_mib", "gpu_mem_mib")
    known = [(name, record.result[name]) for name in names if record.result.get(name) is not None]
    return [f"{a} {x} > {b} {y}" for (a, x), (b, y) in pairwise(known) if x > y]


def _pairs(r: dict[str, Any]) -> list[str]:
    """A mean is at most its peak, a part at most its whole."""
    ordered = [
        ("step_time_ms_p50", "step_time_ms_p95"),
        ("gpu_util_pct", "gpu_util_max_pct"),
        ("gpu_mem_util_pct", "gpu_mem_util_max_pct"),
        ("cpu_util_pct", "cpu_util_max_pct"),
    ]
    return [
        f"{a} {r[a]} > {b} {r[b]}"
        for a, b in ordered
        if r.get(a) is not None and r.get(b) is not None and r[a] > r[b] * (1 + 1e-9)
    ]


def _part_of_the_cpus(record: Record) -> list[str]:
    """The trial's own share is within that of all work, but for the kernel's ticks of 10 ms at either edge."""
    whole, own = (record.result.get(c) for c in ("cpu_util_pct", "cpu_util_trial_pct"))
    warmup = {epoch["epoch"] for epoch in record.epochs if epoch["warmup"]}
    seconds = sum(w.t1 - w.t0 for w in record.windows if w.epoch not in warmup)
    if whole is None or own is None or seconds <= 0:
        return []
    ticks = 100 * 0.02 * len(record.windows) / seconds
    return (
        []
        if own <= whole + 2 + ticks
        else [f"cpu_util_trial_pct {own} > cpu_util_pct {whole} over {seconds:.2f} s"]
    )


def _windows(record: Record) -> list[str]:
    windows, wrong = record.windows, []
    wrong += [f"window {w} is empty" for w in windows if not w.t1 > w.t0]
    wrong += [f"windows {a} and {b} overlap" for a, b in pairwise(windows) if b.t0 < a.t1]
    wrong += [f"epochs {a} and {b} are out of order" for a, b in pairwise(windows) if b.epoch <= a.epoch]
    if [w.epoch for w in windows] != [e["epoch"] for e in record.epochs]:
        wrong.append("windows and epochs differ")
    for window, epoch in zip(windows, record.epochs, strict=False):
        length = window.t1 - window.t0
        # With several ranks the window spans them all, the epoch is the slowest one's.
        if epoch["epoch_time_s"] > length * (1 + 1e-9) + 1e-6:
            wrong.append(f"epoch {epoch['epoch']} of {epoch['epoch_time_s']} s in a window of {length} s")
    if record.span:
        launched, finished = record.span.launched, record.span.finished
        wrong += [
            f"{w} lies outside {record.span}" for w in windows if not launched <= w.t0 < w.t1 <= finished
        ]
    total = sum(w.t1 - w.t0 for w in windows)
    if windows and total > record.phases["wall"]:
        wrong.append(f"windows of {total} s in a trial of {record.phases['wall']} s")
    return wrong


def _group(record: Record) -> list[str]:
    """A job's slowdown is its own, the verdict is that on the gain, and it measured while all jobs trained."""
    if record.group_id is None or record.status != "ok" or "released" not in record.together:
        return []
    r, told, wrong = record.result, record.together, []
    if r.get("slowdown") != pytest.approx(r["epoch_time_s"] / r["solo_epoch_time_s"]):
        wrong.append(
            f"slowdown {r.get('slowdown')} of {r['epoch_time_s']} s against {r['solo_epoch_time_s']} s"
        )
    gain, ends, said = r.get("overlap_gain"), told.get("gain_range"), r.get("sharing")
    if gain is not None and said not in _words(gain, ends, told.get("undecidable")):
        wrong.append(f"{said} at a gain of {gain}")
    counted = {epoch["epoch"] for epoch in record.epochs if not epoch["warmup"]}
    for window in record.windows:
        # That of a rate may end after the word to stop (`_apart`): till all have heard it they measure on.
        end = window.t0 if r.get("epoch_time_source") == "steady" else window.t1
        inside = told["released"] <= window.t0 < window.t1 and end <= told["stopped"]
        if inside != (window.epoch in counted):
            wrong.append(
                f"{window} and the span in which all trained, {told['released']} to {told['stopped']}"
            )
    return wrong


def _apart(jobs: Sequence[Record]) -> list[str]:
    """Jobs of a group measured their rates in one span: each in whole blocks of steps, so that its window begins less
    than a block after the first one does, and ends less than a block before the last. A single step may take longer
    than their mean, so two blocks are let through."""
    windows = []
    for job in jobs:
        (epoch,) = (epoch for epoch in job.epochs if not epoch["warmup"])
        (window,) = (window for window in job.windows if window.epoch == epoch["epoch"])
        asked, workers = job.trial, job.resolved.get("workers") or 0
        block, _ = count_block_steps(workers, asked.get("sync_every"), breakdown=bool(asked.get("breakdown")))
        windows.append((window, 2 * block * epoch["epoch_time_s"] / epoch["steps"]))
    begin, end = min(window.t0 for window, _ in windows), max(window.t1 for window, _ in windows)
    return [
        f"{window} lies {window.t0 - begin:.3f} and {end - window.t1:.3f} s inside the span of its group"
        for window, most in windows
        if max(window.t0 - begin, end - window.t1) > most
    ]


def steady_groups() -> list[list[Record]]:
    """The jobs of each stored group whose rates were measured together."""
    groups: dict[tuple[Path, str, int], list[Record]] = {}
    for folder, record in measured():
        is_steady = record.result.get("epoch_time_source") == "steady"
        if record.group_id is not None and record.status == "ok" and is_steady:
            groups.setdefault((folder, record.group_id, record.attempt), []).append(record)
    return list(groups.values())


OLDER = {"none": "merely concurrent", "some": "partly parallel", "full": "parallel"}
"""What versions before 0.2 called an overlap."""


def _words(gain: float, ends: list[float] | None, why_not: str | None) -> list[str | None]:
    """What a record may say of a gain: its overlap, or, of earlier versions, their word for it or for its range."""
    overlap, older = classify_overlap(gain), OLDER[classify_overlap(gain)]
    if why_not:
        return [overlap, older, None]
    if ends is None:
        return [overlap, older, f"perhaps {older}"]
    low, high = (OLDER[classify_overlap(end)] for end in ends)
    order = list(OLDER.values())
    assert order.index(low) <= order.index(older) <= order.index(high)
    return [overlap, older, low if low == high else f"between {low} and {high}"]


def _reasons(record: Record, younger: Collection[str]) -> list[str]:
    """A value or a reason, never both, and neither only of columns that are younger than the record."""
    wrong = []
    for column in (c.name for c in MEASURED if c.name != "doubts"):
        if column in younger:
            continue
        if column in OF_GROUPS and record.group_id is None and column not in record.missing:
            continue  # stored before there were groups, or taken from a log
        has_value, has_reason = record.result.get(column) is not None, bool(record.missing.get(column))
        if has_value == has_reason:
            wrong.append(f"{column}: {'both' if has_value else 'neither'} value and reason")
    return wrong


# ---------------------------------------------------------------- of what is stored


KNOWN_FAULTS = {
    ("h200-copies-rounds-2026", "jce67f09a6af7", 2): [
        "cpu_util_pct 12.73955370661954 > cpu_util_max_pct 12.738178350546288"
    ],
    ("h200x2-network-size-2026", "t87df6c69c25d", 2): [
        "gpu_mem_util_pct 0.0010314418382047462 > gpu_mem_util_max_pct 0.0"
    ],
    ("h200x2-network-size-2026", "t8f1da8d1dd95", 3): [
        "gpu_mem_util_pct 0.004796653715032825 > gpu_mem_util_max_pct 0.0"
    ],
}
"""What is wrong in records that were stored before it was mended. Of CPUs the mean was reckoned to an epoch, the peak
not; of GPUs the mean held the readings of a window's first 0.2 s, the peak not."""


@pytest.mark.parametrize("folder", folders())
def test_every_stored_record_holds_together(folder: Path) -> None:
    found = {
        (folder.name, record.trial_id, record.attempt): faults
        for record in Results(folder).read_records()
        if record.source == "measured" and (faults := broken(record, younger_than(folder)))
    }
    assert found == {key: faults for key, faults in KNOWN_FAULTS.items() if key[0] == folder.name}


@pytest.mark.parametrize("name", committed.DIFFERENT)
def test_the_csv_says_what_the_records_say(name: str) -> None:
    agree(committed.folder(name))


def test_jobs_of_a_stored_group_measured_their_rates_at_the_same_time() -> None:
    groups = steady_groups()
    assert [_apart(jobs) for jobs in groups] == [[]] * len(groups)


ANEW = ("sharing", "full_together", "epoch_time_iqr_s", "doubts", "cpu_speed_pct")


def agree(folder: Path) -> None:
    """trials.csv against the records that count, of each round. Older files may lack columns that came later."""
    lines = list(csv.DictReader((folder / "trials.csv").open(encoding="utf-8", newline="")))
    results = Results(folder)
    records = results.read_records()
    # Records of earlier versions hold other words on groups, a spread of two epochs, and fewer doubts, which are worked
    # out anew by whoever reads them.
    text = make_trial_sheet([analyze(results, records)]).format_csv()
    read = {_run(one): one for one in csv.DictReader(io.StringIO(text))}
    by_run = {
        (record.trial_id, record.round or 1): record for record in select_counting_records(records).values()
    }
    ran = {_run(line) for line in lines if line["status"] not in ("skipped", "missing")}
    taken_along = {run for run, record in by_run.items() if record.status == "skipped"}
    assert ran == set(by_run) - taken_along
    assert taken_along <= {_run(line) for line in lines}
    for line in lines:
        if _run(line) not in by_run:
            continue
        stored = make_row(by_run[_run(line)])
        for column in BY_NAME:
            value = getattr(stored, column)
            if column in line:
                said = (
                    read[_run(line)][column] if column in ANEW else format_csv_cell(value).replace("\r", " ")
                )
                is_older = column == "sharing" and line[column] not in ("", *OLDER)  # a word of before 0.2
                same = (
                    line[column] == said
                    or is_older
                    or (line[column] and isinstance(value, float) and float(line[column]) == float(said))
                )
                assert same, f"{line['trial_id']}: {column} reads {line[column]}, not {said}"


def _run(line: Mapping[str, str]) -> tuple[str, int]:
    """A line's trial and round."""
    return line["trial_id"], int(line.get("round") or 1)


THREE_DECIMALS = re.compile(r"^-?\d+\.\d{3}(e[+-]\d+)?$")
VERSIONS = {"driver", "cuda", "torch", "gpubench"}
"""Text, whatever it looks like."""


def readable_with_commas(folder: Path, *patterns: str) -> None:
    """No figure of these CSVs has exactly three decimals."""
    for path in (found for pattern in patterns for found in folder.glob(pattern)):
        with path.open(encoding="utf-8", newline="") as file:
            for line in csv.DictReader(file):
                wrong = [f"{c} {line[c]}" for c in line.keys() - VERSIONS if THREE_DECIMALS.search(line[c])]
                assert not wrong, f"{path}: {', '.join(wrong)}"


# ---------------------------------------------------------------- the rules themselves


def test_a_broken_record_is_seen() -> None:
    """Each rule can fail: a record with a fault for each of them."""
    folder, sound = one_of(lambda r: r.status == "ok" and r.result.get("top1_pct") and r.group_id is None)
    result, windows = sound.result, sound.windows
    faults: list[dict[str, Any]] = [
        {"result": result | {"images_per_s": result["images_per_s"] * 1.00001}},
        {"result": result | {"gpu_mem_allocated_mib": result["gpu_mem_reserved_mib"] + 1}},
        {"result": result | {"gpu_mem_reserved_mib": result["gpu_mem_mib"] + 1}},
        {"result": result | {"cpu_util_pct": 100.5}},
        {"result": result | {"cpu_util_pct": result["cpu_util_trial_pct"] - 10}},
        {"result": result | {"step_time_ms_p50": result["step_time_ms_p95"] * 2}},
        {"result": result | {"power_w": 0.0}},
        {"result": {k: v for k, v in result.items() if k != "top1_pct"}},
        {"missing": sound.missing | {"top1_pct": "lost"}},
        {"windows": [structs.replace(windows[0], t1=windows[0].t0), *windows[1:]]},
        {"windows": windows[::-1]},
        {"windows": windows[:-1]},
        {"windows": [structs.replace(windows[0], t1=windows[1].t0 + 0.1), *windows[1:]]},
        {"span": TrialSpan(launched=windows[0].t0 + 0.01, finished=windows[-1].t1 + 1)},
        {"span": TrialSpan(launched=windows[0].t0 - 1, finished=windows[-1].t1 - 0.01)},
        {"phases": {"wall": 0.01}},
    ]
    assert broken(sound, younger_than(folder)) == []
    for fault in faults:
        assert broken(structs.replace(sound, **fault), younger_than(folder)), fault


def test_a_broken_group_is_seen() -> None:
    folder, job = one_of(lambda r: r.result.get("sharing") == "merely concurrent" and r.together)
    result, together, first = job.result, job.together, job.windows[-1]
    faults: list[dict[str, Any]] = [
        {"result": result | {"slowdown": 1.01 * result["slowdown"]}},
        {"result": result | {"sharing": "parallel"}},
        {"together": together | {"released": first.t0 + 0.1}},
        {"together": together | {"stopped": first.t1 - 0.1}},
        {"together": together | {"released": 0.0}},
    ]
    assert broken(job, younger_than(folder)) == []
    for fault in faults:
        assert broken(structs.replace(job, **fault), younger_than(folder)), fault


# ---------------------------------------------------------------- of a fresh sweep

FRESH = """
name = "fresh"
[fixed]
device = "cpu"
variant = "synthetic"
input_size = 28
num_classes = 4
train_images = 512
workers = 0
[axes]
model = ["lenet", "mlp"]
batch_size = [64]
[run]
rounds = 1
"""


@pytest.mark.slow
@pytest.mark.parametrize(("windows", "asked"), [
    (2, {"ranks": "2", "window": "0.2"}), (3, {"ranks": "1", "epochs": "3"}),
])  # fmt: skip
def test_a_fresh_sweep_holds_together(
    server: ForkServer, tmp_path: Path, windows: int, asked: dict[str, str]
) -> None:
    """Real processes: single, and two ranks of ddp; a stream, and whole epochs."""
    experiment = apply_options(parse_experiment(FRESH, "fresh"), ExperimentOptions(fields=asked))
    plan = expand_experiment(experiment, device="cpu", sources=DiskSources(), order="given")
    work = sweep_of(plan, tmp_path / "results", make_machine(None))
    work.load()
    work.runner.results.create_folder()
    store_plan(work)
    run_with(server, work, QuietView())
    records = Results(tmp_path / "results").read_records()
    assert [r.status for r in records] == ["ok"] * 2
    for record in records:
        assert broken(record) == []
        # A fresh record says when the trial began and ended.
        assert record.span
        assert len(record.windows) == windows
        assert record.result["cpu_probe_ms"]
        assert record.span.finished - record.span.launched == pytest.approx(record.phases["wall"], abs=0.01)
    agree(tmp_path / "results")
    readable_with_commas(tmp_path / "results", "*.csv", "samples/*/*.csv")
