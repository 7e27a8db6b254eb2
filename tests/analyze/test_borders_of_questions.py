"""What no question's own tests reached, found by changing the code: which figures are taken, and from which rows."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from made_up_tables import make_table, scatter

from gpubench.analyze import batch_size, target
from gpubench.analyze.frames import is_epoch_time_scattered
from gpubench.analyze.intervals import LogMeans
from gpubench.analyze.series import EncodedFields
from gpubench.analyze.table_rows import make_rounds_remedy
from gpubench.core.claims import Evidence
from gpubench.schema.record import Record


def test_rounds_for_a_choice_go_on_from_the_row_with_the_most_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batch_size, "find_rounds_for_choice", lambda _: 12)
    rivals = {1: Evidence(center=0.0, processes=(3, 9)), 2: Evidence(center=0.0, processes=(3, 3))}
    remedy = batch_size.find_choice_remedy(rivals, round_minutes=2.0, repeats=1)
    assert remedy == make_rounds_remedy(12, 9, 9, 2.0, 1)
    assert remedy is not None
    assert remedy.minutes == 6.0


def test_equal_values_vary_by_nothing_whatever_their_sum_is_rounded_to() -> None:
    values = np.full(3, 0.1)
    assert (values - values.sum() / 3).any()
    means = LogMeans.from_groups(np.zeros(3, dtype=np.int64), values, 1)
    assert (means.count.tolist(), means.variance.tolist()) == ([3], [0.0])


def test_a_claim_is_of_the_candidate_against_the_baseline() -> None:
    table = make_table(
        [{"epoch_time_s": scatter(10.0, -0.01, 0.01)}, {"epoch_time_s": scatter(5.0, -0.01, 0.01)}]
    )
    claim = table.make_claim("images_per_s", table.rates, 11, 10, family="f")
    assert (claim.candidate, claim.baseline) == (11, 10)
    assert claim.evidence.center == pytest.approx(math.log(2))


def test_the_training_that_is_drawn_is_the_one_in_the_middle() -> None:
    """Of an even number the faster one of two; of a row that did not reach its target the first."""
    runs = pd.DataFrame(
        [
            {"row": 5, "trial_id": "a", "round": turn, "repeat": 0, "time_to_top1_s": seconds}
            for turn, seconds in ((1, 30.0), (2, 10.0), (3, 20.0), (4, 40.0))
        ]
        + [
            {"row": 6, "trial_id": "b", "round": turn, "repeat": 0, "time_to_top1_s": math.nan}
            for turn in (1, 2)
        ]
    )
    records: list[Any] = [
        SimpleNamespace(
            trial_id=trial_id,
            round=turn,
            epochs=[{"epoch_time_s": 2.0, "top1_pct": None}, {"epoch_time_s": 3.0, "top1_pct": 10.0 * turn}],
        )
        for trial_id, turn in (("a", 1), ("a", 2), ("a", 3), ("a", 4), ("b", 1), ("b", 2))
    ]
    traces = target.collect_training_curves(cast("list[Record]", records), runs)
    assert traces == {5: ((5.0, 30.0),), 6: ((5.0, 10.0),)}


def fields_of(*rows: dict[str, Any]) -> EncodedFields:
    return EncodedFields.from_frame(make_table([{"is_gpu_ids_auto": False, **row} for row in rows]).summary)


def test_a_field_that_some_rows_lack_is_no_number() -> None:
    assert fields_of({"batch_size": 8}, {"batch_size": 16}).is_numeric("batch_size")
    assert not fields_of({"batch_size": 8}, {"batch_size": None}).is_numeric("batch_size")
    assert not fields_of({"steps": 8}, {"steps": 16}, {"steps": None}).is_numeric("steps")
    # A command without a size beside two of another: these are compared all the same.
    assert fields_of({"batch_size": 8}, {"batch_size": 16}, {"batch_size": None}).is_numeric("batch_size")


def test_the_first_gpus_are_alike_and_are_no_others() -> None:
    fields = fields_of({"gpu_ids": (0,)}, {"gpu_ids": (0, 1)}, {"gpu_ids": (1,)}, {"gpu_ids": (2,)})
    first, both, second, third = fields.encode_workload_field("gpu_ids", ()).tolist()
    assert first == both
    assert len({first, second, third}) == 3
    others = fields_of({"gpu_ids": (1,), "gpus": 1}, {"gpu_ids": (2, 3), "gpus": 2})
    assert others.list_varied_fields() == ("gpus", "gpu_ids")


def test_of_three_times_and_more_the_farthest_tells_nothing_of_their_scatter() -> None:
    times = pd.Series([1.0, 1.0, 1.0, 1.0, 9.0, 1.0, 9.0, 1.0], index=[0] * 5 + [1] * 2 + [2])
    assert is_epoch_time_scattered(times).tolist() == [False, True, False]
