"""Codes in place of sentences in records: what is stored reads as it was said."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import committed
import pytest
from hypothesis import given
from hypothesis import strategies as st
from swept import swept

from gpubench.results.packed import pack
from gpubench.results.rows import row_of
from gpubench.results.store import Results
from gpubench.schema import codes
from gpubench.schema.codes import (
    ENDED,
    REASONS,
    SOURCES,
    decode_reason,
    decode_source,
    encode_reason,
    encode_source,
)

WORD = st.text(st.characters(categories=["L", "N"], include_characters=".+%"), min_size=1, max_size=12)


@pytest.mark.parametrize("code", REASONS)
@given(st.data())
def test_a_reason_is_stored_as_its_code_and_its_values(code: str, data: st.DataObject) -> None:
    template = REASONS[code]
    values = [data.draw(WORD) for _ in range(template.count("{}"))]
    stored = encode_reason(template.format(*values))
    assert stored == ([code, *values] if values else code)
    assert decode_reason(stored) == template.format(*values)


def test_no_two_codes_say_the_same_and_no_code_is_a_sentence() -> None:
    for registry in (REASONS, SOURCES):
        assert len(set(registry.values())) == len(registry)
        assert all(" " not in code and code != ENDED for code in registry)
        assert not set(registry) & set(registry.values())


@given(st.lists(st.sampled_from(sorted(SOURCES)), min_size=1, max_size=3))
def test_a_source_is_stored_by_the_codes_of_its_parts(parts: list[str]) -> None:
    sentence = "; ".join(SOURCES[part] for part in parts)
    assert encode_source(sentence) == (parts[0] if len(parts) == 1 else parts)
    assert decode_source(encode_source(sentence)) == sentence


@given(st.text(max_size=60))
def test_whatever_else_is_said_is_stored_as_it_is(text: str) -> None:
    assert decode_reason(encode_reason(text)) == text or text in REASONS
    assert decode_source(encode_source(text)) == text or bool(set(text.split("; ")) & set(SOURCES))


def jobs(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("records/*/*.json")):
        record = json.loads(path.read_text())
        yield from record.get("jobs", [record])


@pytest.mark.parametrize("name", committed.NAMES)
def test_what_committed_records_say_is_said_as_before(name: str) -> None:
    """Encoded and decoded; of all reasons at most a tenth keep words of their own."""
    words = total = 0
    for job in jobs(committed.folder(name)):
        ending = codes.write_ending(job["status"], job.get("reason", ""))
        for reason in job.get("missing", {}).values():
            coded = encode_reason(reason, ending)
            decoded = decode_reason(coded)
            assert (ending if decoded == ENDED else decoded) == reason
            total += 1
            words += isinstance(coded, str) and " " in coded
        provenance = job.get("provenance", {})
        assert codes.decode_provenance(codes.encode_record(job)["provenance"]) == provenance
    if name not in ("titan-xp-2021", "h200x4-2026"):  # of logs, and of a version that had other reasons
        assert words <= total / 10


def test_new_records_hold_codes_and_read_as_sentences(tmp_path: Path) -> None:
    work = swept(tmp_path, "one", "16,32", stop_after=1)
    pack(tmp_path, print)
    for job in jobs(tmp_path):
        assert job["missing"]
        assert not [reason for reason in job["missing"].values() if isinstance(reason, str) and " " in reason]
        assert not [value for value in job["provenance"].values() if " " in value["source"]]
    by_id = {(record.trial_id, record.attempt): record for record in work.records}
    for record in Results(tmp_path).records():
        before, after = row_of(by_id[record.trial_id, record.attempt]), row_of(record)
        assert (before.missing, before.provenance) == (after.missing, after.provenance)
