"""What the device waits for is read back by the whole command: a loader made slow is data wait, a slow step is not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

MODELS = Path(__file__).parents[1] / "train" / "user_models.py"


def sweep(home: Path, *options: str) -> pd.DataFrame:
    """trials.csv by model, of one sweep over a slow loader and a slow step; all else is equal."""
    command = [
        *(sys.executable, "-m", "gpubench", "sweep", "--quiet", "--out", str(home / "results")),
        *("--model", f"{MODELS}:slow_images,{MODELS}:slow_pass"),
        *("--data", "procedural:96x32", "--variant", "pre-resized", "--set", "input_size=32"),
        *("--batch-size", "16", "--workers", "1", "--epochs", "2", "--rounds", "1", *options),
    ]
    environment = {**os.environ, "GPUBENCH_DATA": str(home / "images")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    table = pd.read_csv(home / "results" / "trials.csv")
    assert set(table["status"]) == {"ok"}
    return table.assign(model=table["model"].str.rpartition(":")[2]).set_index("model")


def told_apart(table: pd.DataFrame) -> None:
    slow_loader, slow_step = table.loc["slow_images"], table.loc["slow_pass"]
    print(table[["epoch_time_s", "first_batch_s", "step_time_ms_p50", "data_wait_pct"]])
    assert slow_loader["data_wait_pct"] >= 70
    # One worker, so long an image.
    assert slow_loader["epoch_time_s"] > 96 * 0.03
    assert slow_step["data_wait_pct"] <= 10
    # Six steps of 0.2 s, on a GPU by its clock.
    assert slow_step["epoch_time_s"] > 6 * 0.15


@pytest.mark.alone
@pytest.mark.slow
def test_a_slow_loader_is_data_wait_and_a_slow_step_is_not(tmp_path: Path) -> None:
    told_apart(sweep(tmp_path, "--device", "cpu"))
