"""Stored plans: when each was stored, and in which order. Times of files tell nothing."""

from __future__ import annotations

import datetime
import os
import random
import re
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path

import committed
import pytest
import scripted
from benches import run_with, sweep_of
from folders import analyze, rows_of_table, superseded
from scripted import Scripted
from swept import ASKED, swept

from gpubench.commands import audit as audit_command
from gpubench.commands import predict as predict_command
from gpubench.commands.table import table
from gpubench.plan.experiment_file import parse
from gpubench.plan.options import with_options
from gpubench.plan.plan import expand
from gpubench.plan.shards import Shard, select_part
from gpubench.plan.sources import Disk
from gpubench.plan.sweep_options import Options
from gpubench.render.live import QuietView
from gpubench.results.home import newest_results
from gpubench.results.plans import PlanFacts, StoredPlan, find_last_use, stored_plans
from gpubench.results.store import Results
from gpubench.run.stored_plan import store_plan
from gpubench.run.sweep_state import SweepState


def shuffled_times(folder: Path, seed: int = 0) -> None:
    """As `touch`, `cp` and a clone leave them."""
    draw = random.Random(seed)
    for path in sorted(folder.rglob("*")):
        moment = draw.uniform(1e9, 2e9)
        os.utime(path, (moment, moment))


def stamps(folder: Path) -> list[tuple[str, PlanFacts]]:
    """The plans in the order in which they were stored, by the name of their experiment."""
    results = Results(folder)
    found, problems = stored_plans(results, results.records())
    assert problems == []
    return [(one.plan.experiment.name, one.facts) for one in found]


# ---- the stamp ----


def test_a_plan_carries_its_time_and_its_number(tmp_path: Path) -> None:
    began = datetime.datetime.now(datetime.UTC)
    swept(tmp_path, "zebra", "16")
    swept(tmp_path, "ant", "16")
    swept(tmp_path, "zebra", "16,32")
    (path,) = (tmp_path / "plans").glob("ant-*")
    resolved = tomllib.loads(path.read_text())["plan"]
    moment = datetime.datetime.fromisoformat(resolved["stored_at"])
    assert began <= moment <= datetime.datetime.now(datetime.UTC)
    assert moment.utcoffset() == datetime.timedelta(0)
    assert re.search(r"\.\d{6}\+00:00$", resolved["stored_at"])
    assert [(name, stamp.number) for name, stamp in stamps(tmp_path)] == [
        ("zebra", 1),
        ("ant", 2),
        ("zebra", 3),
    ]


@pytest.mark.slow
def test_the_same_plan_keeps_its_stamp_while_it_is_its_experiments_newest(tmp_path: Path) -> None:
    swept(tmp_path, "one", "16")
    first = stamps(tmp_path)
    swept(tmp_path, "one", "16")
    assert stamps(tmp_path) == first
    swept(tmp_path, "two", "16")
    assert [stamp.number for _, stamp in stamps(tmp_path)] == [1, 2]
    swept(tmp_path, "one", "16")
    # The newest of its own experiment.
    assert stamps(tmp_path)[0] == first[0]
    swept(tmp_path, "one", "16,32")
    swept(tmp_path, "one", "16")
    assert [(name, stamp.number) for name, stamp in stamps(tmp_path)] == [("two", 2), ("one", 3), ("one", 4)]
    assert stamps(tmp_path)[-1][1].stored_at > first[0][1].stored_at


def test_an_experiment_whose_name_begins_like_another_is_another(tmp_path: Path) -> None:
    swept(tmp_path, "one", "16")
    swept(tmp_path, "one-more", "16")
    first = stamps(tmp_path)
    swept(tmp_path, "one", "16")
    assert stamps(tmp_path) == first


def test_an_older_plan_is_stamped_only_where_others_leave_it_open_which_is_the_last(tmp_path: Path) -> None:
    swept(tmp_path, "one", "16")
    unstamped(tmp_path)
    swept(tmp_path, "one", "16")
    assert [stamp.number for _, stamp in stamps(tmp_path)] == [0]
    swept(tmp_path, "one", "32")
    unstamped(tmp_path)
    swept(tmp_path, "one", "16")
    assert [stamp.number for _, stamp in stamps(tmp_path)] == [0, 1]


def test_a_clock_that_was_set_back_changes_no_order(tmp_path: Path) -> None:
    for name in ("b", "a"):
        swept(tmp_path, name, "16")
    (later,) = (tmp_path / "plans").glob("a-*")
    later.write_text(re.sub(r'stored_at = "\d{4}', 'stored_at = "1999', later.read_text()))
    assert [name for name, _ in stamps(tmp_path)] == ["b", "a"]


def unstamped(folder: Path) -> None:
    """As plans of older versions are."""
    for path in (folder / "plans").glob("*.toml"):
        text = re.sub(r"^(stored_at|number) = .*\n", "", path.read_text(), flags=re.MULTILINE)
        path.write_text(text)


