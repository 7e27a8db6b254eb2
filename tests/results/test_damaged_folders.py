"""Damaged files in a results folder: each is named once and left out, and every command goes on with the rest."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from benches import Heard, run_with, sweep_of
from damaged import FILES, PLANS, RECORDS, Damage, changed
from earlier_version import as_earlier_version
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scripted import Scripted

from gpubench.analyze.audit import audit_folder
from gpubench.analyze.folder import read_folder
from gpubench.analyze.predict import collect_past_predictions
from gpubench.analyze.questions import make_folder_reports
from gpubench.analyze.view import parse_view
from gpubench.cli.main import main
from gpubench.node import environment
from gpubench.node.launch.fork_server import ForkServer
from gpubench.plan.command_line import make_plan
from gpubench.plan.experiment_file import read_experiment_file
from gpubench.plan.sources import DiskSources
from gpubench.render import audit, prediction
from gpubench.render.forms import format_reports
from gpubench.results.store import Results
from gpubench.run.stored_plan import store_plan
from gpubench.run.sweep_state import SweepState

GOOD = """name = "good"
[fixed]
model = "lenet"
variant = "synthetic"
device = "cpu"
input_size = 28
train_images = 256
[axes]
batch_size = [16, 32]
[run]
rounds = 1
epochs = 2
"""
OTHER = """name = "other"
[fixed]
model = "lenet"
variant = "synthetic"
device = "cpu"
input_size = 28
train_images = 256
[[group]]
jobs = [{ batch_size = 64 }, { batch_size = 128 }]
[run]
rounds = 1
epochs = 2
"""


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


def gpubench(*arguments: object) -> Answer:
    """The command line in this process. An exception that users would see as a traceback is one of the test."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["gpubench", *map(str, arguments)])
        patch.setenv("COLUMNS", "300")
        streams = contextlib.redirect_stdout(out), contextlib.redirect_stderr(err)
        with streams[0], streams[1], pytest.raises(SystemExit) as ended:
            main()
    assert isinstance(ended.value.code, int)
    return Answer(ended.value.code, out.getvalue(), err.getvalue())


def work_on(folder: Path, experiment: Path) -> SweepState:
    machine = environment.make_machine(None)
    asked = read_experiment_file(experiment)
    return sweep_of(make_plan(asked, machine, DiskSources(), None), folder, machine)


def swept(
    folder: Path, experiment: Path, *, has_tables: bool = False
) -> tuple[SweepState, Scripted, list[str]]:
    """`gpubench sweep EXPERIMENT --out FOLDER` with scripted trials; what it said."""
    work = work_on(folder, experiment)
    heard, launcher = Heard(), Scripted()
    work.load(heard.say)
    store_plan(work)
    run_with(launcher, work, heard, has_tables=has_tables)
    launcher.close()
    return work, launcher, heard.lines


@dataclass(frozen=True)
class Home:
    """Two experiments, both measured into one folder: `good`, which stays whole, and `other`, with a group."""

    home: Path

    @property
    def folder(self) -> Path:
        return self.home / "results"

    @property
    def good(self) -> Path:
        return self.home / "good.toml"

    @property
    def other(self) -> Path:
        return self.home / "other.toml"

    def record(self, batch_size: int) -> Path:
        """The file of the trial alone with this batch."""
        for path in (self.folder / "records").glob("*/t*.json"):
            if json.loads(path.read_text())["trial"]["batch_size"] == batch_size:
                return path
        raise AssertionError(batch_size)

    def group(self) -> Path:
        (path,) = (self.folder / "records").glob("*/g*.json")
        return path

    def plan(self, name: str) -> Path:
        (path,) = (self.folder / "plans").glob(f"{name}-*.toml")
        return path


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = Home(tmp_path_factory.mktemp("damaged"))
    home.good.write_text(GOOD)
    home.other.write_text(OTHER)
    swept(home.folder, home.good)
    swept(home.folder, home.other, has_tables=True)
    as_earlier_version(home.folder)
    for path in (home.folder / "records").glob("*/t*.json"):  # what scripts don't use, and a prediction needs
        text = changed(path.read_text(), "result.cpu_s_per_epoch", "0.4")
        path.write_text(text)
    return home


