"""Stored records read back: what is damaged is refused with a reason, at once, whatever it is."""

from __future__ import annotations

import json
import random
import re
import time
from dataclasses import fields
from pathlib import Path
from typing import Any

import committed
import fakes
import pytest
from damaged import RECORDS, changed
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from whole_records import EPOCHS, FULL, GROUP, JOBS, TEXT

from gpubench.basics.finite import replace_non_finite
from gpubench.basics.regular_file import LARGEST
from gpubench.datasets.facts import DataFacts
from gpubench.plan.groups import MOST_JOBS
from gpubench.results.stored_record import DamagedRecordError, read_attempt
from gpubench.schema.codes import decode_record, encode_record
from gpubench.schema.columns import COLUMNS, EPOCH_COLUMNS
from gpubench.schema.trial_fields import FIELDS

PROGRAMMERS = re.compile(
    r"Input|should be|valid (string|integer|number|dict|list)|Field required|Value error|permitted"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t0123456789a-1.json"


def why(path: Path) -> str:
    with pytest.raises(DamagedRecordError) as caught:
        read_attempt(path)
    return str(caught.value)


def test_what_is_whole_is_read(path: Path) -> None:
    path.write_text(TEXT)
    assert read_attempt(path) == [FULL]
    group = path.with_name("g0123456789a-1.json")
    group.write_text(GROUP)
    assert read_attempt(group) == JOBS


@pytest.mark.parametrize("kind", RECORDS)
def test_what_is_damaged_is_refused_at_once_in_one_line(path: Path, kind: str) -> None:
    RECORDS[kind](path, TEXT)
    began = time.process_time()
    said = why(path)
    assert time.process_time() - began < 2
    assert "\n" not in said
    assert len(said) < 300
    assert not PROGRAMMERS.search(said), "the reader's own words"


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        ("result.epoch_time_s", '"1.5"', "is damaged: result.epoch_time_s must be a number, not '1.5'"),
        ("result.epoch_time_s", "NaN", "is not JSON (half written?)"),
        ("result.power_w", "null, \"power_w\": []", "result.power_w must be a number, not a list"),
        ("environment.gpu_count", "1000000000",
         "environment.gpu_count must be at most 65,536, not 1000000000"),
        ("trial.batch_size", "0", "is damaged: trial.batch_size must be at least 1, not 0"),
        ("trial.batch_size", "1" + "0" * 400, "batch_size must be at most 1,000,000,000, not 1000"),
        ("trial.gpu_ids", "[0, -1]", "trial.gpu_ids.1 must be at least 0, not -1"),
        ("trial.precision", '"fp7"', "trial.precision must be bf16, fp16, fp32 or tf32, not 'fp7'"),
        ("provenance", '{"power_w": 3}', "provenance.* must be a text in quotes or a table"),
        ("provenance", '{"power_w": {"samples": "x"}}', "provenance.*.samples must be a whole number"),
        ("provenance", '{"util": {"columns": [3]}}', "provenance.*.columns.0 must be a text in quotes"),
        ("epochs", "[3]", "epochs.0 must be a table, not 3"),
        ("together", '{"gain_range": [1]}', "together.gain_range must have 2 parts"),
        ("result", "null", "result must be a table, not null"),
        ("surprise", "1", "unknown key 'surprise'"),
        ("doubts", json.dumps({f"w{n}": "x" for n in range(1_001)}), "doubts must have at most 1,000 parts"),
        ("doubts", json.dumps({f"w{n}": "x" for n in range(100_000)}), "doubts must have at most 1,000 parts"),
        ("attempt", "2", "says that it is t0123456789a-2.json"),
        ("trial_id", '"t00000000ffff"', "says that it is t00000000ffff-1.json"),
        ("schema_version", "7", "was written by a newer gpubench (schema_version 7); update gpubench to read it"),
    ],
)  # fmt: skip
def test_the_reason_names_the_place(path: Path, place: str, value: str, says: str) -> None:
    path.write_text(changed(TEXT, place, value))
    assert says in why(path)


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("half", "is not JSON (half written?)"),
        ("fifo", "can't be read (no regular file)"),
        ("link-to-a-device", "can't be read (a link, which is not followed)"),
        ("folder", "can't be read (Is a directory)"),
        ("dangling-link", "can't be read (a link, which is not followed)"),
        ("link-to-itself", "can't be read (a link, which is not followed)"),
        ("all-holes", "can't be read (larger than 128 MiB)"),
    ],
)
def test_what_is_no_file_of_text_says_what_it_is(path: Path, kind: str, says: str) -> None:
    RECORDS[kind](path, TEXT)
    assert why(path) == says


