"""`gpubench predict` beside what was measured: the published log, and stored groups."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import committed
import pytest
from made_up_rows import CPUS, SAID, TWO, Asked, alone, folder, run_predict, together

from gpubench.basics.errors import UnusableError
from gpubench.schema.record import AskedFields, Record, ResultColumns

# ---------------------------------------------------------------- the published log


def test_the_published_log(asked: Asked) -> None:
    """Together each took 28.5 s."""
    jobs = ["batch_size=32,gpu_ids=0", "batch_size=64,gpu_ids=1", "batch_size=128,gpu_ids=2+3,strategy=dp"]
    text = asked(
        committed.folder("titan-xp-2021"),
        jobs=jobs,
        model="mobilenet_v2",
        data="unpublished",
        input_size="224",
    )
    assert [line.split()[-2] for line in text.splitlines() if " of 3: " in line] == [
        "31.85",
        "30.28",
        "22.22",
    ]
    assert "takes at least 27.61 s of the CPUs" in text
    assert "all jobs: row alone does not state width, " in text
    assert "So far: 3 jobs of 1 group on Titan Xp" in text


LOG = ("batch_size=32,gpu_ids=0", "batch_size=64,gpu_ids=1", "batch_size=128,gpu_ids=2+3,strategy=dp")


def test_jobs_of_other_images_are_told_which_there_are(asked: Asked) -> None:
    """Of the built-in data the log knows nothing; unasked, its own are meant."""
    log = committed.folder("titan-xp-2021")
    with pytest.raises(UnusableError) as raised:
        asked(log, jobs=[*LOG[:2], "batch_size=128,gpu_ids=2+3"], model="mobilenet_v2", data="procedural")
    why = str(raised.value)
    assert why.count("(the nearest row has data=unpublished)") == 2
    assert "128@2+3 (the nearest row has data=unpublished and strategy=dp)" in why


def test_where_nobody_knows_how_many_cpus_there_were_none_are_too_many(asked: Asked) -> None:
    log = committed.folder("titan-xp-2021")
    ask = {"model": "mobilenet_v2", "data": "unpublished", "input_size": "224"}
    known = asked(log, jobs=LOG, **ask)
    said = "all jobs: would have 4 CPUs; row alone does not state how many it had.\n"
    assert "would have" not in known
    assert asked(log, jobs=LOG, **ask, cpus="4").replace(said, "") == known
    assert said in asked(log, jobs=LOG, **ask, cpus="4")
    for cpus in ({}, {"cpus": "4"}):
        with pytest.raises(UnusableError, match=r"how many CPUs Titan Xp, .* is not on record"):
            asked(log, jobs=LOG, **ask, **cpus, cpu_sharing="pinned")


@pytest.mark.parametrize("page", ["docs/side-by-side.md", "results/titan-xp-2021/README.md"])
def test_the_command_that_pages_give_for_the_log_works(page: str) -> None:
    committed.folder("titan-xp-2021")
    found = re.findall(r"gpubench predict (\S.* --job [^#\n]*)", (committed.ROOT / page).read_text("utf-8"))
    assert len(found) == 1
    ended = run_predict(*shlex.split(found[0]), at=committed.ROOT, PYTHONUTF8="1")
    assert (ended.returncode, ended.stderr) == (0, b"")
    lines = [line for line in ended.stdout.decode().splitlines() if " of 3: " in line]
    assert [line.split()[-2] for line in lines] == ["31.85", "30.28", "22.22"]


# ---------------------------------------------------------------- how good answers have been


def test_the_stored_groups_by_the_model_of_this_version(asked: Asked) -> None:
    """Ranks that wait for each other are no longer taken for work: +49 % before, on the second group."""
    text = asked(committed.folder("h200x4-groups-2026"))
    said = re.search(r"By the model of this version: 16 jobs of 6 groups .*", text)
    assert said
    assert "half of the predictions were within 7 %" in said[0]
    assert "the worst was off by −25 %; the predicted verdict was right for 3 of 3 groups;" in said[0]
    assert "+49, +45, +18  1.72, 1.72, 1.72  −2, −6, −25" in text


def compared(solo: Record, slowdown: float, predicted: float) -> list[Record]:
    """Two jobs on one GPU that were compared with this trial."""
    first = together(solo.trial.batch_size, (slowdown,) * 2, (predicted,) * 2, "09:30")
    own = {"solo_id": solo.trial_id, "solo_epoch_time_s": solo.result.epoch_time_s}
    return [
        record.model_copy(update={
            "result": ResultColumns({**vars(record.result), **own}),
            "resolved": {**record.resolved, "cpu_ids": list(range(CPUS))},
        })
        for record in first
    ]  # fmt: skip


@pytest.mark.usefixtures("far")
def test_the_present_model_is_asked_about_the_very_rows_of_the_comparison(
    tmp_path: Path, asked: Asked
) -> None:
    """Another folder's row of the same trial: 1 s of 9 on the GPU, so that it would predict 1.00."""
    solo = alone(16)
    again = alone(16, epoch=9.0, busy=1.0, started_at="2026-11-21 09:00:00")
    assert again.trial_id == solo.trial_id
    group = compared(solo, 1.7, 2.0)
    own = folder(tmp_path / "own", solo, group)
    other, gone = folder(tmp_path / "other", again), folder(tmp_path / "gone", group)
    for places in ((own,), (own, other), (other, own)):
        line = next(text for text in asked(*places).splitlines() if text.startswith("2 copies"))
        assert " ".join(line.split()) == "2 copies 2 1.70, 1.70 2.00, 2.00 +18, +18 1.69, 1.69 0, 0"
    assert "by this version" not in asked(gone, other), "what was predicted then stands"


