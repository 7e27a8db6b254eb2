"""`--find-max-batch`: sizes at the edge of memory are tried, kept, and not tried again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import scripted
from benches import Heard, node_of, run_with, sweep_of
from folders import analyze, rows_of_table
from made_up_folders import folder_of
from scripted import Driver, Scripted

from gpubench.analyze.audit import audit_folder
from gpubench.analyze.folder import read_folder
from gpubench.analyze.questions import report_table
from gpubench.basics.errors import UnusableError, UsageError
from gpubench.commands import sweep as command
from gpubench.commands.merge import merge_folders
from gpubench.core.audit import RowShare, RuleFinding
from gpubench.node.node import Node
from gpubench.plan.experiment_file import parse
from gpubench.plan.max_batch import Edge
from gpubench.plan.options import with_options
from gpubench.plan.plan import expand
from gpubench.plan.sources import Disk
from gpubench.plan.sweep_options import Options, RunOptions
from gpubench.plan.wall_time import Late
from gpubench.render.live import QuietView
from gpubench.render.running import describe_trial_end
from gpubench.results.rows import row_of
from gpubench.results.store import Results
from gpubench.run.limits import Limits
from gpubench.run.max_batch import find, known, plan_of, searches
from gpubench.run.stored_plan import store_plan
from gpubench.run.summary import Summary
from gpubench.run.sweep_state import SweepState
from gpubench.schema.order import SteadyWindow, TrialOrder
from gpubench.schema.row import Row
from gpubench.schema.row import replace as row_with

ASKED = 'name = "one"\n[fixed]\nmodel = "lenet"\nvariant = "synthetic"\n[run]\nrounds = 1\nepochs = 2\n'
TRY = SteadyWindow(window_s=None, steps=3)
BASE_MIB, IMAGE_MIB = 1_000, 10


class Card(Scripted):
    """GPUs on which a trial takes 1,000 MiB and 10 an image of each, and runs out of memory beyond `room_mib`."""

    def __init__(self, room_mib: int, fails: int | None = None) -> None:
        super().__init__(self._script)
        self.room_mib = room_mib
        self.fails = fails

    def _script(self, order: TrialOrder) -> scripted.Script:
        if order.trial.batch_size == self.fails:
            return scripted.raises
        return scripted.trains if self.needs(order) <= self.room_mib else scripted.runs_out_of_gpu_memory

    @staticmethod
    def needs(order: TrialOrder) -> int:
        return BASE_MIB + IMAGE_MIB * order.trial.batch_size // len(order.gpu_uuids)


class Held(Mapping[int, float]):
    """What the trial that was launched last holds, whichever process is asked for."""

    def __init__(self, card: Card) -> None:
        self._card = card

    def __getitem__(self, pid: int) -> float:
        return float(Card.needs(self._card.launched[-1]))

    def __iter__(self) -> Iterator[int]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def items(self):
        return [(scripted.os.getpid(), self[0])] if self._card.launched else []


def sweep(folder: Path, card: Card, there: int = 1, **fields: str) -> SweepState:
    """A sweep that has ended."""
    options = Options(fields={"batch_size": "16,32,64,128", **fields})
    asked = with_options(parse(ASKED, "one"), options)
    plan = expand(asked, device="cuda", sources=Disk())
    work = sweep_of(plan, folder, scripted.computer(gpus=there), nvml=Driver(mib=Held(card)))
    work.load()
    store_plan(work)
    run_with(card, work, QuietView())
    return work


def found(work: SweepState, card: Card, stop_after: int = 99) -> list[str]:
    """What the search says."""
    told: list[str] = []

    def run(tries: SweepState) -> tuple[Summary, Limits]:
        ended = run_with(card, tries, Heard(), lambda: len(card.launched) >= stop_after and not card.left)
        return ended, ended.limits

    for one in searches(work):
        for _ in find(work, one, run, told.append, store_plan):
            pass
    return told


def edges(work: SweepState) -> dict[str, Edge]:
    """Where memory ends by all that is stored, by the names of the configurations."""
    return {
        search.name: known(work, search, plan_of(work, search, [search.job.trial.batch_size]))[0]
        for search in searches(work)
    }


def lines_of(edges: Mapping[str, Edge]) -> list[str]:
    """How a search says that memory ends there."""
    return [
        f"{name}{': ' if name else ''}the largest batch that ran is {edge.ran:,}, "
        f"the smallest that ran out of memory {edge.full:,}"
        for name, edge in edges.items()
    ]


def tried(card: Card) -> list[int]:
    """The batch sizes of the search, in the order in which they were tried."""
    return [order.trial.batch_size for order in card.launched if order.protocol == TRY]


@pytest.mark.slow
def test_the_line_leads_to_the_edge_in_a_few_tries(tmp_path: Path) -> None:
    """12,340 MiB are there: 1,134 images."""
    card = Card(12_340)
    work = sweep(tmp_path, card, gpu_mem_cap_mib="12340")
    lines = found(work, card)
    assert edges(work) == {"": Edge(ran=1_134, full=1_150)}
    assert lines == lines_of(edges(work))
    assert tried(card) == [1134, 1150]


@pytest.mark.slow
def test_without_a_line_sizes_are_doubled_and_halved(tmp_path: Path) -> None:
    card = Card(12_340)
    work = sweep(tmp_path, card, batch_size="16")
    found(work, card)
    edge = edges(work)[""]
    assert edge.full is not None
    assert edge.ran <= 1_134 < edge.full
    assert edge.full - edge.ran <= 16
    assert tried(card)[:3] == [32, 64, 128]


@pytest.mark.slow
def test_what_was_tried_is_kept_under_an_experiment_of_its_own(tmp_path: Path) -> None:
    card = Card(12_340)
    work = sweep(tmp_path, card, gpu_mem_cap_mib="12340")
    found(work, card)
    results = work.runner.results
    folder = analyze(results)
    assert [row["batch_size"] for row in rows_of_table(folder)] == [16, 32, 64, 128]
    assert [table.name for table in folder.tables] == ["one", "one-max-batch"]
    tries = rows_of_table(folder, 1)
    assert sorted(tried(card)) == [row["batch_size"] for row in tries]
    assert {row["status"] for row in tries} == {"ok", "oom"}
    assert all(row["steps"] == 3 for row in tries)


@pytest.mark.slow
def test_tries_tell_of_memory_alone(tmp_path: Path) -> None:
    """Their times are of first steps: who reads that larger batches don't pay from these is misled."""
    card = Card(12_340)
    work = sweep(tmp_path, card, gpu_mem_cap_mib="12340")
    found(work, card)
    results = work.runner.results
    ran = [row for record in results.records() if (row := row_of(record)).batch_size == 1_134]
    assert [describe_trial_end(1, 1, "x", row) for row in ran] == ["[1/1] x  ok  12,340 MiB"]
    assert "epoch" in describe_trial_end(1, 1, "x", row_with(ran[0], experiment="one"))
    folder = analyze(results)
    one, tries = (report_table(folder, table) for table in folder.tables)
    assert {column.name for column in one.columns} >= {"epoch_time_s", "memory_gib"}
    assert [column.name for column in tries.columns] == ["batch_size", "memory_gib"]
    # Their sizes and memory say it.
    assert (tries.findings, tries.warnings) == ((), ())
    rows = [row for row in rows_of_table(folder, 1) if row["status"] == "ok"]
    assert all(row["epoch_time_s"] is None and row["gpu_mem_mib"] for row in rows)


