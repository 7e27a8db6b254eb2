"""Synthetic tables whose truth is known, as the reports that `gpubench table --json` prints."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from simulated_claims import Draw, draw_normal, simulate_tables

from gpubench.analyze.folder import build_folder_from_rows
from gpubench.analyze.questions import make_table_report
from gpubench.render.json import report_to_data
from gpubench.schema.row import Row

IMAGES = 1000
FIRST_SIZE = 8


def answer_batch_size(
    seed: int,
    tables: int,
    truths: Sequence[float],
    deviations: float | Sequence[float],
    rounds: int,
    draw_noise: Draw = draw_normal,
) -> list[dict[str, Any]]:
    """The finding on batch sizes of each table, as data. `truths`: logarithms of seconds an epoch at 8, 16, ... images;
    all sizes take the same memory, so that they are those of memory x time as well."""
    figures = simulate_tables(seed, tables, truths, deviations, rounds, draw_noise)
    rows = [
        Row.make_from_columns(
            {
                "batch_size": FIRST_SIZE * 2**place,
                "device": "cuda",
                "gpus": 1,
                "strategy": "single",
                "model": "resnet18",
            },
            trial_id=f"t{number}-{place}",
            config_id=f"c{number}-{place}",
            experiment=f"simulated-{number}",
            status="ok",
            round=turn + 1,
            host="node",
            images_per_epoch=IMAGES,
            epoch_time_source="steady",
            epoch_time_s=seconds,
            gpu_mem_mib=1000.0,
            gpu_mem_source="nvml-process",
        )
        for number, table in enumerate(figures)
        for place, processes in enumerate(table)
        for turn, seconds in processes.items()
    ]
    folder = build_folder_from_rows(Path("simulated"), rows)
    reports = [report_to_data(make_table_report(folder, table)) for table in folder.tables]
    return [
        finding for report in reports for finding in report["findings"] if finding["question"] == "batch_size"
    ]


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportRates:
    """What came of simulated tables, as shares."""

    sure: float
    """Of steps: that they are sure, and rightly so."""
    false: float
    """Of tables: that a step is sure that is not so."""
    likely: float
    """Of steps without an effect: that they are called likely."""
    covered: float
    """Of steps: that their interval holds the truth."""
    bounded: float
    """Of tables: that no other size is faster than the chosen one by more than its bound."""


def rate_reports(findings: Sequence[dict[str, Any]], truths: Sequence[float]) -> ReportRates:
    """Holds the findings of `answer_batch_size` against the truth."""
    effects = np.diff(truths)
    sure, false, likely, covered, bounded = [], [], [], [], []
    for finding in findings:
        wrong = False
        for claim, effect in zip(finding["claims"], effects, strict=True):
            is_right = claim["direction"] == ("more" if effect > 0 else "less") and effect != 0
            is_sure = claim["verdict"] == "sure"
            sure.append(is_sure and is_right)
            wrong = wrong or (is_sure and not is_right)
            if effect == 0:
                likely.append(claim["verdict"] == "likely")
            covered.append(math.log(claim["low"]) <= effect <= math.log(claim["high"]))
        false.append(wrong)
        lead = math.exp(truths[finding["choice"]["row"] % len(truths)] - min(truths)) - 1
        bounded.append(finding["choice"]["bound"] >= lead - 1e-9)
    return ReportRates(
        sure=float(np.mean(sure)),
        false=float(np.mean(false)),
        likely=float(np.mean(likely)) if likely else 0.0,
        covered=float(np.mean(covered)),
        bounded=float(np.mean(bounded)),
    )