def test_the_largest_attempts_that_can_be_asked_for_are_far_from_the_bounds() -> None:
    """1,000 epochs of 8 ranks, with figures as long as they get; 64 jobs of that."""
    draw = random.Random(0)
    numbers = {column.name: 1e6 * draw.random() for column in EPOCH_COLUMNS[2:-1]}
    epoch = EPOCHS[0] | numbers | {"steady_wait_s": draw.random(), "data_wait_s_by_rank": [draw.random()] * 8}
    window = {"epoch": 1000, "t0": 1e6 * draw.random(), "t1": 1e6 * draw.random()}
    job = FULL.to_stored() | {"epochs": [epoch] * 1000, "windows": [window] * 1000}
    size = len(json.dumps(job, indent=1))
    assert 10 * size < LARGEST
    assert 2 * MOST_JOBS * size < LARGEST


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        (
            "missing",
            json.dumps({f"{n:x}": 3 for n in range(30_000)}),
            "is damaged: missing.* must be a text in quotes or a list",
        ),
        ("epochs", json.dumps([3] * 30_000), "is damaged: epochs.0 must be a table, not 3"),
        ("windows", json.dumps([3] * 30_000), "is damaged: windows.0 must be a table, not 3"),
    ],
)
def test_what_is_wrong_everywhere_is_not_gone_through(path: Path, place: str, value: str, says: str) -> None:
    """A kilobyte for each place would take the memory of the machine."""
    path.write_text(changed(TEXT, place, value))
    assert why(path) == says


def test_a_newer_version_is_named_whatever_else_is_new(path: Path) -> None:
    newer = json.loads(TEXT) | {"schema_version": 7, "surprise": 1, "status": "melted", "trial": None}
    path.write_text(json.dumps(newer))
    assert why(path) == "was written by a newer gpubench (schema_version 7); update gpubench to read it"
    group = path.with_name("g0123456789a-1.json")
    group.write_text(json.dumps(json.loads(GROUP) | {"schema_version": 7, "jobs": [newer]}))
    assert why(group) == why(path)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("result.dreams", '{"of": "a later version"}'),
        ("environment.moon", '"full"'),
        ("result.epoch_time_s", "null"),
        ("trial.batch_size", "null"),
        ("environment.torch", "null"),
        ("result.loss", "3e38"),
        ("result.overlap_gain", "-0.5"),
        ("provenance.power_w", '"published log"'),
    ],
)
def test_what_another_version_may_say_is_read(path: Path, place: str, value: str) -> None:
    path.write_text(changed(TEXT, place, value))
    (found,) = read_attempt(path)
    held: Any = found.to_stored()
    for key in place.split("."):
        held = held[key]
    assert held == json.loads(value), "as it was written"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"jobs": []}, "jobs must have at least 1 parts"),
        ({"group_id": "g0123456789b"}, "is damaged: its jobs are not all of this attempt at this group"),
        ({"attempt": 2}, "its jobs are not all of this attempt at this group"),
        ({"jobs": [json.loads(TEXT)]}, "its jobs are not all of this attempt at this group"),
        ({"jobs": [JOBS[0].to_stored() | {"group": None}]}, "a job has no name"),
        ({"jobs": [JOBS[0].to_stored() | {"job": None}]}, "a job has no name"),
        ({"jobs": [JOBS[0].to_stored() | {"environment": {"cpu_count": "8"}}]},
         "jobs.0.environment.cpu_count must be a whole number, not '8'"),
    ],
)  # fmt: skip
def test_a_group_whose_jobs_are_not_of_one_attempt_is_refused(
    path: Path, change: dict[str, Any], says: str
) -> None:
    group = path.with_name("g0123456789a-1.json")
    group.write_text(json.dumps(json.loads(GROUP) | change))
    assert says in why(group)


def test_every_column_has_a_kind_by_its_own_definition(path: Path) -> None:
    """What no column holds, in place of each: a new column is checked without another word. So of facts of images."""
    for column in COLUMNS:
        path.write_text(changed(TEXT, f"result.{column.name}", "[[]]"))
        assert f"result.{column.name}" in why(path)
    for column in EPOCH_COLUMNS[2:-1]:
        path.write_text(json.dumps(json.loads(TEXT) | {"epochs": [EPOCHS[0] | {column.name: {"a": 1}}]}))
        assert f"epochs.0.{column.name}" in why(path)
    for fact in fields(DataFacts):
        path.write_text(changed(TEXT, f"data.{fact.name}", "[[]]"))
        assert f"data.{fact.name}" in why(path)