@pytest.mark.slow
def test_a_search_that_was_stopped_goes_on_and_one_that_has_ended_tries_nothing(tmp_path: Path) -> None:
    card = Card(12_340)
    work = sweep(tmp_path, card, batch_size="16")
    found(work, card, stop_after=3)
    before = tried(card)
    assert len(before) == 2
    again = Card(12_340)
    work = sweep(tmp_path, again, batch_size="16")
    said = found(work, again)
    assert not set(tried(again)) & set(before)
    last = Card(12_340)
    assert found(sweep(tmp_path, last, batch_size="16"), last) == said
    assert tried(last) == []


@pytest.mark.slow
def test_several_gpus_share_the_batch_and_each_configuration_has_its_own_edge(tmp_path: Path) -> None:
    card = Card(3_000)
    work = sweep(tmp_path, card, there=2, gpus="1,2")
    lines = found(work, card)
    assert edges(work) == {"gpus=1": Edge(ran=200, full=202), "gpus=2": Edge(ran=400, full=404)}
    assert lines == lines_of(edges(work))
    assert all(order.trial.batch_size % len(order.gpu_uuids) == 0 for order in card.launched)


def test_a_try_that_fails_ends_the_search(tmp_path: Path) -> None:
    card = Card(12_340, fails=32)
    work = sweep(tmp_path, card, batch_size="16")
    assert found(work, card) == [
        f"a batch of 32 failed, so the search ends there; gpubench table {tmp_path} says why"
    ]
    assert tried(card) == [32]
    again = Card(12_340)
    work = sweep(tmp_path, again, batch_size="16")
    assert found(work, again) == [
        "a batch of 32 failed before, so the search ends there; --retry failed tries it again"
    ]