@pytest.mark.usefixtures("far")
def test_rows_of_hosts_with_other_counts_are_told(tmp_path: Path, asked: Asked) -> None:
    small = alone(32)
    small = small.model_copy(update={"environment": {**small.environment, "gpu_count": 1, "cpu_count": 4}})
    text = asked(folder(tmp_path, alone(16), small), jobs=TWO)
    assert text.splitlines()[0] == (
        f"By results of {SAID} (2 GPUs, 8 CPUs). Some rows were measured where there were 1 GPU, 4 CPUs."
    )


@pytest.mark.usefixtures("far")
def test_groups_of_one_name_and_repeated_runs_are_told_apart(tmp_path: Path, asked: Asked) -> None:
    groups = [together(16, (2.0, 2.0), (2.0, 2.1), "09:01"), together(32, (1.5, 1.5), (1.0, 1.0), "09:02")]
    again = together(16, (2.5, 2.5), (2.0, 2.0), "09:09")
    one, two = folder(tmp_path / "one", *groups), folder(tmp_path / "two", again)
    text = asked(one, two)
    lines = [" ".join(line.split()) for line in text.splitlines() if line.startswith("2 copies")]
    assert sorted(lines) == [
        "2 copies (batch_size=16) 2 2.00, 2.00 2.00, 2.10 0, +5",
        "2 copies (batch_size=16) 2 2.50, 2.50 2.00, 2.00 −20, −20",
        "2 copies (batch_size=32) 2 1.50, 1.50 1.00, 1.00 −33, −33",
    ]
    assert "6 jobs of 3 groups" in text
    assert asked(one, two, one) == text, "a folder that is given twice counts once"


@pytest.mark.usefixtures("far")
def test_groups_are_named_by_their_table_and_with_it_where_another_calls_one_the_same(
    tmp_path: Path, asked: Asked
) -> None:
    def of(table: str, group: list[Record], **more: Any) -> list[Record]:
        return [
            one.model_copy(
                update={
                    "experiment": table,
                    "trial": AskedFields(vars(one.trial) | more),
                    "resolved": one.resolved | more,
                }
            )
            for one in group
        ]

    twice = of("a", together(16, (2.0, 2.0), (2.0, 2.0), "09:01"), precision="bf16")
    plain = of("b", together(32, (2.0, 2.0), (2.0, 2.0), "09:02"), precision="fp32")
    three = of("b", together(64, (3.0,) * 3, (3.0,) * 3, "09:03"), precision="fp32")
    lines = asked(folder(tmp_path, twice, plain, three)).splitlines()
    named = [" ".join(line.split("  ")[0].split()) for line in lines if " copies " in line]
    assert named == ["a: 2 copies", "b: 2 copies", "3 copies"], "precision tells no groups of one table apart"


def test_without_any_group_it_says_how_to_get_one(tmp_path: Path, asked: Asked) -> None:
    assert "no group has been predicted and measured" in asked(folder(tmp_path, alone(16)))
