"""Codes in place of sentences in records: what is stored reads as it was said."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import committed
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from swept import swept

from gpubench.results.packed import pack_folder
from gpubench.results.rows import make_row
from gpubench.results.store import Results
from gpubench.results.stored_record import parse_attempt
from gpubench.schema import codes
from gpubench.schema.codes import (
    ENDED,
    REASONS,
    SOURCES,
    decode_provenance,
    decode_reason,
    decode_record,
    decode_source,
    encode_reason,
    encode_record,
    encode_source,
)
from gpubench.schema.columns import BY_NAME
from gpubench.schema.record import RECORD_SCHEMA


@pytest.mark.parametrize("code", REASONS)
def test_a_reason_is_stored_as_its_code_and_its_values(code: str) -> None:
    template = REASONS[code]
    values = ["97.5", "alone", "10.3%", "+2"][: template.count("{}")]
    stored = encode_reason(template.format(*values))
    assert stored == ([code, *values] if values else code)
    assert decode_reason(stored) == template.format(*values)


def test_no_two_codes_say_the_same_and_no_code_is_a_sentence() -> None:
    for registry in (REASONS, SOURCES):
        assert len(set(registry.values())) == len(registry)
        assert all(" " not in code and code != ENDED for code in registry)
        assert not set(registry) & set(registry.values())


@pytest.mark.parametrize(
    "parts", [["util"], ["power", "whole-gpu"], ["energy-counter", "divided", "whole-gpus"]]
)
def test_a_source_is_stored_by_the_codes_of_its_parts(parts: list[str]) -> None:
    sentence = "; ".join(SOURCES[part] for part in parts)
    assert encode_source(sentence) == (parts[0] if len(parts) == 1 else parts)
    assert decode_source(encode_source(sentence)) == sentence


@settings(max_examples=30)
@given(st.text(max_size=60))
def test_whatever_else_is_said_is_stored_as_it_is(text: str) -> None:
    assert decode_reason(encode_reason(text)) == text or text in REASONS
    assert decode_source(encode_source(text)) == text or bool(set(text.split("; ")) & set(SOURCES))


FACTS = st.fixed_dictionaries({
    "source": st.lists(st.sampled_from(sorted(SOURCES.values())), min_size=1, max_size=2).map("; ".join)
    | st.sampled_from(["integral of polled power (NVML power)", "util; of one GPU", ""]),
    "period_s": st.sampled_from([None, 0.1, 1.0]),
    "samples": st.integers(0, 3),
    "gaps": st.integers(0, 1),
})  # fmt: skip


@settings(max_examples=50)
@given(st.dictionaries(st.sampled_from(sorted(BY_NAME)), FACTS | st.none() | st.just("published log")))
def test_where_figures_come_from_reads_as_before(provenance: dict[str, Any]) -> None:
    stored = encode_record({"provenance": provenance})["provenance"]
    assert decode_provenance(json.loads(json.dumps(stored))) == provenance


def test_a_source_stands_once_with_all_its_columns_and_what_differs_by_itself() -> None:
    few, many = ({"source": SOURCES["util"], "period_s": 0.1, "samples": n, "gaps": 0} for n in (3, 80))
    provenance = {"gpu_util_pct": many, "gpu_util_max_pct": many, "cpu_util_pct": few}
    assert encode_record({"provenance": provenance})["provenance"] == {
        "util": {"period_s": 0.1, "samples": 80, "gaps": 0, "columns": ["gpu_util_pct", "gpu_util_max_pct"]},
        "cpu_util_pct": {**few, "source": "util"},
    }


def test_the_form_of_schema_5_is_read() -> None:
    """Codes, and a source beside each column."""
    measured = next(jobs(committed.folder("h200-checks-2026")))
    job = encode_record(measured) | {"schema_version": RECORD_SCHEMA}
    columns = {
        column: {"source": name, **{key: value for key, value in facts.items() if key != "columns"}}
        for name, facts in job["provenance"].items()
        for column in facts["columns"]
    }
    earlier = job | {"schema_version": 5, "provenance": columns}
    name = f"{job['trial_id']}-{job['attempt']}.json"
    (new,), (old,) = (parse_attempt(name, json.dumps(told).encode()) for told in (job, earlier))
    assert len(columns) > len(job["provenance"])
    assert old.provenance == new.provenance == measured["provenance"]


def jobs(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("records/*/*.json")):
        record = json.loads(path.read_text())
        yield from record.get("jobs", [record])


@pytest.mark.parametrize("name", committed.NAMES)
def test_what_committed_records_say_is_said_as_before(name: str) -> None:
    """Encoded and decoded; of all reasons at most a tenth keep words of their own."""
    words = total = before_bytes = after_bytes = 0
    for job in map(decode_record, jobs(committed.folder(name))):
        ending = codes.format_ending(job["status"], job.get("reason", ""))
        for reason in job.get("missing", {}).values():
            coded = encode_reason(reason, ending)
            decoded = decode_reason(coded)
            assert (ending if decoded == ENDED else decoded) == reason
            total += 1
            words += isinstance(coded, str) and " " in coded
        stored = json.loads(json.dumps(encode_record(job)))
        decoded = decode_record(stored)
        assert decoded["provenance"] == job.get("provenance", {})
        assert {**decoded, "missing": None} == {"provenance": {}, **job, "missing": None}
        before_bytes += len(json.dumps(job, ensure_ascii=False))
        after_bytes += len(json.dumps(stored, ensure_ascii=False))
    assert after_bytes <= (1 if name == "titan-xp-2021" else 0.9) * before_bytes
    if name not in ("titan-xp-2021", "h200x4-2026"):  # of logs, and of a version that had other reasons
        assert words <= total / 10


def test_new_records_hold_codes_and_read_as_sentences(tmp_path: Path) -> None:
    work = swept(tmp_path, "one", "16,32", stop_after=1)
    pack_folder(tmp_path, print)
    for job in jobs(tmp_path):
        assert job["missing"]
        assert not [reason for reason in job["missing"].values() if isinstance(reason, str) and " " in reason]
        assert set(job["provenance"]) <= set(SOURCES)
    by_id = {(record.trial_id, record.attempt): record for record in work.records}
    for record in Results(tmp_path).read_records():
        before = by_id[record.trial_id, record.attempt]
        assert make_row(before).missing == make_row(record).missing
        assert before.provenance == record.provenance