def test_on_a_cpu_it_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        command.sweep(
            None,
            Options(fields={"device": "cpu"}),
            RunOptions(find_max_batch=True, out=tmp_path / "x"),
        )
    assert str(refused.value) == (
        "--find-max-batch fills GPU memory: no trial of this plan trains by itself on a GPU; leave the option out"
    )
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
def test_the_command_searches_after_its_sweep_and_tells_what_it_found_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    card = Card(3_000)
    node = node_of(scripted.computer(gpus=1), Driver(mib=Held(card)))
    monkeypatch.setattr(command, "this_machine", lambda: node)
    monkeypatch.setattr(Node, "start", lambda self: setattr(self, "launcher", card))
    monkeypatch.setattr(Node, "wait_ready", lambda self, should_stop: True)  # noqa: ARG005
    (tmp_path / "one.toml").write_text(ASKED)
    options = Options(fields={"batch_size": "16,32,64,128", "gpu_mem_cap_mib": "3000"})

    def asked(**more: object) -> int:
        return command.sweep(tmp_path / "one.toml", options, RunOptions(out=tmp_path / "x", **more))

    assert asked(find_max_batch=True, dry_run=True) == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        "then batch sizes are tried at the edge of GPU memory: at most 16 trials of 3 steps (--find-max-batch)"
    )
    assert asked() == 0
    assert tried(card) == []
    assert asked(find_max_batch=True) == 0
    assert len(tried(card)) > 0
    assert "**What is the largest batch" in (tmp_path / "x" / "table.md").read_text()
    told = capsys.readouterr()
    edge_lines = lines_of({"": Edge(ran=200, full=202)})
    assert told.err.splitlines()[-1:] == edge_lines
    before = len(card.launched)
    assert asked(find_max_batch=True) == 0
    assert len(card.launched) == before
    assert capsys.readouterr().err.splitlines()[-1:] == edge_lines


def test_a_try_that_no_job_has_time_for_is_told_though_the_next_configuration_has_its_edge(
    tmp_path: Path,
) -> None:
    work = sweep(tmp_path, Card(3_000))
    too_long, in_time = (Limits.build(work, lambda: False) for _ in range(2))
    too_long.batch_job.late = Late(job="SLURM job 7", never={"t1": 900.0})
    assert command.find_exit_code(work, [(Summary(), in_time)]) == 0
    with pytest.raises(UnusableError, match="SLURM job 7 is too short for 1 trial"):
        command.find_exit_code(work, [(Summary(), in_time), (Summary(), too_long), (Summary(), in_time)])


