"""The thirteen rules over frames: kept, broken and not decidable, a case a fact."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import committed
import made_up_rows
import pytest
from msgspec import structs
from whole_rows import changed, row_with

from gpubench.analyze import audit
from gpubench.analyze.audit import Observation, RuleFinding
from gpubench.analyze.derive import build_table_summary
from gpubench.analyze.folder import Folder, Table, read_folder
from gpubench.analyze.frames import build_runs
from gpubench.schema.row import Row

IMAGES = {"files": "full", "train_images": 10240, "val_images": 5000, "num_classes": 10, "size": None}
SMALL = {
    "data": "procedural:512x96",
    "images": IMAGES | {"size": 96, "train_images": 512},
    "images_per_epoch": 512,
}
"""The images that a sweep on a CPU makes."""
RATE = {"epoch_time_source": "steady", "input_size": 96}
COUNTER = itertools.count()


def row(batch: int = 64, gpus: int = 1, **values: Any) -> Row:
    base = {
        "trial_id": f"t{next(COUNTER)}", "config_id": f"c{batch}-{gpus}-{sorted(values.items(), key=str)}",
        "status": "ok", "model": "resnet34", "variant": "crop-resize", "batch_size": batch, "gpus": gpus,
        "strategy": "ddp" if gpus > 1 else "single", "device": "cuda", "precision": "fp32", "input_size": 224,
        "num_classes": 10, "train_images": 10240, "epochs": 3, "gpu_name": "NVIDIA H200", "torch": "2.11.0",
        "epoch_time_s": 10.0, "epoch_time_source": "measured", "images_per_epoch": 10240, "images_per_s": 1024.0,
        "top1_pct": 60.0, "source": "measured", "images": IMAGES, "missing": {}, "experiment": "sizes", "data": "x",
    }  # fmt: skip
    return row_with(**(base | values))


def seeds(batch: int, *top1: float) -> list[Row]:
    """A run of one configuration for each top-1."""
    return [row(batch, config_id=f"seeds-{batch}", repeat=n, seed=n, top1_pct=t) for n, t in enumerate(top1)]


def three_seeds(*args: int, **values: Any) -> list[Row]:
    return [row(*args, config_id=f"three-{args}", repeat=n, seed=n, **values) for n in range(3)]


def timed(gpus: int, cost_pct: float | None) -> Row:
    """A row of weak scaling whose steps were timed in parts."""
    return row(64 * gpus, gpus, breakdown=True, breakdown_cost_pct=cost_pct)


def group(*alone: Row, **of_jobs: Any) -> list[Row]:
    """Rows of trials alone, and of the same trials as jobs of one group."""
    jobs = [
        changed(one, trial_id=f"j-{one.trial_id}", config_id=f"j-{one.config_id}", group="jobs", group_id="g1",
                job=f"{place} of {len(alone)}", solo_id=one.trial_id, top1_pct=None, epoch_time_s=20.0, **of_jobs)
        for place, one in enumerate(alone, start=1)
    ]  # fmt: skip
    return [*alone, *jobs]


def make_folder(rows: Sequence[Row], axes: Sequence[Sequence[str]] = ()) -> Folder:
    """A folder with one table, of one plan."""
    runs = build_runs(rows).assign(superseded=False, elsewhere=False, further_rounds=0)
    summary, members, arrangement = build_table_summary(runs, axes)
    table = Table(
        name="sizes", experiment="sizes", kind=runs["kind"].iloc[0], question="", rows=tuple(summary.index),
        runs=tuple(runs.index), **vars(arrangement),
    )  # fmt: skip
    plan = SimpleNamespace(plan=SimpleNamespace(experiment=SimpleNamespace(name="sizes")), parts=())
    return Folder(
        name="made up", path=Path("nowhere"), runs=runs, summary=summary, members=members, tables=(table,),
        problems=(), records=(), plans=(plan,), attempts=(),  # type: ignore[arg-type]
    )  # fmt: skip


@pytest.fixture(autouse=True)
def no_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is lacking of further rounds."""
    monkeypatch.setattr(audit, "make_status", lambda *_: SimpleNamespace(rounds=[]))


