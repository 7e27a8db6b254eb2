"""Epochs and windows of a record are kept in little room: they read as the file says, and are checked as before."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from whole_records import FULL

from gpubench.results.stored_lines import measured_times
from gpubench.results.stored_record import DamagedError, KnownParts, read
from gpubench.schema.record import Record

NAME = f"{FULL.trial_id}-1.json"
EPOCHS: list[dict[str, Any]] = FULL.stored()["epochs"]
ONE = {"epoch": 0, "warmup": True, "epoch_time_s": 1.5, "steps": 8, "top1_pct": None}


def stored(path: Path, **parts: Any) -> str:
    """The text of a whole record with other parts, as we write it."""
    text = json.dumps(FULL.stored() | parts, indent=1, ensure_ascii=False) + "\n"
    path.write_text(text)
    return text


def read_beside(path: Path) -> Record:
    """As it is read among others of its folder, which may have been alike."""
    known = KnownParts()
    read(path, known)
    (record,) = read(path, known)
    return record


@pytest.mark.parametrize(
    "epochs",
    [
        EPOCHS,
        [ONE],
        [],
        [ONE, ONE | {"epoch": 1, "warmup": False, "epoch_time_s": 2}],  # a whole number of seconds stays one
        [
            ONE,
            {"epoch": 1, "warmup": False, "epoch_time_s": 2.5},
        ],  # the lines of one list may lack others' names
        [ONE | {"data_wait_s_by_rank": [0.5, 1, None]}],
        [ONE | {"of_another_version": {"a": [True, "text", 1e300]}}],
        [ONE | {"of_another_version": 10**30}],
        [ONE | {"of_another_version": -0.0}, ONE | {"of_another_version": -(1 << 63)}],
        [ONE | {"warmup": False}, ONE | {"warmup": True}],
    ],
)
def test_epochs_are_what_the_file_says(tmp_path: Path, epochs: list[dict[str, Any]]) -> None:
    """Each value of its own kind: 2 is not 2.0, false is not 0, and -0.0 is not 0.0."""
    path = tmp_path / NAME
    stored(path, epochs=epochs, windows=[])
    record = read_beside(path)
    assert repr(list(record.epochs)) == repr(epochs)
    assert record.epochs == epochs
    assert [len(record.epochs), *record.epochs[:1]] == [len(epochs), *epochs[:1]]
    assert record.stored()["epochs"] == epochs


def test_windows_are_what_the_file_says(tmp_path: Path) -> None:
    path = tmp_path / NAME
    windows = [{"epoch": 0, "t0": 1.25, "t1": 2}, {"epoch": 1, "t0": 3, "t1": 4.5}]
    stored(path, windows=windows)
    record = read_beside(path)
    assert record.stored()["windows"] == windows
    assert [(one.epoch, one.t0, one.t1) for one in record.windows] == [(0, 1.25, 2), (1, 3, 4.5)]


def test_records_with_the_same_epochs_are_equal_however_they_were_read(tmp_path: Path) -> None:
    path = tmp_path / NAME
    stored(path)
    (alone,) = read(path)
    assert read_beside(path) == alone == FULL


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
def test_what_is_broken_in_them_is_refused_when_the_record_is_read(
    tmp_path: Path, part: str, text: str
) -> None:
    """By the same words as of a record that is read by itself, though nobody has asked for these lines yet."""
    path = tmp_path / NAME
    whole = stored(path, **{part: 12345})
    known = KnownParts()
    path.write_text(whole.replace("12345", text))
    told = []
    for beside in (known, known, None):
        with pytest.raises(DamagedError) as refused:
            read(path, beside)
        told.append(str(refused.value))
    assert len(set(told)) == 1
    assert part in told[0] or "JSON" in told[0]


def test_of_epochs_that_stand_twice_the_last_ones_count(tmp_path: Path) -> None:
    path = tmp_path / NAME
    whole = stored(path, epochs=[ONE])
    path.write_text(whole.replace(' "windows": [', ' "epochs": [],\n "windows": [', 1))
    (alone,) = read(path)
    assert list(read_beside(path).epochs) == list(alone.epochs) == []


LEFT_OUT = ("epochs", "windows", "phases")


def test_parts_that_nobody_asks_for_are_not_kept(tmp_path: Path) -> None:
    """But for the times of the epochs, which rows are made of. Who asks for more is refused, not told of none."""
    path = tmp_path / NAME
    stored(path, epochs=EPOCHS, windows=[{"epoch": 0, "t0": 1, "t1": 2}])
    (whole,) = read(path, KnownParts())
    (record,) = read(path, KnownParts(without=LEFT_OUT))
    assert whole.windows
    assert whole.phases
    assert not record.windows
    assert not record.phases
    assert measured_times(record.epochs) == measured_times(whole.epochs)
    assert measured_times(whole.epochs).epochs_s
    with pytest.raises(LookupError):
        list(record.epochs)
    assert record.result == whole.result


@pytest.mark.parametrize(
    "epochs",
    [
        [],
        [{"epoch": 0, "warmup": True, "epoch_time_s": 9.0, "steady_steps": 3, "steady_step_s": 0.3}],
        [
            {"epoch": 0, "warmup": True, "epoch_time_s": 9.0},
            {"epoch": 1, "warmup": False, "epoch_time_s": 3, "steady_steps": 4, "steady_step_s": 1},
            {"epoch": 2, "warmup": False, "epoch_time_s": 2.5, "steady_steps": 0, "steady_step_s": 0.5},
            {"epoch": 3, "warmup": False, "epoch_time_s": 2.25, "steady_steps": None, "steady_step_s": 0.25},
            {"epoch": 4, "warmup": False, "epoch_time_s": 2.125, "steady_steps": 6, "steady_step_s": None},
            {"epoch": 5, "warmup": False, "epoch_time_s": 2.0, "steady_steps": 6, "of_another_version": [1]},
        ],
        [
            {"epoch": 0, "warmup": False, "epoch_time_s": 2.5, "steady_steps": 6, "steady_step_s": 0.5},
            {"epoch": 1, "warmup": False, "epoch_time_s": 2.25, "steady_steps": 0, "steady_step_s": 0.25},
            {"epoch": 2, "warmup": True, "epoch_time_s": 9.5, "steady_steps": 3, "steady_step_s": 0.75},
        ],
        [{"epoch": 1, "warmup": False, "epoch_time_s": 2}],
        [{"epoch": 1, "warmup": False, "epoch_time_s": 2.0, "steady_steps": 6, "steady_step_s": 0.5}],
        [{"epoch": 1, "warmup": False, "epoch_time_s": 2.5, "steady_steps": 6, "steady_step_s": 1}],
    ],
)
def test_times_are_the_same_however_epochs_were_read(tmp_path: Path, epochs: list[dict[str, Any]]) -> None:
    path = tmp_path / NAME
    stored(path, epochs=epochs)
    (alone,) = read(path)
    (times,) = read(path, KnownParts(without=LEFT_OUT))
    assert repr(measured_times(times.epochs)) == repr(measured_times(alone.epochs))  # 2 is not 2.0
    assert measured_times(read_beside(path).epochs) == measured_times(alone.epochs)


@pytest.mark.parametrize("known", [None, KnownParts(), KnownParts(without=LEFT_OUT)])
def test_names_of_another_version_are_let_through(tmp_path: Path, known: KnownParts | None) -> None:
    """In windows and in the span, too, which are objects with attributes of their own."""
    path = tmp_path / NAME
    window, span, new = {"epoch": 0, "t0": 1, "t1": 2}, {"launched": 0.5, "finished": 9.5}, {"new": [1]}
    stored(path, windows=[window | new], span=span | new, epochs=[ONE | new])
    (record,) = read(path, known)
    assert [asdict(one) for one in record.windows] in ([window], [])
    assert record.span is not None
    assert asdict(record.span) == span


@pytest.mark.parametrize("value", ["[" * 300 + "]" * 300, "1" * 5000])
@pytest.mark.parametrize("part", ["epochs", "windows"])
def test_nothing_is_let_through_in_them_that_is_refused_elsewhere(
    tmp_path: Path, part: str, value: str
) -> None:
    """msgspec looks over what stands under a name that it does not know; jiter does not."""
    path = tmp_path / NAME
    one = ONE if part == "epochs" else {"epoch": 0, "t0": 1, "t1": 2}
    path.write_text(stored(path, **{part: [one | {"new": 987654}]}).replace("987654", value))
    told = []
    for known in (None, KnownParts(), KnownParts(without=LEFT_OUT)):
        try:
            told.append(str(bool(read(path, known))))
        except DamagedError as error:
            told.append(str(error))
    assert len(set(told)) == 1


@pytest.mark.parametrize("part", LEFT_OUT)
def test_they_are_checked_all_the_same(tmp_path: Path, part: str) -> None:
    path = tmp_path / NAME
    stored(path, **{part: [{"epoch": "none"}]})
    with pytest.raises(DamagedError) as alone:
        read(path)
    with pytest.raises(DamagedError) as beside:
        read(path, KnownParts(without=LEFT_OUT))
    assert str(beside.value) == str(alone.value)
