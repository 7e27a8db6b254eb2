"""Wrong values in plain words: the bounds, the kinds, the choices."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from gpubench.errors import UsageError
from gpubench.experiment.complaints import complaint
from gpubench.experiment.experiment import parse
from gpubench.trial import Trial, make


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("until_top1", 200.0, "until_top1 must be above 0 and below 100, not 200"),
        ("until_top1", 0.0, "until_top1 must be above 0 and below 100, not 0"),
        ("width", 16.5, "width must be above 0 and at most 16, not 16.5"),
        ("batch_size", 0, "batch_size must be at least 1, not 0"),
        ("seed", 1 << 40, "seed must be at least 0 and below 4294967296, not 1099511627776"),
        ("gpu_ids", (0, -1), "gpu_ids.1 must be at least 0, not -1"),
        ("epochs", 1.5, "epochs must be a whole number, not 1.5"),
        ("epochs", "x", "epochs must be a whole number, not 'x'"),
        ("width", "x", "width must be a number, not 'x'"),
        ("lr", float("inf"), "lr must be a finite number, not inf"),
        ("breakdown", 3, "breakdown must be true or false, not 3"),
        ("precision", "fp8", "precision must be fp32, tf32, bf16 or fp16, not 'fp8'"),
        ("device", "tpu", "device must be cuda or cpu, not 'tpu'"),
    ],
)
def test_a_value_that_its_field_does_not_take(field: str, value: Any, says: str) -> None:
    with pytest.raises(ValidationError) as caught:
        make({field: value})
    assert complaint(caught.value.errors()[0], Trial) == says


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("[run]\nrepeats = 0", "run.repeats must be at least 1, not 0"),
        ('[run]\nepochs = "x"', "run.epochs must be a whole number, not 'x'"),
        ("[variants.x]\ndata = 3", "variants.x.data must be a text in quotes, not 3"),
        ("run = 3", "run: Input should be"),
    ],
)
def test_a_table_of_a_file(table: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(f'name = "t"\n{table}\n', "t.toml")
    assert str(caught.value).startswith(f"t.toml: {says}")