def judge_folder(number: int, folder: Folder) -> RuleFinding:
    """What this rule finds; all others would take as long as the folder itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audit, "RULES", audit.RULES[number - 1 : number])
        return audit.audit_folder(folder)[0]


def judge(number: int, rows: Sequence[Row], axes: Sequence[Sequence[str]] = ()) -> RuleFinding:
    return judge_folder(number, make_folder(rows, axes))


def figures(finding: RuleFinding, code: str) -> dict[str, Any]:
    (observation,) = (each for each in finding.observations if each.code == code)
    return dict(observation.figures)


def describe(finding: RuleFinding) -> set[str]:
    """The verdict, and each code, of rows with their share: `few-steps 1/2`."""
    shares = [(seen.code, seen.figures.get("rows")) for seen in finding.observations]
    codes = {f"{code} {rows['count']}/{rows['whole']}" if rows else code for code, rows in shares}
    return {finding.verdict, *codes}


K, B, N = "kept", "broken", "not decidable"
TARGET = {"until_top1": 50.0}
REACHED = TARGET | {"time_to_top1_s": 20.0}
RESIDENT = {"variant": "synthetic", "images": {"files": "none"}}
CASES: list[tuple[list[Row], dict[int, set[str]]]] = [
    ([row()], {
        1: {K, "nothing-scaled"}, 5: {K, "whole-epochs 1/1"}, 7: {N, "epoch-times-only"}, 8: {K, "one-run 1/1"},
        11: {K, "devices-compared"},
    }),
    ([row(), row(128)], {2: {K, "top1 2/2"}, 4: {K, "like-hardware"}, 10: {K, "ended-as-fixed 2/2"}}),
    ([row(group="g", top1_pct=None)], {1: {N, "none-alone"}, 2: {N, "none-alone"}}),
    ([row(status="oom")], {2: {N, "nothing-ok"}, 13: {N, "nothing-ok"}}),
    # Accuracy while scaling.
    ([*three_seeds(64), *three_seeds(128, top1_pct=59.5)], {1: {K, "top1-holds 1/1"}, 13: {K, "intervals 2/2"}}),
    ([*three_seeds(64), *three_seeds(256, top1_pct=50.0)], {1: {B, "top1-falls 1/1"}}),
    ([*seeds(64, 60, 60.1), *seeds(256, 40, 40.1, 40.2)], {1: {N, "few-seeds 1/1"}}),
    ([*seeds(64, 60, 62, 64), *seeds(128, 58, 62, 63)], {1: {N, "seeds-differ 1/1"}}),
    ([*seeds(64, 60.0, 60.1, 60.2), *seeds(128, 69.9, 70.0, 70.3)], {1: {K, "top1-holds 1/1"}}),
    ([*three_seeds(64, top1_pct=10.1), *three_seeds(128, top1_pct=10.0)], {1: {N, "unlearned"}}),
    ([*seeds(64, 60.0, 60.3, 60.6), *seeds(128, 58.6, 58.9, 59.2)], {1: {B, "top1-falls 1/1"}}),
    ([*seeds(64, 60.0, 60.01, 60.02), *seeds(128, 59.5, 59.51, 59.52)], {1: {K, "top1-holds 1/1"}}),
    ([row(top1_pct=None), row(128, top1_pct=None)], {1: {N, "no-top1-to-compare 1/1"}}),
    ([row(64, lr=0.1), row(256, lr=0.2)], {1: {N, "scaled-with-others"}}),
    # Accuracy and time.
    ([row(), row(128, top1_pct=None, missing={"top1_pct": "why"})],
     {2: {B, "no-top1 1/2"}, 8: {N, "time-without-top1 1/2"}}),
    ([row(epoch_time_source="steady", top1_pct=None)], {2: {N, "rates-alone 1/1"}}),
    ([row(64, **REACHED), row(256, **REACHED, top1_pct=55.0)],
     {1: {K, "top1-holds 1/1"}, 7: {K, "times-to-accuracy 2/2"}}),
    ([row(**REACHED), row(128, **TARGET)], {7: {N, "some-reached 1/2"}}),
    ([row(**REACHED), row(128)], {7: {N, "some-reached 1/2"}}),
    ([row(**TARGET)], {7: {N, "none-reached"}}),
    ([row(epoch_time_s=None)], {7: {B, "rate-without-time 1/1"}, 8: {N, "untimed"}, 13: {N, "untimed"}}),
    ([row(top1_pct=None), row(epoch_time_s=None)], {8: {B, "apart"}}),
    # Hardware.
    ([row(), row(device="cpu", gpus=0, cpu_name="Xeon")], {4: {B, "unlike-hardware"}}),
    ([row(gpu_name=None)], {4: {N, "unknown-hardware 1/1"}}),
    # The work that was timed.
    ([row(), row(128, epoch_time_source="extrapolated"), row(train_images=64)],
     {5: {B, "extrapolated 1/3", "subset 1/3"}}),
    ([row(images_per_epoch=None)], {5: {N, "unknown-images 1/1"}, 9: {N, "unknown-steps 1/1"}}),
    ([row(), row(**RESIDENT)], {6: {K, "input-included 1/2"}}),
    ([row(), row(128, **RESIDENT)], {6: {B, "resident-alone 1/2"}}),
    ([row(images={}), row(doubt_texts={"inferred": "the log states no variant"})],
     {6: {N, "unknown-feeding 2/2"}}),
    # Sizes: of each pair of rows the first breaks the rule by as little as can be.
    ([row(images=IMAGES | {"size": 112}), row(images=IMAGES | {"size": 113})], {9: {B, "blown-up 1/2"}}),
    ([row(513), row(512)], {9: {B, "few-steps 1/2"}}),
    ([row(input_size=257), row(input_size=256)], {9: {N, "unknown-size 1/2"}}),
    ([row(**SMALL)], {9: {B, "few-steps 1/1"}}),  # an epoch of a training that was timed as a whole
    ([row(8, **SMALL, input_size=288), row(8, **SMALL, input_size=256)], {9: {B, "blown-up 1/2"}}),
    ([row(64, **SMALL, **RATE)], {9: {K, "sensible-sizes"}}),  # over the tool's own images no epoch is short
    ([row(64, **SMALL | {"data": "mine"}, **RATE)], {9: {B, "few-steps 1/1"}}),
    # Ends of training.
    ([row(**REACHED, epochs=50), row(epochs=3)], {10: {K, "ended-as-fixed 2/2"}}),
    ([row(epochs=3), row(128, epochs=9)], {10: {B, "unlike-lengths"}}),
    ([row(epochs=None)], {10: {N, "unknown-length 1/1"}}),
    # Devices, and what was left out.
    (group(row(32, epochs=3), row(100, 2, epochs=5)),
     {10: {K, "ended-as-fixed 4/4"}, 11: {K, "devices-compared"}}),
    ([row(64), row(64, 4), row(256, 4), row(2048, status="oom")],
     {11: {K, "devices-compared", "strong-or-weak"}, 12: {K, "all-shown"}}),
    ([row(64), row(100, 4)], {11: {B, "neither-strong-nor-weak"}}),
    ([row(64), *(row(128, status=status) for status in audit.BAD_ENDINGS)], {12: {B, "unended"}}),
    ([row(64), row(64, 4, strategy="dp")], {12: {B, "dp-alone"}}),
    ([row(64), row(64, 4, strategy="dp"), row(64, 4)], {12: {K, "all-shown"}}),
    ([row(64), row(64, 4, strategy="dp", doubt_texts={"inferred": "strategy"})], {12: {N, "dp-inferred"}}),
    ([row(64, 4), row(128, 4)], {12: {N, "no-single 2/2"}}),
    ([row(64, gpu_name="Tesla K80"), row(64, 2), row(64, 4)],
     {4: {B, "unlike-hardware"}, 12: {B, "no-single 2/2"}}),
    ([row(64, input_size=32), row(64, 2), row(64, 4)], {12: {B, "no-single 2/2"}}),
    ([row(64, workers=4, lr=0.1, asked={"workers": None}), row(128, 2, workers=8, lr=0.2, asked={"workers": None})],
     {12: {K, "all-shown"}}),
    ([row(64, workers=4, asked={"workers": 4}), row(128, 2, workers=8, asked={"workers": 8})],
     {12: {B, "no-single 1/1"}}),
    (group(row(32, 4), row(64, 4)), {12: {K, "all-shown"}}),
    ([row(64), row(128, torch="2.15.0")], {12: {B, "unlike-versions"}}),
    ([row(64, doubts="throttled"), row(64, 4)], {12: {N, "doubts 1/2"}}),
    ([row(64, doubts="breakdown+short-window"), row(128, doubts="short-window")], {12: {K, "all-shown"}}),
    ([row(doubts="stranger")], {12: {K, "all-shown"}}),  # beside no other
    (group(row(), doubts="stranger"), {12: {N, "doubts 1/2"}}),
    ([row(64), row(128, breakdown=True)], {12: {B, "unlike-breakdowns 1/2"}}),
    ([row(32), row(64), row(64, breakdown=True)], {12: {K, "all-shown"}}),
    ([timed(1, 5.0), timed(2, 7.0), timed(4, 3.0)], {12: {K, "all-shown"}}),
    ([timed(1, 5.0), timed(2, 7.1)], {12: {B, "unlike-costs"}}),
    # Uncertainty.
    ([row(64), *three_seeds(128)], {13: {B, "one-process 1/2"}}),
    (three_seeds(64)[:2], {13: {N, "two-processes 1/1"}}),
    ([row(64, source="published-log"), *three_seeds(128)], {13: {N, "unknown-processes 1/2"}}),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "expected"), CASES)
def test_rules_find_this(rows: list[Row], expected: dict[int, set[str]]) -> None:
    folder = make_folder(rows)
    assert {number: describe(judge_folder(number, folder)) for number in expected} == expected


def test_a_fall_is_told_with_its_interval() -> None:
    finding = judge(
        1, [*seeds(64, 60.0, 60.3, 60.6), *seeds(128, 57.6, 57.9, 58.2), *seeds(256, 57.6, 57.9, 58.2)]
    )
    fall = figures(finding, "top1-falls")
    assert describe(finding) == {B, "top1-falls 1/2"}
    assert [fall["fall"], (fall["low"] + fall["high"]) / 2] == pytest.approx([2.4, 2.4])
    assert 0 < fall["low"] < 2.4


def test_of_several_falls_each_must_pass_a_stricter_test() -> None:
    fall = [*seeds(1, 60, 60.4, 60.8), *seeds(2, 58.0, 58.2, 58.4)]
    assert judge(1, fall).verdict == "broken"
    none = [one for n in range(2, 11) for one in seeds(2**n, 58.0, 58.2, 58.4)]
    assert judge(1, [*fall, *none]).verdict == "not decidable"


def test_the_worst_is_named() -> None:
    doubtful = judge(12, [row(64), row(128, doubts="gaps"), row(256, doubts="gaps+stranger")])
    assert describe(doubtful) == {N, "doubts 2/3"}
    assert figures(doubtful, "doubts")["worst"] == "stranger"
    costs = figures(judge(12, [timed(1, 0.04), timed(2, 5.7), timed(4, 5.3)]), "unlike-costs")
    assert costs["points"] == pytest.approx(5.66)


def test_every_bad_ending_is_named() -> None:
    ended = judge(12, [row(64), *(row(128, status=status) for status in audit.BAD_ENDINGS)])
    named = [seen.figures["status"] for seen in ended.observations if seen.code == "unended"]
    assert sorted(named) == sorted(audit.BAD_ENDINGS)


def test_epochs_that_grow_with_the_devices_are_no_fixed_training() -> None:
    rows = [row(64, 1, epochs=3), row(64, 4, epochs=12)]
    assert judge(10, rows, [["gpus", "epochs"]]).verdict == "broken"
    assert judge(10, rows, [["gpus"], ["epochs"]]).verdict == "kept"


def test_sizes_on_an_axis_are_compared_though_jobs_need_them_too() -> None:
    rows = group(row(32), row(100, 2, top1_pct=40.0))
    assert judge(1, rows).verdict == "kept"
    assert judge(1, rows, [["batch_size"]]).verdict == "not decidable"
    assert judge(11, rows, [["gpus"]]).verdict == "broken"


def test_a_row_that_stands_in_two_tables_is_counted_once() -> None:
    folder = make_folder([row(64, doubts="spread"), row(128)])
    (table,) = folder.tables
    twice = Folder(
        **{name: getattr(folder, name) for name in Folder.__dataclass_fields__} | {"tables": (table, table)}
    )
    audited = audit.make_audit_data(twice)
    assert len(audited.rows) == 2
    (told,) = [each for each in audit.check_no_trials_left_out(audited) if each.code == "doubts"]
    assert told.figures["rows"]["whole"] == 2


# ---- attempts ----


def attempt(number: int, batch: int = 16) -> Any:
    return structs.replace(made_up_rows.alone(batch), attempt=number)


def observe_attempts(path: Path, numbers: Sequence[int], logs: Sequence[int] = ()) -> dict[str, Observation]:
    """What rule 3 says of stored records with these numbers, and logs without a record."""
    made_up_rows.folder(path, *([attempt(number)] for number in numbers))
    trial = attempt(1).trial_id
    for number in logs:
        log = path / "logs" / trial[1:3] / f"{trial}-{number}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.touch()
    finding = judge_folder(3, read_folder(path, lambda _: None))
    return {observation.code: observation for observation in finding.observations}


@pytest.mark.parametrize(
    ("numbers", "logs", "code"),
    [
        ([1], [], "runs-kept"),
        ([1, 2], [], "runs-kept"),
        ([1, 3], [], "attempts-gone"),
        ([2], [], "attempts-gone"),
        ([1], [2], "no-record"),
        ([1], [999], "no-record"),  # somebody's own file proves no record taken away
        ([1, 1000], [999], "no-record"),  # the record after it took its number from it
        ([1, 1000], [], "attempts-gone"),
    ],
)
def test_numbers_of_attempts_tell_what_was_taken_away(
    tmp_path: Path, numbers: list[int], logs: list[int], code: str
) -> None:
    observed = observe_attempts(tmp_path, numbers, logs)
    assert set(observed) == {code}
    missing = {"attempts-gone": max(numbers) - 1, "no-record": max(logs, default=0)}.get(code)
    if missing is not None:
        assert observed[code].figures["attempts"] == (f"{attempt(1).trial_id}-{missing}",)


def test_a_damaged_record_leaves_it_open_and_is_no_gap(tmp_path: Path) -> None:
    made_up_rows.folder(tmp_path, [attempt(1)], [attempt(2)])
    (first,) = tmp_path.glob("records/*/*-1.json")
    first.write_text("{")
    for trace in tmp_path.glob("samples/*/*"):
        trace.unlink()
    finding = judge_folder(3, read_folder(tmp_path, lambda _: None))
    assert (finding.verdict, [each.code for each in finding.observations]) == ("not decidable", ["no-record"])


@pytest.mark.slow
def test_verdicts_on_committed_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()

    def judge_all(name: str) -> dict[str, set[int]]:
        findings = audit.audit_folder(read_folder(committed.folder(name), lambda _: None))
        return {verdict: {f.number for f in findings if f.verdict == verdict} for verdict in (K, B, N)}

    log = judge_all("titan-xp-2021")
    assert (log[K], log[B]) == ({4, 11}, {2})
    sizes = judge_all("h200x4-2026")
    assert (sizes[B], sizes[N]) == ({9, 13}, {1, 7, 12})
    scaling = judge_all("h200x4-scaling-2026")
    assert (scaling[B], scaling[N]) == ({2, 6, 12, 13}, {1, 7, 8})