def began_at(folder: Path, experiment: str, moment: str) -> None:
    for path in (folder / "records").glob("*/*.json"):
        text = path.read_text()
        if f'"experiment": "{experiment}"' in text:
            path.write_text(re.sub(r'"started_at": "[^"]*"', f'"started_at": "{moment}"', text))


@pytest.mark.slow
def test_older_plans_stand_as_their_trials_began_and_before_those_with_a_number(tmp_path: Path) -> None:
    swept(tmp_path, "ant", "16")
    swept(tmp_path, "bee", "32")
    swept(tmp_path, "cow", "64", stop_after=0)
    unstamped(tmp_path)
    began_at(tmp_path, "ant", "2026-11-20 10:00:00")
    began_at(tmp_path, "bee", "2026-11-20 09:00:00")
    shuffled_times(tmp_path)
    assert [name for name, _ in stamps(tmp_path)] == ["cow", "bee", "ant"]
    began_at(tmp_path, "bee", "2026-11-20 10:00:00")
    # By name, where times are one.
    assert [name for name, _ in stamps(tmp_path)] == ["cow", "ant", "bee"]
    swept(tmp_path, "aardvark", "8")
    assert [name for name, _ in stamps(tmp_path)][-1] == "aardvark"


# ---- parts ----


@pytest.mark.parametrize("order", ["given", "random"])
def test_a_folder_knows_the_parts_that_it_was_asked_for(tmp_path: Path, order: str) -> None:
    asked = with_options(
        parse(ASKED.format(name="one"), "one"), Options(fields={"batch_size": "16,32,64,128"})
    )
    whole = expand(asked, device="cpu", sources=Disk(), order=order)

    def told(*numbers: int | None) -> StoredPlan:
        for number in numbers:
            shard = None if number is None else Shard(number, 3)
            mine = select_part(whole, shard) if shard else whole
            work = sweep_of(mine, tmp_path, scripted.computer(), sources=Disk())
            store_plan(work, whole, shard)
        (found,) = stored_plans(Results(tmp_path), [])[0]
        return found

    first = told(2)
    mine = {job.trial_id for job in select_part(whole, Shard(2, 3)).jobs}
    assert {job.trial_id for job in first.share.jobs} == mine
    assert 0 < len(mine) < len(first.plan.jobs) == 4
    assert told(2).facts.number == first.facts.number, "nothing new was asked for"
    assert told(3).facts.parts == (Shard(2, 3), Shard(3, 3))
    assert told(None).facts.parts == ()
    # The whole was asked for before.
    assert told(1).share == told(1).plan


# ---- damaged ----


def why_left_out(folder: Path, old: str, new: str) -> str:
    """What is said of the folder's plan with this in place of that."""
    (path,) = (folder / "plans").glob("*.toml")
    text = path.read_text()
    assert re.search(old, text)
    path.write_text(re.sub(old, new, text, count=1))
    (said,) = stored_plans(Results(folder), [])[1]
    path.write_text(text)
    assert said.startswith(f"plan {path} is left out: ")
    assert said.endswith("; the sweep that it is of stores it anew")
    return said.removeprefix(f"plan {path} is left out: ").removesuffix(
        "; the sweep that it is of stores it anew"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('^name = "one"', 'name "one"', "it is not TOML: line 1: after a name must come = and a value"),
        ('kind = ".*"', 'kind = "x"', "plan.data.procedural.kind must be folder, named or none, not 'x'"),
        ("train_images = .*\nval", "val", "plan.data.procedural.train_images is missing"),
        (
            "val_images = .*",
            'val_images = "x"',
            "plan.data.procedural.val_images must be a whole number, not 'x'",
        ),
        ("\ncpus = .*", "\ncpus = 0", "plan.cpus must be at least 1 and at most 65,536, not 0"),
        ('device = "cpu"\ngpus', "device = 3\ngpus", "plan.device must be cuda or cpu, not 3"),
        ('name = "one"', "name = 3", "its experiment: name must be a text in quotes, not 3"),
        (r"(?s)\A(.*)\[plan\].*", r"plan = 3\n\1", "plan must be a table, not 3"),
        (r"\[plan\.data\.procedural\]", "[plan.data.other]", "it lacks the facts of 'procedural'"),
    ],
)
def test_a_damaged_plan_is_told_in_plain_words(tmp_path: Path, old: str, new: str, says: str) -> None:
    swept(tmp_path, "one", "16")
    assert why_left_out(tmp_path, old, new) == says


def test_the_sweep_that_a_damaged_plan_is_of_stores_it_anew(tmp_path: Path) -> None:
    swept(tmp_path, "one", "16")
    (path,) = (tmp_path / "plans").glob("*.toml")
    path.write_text("half of a pl")
    swept(tmp_path, "one", "16")
    assert stored_plans(Results(tmp_path), [])[1] == []