@pytest.fixture
def place(measured: Home, tmp_path: Path) -> Home:
    """A copy to damage."""
    shutil.copytree(measured.home, tmp_path / "home", symlinks=True)
    return Home(tmp_path / "home")


def damage(path: Path, how: Damage) -> None:
    text = path.read_text()
    path.unlink()
    how(path, text)


# ---- every kind of damage under every command that reads ----

TWINS = {kind: f"t{number:012x}" for number, kind in enumerate(RECORDS)}
"""Kind of damage -> the trial that has it."""

COMMANDS: dict[str, Callable[[Home], tuple[object, ...]]] = {
    "table": lambda home: ("table", home.folder),
    "markdown": lambda home: (
        "table", home.folder, "--markdown", "--columns", "energy_j,slowdown,loss,images_per_joule",
    ),
    "audit": lambda home: ("audit", home.folder, "--json"),
    "predict": lambda home: ("predict", home.folder, "--experiment", home.other),
    "plan": lambda home: ("sweep", home.good, "--out", home.folder, "-n"),
    "sweep": lambda home: ("sweep", home.good, "--out", home.folder),
}  # fmt: skip
READS_NO_PLANS = ("plan",)
TABLES = ("trials.csv", "epochs.csv", "table.csv", "table.md")


@pytest.fixture(scope="module")
def ruined(measured: Home, tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Beside what is whole, one file with each kind of damage: records of other trials, of groups, and plans."""
    home = Home(tmp_path_factory.mktemp("ruined") / "home")
    shutil.copytree(measured.home, home.home)
    record = json.loads(home.record(16).read_text())
    for kind, trial in TWINS.items():
        path = home.folder / "records" / trial[1:3] / f"{trial}-1.json"
        path.parent.mkdir(exist_ok=True)
        RECORDS[kind](path, json.dumps(record | {"trial_id": trial}))
    group = home.group()
    text = group.read_text()
    for number, kind in enumerate(FILES):
        if kind != "deep-inside":
            RECORDS[kind](group.with_name(f"g{number:012x}-1.json"), text)
    plan = home.plan("good").read_text().replace("number = 1", "number = 0")
    for number, kind in enumerate(PLANS):
        PLANS[kind](home.folder / "plans" / f"good-{number:08x}.toml", plan)
    return home


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_every_damaged_file_is_named_once_and_the_rest_goes_on(
    ruined: Home, measured: Home, name: str
) -> None:
    whole, found = gpubench(*COMMANDS[name](measured)), gpubench(*COMMANDS[name](ruined))
    assert found.code == whole.code == 0
    damaged = [f"{trial}-1.json" for trial in TWINS.values()]
    damaged += [f"g{number:012x}-1.json" for number, kind in enumerate(FILES) if kind != "deep-inside"]
    if name not in READS_NO_PLANS:
        damaged += [f"good-{number:08x}.toml" for number in range(len(PLANS))]
    lines = [line for line in found.err.splitlines() if "is left out" in line]
    named = [re.split(r" is left out", line)[0].rpartition("/")[2] for line in lines]
    assert sorted(named) == sorted(damaged)
    if name == "markdown":  # a file goes further than what is said on stderr
        found = replace(
            found, out="".join(line for line in found.out.splitlines(True) if " is left out" not in line)
        )
    if name == "sweep":  # the tables hold what is whole
        for table in TABLES:
            assert (ruined.folder / table).read_text() == (measured.folder / table).read_text()
    if name != "audit":  # it says besides that attempts began of which no record can be read
        assert found.out == whole.out.replace(str(measured.home), str(ruined.home))


def audited(home: Home) -> tuple[dict[str, str], str]:
    """Rule 3, and what is said on stderr of the records."""
    found = gpubench("audit", home.folder, "--json")
    assert found.code == 0
    return json.loads(found.out.splitlines()[2]), found.err


def test_a_folder_of_nothing_but_damaged_records_holds_none(place: Home) -> None:
    for path in (place.folder / "records").glob("*/*.json"):
        damage(path, FILES["half"])
    for name in ("table", "audit", "predict"):
        found = gpubench(name, place.folder)
        assert found.code == 4
        assert found.err.splitlines()[-1] == f"gpubench: {place.folder} holds no record that can be read"
        assert found.err.count("is left out") == 5


# ---- a sweep into it ----


def contents_of(folder: Path) -> dict[str, bytes]:
    """Every record and file of samples that can be read as one."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for kind in ("records", "samples")
        for path in (folder / kind).glob("*/*.[cj]s*")
        if path.is_file()
    }


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dangling-link", "newer", "attempt 1000000000"])
def test_a_damaged_attempt_is_measured_again_under_the_next_number(place: Home, kind: str) -> None:
    path = place.record(16)
    damage(path, RECORDS[kind])
    before = contents_of(place.folder)
    work, launcher, said = swept(place.folder, place.good)
    assert [order.trial.batch_size for order in launcher.launched] == [16]
    assert len([line for line in said if path.name in line]) == 1
    (again,) = [record for record in work.records if record.trial["batch_size"] == 16 and not record.group]
    assert again.attempt == 2
    after = contents_of(place.folder)
    # Nothing that was there is written over.
    assert before.items() <= after.items()
    assert len(after) == len(before) + 2
    assert path.is_fifo() or path.is_symlink() or path.exists()
    _, launcher, _ = swept(place.folder, place.good)
    assert not launcher.launched, "it is measured now"


