"""Records of one folder are read part by part: the same records, in less time and memory, and the same refusals."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import committed
import pytest
from whole_records import FULL

from gpubench.results import stored_record
from gpubench.results.store import Results
from gpubench.results.stored_record import DamagedError, KnownParts, read

WHOLE = json.dumps(FULL.stored(), indent=1, ensure_ascii=False) + "\n"
NAME = f"{FULL.trial_id}-1.json"


def test_what_is_read_by_parts_is_what_the_file_says() -> None:
    """Character by character, of every committed record, each after the others of its folder."""
    for folder in committed.folders():
        known = KnownParts()
        for path in sorted((folder / "records").glob("*/t*.json")):
            (record,) = read(path, known)
            text = path.read_text("utf-8")
            values = {name: value for name, value in record.stored().items() if name in json.loads(text)}
            assert json.dumps(values, indent=1, ensure_ascii=False) + "\n" == text, path


def test_parts_that_are_alike_are_kept_once(tmp_path: Path) -> None:
    results = Results(tmp_path)
    for number in range(2):
        results.save([dataclasses.replace(FULL, trial_id=f"t012345678{number:02x}")], [[]], [])
    one, other = results.records()
    assert one.environment is other.environment
    assert one.missing is other.missing
    assert one == dataclasses.replace(other, trial_id=one.trial_id)


def spoiled(text: str) -> list[str]:
    """Files that are no record, or another one than they seem to be where each part is looked at by itself."""
    return [
        text[:-30],
        text.replace('"epochs": [', '"epochs": {', 1),
        text.replace('"torch": "2.11.0"', '"torch": 2.11', 1),
        text.replace('"samples": 9', '"samples": "9"', 1),
        text.replace('"status": "ok"', '"status": "fine"', 1),
        text.replace('\n "data": {', '\n "data": {},\n "status": "oom",\n "data": {', 1),
        text.replace('\n "attempt": 1,', '\n "attempt": {\n "round": 1},', 1),
        text.replace('\n "environment": {', '\n "environment": null,\n "elsewhere": {', 1),
    ]


@pytest.mark.parametrize("number", range(8))
def test_a_damaged_record_is_told_as_if_it_were_read_alone(tmp_path: Path, number: int) -> None:
    path = tmp_path / NAME
    known = KnownParts()
    path.write_text(WHOLE)
    read(path, known)
    text = spoiled(WHOLE)[number]
    assert text != WHOLE
    path.write_text(text)
    outcomes = []
    for beside in (known, None):
        try:
            outcomes.append(str(read(path, beside)))
        except DamagedError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]


def test_a_record_that_lies_there_as_it_was_written_is_read_by_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / NAME
    path.write_text(WHOLE)
    monkeypatch.setattr(stored_record, "_read_whole", lambda *_: pytest.fail("it was read whole"))
    assert read(path, KnownParts()) == [FULL]
