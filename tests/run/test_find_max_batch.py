"""`--find-max-batch`: sizes at the edge of memory are tried, kept, and not tried again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import scripted
from benches import Heard, node_of, run_with, sweep_of
from folders import analyze, rows_of_table
from scripted import Driver, Scripted

from gpubench.analyze.questions import make_table_report
from gpubench.basics.errors import UsageError
from gpubench.commands import sweep as command
from gpubench.node.node import Node
from gpubench.plan.experiment_file import parse_experiment
from gpubench.plan.max_batch import MemoryEdge
from gpubench.plan.options import apply_options
from gpubench.plan.plan import expand_experiment
from gpubench.plan.sources import DiskSources
from gpubench.plan.sweep_options import ExperimentOptions, RunOptions
from gpubench.render.live import QuietView
from gpubench.render.running import describe_unit_end
from gpubench.results.rows import make_row
from gpubench.run.limits import Limits, SweepSummary
from gpubench.run.max_batch import find_known_memory_edge, list_max_batch_searches, search_max_batch
from gpubench.run.stored_plan import store_plan
from gpubench.run.sweep_state import SweepState
from gpubench.schema.order import SteadyWindow, TrialOrder
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
    options = ExperimentOptions(fields={"batch_size": "16,32,64,128", **fields})
    asked = apply_options(parse_experiment(ASKED, "one"), options)
    plan = expand_experiment(asked, device="cuda", sources=DiskSources())
    work = sweep_of(plan, folder, scripted.computer(gpus=there), nvml=Driver(mib=Held(card)))
    work.load()
    store_plan(work)
    run_with(card, work, QuietView(), has_tables=False)
    return work


def found(work: SweepState, card: Card, stop_after: int = 99) -> list[str]:
    """What the search says."""
    told: list[str] = []

    def run(tries: SweepState) -> tuple[SweepSummary, Limits]:
        should_stop = lambda: len(card.launched) >= stop_after and not card.left  # noqa: E731
        ended = run_with(card, tries, Heard(), should_stop, has_tables=False)
        return ended, ended.limits

    for one in list_max_batch_searches(work):
        for _ in search_max_batch(work, one, run, told.append, store_plan):
            pass
    return told


def edges(work: SweepState) -> dict[str, MemoryEdge]:
    """Where memory ends by all that is stored, by the names of the configurations."""
    return {search.name: find_known_memory_edge(work, search)[0] for search in list_max_batch_searches(work)}


def lines_of(edges: Mapping[str, MemoryEdge]) -> list[str]:
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
def test_the_line_leads_to_the_edge_in_a_few_tries_that_tell_of_memory_alone(tmp_path: Path) -> None:
    """12,340 MiB are there: 1,134 images. Who reads from first steps that larger batches don't pay is misled."""
    card = Card(12_340)
    work = sweep(tmp_path, card, gpu_mem_cap_mib="12340")
    lines = found(work, card)
    assert edges(work) == {"": MemoryEdge(ran=1_134, full=1_150)}
    assert lines == lines_of(edges(work))
    assert tried(card) == [1134, 1150]
    results = work.runner.results
    ran = [row for record in results.read_records() if (row := make_row(record)).batch_size == 1_134]
    assert [describe_unit_end(1, 1, "x", [row]) for row in ran] == ["[1/1] x  ok  12,340 MiB"]
    assert "epoch" in describe_unit_end(1, 1, "x", [row_with(ran[0], experiment="one")])
    folder = analyze(results)
    one, tries = (make_table_report(folder, table) for table in folder.tables)
    assert {column.name for column in one.columns} >= {"epoch_time_s", "memory_gib"}
    assert [column.name for column in tries.columns] == ["batch_size", "memory_gib"]
    # Their sizes and memory say it.
    assert (tries.findings, tries.warnings) == ((), ())
    rows = [row for row in rows_of_table(folder, 1) if row["status"] == "ok"]
    assert all(row["epoch_time_s"] is None and row["gpu_mem_mib"] for row in rows)


