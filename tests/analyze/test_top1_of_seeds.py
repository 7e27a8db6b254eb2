"""Does top-1 stay the same? Which rows are compared, the margin, and what one seed decides: nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from made_up_tables import make_table

from gpubench.analyze import top1
from gpubench.analyze.table_rows import TableRows
from gpubench.core.findings import Top1Finding
from gpubench.stats.decisions import decide_claims


def answer(table: TableRows) -> list[Top1Finding]:
    return top1.make_findings(table, decide_claims(top1.make_claims(table)))


def row(percentages: Sequence[float], **facts: Any) -> dict[str, Any]:
    seeds = list(range(len(percentages)))
    return {"top1_pct": list(percentages), "repeat": seeds, "epoch_time_s": 1.0, **facts}


def pairs(table: TableRows) -> list[tuple[int, int]]:
    return [
        (claim.candidate, claim.baseline) for claim in top1.make_claims(table) if claim.design == "paired"
    ]


QUIET = [60.0, 60.2, 59.9]


@pytest.mark.parametrize(
    ("difference", "words"),
    [(0.0, ["unknown", "sure"]), (5.0, ["sure", "unknown"]), (0.9, ["sure", "unknown"])],
)
def test_what_differs_and_what_is_the_same_inside_a_point(difference: float, words: list[str]) -> None:
    table = make_table(
        [
            row(QUIET, variant="crop-resize"),
            row([each + difference for each in QUIET], variant="pre-resized"),
        ],
        varied=("variant",),
    )
    (finding,) = answer(table)
    assert [claim.decided.word for claim in finding.claims] == words
    assert (finding.field, finding.value, finding.baseline) == ("variant", "pre-resized", "crop-resize")
    assert (finding.seeds, finding.word) == (3, "sure")
    assert finding.claims[0].evidence.center == pytest.approx(difference)
    assert {claim.limit for claim in finding.claims} == {0.0, 1.0}


def test_one_seed_decides_nothing_and_that_is_told_of_ways_that_change_what_is_learned() -> None:
    def compare(field: str, *values: object) -> list[Top1Finding]:
        rows = [
            row([60.0 + 20 * number] * (1 + number), **{field: value}) for number, value in enumerate(values)
        ]
        return answer(make_table(rows, varied=(field,)))

    (finding,) = compare("precision", "fp32", "bf16")
    assert (finding.word, finding.seeds) == ("unknown", 1)
    assert compare("memory_format", "channels_last", "contiguous") == []
    assert compare("batch_size", 16, 32) == []


def test_seeds_are_repeats_and_further_rounds_of_a_seed_are_no_more_of_them() -> None:
    rounds = {"repeat": [0, 0, 1, 1], "round": [2, 1, 1, 2]}
    table = make_table([row([59.0, 60.0, 61.0, 62.0], **rounds)])
    assert top1.collect_top1_by_seed(table) == {10: [60.0, 61.0]}


def test_equal_percentages_of_few_images_do_not_prove_that_nothing_varies() -> None:
    def compare(images: int | None) -> str:
        rows = [row([60.0] * 3, variant=name, val_images=images) for name in ("crop-resize", "pre-resized")]
        return answer(make_table(rows, varied=("variant",)))[0].word

    assert compare(50) == "unknown"
    assert compare(10_000) == "sure"


def test_along_numbers_each_is_against_the_next_smaller_along_words_against_the_first() -> None:
    numbers = make_table([row(QUIET, batch_size=size) for size in (64, 16, 32)], varied=("batch_size",))
    assert pairs(numbers) == [(12, 11), (10, 12)]
    (finding,) = answer(numbers)
    assert (finding.value, finding.baseline, len(finding.claims)) == (None, None, 4)
    words = make_table(
        [row(QUIET, precision=name) for name in ("fp32", "bf16", "fp16")], varied=("precision",)
    )
    assert pairs(words) == [(11, 10), (12, 10)]
    assert [finding.value for finding in answer(words)] == ["bf16", "fp16"]


def test_what_moves_along_on_one_axis_may_differ_and_nothing_else() -> None:
    both = [row(QUIET, batch_size=16, lr=0.1), row(QUIET, batch_size=32, lr=0.2)]
    assert pairs(make_table(both, varied=("batch_size", "lr"), axes=(("batch_size", "lr"),))) == [(11, 10)]
    assert pairs(make_table(both, varied=("batch_size", "lr"), axes=(("batch_size",), ("lr",)))) == []
    implied = [row(QUIET, batch_size=16, epochs=10), row(QUIET, batch_size=32, epochs=20)]
    assert pairs(make_table(implied, varied=("batch_size",), axes=(("batch_size",),))) == [(11, 10)]


def test_a_row_without_top1_is_compared_with_none() -> None:
    rows = [row(QUIET, precision="fp32"), {"epoch_time_s": [1.0], "precision": "bf16"}]
    assert pairs(make_table(rows, varied=("precision",))) == []


def test_other_tasks_and_other_images_have_no_top1_in_common() -> None:
    first = row(QUIET, variant="crop-resize")
    for other in ({"until_top1": 60.0}, {"group": "two"}, {"machine": "A100"}, {"val_images": 500}):
        table = make_table(
            [{**first, "val_images": 400}, row(QUIET, variant="pre-resized", **other)], varied=("variant",)
        )
        assert pairs(table) == []
    for field, values in (("data", ("a", "b")), ("workers", (1, 2)), ("num_classes", (10, 100))):
        table = make_table([row(QUIET, **{field: value}) for value in values], varied=(field,))
        assert pairs(table) == []