# ---- once it has been measured again ----


ANEW = "; where no other attempt counts, the sweep that it is of measures anew"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["trial.batch_size 0", "fifo"])
def test_once_it_has_been_measured_again_the_line_says_so_and_the_audit_decides(
    place: Home, kind: str
) -> None:
    path = place.record(16)
    name = path.stem
    damage(path, RECORDS[kind])
    rule, said = audited(place)
    (line,) = said.splitlines()
    assert line.startswith(f"gpubench: record {path} is left out")
    assert line.endswith(ANEW)
    assert (rule["verdict"], name in rule["finding"]) == ("not decidable", True)
    swept(place.folder, place.good)
    rule, _ = audited(place)
    # What the file held nobody knows.
    assert rule["verdict"] == "not decidable"
    assert f": {name} (damaged, " in rule["finding"]
    path.unlink()
    rule, said = audited(place)
    assert said == ""
    assert rule["verdict"] == "not decidable", "anything may have been deleted"
    assert f": {name} (damaged, " in rule["finding"]


@pytest.mark.slow
@pytest.mark.parametrize(("cut_off", "rounds"), [((1, 3), 0), ((2,), 2), ((2, 3), 1)], ids=str)
def test_rounds_whose_first_is_damaged_do_not_count(
    place: Home, cut_off: tuple[int, ...], rounds: int
) -> None:
    path = place.record(16)
    files = {number: path.with_name(path.name.replace("-1.", f"-{number}.")) for number in (1, 2, 3)}
    for number in (2, 3):
        again = changed(changed(path.read_text(), "attempt", str(number)), "round", str(number))
        files[number].write_text(again)
    for number in cut_off:
        damage(files[number], FILES["half"])
    lines: list[str] = []
    found = read_folder(place.folder, lines.append)
    assert len(lines) == len(cut_off)
    merged = found.summary[found.summary["batch_size"] == 16]
    assert merged[["repeats", "status"]].values.tolist() == [[rounds, "ok" if rounds else "missing"]]


@pytest.mark.slow
def test_a_damaged_group_is_measured_again_as_a_whole(place: Home) -> None:
    path = place.group()
    damage(path, FILES["half"])
    _, launcher, _ = swept(place.folder, place.other)
    assert [order.trial.batch_size for order in launcher.launched] == [64, 128]
    (again,) = (file.name for file in path.parent.glob("g*") if file != path)
    assert again.startswith(path.name.replace("-1.json", "-2-"))