CODED = 6
"""The form of records from which on they hold codes in place of sentences."""


def test_what_every_version_committed_is_written_again_as_it_was() -> None:
    """What is read is the record: nothing of it is lost, moved, or made another number."""
    files = [path for folder in committed.folders() for path in (folder / "records").glob("*/*.json")]
    if not files:
        pytest.skip("no stored results: they were deleted from this clone")
    for path in files:
        text = path.read_text(encoding="utf-8")
        whole = json.loads(text)
        jobs = [
            replace_non_finite({name: value for name, value in job.to_stored().items() if name in stored})
            for job, stored in zip(read_attempt(path), whole.get("jobs", [whole]), strict=True)
        ]
        told = whole | {"jobs": jobs} if path.name.startswith("g") else jobs[0]
        if whole["schema_version"] >= CODED:
            told = encode_record(told)
        assert json.dumps(told, indent=1, ensure_ascii=False) + "\n" == text, path


@pytest.mark.parametrize("number", ["1" + "0" * 400, "1e300"])
def test_every_number_of_a_trial_has_an_upper_bound(path: Path, number: str) -> None:
    """No figure made of it overflows: no whole number, and no other."""
    for name in FIELDS:
        if name not in ("device", "data", "model"):
            path.write_text(changed(TEXT, f"trial.{name}", number))
            assert f"trial.{name} must be " in why(path)


# ---- anything anywhere ----

PLAIN = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=10**15, max_value=10**400)
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["1.5", "NaN", "0+1", "2026-11-20 09:53:00", "ok", "fp32"])
)
ANYTHING = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


def places(held: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value in a record."""
    inside = held.items() if isinstance(held, dict) else enumerate(held) if isinstance(held, list) else ()
    return [way] * bool(way) + [one for key, value in inside for one in places(value, (*way, key))]


@pytest.mark.slow
@given(data=st.data(), text=st.sampled_from([TEXT, GROUP]))
@settings(max_examples=100, deadline=1000, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_anything_at_any_place_is_read_or_refused(tmp_path: Path, data: st.DataObject, text: str) -> None:
    """Never another exception, never without end, and what is read is told as it was written."""
    stored = json.loads(text)
    *way, last = data.draw(st.sampled_from(places(stored)))
    held = stored
    for key in way:
        held = held[key]
    held[last] = data.draw(ANYTHING)
    path = tmp_path / ("g0123456789a-1.json" if text is GROUP else "t0123456789a-1.json")
    path.write_text(json.dumps(stored))
    found, said = None, ""
    try:
        found = read_attempt(path)
    except DamagedRecordError as damage:
        said = str(damage)
    assert "\n" not in said
    if found is not None:
        jobs = stored["jobs"] if text is GROUP else [stored]
        # By way of text NaN, which no reckoning looks at where it may stand, is equal to itself; 0 is equal to 0.0.
        told = [
            [json.loads(json.dumps(job.to_stored()), parse_constant=str) for job in some]
            for some in (found, [fakes.record(**decode_record(one)) for one in jobs])
        ]
        assert told[0] == told[1]


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ("epochs", '[{"epoch": 0, "warmup": true, "epoch_time_s": -1.0}]'),
        ("epochs", '[{"epoch": 0, "warmup": true}]'),
        ("epochs", '[{"epoch": 0, "warmup": true, "epoch_time_s": 1.5}'),
        ("epochs", '[{"epoch": 0, "warmup": true, "epoch_time_s": 1.5}, 3]'),
        ("epochs", '[{"epoch": 0, "warmup": true, "epoch_time_s": NaN}]'),
        ("epochs", '[], "epochs": [{"epoch": 0}]'),
        ("epochs", "{}"),
        ("epochs", "null"),
        ("windows", '[{"epoch": 0, "t0": 1.5}]'),
        ("windows", '[{"epoch": 0, "t0": "1.5", "t1": 2}]'),
        ("windows", '[{"epoch": 0, "t0": 1.5, "t1": Infinity}]'),
        ("windows", '[{"epoch": 0, "t0": 1.5, "t1": 2}'),
        ("windows", '[], "windows": [3]'),
        ("windows", "null"),
    ],
)
def test_what_is_broken_in_lines_is_refused(path: Path, part: str, text: str) -> None:
    path.write_text(json.dumps(FULL.to_stored() | {part: 12345}).replace("12345", text))
    reason = why(path)
    assert part in reason or "JSON" in reason