@pytest.mark.slow
def test_a_search_that_was_stopped_goes_on_and_one_that_has_ended_tries_nothing(tmp_path: Path) -> None:
    """Without a line through memory, so that sizes are doubled and halved."""
    card = Card(12_340)
    work = sweep(tmp_path, card, batch_size="16")
    found(work, card, stop_after=3)
    before = tried(card)
    assert len(before) == 2
    again = Card(12_340)
    work = sweep(tmp_path, again, batch_size="16")
    said = found(work, again)
    assert not set(tried(again)) & set(before)
    assert [*before, *tried(again)][:3] == [32, 64, 128]
    edge = edges(work)[""]
    assert edge.full is not None
    assert edge.ran <= 1_134 < edge.full <= edge.ran + 16
    last = Card(12_340)
    assert found(sweep(tmp_path, last, batch_size="16"), last) == said
    assert tried(last) == []


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
            ExperimentOptions(fields={"device": "cpu"}),
            RunOptions(find_max_batch=True, out=tmp_path / "x"),
        )
    assert str(refused.value) == (
        "--find-max-batch fills GPU memory: no trial of this plan trains by itself on a GPU; leave the option out"
    )
    assert not (tmp_path / "x").exists()


def test_a_command_is_not_tried_with_a_few_steps(tmp_path: Path) -> None:
    asked = parse_experiment(
        'name = "c"\n[command]\nrun = "ls {batch_size}"\n[axes]\nbatch_size = [1, 2]', "c"
    )
    plan = expand_experiment(asked, device="cuda", sources=DiskSources())
    with pytest.raises(UsageError, match="no trial of this plan trains by itself"):
        list_max_batch_searches(sweep_of(plan, tmp_path, scripted.computer(gpus=1)))


@pytest.mark.slow
def test_the_command_searches_after_its_sweep_and_tells_what_it_found_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    card = Card(3_000)
    node = node_of(scripted.computer(gpus=1), Driver(mib=Held(card)))
    monkeypatch.setattr(command, "make_this_node", lambda _: node)
    monkeypatch.setattr(Node, "start_fork_server", lambda self, **_: setattr(self, "launcher", card))
    monkeypatch.setattr(Node, "wait_ready", lambda self, should_stop: True)  # noqa: ARG005
    (tmp_path / "one.toml").write_text(ASKED)
    options = ExperimentOptions(fields={"batch_size": "16,32,64,128", "gpu_mem_cap_mib": "3000"})

    def asked(**more: object) -> int:
        return command.sweep(tmp_path / "one.toml", options, RunOptions(out=tmp_path / "x", **more))

    assert asked(find_max_batch=True, dry_run=True) == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        "then batch sizes are tried at the edge of GPU memory: at most 16 trials of 3 steps (--find-max-batch)"
    )
    assert asked(find_max_batch=True) == 0
    assert len(tried(card)) > 0
    assert "**What is the largest batch" in (tmp_path / "x" / "table.md").read_text()
    told = capsys.readouterr()
    edge_lines = lines_of({"": MemoryEdge(ran=200, full=202)})
    assert told.err.splitlines()[-1:] == edge_lines
    before = len(card.launched)
    assert asked(find_max_batch=True) == 0
    assert len(card.launched) == before
    assert capsys.readouterr().err.splitlines()[-1:] == edge_lines


def test_a_load_is_not_tried_for_its_size_is_its_work(tmp_path: Path) -> None:
    asked = parse_experiment('name = "l"\n[fixed]\nmodel = "matmul"\n[axes]\nbatch_size = [64, 128]', "l")
    plan = expand_experiment(asked, device="cuda", sources=DiskSources())
    with pytest.raises(UsageError, match="no trial of this plan trains by itself"):
        list_max_batch_searches(sweep_of(plan, tmp_path / "x", scripted.computer(gpus=1)))