# ---- what counts ----


def edited(folder: Path, p: float) -> SweepState:
    """A sweep of one trial of a user's variant, which was edited to this probability."""
    text = ASKED.format(name="mine").replace('"synthetic"', '"own"')
    text += f'[variants.own]\nfiles = "none"\ncpu = [{{ RandomErasing = {{ p = {p} }} }}]\n'
    sources = Disk()
    asked = with_options(parse(text, "mine"), Options(fields={"batch_size": "16"}))
    plan = expand(asked, device="cpu", sources=sources)
    work = sweep_of(plan, folder, scripted.computer(), sources=sources)
    work.load()
    store_plan(work)
    run_with(Scripted(), work, QuietView())
    return work


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_of_an_edited_variant_the_latest_plan_counts_whatever_the_files_say(
    tmp_path: Path, seed: int
) -> None:
    values = [0.1, 0.9, 0.5]
    random.Random(seed).shuffle(values)
    last = [edited(tmp_path, p) for p in values][-1]
    for times in range(3):
        shuffled_times(tmp_path, seed=times)
        folder = analyze(last.runner.results)
        (row,) = rows_of_table(folder)
        assert row["trial_id"] == last.plan.jobs[0].trial_id
        assert len(superseded(folder)) == 2


def test_an_edit_that_is_taken_back_shows_what_it_was_before(tmp_path: Path) -> None:
    first = edited(tmp_path, 0.1)
    between = edited(tmp_path, 0.9)
    back = edited(tmp_path, 0.1)
    assert back.plan.jobs[0].trial_id == first.plan.jobs[0].trial_id
    folder = analyze(back.runner.results)
    (row,) = rows_of_table(folder)
    assert row["trial_id"] == first.plan.jobs[0].trial_id
    assert superseded(folder) == {between.plan.jobs[0].trial_id}
    before = {path: path.read_bytes() for path in (tmp_path / "plans").iterdir()}
    edited(tmp_path, 0.1)
    assert {path: path.read_bytes() for path in (tmp_path / "plans").iterdir()} == before


def answers(folder: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What every command that reads a folder prints."""
    said = []
    for read in (
        lambda: table([folder], form="markdown"),
        lambda: audit_command.audit(folder),
        lambda: predict_command.predict([folder], Options()),
    ):
        assert read() == 0
        said.append(capsys.readouterr().out)
    return said


@pytest.mark.parametrize(
    "name", ["h200x4-2026", "h200-copies-2026", pytest.param("titan-xp-2021", marks=pytest.mark.slow)]
)
def test_copies_and_touches_of_a_committed_folder_change_no_answer(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = []
    for seed in range(3):
        home = tmp_path / str(seed)
        shutil.copytree(committed.folder(name), home / name, copy_function=shutil.copyfile)
        shuffled_times(home, seed)
        monkeypatch.chdir(home)
        said.append(answers(Path(name), capsys))
    assert said[0] == said[1] == said[2]


# ---- the newest folder ----


@pytest.mark.slow
def test_the_newest_folder_is_the_one_in_which_something_was_last_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUBENCH_OUT", str(tmp_path))
    for name, moment in (
        ("a", "2026-11-20 09:00:00"),
        ("b", "2026-11-20 11:00:00"),
        ("c", "2026-11-20 10:00:00"),
    ):
        swept(tmp_path / name, "one", "16")
        unstamped(tmp_path / name)
        began_at(tmp_path / name, "one", moment)
    for seed in range(4):
        shuffled_times(tmp_path, seed)
        assert newest_results() == tmp_path / "b"
    swept(tmp_path / "c", "two", "32", stop_after=0)
    # A plan that was just stored counts, too.
    assert newest_results() == tmp_path / "c"


@pytest.mark.slow
@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text[:40],
        lambda text: re.sub(r"(?s).*", "plan = 3", text, count=1),
        lambda text: re.sub(r"stored_at = .*", "stored_at = 7", text),
        lambda text: re.sub(r"stored_at = .*", 'stored_at = "yesterday"', text),
        lambda text: re.sub(r"number = .*", 'number = "first"', text),
    ],
)
def test_a_damaged_plan_does_not_hide_the_newest_folder(tmp_path: Path, edit: Callable[[str], str]) -> None:
    swept(tmp_path, "one", "16")
    results = Results(tmp_path)
    (path,) = results.plans()
    path.write_text(edit(path.read_text()))
    assert find_last_use(results) >= results.last_start() > "2"
    (tmp_path / "records" / "half").mkdir()
    (tmp_path / "records" / "half" / "t-1.json").write_text('{"started')
    assert find_last_use(results) >= results.last_start() > "2"
