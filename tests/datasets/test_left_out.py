"""A sweep over a folder with bad images: `fail` fails; `skip` leaves them out, everywhere the same, and says so."""

from __future__ import annotations

import csv
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from benches import run_with, sweep_of

from gpubench.datasets import bad_images
from gpubench.node.environment import make_machine
from gpubench.node.launch.fork_server import ForkServer
from gpubench.plan.experiment_file import parse_experiment
from gpubench.plan.plan import Plan, expand_experiment
from gpubench.plan.sources import DiskSources
from gpubench.render.live import QuietView
from gpubench.results.plans import read_stored_plans
from gpubench.run.images import list_left_out_lines, store_left_out_names
from gpubench.run.stored_plan import store_plan
from gpubench.run.sweep import make_images
from gpubench.schema.record import Record

TEXT = """
name = "bad"
[fixed]
device = "cpu"
model = "lenet"
input_size = 28
workers = 2
ranks = 2
batch_size = 32
data = "{}"
[axes]
variant = {}
[variants.small]
files = "full"
[run]
rounds = 1
epochs = 1
bad_images = "{}"
"""
BAD = "train/class0/0000.png"

pytestmark = pytest.mark.slow  # three trials, and images of their own


@dataclass(frozen=True, kw_only=True, slots=True)
class Swept:
    """Both policies over one folder, which share their results."""

    root: Path
    results: Path
    skipped: list[Record]
    failed: list[Record]
    told: list[str]
    plan: Plan


@pytest.fixture(scope="module")
def swept(server: ForkServer, colours: Path, tmp_path_factory: pytest.TempPathFactory) -> Swept:
    place = tmp_path_factory.mktemp("bad")
    root = place / "images"
    shutil.copytree(colours, root)
    whole = (root / BAD).read_bytes()
    (root / BAD).write_bytes(whole[:-100])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUBENCH_DATA", str(place / "home"))
        patch.setattr(
            bad_images, "TRY", "photo_trees:find_defect"
        )  # what finds them in earnest imports torch
        records: dict[str, list[Record]] = {}
        for policy, variants in (("fail", ["small"]), ("skip", ["small", "pre-resized"])):
            experiment = parse_experiment(TEXT.format(root, variants, policy), "bad.toml")
            sources = DiskSources(experiment.bad_images)
            plan = expand_experiment(experiment, device="cpu", sources=sources)
            work = sweep_of(plan, place / "results", make_machine(None), sources=sources)
            work.runner.results.create_folder()
            work.load()
            before = len(work.records)
            store_plan(work)
            store_left_out_names(sources, work.runner.results)
            make_images(work, work.list_planned_of_round(1), QuietView(), lambda: False)
            run_with(server, work, QuietView())
            records[policy] = work.records[before:]
            told = list_left_out_lines(sources, work.runner.results)
    return Swept(
        root=root,
        results=place / "results",
        skipped=records["skip"],
        failed=records["fail"],
        told=told,
        plan=plan,
    )


def test_by_default_a_bad_image_fails_its_trial_and_is_named(swept: Swept) -> None:
    (record,) = swept.failed
    assert record.status == "failed"
    assert f"{swept.root}/{BAD}" in record.reason
    assert "--bad-images skip" in record.reason


def test_with_skip_all_ranks_and_variants_read_the_same_other_images(swept: Swept) -> None:
    first, copies = swept.skipped
    for record in (first, copies):
        assert (record.status, record.reason) == ("ok", "")
        assert record.resolved["train_images"] == 255
        assert [epoch["images"] for epoch in record.epochs] == [224]
        assert record.data["skipped_images"] == 1
    assert first.data["fingerprint"] == copies.data["fingerprint"]


def test_it_is_another_workload_than_all_images(swept: Swept) -> None:
    ids = [{record.trial_id for record in records} for records in (swept.failed, swept.skipped)]
    assert not ids[0] & ids[1]


def test_row_doubt_file_and_plan_say_so(swept: Swept) -> None:
    with (swept.results / "trials.csv").open(newline="") as file:
        rows = {row["trial_id"]: row["skipped_images"] for row in csv.DictReader(file)}
    assert rows == {
        swept.failed[0].trial_id: "0",
        swept.skipped[0].trial_id: "1",
        swept.skipped[1].trial_id: "1",
    }
    for record in swept.skipped:
        assert record.doubts["skipped-images"].startswith("1 of 320 images ")
    names = swept.results / "left-out" / f"{swept.skipped[0].data['fingerprint']}.txt"
    assert names.read_text().startswith(f"{BAD}\t")
    assert swept.told[0].startswith(f"1 of 320 images in {swept.root} ")
    assert swept.told[1].startswith(f"  {BAD}: ")
    plans, problems = stored_plans_of(swept)
    assert problems == []
    assert [job.trial_id for job in plans[-1].jobs] == [job.trial_id for job in swept.plan.jobs]


def stored_plans_of(swept: Swept) -> tuple[list[Plan], list[str]]:
    """The folder's plans, expanded from what they say themselves."""
    from gpubench.results.store import Results

    results = Results(swept.results)
    found, problems = read_stored_plans(results, results.read_records())
    return [one.plan for one in found], problems


def test_what_gpubench_makes_itself_and_named_data_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bad_images, "find_bad_images", None)
    sources = DiskSources("skip")
    for name in ("procedural", "procedural:64x96", "cifar10"):
        assert sources.find_data_facts(name) == DiskSources("fail").find_data_facts(name)
        assert sources.find_left_out_images(name) == frozenset()


def test_a_policy_that_fails_tries_nothing(colours: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bad_images, "find_bad_images", None)
    assert DiskSources("fail").find_data_facts(str(colours)).skipped_images == 0