@pytest.mark.slow
def test_a_real_sweep_among_damaged_files_measures_what_they_left_open(
    place: Home, server: ForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpubench.node.node.ForkServer", lambda _, **__: server)
    monkeypatch.setattr(server, "close", lambda: None)  # other tests go on with it
    path, plan = place.record(16), place.plan("other")
    damage(path, FILES["fifo"])
    damage(plan, FILES["not-utf8"])
    damage(place.group(), RECORDS["newer"])
    (place.folder / "table.csv").unlink()
    (place.folder / "table.csv").mkdir()
    ended = gpubench("sweep", place.good, "--out", place.folder)
    assert ended.code == 4, ended.err
    for name in (path.name, plan.name, place.group().name):
        assert ended.err.count(f"{name} is left out") == 1
    assert ended.err.splitlines()[-1].startswith(f"gpubench: {place.folder / 'table.csv'} can't be written")
    assert "[1/2]" in ended.err
    assert "[2/2]" not in ended.err, "the other one is done"
    records = Results(place.folder).read_records(lambda _: None)
    assert [r.attempt for r in records if r.trial["batch_size"] == 16] == [2]
    with (place.folder / "trials.csv").open() as file:
        rows = {
            row["batch_size"]: row["status"] for row in csv.DictReader(file) if row["experiment"] == "good"
        }
    assert rows == {"16": "ok", "32": "ok"}


# ---- tables that can't be written ----


@pytest.mark.slow
def test_a_table_that_can_not_be_written_ends_no_sweep(place: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpubench.run.sweep.TABLES_PERIOD_S", 0.0)
    for table in TABLES:
        (place.folder / table).unlink()
    closed = [place.folder / "trials.csv", place.folder / "table.md"]
    for path in closed:
        path.mkdir()
    shutil.rmtree(place.folder / "records")
    work, launcher, said = swept(place.folder, place.good, has_tables=True)
    assert len(launcher.launched) == 2
    assert len(work.records) == 2
    (line,) = [line for line in said if "can't be written" in line]
    assert line.startswith(f"tables: {closed[0]} can't be written: ")
    assert f"{closed[0]} can't be written" in work.unwritten
    assert ", nor can 1 more" in work.unwritten
    assert [table for table in TABLES if (place.folder / table).is_file()] == ["epochs.csv", "table.csv"]
    for path in closed:
        path.rmdir()
    work.write_tables()
    assert work.unwritten == ""


# ---- what is read can be told ----

FIGURES = st.sampled_from([None, 0, 1, 3, 64, 10**9, 10**15, 1e-9, 0.5, 1e12, -1.0, True, False])
WORDS = st.sampled_from(
    [
        "",
        "x",
        "oom",
        "failed",
        "skipped",
        "timeout",
        "+",
        "=1",
        "a\nb",
        "\x1b[31m",
        "cuda",
        "ddp",
        "dp",
        "\u202e",
        None,
    ]
)
PARTS = st.sampled_from([[], [None], {}, {"a": 1}, None, 0, "x"])


def places(held: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value in a record."""
    inside = held.items() if isinstance(held, dict) else enumerate(held[:3]) if isinstance(held, list) else ()
    return [way] * bool(way) + [one for key, value in inside for one in places(value, (*way, key))]


WIDE = parse_view("energy_j,slowdown,loss,images_per_joule", (), None)
MACHINE = environment.make_machine(None)


def parent_of(stored: Any, way: tuple[Any, ...]) -> Any:
    """What the last step of the way leads out of."""
    for key in way[:-1]:
        stored = stored[key]
    return stored


@pytest.mark.slow
@pytest.mark.timeout(900)
@given(data=st.data())
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_the_reader_lets_through_can_be_told(place: Home, data: st.DataObject) -> None:
    """Other values of the same kind, two places at once, in two trials and their group: no command breaks off."""
    texts = {path: path.read_text() for path in (place.record(16), place.record(64), place.group())}
    try:
        for path, text in texts.items():
            stored = json.loads(text)
            for _ in range(2):
                way = data.draw(st.sampled_from(places(stored)))
                parent = parent_of(stored, way)
                value = parent[way[-1]]
                kind = (
                    FIGURES if isinstance(value, (int, float)) else WORDS if isinstance(value, str) else PARTS
                )
                parent[way[-1]] = data.draw(kind)
            path.write_text(json.dumps(stored))
        read = read_folder(place.folder, lambda _: None)
        assert format_reports("markdown", make_folder_reports([read], WIDE))
        assert audit.format_json(audit_folder(read))
        assert prediction.format_text(collect_past_predictions([read], MACHINE))
    finally:
        for path, text in texts.items():
            path.write_text(text)
