"""Stored plans: when each was stored, and in which order. Times of files tell nothing."""

from __future__ import annotations

import datetime
import re
import tomllib
from pathlib import Path

import pytest
import scripted
from benches import sweep_of
from swept import ASKED, swept

from gpubench.plan.experiment_file import parse_experiment
from gpubench.plan.options import apply_options
from gpubench.plan.plan import expand_experiment
from gpubench.plan.shards import Shard, select_shards
from gpubench.plan.sources import DiskSources
from gpubench.plan.sweep_options import ExperimentOptions
from gpubench.results.plans import PlanFacts, StoredPlan, find_last_folder_use, read_stored_plans
from gpubench.results.store import Results
from gpubench.run.stored_plan import store_plan


def stamps(folder: Path) -> list[tuple[str, PlanFacts]]:
    """The plans in the order in which they were stored, by the name of their experiment."""
    results = Results(folder)
    found, problems = read_stored_plans(results, results.read_records())
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
    latest = max(stamp.format_stored_at_local() for _, stamp in stamps(tmp_path))
    assert find_last_folder_use(Results(tmp_path)) >= latest  # a trial began after it


def unstamped(folder: Path) -> None:
    """As plans of older versions are."""
    for path in (folder / "plans").glob("*.toml"):
        text = re.sub(r"^(stored_at|number) = .*\n", "", path.read_text(), flags=re.MULTILINE)
        path.write_text(text)


# ---- parts ----


@pytest.mark.parametrize("order", ["given", "random"])
def test_a_folder_knows_the_parts_that_it_was_asked_for(tmp_path: Path, order: str) -> None:
    asked = apply_options(
        parse_experiment(ASKED.format(name="one"), "one"),
        ExperimentOptions(fields={"batch_size": "16,32,64,128"}),
    )
    whole = expand_experiment(asked, device="cpu", sources=DiskSources(), order=order)

    def told(*numbers: int | None) -> StoredPlan:
        for number in numbers:
            shard = None if number is None else Shard(number, 3)
            mine = select_shards(whole, (shard,) if shard else ())
            work = sweep_of(mine, tmp_path, scripted.computer(), sources=DiskSources())
            store_plan(work, whole, shard)
        (found,) = read_stored_plans(Results(tmp_path), [])[0]
        return found

    first = told(2)
    mine = {job.trial_id for job in select_shards(whole, (Shard(2, 3),)).jobs}
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
    (said,) = read_stored_plans(Results(folder), [])[1]
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
        (
            '^name = "one"',
            'name "one"',
            "it is not TOML: Expected '=' after a key in a key/value pair (at line 1, column 6)",
        ),
        ('kind = ".*"', 'kind = "x"', "plan.data.*.kind must be folder, named or none"),
        ("train_images = .*\nval", "val", "plan.data.*.train_images is missing"),
        (
            "val_images = .*",
            'val_images = "x"',
            "plan.data.*.val_images must be a whole number",
        ),
        ("\ncpus = .*", "\ncpus = 0", "plan.cpus must be at least 1, not 0"),
        ('device = "cpu"\ngpus', "device = 3\ngpus", "plan.device must be a text in quotes, not 3"),
        ('name = "one"', "name = 3", "its experiment: name must be a text in quotes, not 3"),
        (r"(?s)\A(.*)\[plan\].*", r"plan = 3\n\1", "plan must be a table, not 3"),
        (r"\[plan\.data\.procedural\]", "[plan.data.other]", "it lacks the facts of 'procedural'"),
    ],
)
def test_a_damaged_plan_is_told_in_plain_words(tmp_path: Path, old: str, new: str, says: str) -> None:
    swept(tmp_path, "one", "16")
    assert why_left_out(tmp_path, old, new) == says
