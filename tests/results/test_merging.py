"""Several results folders become one."""

import errno
import hashlib
import json
import os
import random
import re
import shutil
import tempfile
import tomllib
from pathlib import Path

import pytest
from earlier_version import as_earlier_version
from hypothesis import example, given, settings
from hypothesis import strategies as st
from swept import merge_records, swept

from gpubench.basics.errors import UnusableError
from gpubench.commands.merge import merge_folders
from gpubench.results import unite as uniting
from gpubench.results.counting import select_counting_records
from gpubench.results.store import Results
from gpubench.results.unite import unite_folders


def files(folder):
    """What lies in a folder, but for what is made anew from it."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.suffix in (".json", ".csv", ".log", ".toml", ".txt") and path.parent != folder
    }


def edited(folder, **values):
    """Another measurement of what lies there: the same ids and numbers with other figures."""
    for path in (folder / "records").glob("*/*.json"):
        told = json.loads(path.read_text())
        path.write_text(json.dumps(told | values))
    return folder


def tables(folder):
    """The lines of each table; those of trials that began in one second may change places."""
    return {path.name: sorted(path.read_text().splitlines()) for path in folder.glob("*.csv")}


def records(folder):
    return Results(folder).read_records()


@pytest.mark.slow
def test_folders_with_other_trials_stand_side_by_side_in_one(tmp_path, capsys):
    a, b, c = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    swept(a, "one", "16,32")
    swept(b, "two", "64")
    before = files(a), files(b)
    assert merge_folders([a, b], out=c) == 0
    assert (files(a), files(b)) == before
    assert {record.trial["batch_size"] for record in records(c)} == {16, 32, 64}
    both = {**before[0], **before[1]}
    both |= {name: files(c)[name] for name in both if name.startswith("plans/")}  # numbered anew
    assert {name: files(c).get(name) for name in both} == both
    assert len((c / "trials.csv").read_text().splitlines()) == 4
    assert capsys.readouterr().out.startswith(f"{c}: 3 attempts added")


def test_equal_attempts_are_there_once_and_merging_again_adds_nothing(tmp_path, capsys):
    a, b, c = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    swept(a, "one", "16,32")
    shutil.copytree(a, b)
    merge_records([a, b], out=c)
    once = files(c)
    assert len(records(c)) == len(records(a))
    merge_records([c, a, b], out=c)
    assert files(c) == once
    assert "0 attempts added" in capsys.readouterr().out


def test_names_of_left_out_images_go_along_and_none_goes_back(tmp_path):
    a, b, c = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    swept(a, "one", "16")
    swept(b, "two", "32")
    for folder, content in ((a, "x/1.jpg\n"), (c, "of its own\n")):
        (folder / "left-out").mkdir(parents=True)
        (folder / "left-out" / "data-1.txt").write_text(content)
    (b / "left-out").mkdir()
    (b / "left-out" / "data-2.txt").write_text("y/2.jpg\n")
    merge_records([a, b], out=c)
    lists = {path.name: path.read_text() for path in (c / "left-out").iterdir()}
    assert lists == {"data-1.txt": "of its own\n", "data-2.txt": "y/2.jpg\n"}
    assert [path.name for path in (b / "left-out").iterdir()] == ["data-2.txt"]


def test_a_plan_of_a_version_that_knew_no_numbers_goes_along_as_it_is(tmp_path):
    a, b, c = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    swept(a, "one", "16")
    swept(b, "two", "32")
    (old,) = (a / "plans").glob("*.toml")
    old.write_text(re.sub(r"(?m)^number = .*\n", "", old.read_text()))
    merge_records([a, b], out=c)
    assert (c / "plans" / old.name).read_text() == old.read_text()
    (numbered,) = (path for path in (c / "plans").glob("*.toml") if path.name != old.name)
    assert tomllib.loads(numbered.read_text())["plan"]["number"] == 1
    before = {path: path.stat().st_mtime_ns for path in (c / "plans").iterdir()}
    merge_records([c, a, b], out=c)
    assert {path: path.stat().st_mtime_ns for path in (c / "plans").iterdir()} == before


def test_measurements_of_one_trial_in_two_folders_are_kept_and_the_later_counts(tmp_path):
    a, b, c, d = (tmp_path / name for name in "abcd")
    swept(a, "one", "16")
    swept(b, "one", "16")
    edited(a, started_at="2099-01-01 00:00:00", reason="later")
    merge_records([a, b], out=c)
    merge_records([b, a], out=d)
    assert (
        files(c)
        == files(d)
        == files(a) | files(b) | {name: files(c)[name] for name in files(c) if "plans" in name}
    )
    assert [record.attempt for record in records(c)] == [1, 1]
    assert [record.reason for record in select_counting_records(records(c)).values()] == ["later"]
    for record in records(c):
        assert Results(c).make_log_path(record.trial_id, record.attempt_name).exists()
        assert (
            Results(c).make_attempt_file_path("samples", record.trial_id, record.attempt_name, "csv").exists()
        )


def test_something_else_under_one_id_is_left_out_and_named(tmp_path, capsys):
    a, b = tmp_path / "a", tmp_path / "b"
    swept(a, "one", "16")
    shutil.copytree(a, b)
    edited(b, reason="edited by hand")
    before = files(a)
    merge_records([a, b], out=a)
    assert files(a) == before
    (source,) = (b / "records").glob("*/*.json")
    assert f"{source} is left out" in capsys.readouterr().err


@pytest.mark.slow
def test_attempts_of_an_earlier_version_get_the_same_ids_wherever_they_are_merged(tmp_path):
    a, b, c, d, e = (tmp_path / name for name in "abcde")
    swept(a, "one", "16,32")
    as_earlier_version(a)
    shutil.copytree(a, b)
    edited(b, started_at="2099-01-01 00:00:00", reason="another")
    merge_records([a, b], out=c)
    merge_records([b, a], out=d)
    assert files(c) == files(d)
    assert len(records(c)) == 4
    assert all(record.attempt_id for record in records(c))
    assert {record.reason for record in select_counting_records(records(c)).values()} == {"another"}
    merge_records([c, a, d, b], out=c)
    assert files(c) == files(d)
    merge_records([a], out=e)
    ids = {"attempt_id", "folder_id", "schema_version"}
    without_ids = [
        [
            {name: value for name, value in record.to_stored().items() if name not in ids}
            for record in records(folder)
        ]
        for folder in (a, e)
    ]
    assert without_ids[0] == without_ids[1]


@pytest.mark.slow
def test_a_folder_of_an_earlier_version_goes_on_under_one_id(tmp_path):
    """Its further rounds belong to the first one that the earlier version measured, here and where it was merged."""
    a, b, c = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    swept(a, "one", "16")
    as_earlier_version(a)
    merge_records([a], out=b)
    swept(a, "one", "16", rounds=3)
    assert sorted(record.attempt for record in records(a)) == [1, 2, 3]
    assert [record.round for record in select_counting_records(records(a)).values()] == [1, 2, 3]
    assert {record.folder_id for record in records(a)} == {Results(a).folder_id}
    merge_records([b, a], out=b)
    # The first round is there once.
    assert len(records(b)) == 3
    assert [record.round for record in select_counting_records(records(b)).values()] == [1, 2, 3]
    merge_records([a], out=c)
    assert files(c) == {name: text for name, text in files(b).items() if "plans" not in name} | {
        name: text for name, text in files(c).items() if "plans" in name
    }


def test_the_next_attempt_is_numbered_in_its_own_folder(tmp_path):
    a, b = tmp_path / "a", tmp_path / "b"
    swept(a, "one", "16", rounds=3)
    merge_records([a], out=b)
    (trial_id,) = {record.trial_id for record in records(a)}
    assert Results(a).find_next_attempt_number(trial_id) == 4
    assert Results(b).find_next_attempt_number(trial_id) == 1


def test_a_reference_that_an_earlier_version_measured_is_kept_and_counts_nowhere(tmp_path):
    a, b, plain = tmp_path / "a", tmp_path / "b", tmp_path / "plain"
    swept(a, "one", "16")
    as_earlier_version(a)
    in_rounds(a, [1, 2])
    merge_folders([a], out=plain)
    (first,) = (a / "records").glob("*/*-1.json")
    reference = json.loads(first.read_text()) | {"attempt": 3, "reference": True, "schema_version": 4}
    first.with_name(first.name.replace("-1.json", "-3.json")).write_text(json.dumps(reference))
    assert [one.reference for one in records(a)].count(True) == 1
    assert [one.attempt for one in select_counting_records(records(a)).values()] == [1, 2]
    merge_folders([a], out=b)
    assert len(records(b)) == 3
    assert tables(b) == tables(plain)


def in_rounds(folder, days):
    """Gives the only trial of a folder an attempt a day, each in a further round."""
    (first,) = (folder / "records").glob("*/*.json")
    told = json.loads(first.read_text())
    for number, day in enumerate(days, 1):
        values = {"attempt": number, "round": number, "started_at": f"2020-01-{day:02} 00:00:00"}
        path = first.with_name(first.name.replace("-1.json", f"-{number}.json"))
        path.write_text(json.dumps(told | values))


def shown_rounds(folder):
    return sorted(
        (one.round, one.started_at[8:10]) for one in select_counting_records(records(folder)).values()
    )


@pytest.mark.slow
def test_an_older_first_round_takes_no_further_rounds_away(tmp_path):
    a, b, c = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    swept(a, "one", "16")
    as_earlier_version(a)
    shutil.copytree(a, b)
    in_rounds(a, [10, 12, 13])
    in_rounds(b, [11])
    merge_records([a, b], out=c)
    assert shown_rounds(c) == [(1, "10"), (2, "12"), (3, "13")]
    merge_records([a, b], out=a)
    assert shown_rounds(a) == [(1, "10"), (2, "12"), (3, "13")]


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 3])
def test_the_whole_record_of_a_copy_takes_the_place_of_one_that_is_cut_off(tmp_path, number):
    """Nothing was measured again: each attempt is there once, and all three rounds count."""
    whole, damaged, c = tmp_path / "whole", tmp_path / "damaged", tmp_path / "c"
    swept(whole, "one", "16", rounds=3)
    shutil.copytree(whole, damaged)
    (path,) = (damaged / "records").glob(f"*/*-{number}-*.json")
    path.write_bytes(path.read_bytes()[:400])
    kept = {name: text for name, text in files(whole).items() if not name.startswith("plans/")}
    for order in ([damaged, whole], [whole, damaged]):
        before = files(damaged), files(whole)
        assert merge_records(order, out=c) == 0
        assert (files(damaged), files(whole)) == before
        assert [record.round for record in select_counting_records(records(c)).values()] == [1, 2, 3]
        assert {name: text for name, text in files(c).items() if not name.startswith("plans/")} == kept
        shutil.rmtree(c)
    merge_records([damaged, whole], out=damaged)
    assert files(damaged) == files(whole)


def under_allowances(folder, *tries):
    """Gives the only trial of a folder these attempts: on how many CPUs, in which round, on which day."""
    (first,) = (folder / "records").glob("*/*.json")
    told = json.loads(first.read_text())
    # The trial leaves its CPUs to the machine.
    assert told["trial"]["cpus"] is None
    for number, (cpus, in_round, day) in enumerate(tries, 1):
        values = {
            "attempt": number,
            "round": in_round,
            "started_at": f"2020-01-{day:02} 00:00:00",
            "resolved": told["resolved"] | {"cpus": cpus},
        }
        path = first.with_name(first.name.replace("-1.json", f"-{number}.json"))
        path.write_text(json.dumps(told | values))


def shown_allowances(folder):
    """What counts in a folder: CPUs, round, day."""
    found = select_counting_records(records(folder)).values()
    return sorted((one.resolved["cpus"], one.round, int(one.started_at[8:10])) for one in found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mine", "others"),
    [
        # Two sweeps in rounds, in turns, each under an allowance of its own.
        ([(2, 1, 10), (2, 2, 12), (2, 3, 14)], [(4, 1, 9), (4, 2, 11), (4, 3, 13)]),
        # One folder has both: its rounds under either belong to the first one under the same.
        ([(2, 1, 10), (4, 1, 11), (2, 2, 12), (4, 2, 13)], [(8, 1, 12)]),
    ],
)
def test_each_allowance_counts_as_it_did_in_its_own_folder(tmp_path, capsys, mine, others):
    a, b, c, d = (tmp_path / name for name in "abcd")
    swept(a, "one", "16")
    as_earlier_version(a)
    shutil.copytree(a, b)
    under_allowances(a, *mine)
    under_allowances(b, *others)
    both = sorted(shown_allowances(a) + shown_allowances(b))
    assert both == sorted(mine + others)
    merge_records([a, b], out=c)
    merge_records([b, a], out=d)
    merge_records([a, b], out=a)
    assert [shown_allowances(one) for one in (a, c, d)] == [both] * 3
    assert capsys.readouterr().err == ""


def close_file(closed, monkeypatch):
    """Nobody may read this file any more; tests may run as root, who may read all."""
    whole = os.open

    def refuse(path, *more, **others):
        if Path(os.fsdecode(path)) == closed:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return whole(path, *more, **others)

    monkeypatch.setattr(os, "open", refuse)


@pytest.mark.slow
def test_a_plan_that_can_t_be_read_is_left_out_in_one_line(tmp_path, capsys, monkeypatch):
    a, b, c = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    swept(a, "one", "16")
    swept(b, "two", "32")
    (closed,) = (a / "plans").iterdir()
    before = files(a), files(b)
    close_file(closed, monkeypatch)
    merge_records([a, b], out=c)
    out, err = capsys.readouterr()
    assert out.startswith(f"{c}: 2 attempts added")
    told = f"gpubench: {closed} is left out: Permission denied"
    assert [line for line in err.splitlines() if str(closed) in line] == [told]
    assert {path.name.partition("-")[0] for path in (c / "plans").iterdir()} == {"two"}
    monkeypatch.undo()
    assert (files(a), files(b)) == before
    merge_records([a, b], out=c)
    assert {path.name.partition("-")[0] for path in (c / "plans").iterdir()} == {"one", "two"}


def test_a_plan_of_the_target_that_can_t_be_read_stays_as_it_is(tmp_path, monkeypatch):
    a, b = tmp_path / "a", tmp_path / "b"
    swept(a, "one", "16")
    shutil.copytree(a, b)
    (closed,) = (a / "plans").iterdir()
    (other,) = (b / "plans").iterdir()
    other.write_text(other.read_text() + "# the same plan, stored again\n")
    kept = closed.read_bytes()
    close_file(closed, monkeypatch)
    merge_records([a, b], out=a)
    monkeypatch.undo()
    assert closed.read_bytes() == kept


def test_a_folder_named_like_a_plan_is_left_out_and_named(tmp_path, capsys):
    a, b = tmp_path / "a", tmp_path / "b"
    swept(a, "one", "16")
    (a / "plans" / "y.toml").mkdir()
    assert merge_folders([a], out=b) == 0
    assert (b / "trials.csv").exists()
    assert f"{a / 'plans' / 'y.toml'} is left out" in capsys.readouterr().err


def test_names_of_folders_reach_the_terminal_without_control_characters(tmp_path, capsys):
    a = tmp_path / "a\x1b[31m\nb"
    swept(a, "one", "16")
    merge_records([a], out=tmp_path / "c\x1b[31m")
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert len(out.splitlines()) == 2


def test_a_group_goes_on_to_name_the_attempts_that_it_was_compared_with(tmp_path):
    def folder(name, started_at):
        root = tmp_path / name
        solo = {"trial_id": "taa1", "attempt": 1, "started_at": started_at}
        together = {"solos": [{"trial_id": "taa1", "attempt": 1}]}
        job = {"trial_id": "jaa1", "attempt": 1, "started_at": started_at, "together": together}
        group = {"group_id": "gaa1", "attempt": 1, "jobs": [job]}
        for record, unit_id in ((solo, "taa1"), (group, "gaa1")):
            path = Results(root).make_attempt_file_path("records", unit_id, "1", "json")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(record))
        log = Results(root).make_log_path("jaa1", "1")
        log.parent.mkdir(parents=True)
        log.write_text(started_at)
        return root

    sources = [Results(folder("a", "2026-01-01")), Results(folder("b", "2026-01-02"))]
    target = tmp_path / "c"
    unite_folders(sources, Results(target), print)
    stored = [json.loads(path.read_text()) for path in sorted((target / "records").glob("*/*.json"))]
    solos = {record["attempt_id"]: record for record in stored if "trial_id" in record}
    groups = [record for record in stored if "jobs" in record]
    assert len(solos) == len(groups) == 2
    for group in groups:
        (job,) = group["jobs"]
        (solo,) = job["together"]["solos"]
        assert solos[solo["attempt_id"]]["started_at"] == job["started_at"]
        assert job["attempt_id"] == group["attempt_id"] != solo["attempt_id"]
        log = Results(target).make_log_path("jaa1", job["attempt_id"])
        assert log.read_text() == job["started_at"]
    assert len(Results(target).list_logs("jaa1")) == 2


def test_one_folder_gets_its_tables_anew(tmp_path, capsys):
    swept(tmp_path / "a", "one", "16,32").write_tables()
    kept = tables(tmp_path / "a")
    assert len(kept) == 3
    for name in kept:
        (tmp_path / "a" / name).unlink()
    merge_folders([tmp_path / "a"], out=None)
    assert tables(tmp_path / "a") == kept
    assert "tables are written anew" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("after", [1, 3])
def test_an_interrupted_merge_is_completed_by_the_next(tmp_path, monkeypatch, after):
    a, b, c, d = (tmp_path / name for name in "abcd")
    swept(a, "one", "16,32")
    shutil.copytree(a, b)
    edited(b, started_at="2099-01-01 00:00:00", reason="another")
    merge_records([a, b], out=d)
    whole, left = uniting.copy_whole, [after]

    def stops(source, target):
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        whole(source, target)

    monkeypatch.setattr(uniting, "copy_whole", stops)
    with pytest.raises(KeyboardInterrupt):
        merge_records([a, b], out=c)
    monkeypatch.undo()
    for path in (c / "records").glob("*/*.json"):
        json.loads(path.read_text())
    merge_records([a, b], out=c)
    assert files(c) == files(d)


def test_a_full_disk_is_one_line_and_leaves_no_half_file(tmp_path, monkeypatch):
    a, c = tmp_path / "a", tmp_path / "c"
    swept(a, "one", "16")

    def full(descriptor):
        if "folder-id" not in Path(f"/proc/self/fd/{descriptor}").readlink().name:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UnusableError, match="No space left on device") as told:
        merge_folders([a], out=c)
    assert "\n" not in str(told.value)
    assert [path.name for path in c.rglob("*") if path.is_file()] == ["folder-id"]


@pytest.mark.parametrize("is_earlier", [False, True])
def test_a_log_without_a_record_goes_along(tmp_path, is_earlier):
    a, b = tmp_path / "a", tmp_path / "b"
    swept(a, "one", "16")
    (record,) = records(a)
    Results(a).make_log_path(record.trial_id, f"2-{Results(a).folder_id}00000000").write_text("killed")
    if is_earlier:
        as_earlier_version(a)
    merge_records([a], out=b)
    assert [path.read_text() for path in Results(b).list_logs(record.trial_id) if "-2-" in path.name] == [
        "killed"
    ]
    once = files(b)
    merge_records([a], out=b)
    assert files(b) == once


# ---- whatever lies in them ----

CHAIN = st.lists(st.sampled_from("uvwxyz"), max_size=3, unique=True)
"""What the attempts of one folder at one trial hold, in the order of their numbers."""
FOLDER = st.dictionaries(st.sampled_from(["taa1", "tab1"]), CHAIN, max_size=2)
FOLDERS = st.lists(FOLDER, min_size=1, max_size=3)


def make_folder(root, chains):
    folder = Results(root)
    for unit_id, chain in chains.items():
        for number, content in enumerate(chain, 1):
            path = folder.make_attempt_file_path("records", unit_id, str(number), "json")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"trial_id": unit_id, "attempt": number, "started_at": content}))
    return folder


def contents(folder):
    """(trial, content) of each attempt; each has a file of its own."""
    stored = [json.loads(Path(path).read_text()) for path in folder.list_record_files(print)]
    return sorted((record["trial_id"], record["started_at"]) for record in stored)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(FOLDERS, st.randoms(use_true_random=False))
@example([{"taa1": ["u", "v"]}, {"taa1": ["v"]}], random.Random(0))
def test_merging_keeps_all_adds_nothing_twice_and_does_not_ask_for_an_order(folders, chance):
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        sources = [make_folder(root / str(place), chains) for place, chains in enumerate(folders)]
        first, second = Results(root / "first"), Results(root / "second")
        unite_folders(sources, first, print)
        expected = {
            (unit, content) for chains in folders for unit, chain in chains.items() for content in chain
        }
        assert contents(first) == sorted(expected)
        other_way = list(sources)
        chance.shuffle(other_way)
        unite_folders(other_way, second, print)
        assert contents(second) == sorted(expected)
        unite_folders([first, *other_way], first, print)
        assert contents(first) == sorted(expected)
