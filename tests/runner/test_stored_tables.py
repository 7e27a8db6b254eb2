"""A results folder read back: records, and planned trials without one."""

from __future__ import annotations

from pathlib import Path

import pytest
import scripted
from scripted import Scripted

from gpubench.errors import UsageError
from gpubench.experiment.experiment import Options, parse, with_options
from gpubench.experiment.plan import expand
from gpubench.report.live import QuietView
from gpubench.runner.command import store_plan
from gpubench.runner.sources import Disk, Stored
from gpubench.runner.sweep import Sweep
from gpubench.runner.tables import contents, stored_plans, write_tables
from gpubench.store import Results

ASKED = 'name = "{name}"\n[fixed]\nmodel = "lenet"\nvariant = "synthetic"\n[run]\nepochs = 2\n'


def swept(folder: Path, name: str, batches: str, stop_after: int = 99) -> Sweep:
    """A sweep on the CPU that is stopped after so many trials."""
    asked = with_options(parse(ASKED.format(name=name), name), Options(fields={"batch_size": batches}))
    job = Sweep(
        plan=expand(asked, device="cpu", sources=Disk()),
        results=Results(folder),
        machine=scripted.computer(),
        nvml=None,
        sources=Disk(),
    )
    job.load()
    store_plan(job)
    launcher = Scripted()
    job.run(
        launcher,
        QuietView(),
        lambda: len(launcher.launched) >= stop_after and not launcher.left,
        lambda _: None,
    )
    return job


def test_planned_trials_without_a_record_are_missing(tmp_path: Path) -> None:
    job = swept(tmp_path, "one", "16,32,64", stop_after=1)
    found = contents(job.results, job.results.records())
    assert [(row["batch_size"], row["status"]) for row in found.rows] == [
        (16, "ok"),
        (32, "missing"),
        (64, "missing"),
    ]
    assert "missing" not in (tmp_path / "trials.csv").read_text()


def test_a_trial_of_two_experiments_is_one_row_and_stands_in_both_tables(tmp_path: Path) -> None:
    swept(tmp_path, "one", "16,32")
    job = swept(tmp_path, "two", "32,64")
    found = contents(job.results, job.results.records())
    assert sorted(row["batch_size"] for row in found.rows) == [16, 32, 64]
    assert [(t.name, [row["batch_size"] for row in t.rows]) for t in found.tables] == [
        ("one", [16, 32]),
        ("two", [32, 64]),
    ]


def test_stored_plans_have_the_trials_that_were_run(tmp_path: Path) -> None:
    job = swept(tmp_path, "one", "16,32")
    (plan,) = stored_plans(job.results)
    assert [u.trial_id for u in plan.units] == [u.trial_id for u in job.plan.units]


def test_a_plan_without_its_facts_is_named(tmp_path: Path) -> None:
    job = swept(tmp_path, "one", "16,32")
    (path,) = job.results.plans()
    path.write_text(path.read_text().replace("[plan.data.procedural]", "[plan.data.other]"))
    with pytest.raises(UsageError, match="lacks the facts of data 'procedural'"):
        contents(job.results, job.records)


def test_tables_are_the_same_when_written_anew(tmp_path: Path) -> None:
    job = swept(tmp_path, "one", "16,32")
    names = ("trials.csv", "epochs.csv", "table.csv", "table.md")
    before = {name: (tmp_path / name).read_bytes() for name in names}
    for name in names:
        (tmp_path / name).unlink()
    write_tables(job.results, job.results.records())
    assert {name: (tmp_path / name).read_bytes() for name in names} == before


# ---- what lies outside a plan ----


def test_a_users_model_is_known_by_its_content(tmp_path: Path) -> None:
    one, copy, other = (tmp_path / name for name in ("one.py", "copy.py", "other.py"))
    one.write_text("x = 1")
    copy.write_text("x = 1")
    other.write_text("x = 2")
    find = Disk().model
    assert find(f"{one}:net") == find(f"{copy}:net") != find(f"{other}:net")
    assert find(f"{one}:net") != find(f"{one}:big")
    assert find("lenet") == ""
    with pytest.raises(UsageError, match=r"there is no file gone\.py"):
        find("gone.py:net")


def test_stored_facts_stand_in_for_images_elsewhere() -> None:
    facts = Disk().data("procedural").as_dict()
    kept = {k: v for k, v in facts.items() if v is not None and k != "root"}
    again = Stored({"procedural": kept}, {"nets.py:net": "hash:net"})
    assert again.data("procedural").fingerprint == facts["fingerprint"]
    assert again.model("nets.py:net") == "hash:net"
    assert again.model("lenet") == ""