@pytest.mark.slow
def test_parts_of_a_plan_name_their_searches_as_the_whole_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two configurations in three parts: put together, each has tries of its own, and the third part had no search."""
    (tmp_path / "one.toml").write_text(ASKED)
    options = Options(fields={"batch_size": "32,64,128", "gpu_mem_cap_mib": "3000", "width": "1,2"})

    def asked(folder: str, *, quiet: bool = True, shard: str | None = None) -> Card:
        card = Card(3_000)
        node = node_of(scripted.computer(gpus=1), Driver(mib=Held(card)))
        monkeypatch.setattr(command, "this_machine", lambda: node)
        monkeypatch.setattr(Node, "start", lambda self: setattr(self, "launcher", card))
        monkeypatch.setattr(Node, "wait_ready", lambda self, should_stop: True)  # noqa: ARG005
        run_options = RunOptions(out=tmp_path / folder, quiet=quiet, shard=shard, find_max_batch=True)
        assert command.sweep(tmp_path / "one.toml", options, run_options) == 0
        return card

    for number in (1, 2, 3):
        asked(f"s{number}", shard=f"{number}/3")
    assert "shard 3/3" not in capsys.readouterr().err, "--quiet"
    assert not (tmp_path / "s3").exists()
    assert merge_folders([tmp_path / "s1", tmp_path / "s2"], out=tmp_path / "all") == 0
    results = Results(tmp_path / "all")
    folder = analyze(results)
    places = {table.name: place for place, table in enumerate(folder.tables)}
    assert sorted(places) == ["one", "one-max-batch-1", "one-max-batch-2"]
    assert [
        {row["width"] for row in rows_of_table(folder, places[f"one-max-batch-{n}"])} for n in (1, 2)
    ] == [
        {1},
        {2},
    ]
    capsys.readouterr()
    assert asked("all", quiet=False).launched == []
    edge = Edge(ran=200, full=202)
    assert capsys.readouterr().err.splitlines()[-2:] == lines_of({"width=1": edge, "width=2": edge})


def audited(work: SweepState) -> dict[int, RuleFinding]:
    findings = audit_folder(read_folder(work.runner.results.folder, pytest.fail))
    return {finding.number: finding for finding in findings}


@pytest.mark.slow
def test_tries_are_no_rows_that_an_audit_counts_or_compares(tmp_path: Path) -> None:
    card = Card(12_340)
    work = sweep(tmp_path, card, gpu_mem_cap_mib="12340")
    before = audited(work)
    found(work, card)
    after = audited(work)
    assert len(tried(card)) == 2
    attempts = [judged.pop(3).observations[0].figures["attempts"] for judged in (before, after)]
    assert attempts == [4, 6]
    assert after == before


def test_tries_that_an_older_version_timed_by_epochs_are_tries_beside_newer_ones() -> None:
    asked = {"status": "ok", "steps": 3, "epoch_time_source": "steady"}
    new = [
        Row.of_columns({"trial_id": f"t{batch}", "config_id": f"c{batch}", "batch_size": batch, **asked})
        for batch in (16, 32)
    ]
    old = [
        row_with(
            row, trial_id=f"{row.trial_id}o", config_id=f"{row.config_id}o", epoch_time_source="measured"
        )
        for row in new
    ]
    tables = folder_of([*new, *old], name="one-max-batch").tables
    assert [(table.kind, table.is_of_tries) for table in tables] == [
        ("steady rate", True), ("whole epochs", True),
    ]  # fmt: skip


def test_an_experiment_that_is_only_called_as_a_search_is_audited(tmp_path: Path) -> None:
    work = sweep(tmp_path, Card(12_340))
    plan = replace(work.plan, experiment=replace(work.plan.experiment, name="one-max-batch"))
    work = replace(work, plan=plan)
    for path in work.runner.results.plans():
        path.unlink()
    store_plan(work)
    (ended,) = audited(work)[10].observations
    assert ended.figures["rows"] == RowShare(4, 4)
