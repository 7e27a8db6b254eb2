"""Two sides, compared, as text, Markdown and data: a sentence of each template, and every figure once."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from compared_rows import STEADY, compare, row

from gpubench.core.comparison import Comparison
from gpubench.render import comparison as render
from gpubench.render.comparison import format_json, format_markdown, format_text, make_changes_grid


def times(by: float) -> list[float]:
    return [by * time for time in STEADY]


def memory(mib: float) -> dict[str, Any]:
    return {"gpu_mem_mib": mib, "gpu_mem_source": "nvml-process"}


EVEN = [1.0, 1.001, 0.999]


def three(threshold: float | None = None) -> Comparison:
    """Of batches 16, 32 and 64 the first is slower in B, the second the same, the third unknown."""
    a = [
        row(EVEN, torch="2.11.0", **memory(1000)),
        row(EVEN, batch_size=32),
        row([1.0, 1.5, 0.7], batch_size=64),
    ]
    b = [
        row([1.1 * time for time in EVEN], torch="2.12.0", doubts="throttled", **memory(1200)),
        row(EVEN[::-1], batch_size=32, torch="2.12.0"),
        row([0.7, 1.5, 1.0], batch_size=64, torch="2.12.0"),
    ]
    return compare(a, b, threshold)


def texts(comparison: Comparison) -> list[str]:
    return render.list_conclusion_lines(comparison)


Make = Callable[[], Comparison]
"""Compares in the test that asks, not as the module is imported."""
SINGLE = partial(compare, [row([1.0])], [row([5.0])])
SEEDS = row([1.0] * 3, top1_pct=50.0, repeat=[0, 1, 2])
BROKEN = partial(compare, [row(EVEN)], [row((), status="oom", endings="oom")], 0.05)
UNLIKE_IMAGES = partial(compare, [row(EVEN)], [row(EVEN, images_per_epoch=None)])
SEVERAL = partial(compare, [row(EVEN, machine="G"), row(EVEN, machine="H")], [row(EVEN, machine="I")])
GUESS = partial(compare, [row(EVEN)], [row(EVEN, precision="bf16")], 0.05)
FIGURE_LINES = [
    "Time per image of B: 1 slower; 1 the same; 1 unknown.",
    "GPU memory of B: 1 more.",
    "1 trial: warnings on a side, see gpubench table.",
]
LINES = {
    "a line a figure": (three, FIGURE_LINES),
    "regressions": (partial(three, 0.05), [
        "Regression beyond 5 %: Time per image of 1 trial; GPU memory of 1 trial.",
        *FIGURE_LINES,
    ]),
    "none shown": (partial(three, 0.255), [
        "No regression beyond 25.5 % is shown, and it is not excluded everywhere.",
        *FIGURE_LINES,
    ]),
    "none, and excluded": (partial(compare, [row(EVEN)], [row(EVEN[::-1])], 0.05), [
        "No regression beyond 5 %: it is excluded everywhere.",
        "Time per image of B: 1 the same.",
    ]),
    "out of memory": (BROKEN, [
        "Regression beyond 5 %: out of memory in B of 1 trial.",
    ]),
    "whole epochs against a rate": (partial(compare, [row(EVEN, kind="whole epochs", epochs=3)], [row(EVEN)]), [
        "A holds times of whole epochs, B of steady rate, which are never compared: measure both alike (whole epochs "
        "are measured by --epochs).",
    ]),
    "other models": (partial(compare, [row(EVEN)], [row(EVEN, model="resnet50")]), [
        "No trial of A is one of B (model): sweep the same experiment into both.",
    ]),
    "a guess": (GUESS, [
        "Nothing was checked for a regression: no trial of A is one of B in all its fields, so pairs are a "
        "guess.",
        "Time per image of B: 1 the same.",
    ]),
    "one process": (SINGLE, [
        "Time per image of B: 1 slower, likely.",
        "Times and energy of one process on a side (top-1: under three seeds) are never sure: --rounds 3 on "
        "both sides.",
    ]),
    "equal top-1": (partial(compare, [SEEDS], [SEEDS], figures=("top1",)), ["Top-1 of B: 1 the same."]),
    "open times": (partial(compare, [row([1.0, 1.03, 0.97])], [row([1.05, 1.08, 1.02])]), [
        "Time per image of B: 1 unknown.",
        "--rounds 8 (about 1 min more) tells more of times, on both sides.",
    ]),
}  # fmt: skip


@pytest.mark.parametrize(("make", "lines"), LINES.values(), ids=LINES)
def test_what_two_sides_come_to(make: Make, lines: list[str]) -> None:
    comparison = make()
    assert texts(comparison) == lines
    assert json.loads(format_json(comparison))["text"] == lines


SIDES = {
    "three trials": (three, [
        "A: a; 3 trials; 1 × H200",
        "B: b; 3 trials; 1 × H200",
        "Not alike: torch 2.11.0 against 2.12.0.",
    ]),
    "another precision": (GUESS, [
        "A: a; 1 trial; 1 × H200",
        "B: b; 1 trial; 1 × H200",
        "Not alike: precision fp32 against bf16.",
        "No trial of A is one of B in all its fields, so the pairs are a guess.",
    ]),
    "another variant": (
        partial(compare, [row(EVEN)], [row(EVEN, variant_definition={"files": "full", "cpu": ["Flip"]})]), [
        "A: a; 1 trial; 1 × H200",
        "B: b; 1 trial; 1 × H200",
        "Not alike: what the variant does.",
        "No trial of A is one of B in all its fields, so the pairs are a guess.",
    ]),
}  # fmt: skip


@pytest.mark.parametrize(("make", "lines"), SIDES.values(), ids=SIDES)
def test_what_is_not_alike_stands_above(make: Make, lines: list[str]) -> None:
    assert render.describe_sides(make()) == lines


UNMATCHED = {
    "out of memory": (BROKEN, [
        ["Not both ended ok: 1 trial", "batch 16 (ok in A, out of memory in B)"],
    ]),
    "several": (SEVERAL, [
        ["Several match: 1 trial", "batch 16 (2 in A, 1 in B)"],
    ]),
}  # fmt: skip


@pytest.mark.parametrize(("make", "lists"), UNMATCHED.values(), ids=UNMATCHED)
def test_what_is_not_compared_is_listed(make: Make, lists: list[list[str]]) -> None:
    assert render.list_uncompared_trials(make()) == lists


def test_each_trial_has_a_row_under_each_figure() -> None:
    comparison = three()
    grid = [[cell.text for cell in line.cells] for line in make_changes_grid(comparison).groups[0].rows]
    assert grid == [
        ["batch 16", "1.000", "1.100", "slower", "+10.0 (+9.6 to +10.4) %"],
        ["batch 32", "1.000", "1.000", "the same", "0.0 (−0.2 to +0.2) %"],
        ["batch 64", "1.016", "1.016", "unknown", "0.0 (−73.8 to +282) %"],
    ]
    (memory_group,) = make_changes_grid(comparison).groups[1:]
    assert memory_group.head == "GPU memory (MiB)"
    cells = [cell.text for cell in memory_group.rows[0].cells]
    assert cells == ["batch 16", "1,000", "1,200", "more", "+20.0 %"]


def test_likely_answers_and_missing_figures_are_marked_in_their_rows() -> None:
    assert make_changes_grid(SINGLE()).rows[0].cells[3].text == "slower, likely"
    assert make_changes_grid(UNLIKE_IMAGES()).rows[0].cells[3].text == "other images"
    epochs = make_changes_grid(compare(*([row(EVEN, images_per_epoch=None)] for _ in "ab")))
    assert (epochs.groups[0].head, epochs.rows[0].cells[1].text) == ("Time per epoch (s)", "1.000")


def test_only_the_first_of_many_that_stand_alone_are_named() -> None:
    a = [row(EVEN, batch_size=size) for size in (1, 2)]
    comparison = compare(a, [a[0], *(row(EVEN, batch_size=size, precision="bf16") for size in range(3, 13))])
    only_a, only_b = render.list_uncompared_trials(comparison)
    assert only_a == ["Only in A: 1 trial", "batch 2, fp32"]
    assert len(only_b) == 1 + render.MOST_NAMED + 1
    assert only_b[-1].startswith("and 2 more,")


def test_jobs_are_named_behind_what_they_are() -> None:
    names = ("1 of 2", "2 of 2")
    jobs = [
        row(EVEN, batch_size=size, group="x", job=job, unit=1)
        for job, size in zip(names, (16, 32), strict=True)
    ]
    comparison = compare(jobs, jobs)
    assert render.name_compared_trial(comparison, 10) == f"batch 16 ({names[0]}, x)"


def test_the_worst_comes_first_where_that_is_asked() -> None:
    comparison = compare(
        [row(times(1), batch_size=size) for size in (1, 2, 3)],
        [row(times(by), batch_size=size) for size, by in ((1, 1.0), (2, 1.5), (3, 0.5))],
    )

    def order(sort: str | None) -> list[str]:
        return [line.cells[0].text for line in make_changes_grid(comparison, sort).rows]

    assert order(None) == ["batch 1", "batch 2", "batch 3"]
    assert order("time") == ["batch 2", "batch 1", "batch 3"]
    assert order("top1") == order("energy") == order("batch_size") == order("model") == order(None)


def test_text_is_ascii_in_80_columns_and_markdown_has_a_table_a_figure() -> None:
    comparison = three(0.05)
    lines = format_text(comparison).splitlines()
    assert max(map(len, lines)) <= 80
    assert format_text(comparison).isascii()
    marked = format_markdown(comparison)
    assert "**Time per image (ms)**" in marked
    cells = ["batch 16 !", "1.000", "1.100", "slower, regression", "+10.0 (+9.6 to +10.4) %"]
    assert f"| {' | '.join(cells)} |" in marked
    assert marked.count(":---") == 2 * 2
    assert "- **Regression beyond 5 %" in marked


SCHEMA = json.loads((Path(render.__file__).parent / "comparison.schema.json").read_text())


@pytest.mark.parametrize(
    "make",
    [
        three,
        partial(three, 0.05),
        partial(compare, [row(EVEN)], [row(EVEN, model="resnet50")]),
        BROKEN,
        UNLIKE_IMAGES,
        SEVERAL,
    ],
)
def test_data_is_what_the_schema_says(make: Make) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(json.loads(format_json(make())), SCHEMA)


def test_the_schema_notices_what_it_does_not_know() -> None:
    data = json.loads(format_json(three()))
    for wrong in ({**data, "more": 1}, {**data, "trials": [{**data["trials"][0], "speed": {}}]}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, SCHEMA)


def test_data_has_every_figure_with_its_verdict() -> None:
    data = json.loads(format_json(three(0.05)))
    (first, *_) = data["trials"]
    time = first["time"]
    assert (time["answer"], time["verdict"]) == ("slower", "sure")
    assert (time["is_regression"], time["is_excluded"]) == (True, False)
    assert (time["a"], time["b"], time["change"]) == pytest.approx((0.001, 0.0011, 10.0), rel=1e-3)
    assert [claim["test"] for claim in time["claims"]] == ["paired", "equal", "paired", "below"]
    assert data["rows"][str(first["b"])]["fields"]["batch_size"] == 16
    assert data["regressions"] == [{"b": first["b"], "figure": "time"}, {"b": first["b"], "figure": "memory"}]
    assert (data["is_excluded"], data["obstacle"]) == (False, None)
    assert data["unlike"] == {"torch": [["2.11.0"], ["2.12.0"]]}
