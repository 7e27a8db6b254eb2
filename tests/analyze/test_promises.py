"""What findings promise, by the function that `gpubench table --json` prints: power and honesty on synthetic folders.

`simulated_claims` and tests/stats judge decisions by many more tables; here whole reports are made, from rows to data.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simulated_claims import HUMP

from gpubench.analyze.folder import Folder, build_folder
from gpubench.analyze.questions import report_table
from gpubench.render.json import to_data
from gpubench.schema.row import Row

TABLES = 30
IMAGES = 1000


def simulate_folder(truths: list[float], noise: float, rounds: int, draw: np.random.Generator) -> Folder:
    """Rows of batch sizes 8, 16, … whose epochs take exp(truth) s, and exp(truth + noise) in a process of a round."""
    rows = [
        Row.of_columns(
            {
                "batch_size": 8 * 2**place,
                "device": "cuda",
                "gpus": 1,
                "strategy": "single",
                "model": "resnet18",
            },
            trial_id=f"t{place}",
            config_id=f"c{place}",
            experiment="simulated",
            status="ok",
            round=number,
            host="node",
            images_per_epoch=IMAGES,
            epoch_time_source="steady",
            epoch_time_s=math.exp(truth + noise * draw.normal()),
            gpu_mem_mib=1000.0,
            gpu_mem_source="nvml-process",
        )
        for place, truth in enumerate(truths)
        for number in range(1, rounds + 1)
    ]
    return build_folder(Path("simulated"), rows)


def answer(truths: list[float], noise: float, rounds: int, seed: int) -> list[dict[str, Any]]:
    """The finding on batch sizes of each of TABLES tables, as data."""
    draw = np.random.default_rng(seed)
    findings = []
    for _ in range(TABLES):
        folder = simulate_folder(truths, noise, rounds, draw)
        (table,) = folder.tables
        data = to_data(report_table(folder, table))
        (finding,) = (each for each in data["findings"] if each["question"] == "batch_size")
        findings.append(finding)
    return findings


@pytest.mark.parametrize(
    ("noise", "rounds", "effect", "at_least"),
    [(0.02, 3, 0.10, 80), (0.05, 3, 0.40, 95), (0.05, 5, 0.20, 95)],
)
def test_steps_of_a_hump_are_rightly_sure(noise: float, rounds: int, effect: float, at_least: float) -> None:
    truths = [place * math.log1p(effect) for place in HUMP]
    right = {8: "less", 16: "less", 32: "more", 64: "more"}
    sure = [
        claim["verdict"] == "sure" and claim["direction"] == right[8 * 2**place]
        for finding in answer(truths, noise, rounds, 1)
        for place, claim in enumerate(finding["claims"])
    ]
    assert len(sure) == 4 * TABLES
    assert 100 * np.mean(sure) >= at_least


def test_equal_sizes_are_seldom_called_different_and_the_bound_of_the_choice_holds() -> None:
    findings = answer([0.0] * 5, 0.05, 3, 2)
    false = [any(claim["verdict"] == "sure" for claim in finding["claims"]) for finding in findings]
    assert np.mean(false) <= 0.17  # 5 % and, of 30 tables, three standard errors
    assert np.mean([finding["choice"]["bound"] >= 0 for finding in findings]) == 1


def test_the_bound_of_a_choice_holds_where_another_row_is_the_fastest() -> None:
    truths = [0.3, 0.02, 0.0, 0.02, 0.3]
    findings = answer(truths, 0.05, 3, 3)
    kept = []
    for finding in findings:
        chosen = finding["choice"]["row"]
        best = math.exp(truths[chosen] - min(truths)) - 1
        kept.append(finding["choice"]["bound"] >= best - 1e-9)
    assert np.mean(kept) >= 0.95
