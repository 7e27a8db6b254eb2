"""Several results folders become one."""

import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from swept import swept

from gpubench.basics.errors import UnusableError
from gpubench.commands.merge import merged
from gpubench.results.counting import counting
from gpubench.results.merging import files as merged_files
from gpubench.results.merging.merge import merge
from gpubench.results.store import Results


def files(folder):
    """What lies in a folder, but for what is made anew from it."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".md" and path.parent != folder
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
    return Results(folder).records()


@pytest.mark.slow
def test_folders_with_other_trials_stand_side_by_side_in_one(tmp_path, capsys):
    a, b, c = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    swept(a, "one", "16,32")
    swept(b, "two", "64")
    before = files(a), files(b)
    assert merged([a, b], out=c) == 0
    assert (files(a), files(b)) == before
    assert {record.trial.batch_size for record in records(c)} == {16, 32, 64}
    both = {**before[0], **before[1]}
    both |= {name: files(c)[name] for name in both if name.startswith("plans/")}  # numbered anew
    assert {name: files(c).get(name) for name in both} == both
    assert len((c / "trials.csv").read_text().splitlines()) == 4
    assert capsys.readouterr().out.startswith(f"{c}: 3 attempts added")


def test_equal_attempts_are_there_once_and_merging_again_adds_nothing(tmp_path, capsys):
    a, b, c = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    swept(a, "one", "16,32")
    shutil.copytree(a, b)
    merged([a, b], out=c)
    once = files(c)
    assert len(records(c)) == len(records(a))
    merged([c, a, b], out=c)
    assert files(c) == once
    assert "0 attempts added" in capsys.readouterr().out


def test_conflicting_attempts_are_kept_apart_and_named(tmp_path, capsys):
    a, b, c = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    swept(a, "one", "16")
    shutil.copytree(a, b)
    edited(b, started_at="2099-01-01 00:00:00", reason="another")
    merged([a, b], out=c)
    assert [(one.attempt, one.reason) for one in records(c)] == [(1, ""), (2, "another")]
    out = capsys.readouterr().out
    (source,) = (b / "records").glob("*/*.json")
    assert f"  {source}: attempt 2 in {c}" in out.splitlines()
    (trial_id,) = {one.trial_id for one in records(c)}
    assert Results(c).log(trial_id, 2).exists()
    assert Results(c).part("samples", trial_id, 2, "csv").exists()
    merged([b, a], out=tmp_path / "d")
    assert files(tmp_path / "d") == files(c)


def test_an_older_attempt_never_counts_in_place_of_what_the_target_has(tmp_path, capsys):
    a, b = tmp_path / "a", tmp_path / "b"
    swept(a, "one", "16")
    shutil.copytree(a, b)
    edited(b, started_at="1999-01-01 00:00:00", reason="earlier")
    before = files(a)
    merged([a, b], out=a)
    assert {one.attempt: one.reason for one in records(a)} == {1: ""}
    assert {name: files(a)[name] for name in before if name.startswith(("logs", "samples"))}.items() <= (
        before.items()
    )
    assert len(files(a)) == len(before)
    (source,) = (b / "records").glob("*/*.json")
    assert f"  {source}" in capsys.readouterr().out.splitlines()


def test_a_reference_that_an_earlier_version_measured_is_kept_and_counts_nowhere(tmp_path):
    a, b, plain = tmp_path / "a", tmp_path / "b", tmp_path / "plain"
    swept(a, "one", "16")
    in_rounds(a, [1, 2])
    merged([a], out=plain)
    (first,) = (a / "records").glob("*/*-1.json")
    reference = json.loads(first.read_text()) | {"attempt": 3, "reference": True, "schema_version": 4}
    first.with_name(first.name.replace("-1.json", "-3.json")).write_text(json.dumps(reference))
    assert [one.reference for one in records(a)].count(True) == 1
    assert [one.attempt for one in counting(records(a)).values()] == [1, 2]
    merged([a], out=b)
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
    return sorted((one.round, one.started_at[8:10]) for one in counting(records(folder)).values())


@pytest.mark.slow
@pytest.mark.parametrize("other", [1, 11])
def test_an_older_first_round_takes_no_further_rounds_away(tmp_path, capsys, other):
    a, b, c = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    swept(a, "one", "16")
    shutil.copytree(a, b)
    in_rounds(a, [10, 12, 13])
    in_rounds(b, [other])
    merged([a, b], out=c)
    assert shown_rounds(c) == [(1, "10"), (2, "12"), (3, "13")]
    merged([a, b], out=a)
    assert shown_rounds(a) == [(1, "10"), (2, "12"), (3, "13")]
    assert "no longer" not in capsys.readouterr().out


def test_further_rounds_that_no_longer_count_are_told(tmp_path, capsys):
    a, b, c = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    swept(a, "one", "16")
    shutil.copytree(a, b)
    in_rounds(a, [10, 12, 13])
    in_rounds(b, [20])
    merged([b, a], out=c)
    assert shown_rounds(c) == [(1, "20")]
    assert (
        "2 attempts of further rounds counted in the folders and no longer count" in capsys.readouterr().out
    )


def three_rounds(folder, *, sampled):
    """A trial of three rounds, with or without time series."""
    swept(folder, "one", "16")
    in_rounds(folder, [10, 12, 13])
    shutil.rmtree(folder / "samples", ignore_errors=True)
    for path in (folder / "records").glob("*/*.json") if sampled else ():
        beside = folder / "samples" / path.parent.name / f"{path.stem}.csv"
        beside.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(f"t_s,device,metric,value\n{path.stem[-1]},0,power_w,1\n")
    return folder


def cut_off(folder, number, keep=400):
    """Only the beginning of the record of an attempt is left."""
    (path,) = (folder / "records").glob(f"*/*-{number}.json")
    path.write_bytes(path.read_bytes()[:keep])
    return path


@pytest.mark.slow
@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_the_whole_record_of_a_copy_takes_the_place_of_one_that_is_cut_off(tmp_path, capsys, number, sampled):
    """Nothing was measured again: each attempt is there once, and all three rounds count."""
    whole, damaged, c = tmp_path / "whole", tmp_path / "damaged", tmp_path / "c"
    three_rounds(whole, sampled=sampled)
    shutil.copytree(whole, damaged)
    path = cut_off(damaged, number)
    of_records = {name: text for name, text in files(whole).items() if not name.startswith("plans/")}
    for order in ([damaged, whole], [whole, damaged]):
        before = files(damaged), files(whole)
        assert merged(order, out=c) == 0
        assert (files(damaged), files(whole)) == before
        assert shown_rounds(c) == [(1, "10"), (2, "12"), (3, "13")]
        assert {name: text for name, text in files(c).items() if not name.startswith("plans/")} == of_records
        said = capsys.readouterr().out
        assert "1 record that can't be read: another folder has the same attempt whole" in said
        assert str(path) in said
        assert "no longer" not in said
        assert "new one" not in said
        shutil.rmtree(c)
    merged([damaged, whole], out=damaged)
    assert files(damaged) == files(whole)
    assert "stays as it was, but for 1 record\n" in capsys.readouterr().out


def test_one_that_may_be_another_attempt_takes_no_place(tmp_path, capsys):
    """Other time series, or nothing that both folders have, or a record that is no beginning of the other."""
    whole, damaged = three_rounds(tmp_path / "whole", sampled=False), tmp_path / "damaged"
    shutil.copytree(whole, damaged)
    path = cut_off(damaged, 3)
    beside = [one / "samples" / path.parent.name / f"{path.stem}.csv" for one in (whole, damaged)]

    def keeps_both(name):
        merged([damaged, whole], out=tmp_path / name)
        assert "another folder has the same attempt" not in capsys.readouterr().out
        kept = {one.read_bytes() for one in (tmp_path / name / "records").glob("*/*.json")}
        assert path.read_bytes() in kept
        assert len(kept) == 4

    for number, one in enumerate(beside):
        one.parent.mkdir(parents=True)
        one.write_text(f"t_s,device,metric,value\n{number},0,power_w,1\n")
    keeps_both("unlike-samples")
    for one in beside:
        one.unlink()
    cut = path.read_bytes()
    path.write_bytes(b"{" + cut)
    keeps_both("no-beginning")
    path.write_bytes(cut)
    for number in (1, 2):
        (other,) = (damaged / "records").glob(f"*/*-{number}.json")
        other.unlink()
    merged([damaged, whole], out=tmp_path / "alone")
    assert "another folder has the same attempt" not in capsys.readouterr().out
    assert path.read_bytes() in {
        one.read_bytes() for one in (tmp_path / "alone" / "records").glob("*/*.json")
    }


def under_allowances(folder, *tries):
    """Gives the only trial of a folder these attempts: on how many CPUs, in which round, on which day."""
    (first,) = (folder / "records").glob("*/*.json")
    told = json.loads(first.read_text())
    assert told["trial"]["cpus"] is None, "the trial leaves its CPUs to the machine"
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
    found = counting(records(folder)).values()
    return sorted((one.resolved["cpus"], one.round, int(one.started_at[8:10])) for one in found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mine", "others"),
    [
        # Two sweeps in rounds, in turns, each under an allowance of its own.
        ([(2, 1, 10), (2, 2, 12), (2, 3, 14)], [(4, 1, 11), (4, 2, 13), (4, 3, 15)]),
        ([(2, 1, 10), (2, 2, 12), (2, 3, 14)], [(4, 1, 9), (4, 2, 11), (4, 3, 13)]),
        ([(2, 1, 10)], [(4, 1, 5)]),
        # One folder has both: its rounds under either belong to the first one under the same.
        ([(2, 1, 10), (4, 1, 11), (2, 2, 12), (4, 2, 13)], [(8, 1, 12)]),
    ],
)
def test_each_allowance_counts_as_it_did_in_its_own_folder(tmp_path, capsys, mine, others):
    a, b, c, d = (tmp_path / name for name in "abcd")
    swept(a, "one", "16")
    shutil.copytree(a, b)
    under_allowances(a, *mine)
    under_allowances(b, *others)
    both = sorted(shown_allowances(a) + shown_allowances(b))
    assert both == sorted(mine + others)
    merged([a, b], out=c)
    merged([b, a], out=d)
    merged([a, b], out=a)
    assert [shown_allowances(one) for one in (a, c, d)] == [both] * 3
    assert "left out" not in capsys.readouterr().out


def test_further_rounds_stay_behind_their_first_one_though_another_allowance_came_between(tmp_path):
    a, b, c = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    swept(a, "one", "16")
    shutil.copytree(a, b)
    under_allowances(a, (2, 1, 10), (4, 1, 12), (2, 2, 14))
    under_allowances(b, (2, 1, 11))
    merged([a, b], out=c)
    assert shown_allowances(c) == [(2, 1, 10), (2, 2, 14), (4, 1, 12)]


@pytest.mark.slow
def test_a_plan_that_can_t_be_read_is_left_out_in_one_line(tmp_path, capsys, monkeypatch):
    a, b, c = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    swept(a, "one", "16")
    swept(b, "two", "32")
    (closed,) = (a / "plans").iterdir()
    before = files(a), files(b)
    whole = os.open

    def refused(path, *more, **others):
        if Path(os.fsdecode(path)) == closed:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return whole(path, *more, **others)

    monkeypatch.setattr(os, "open", refused)  # tests may run as root, who may read all
    merged([a, b], out=c)
    out, err = capsys.readouterr()
    assert out.startswith(f"{c}: 2 attempts added")
    told = f"gpubench: {closed} is left out: it can't be read (Permission denied); make it readable, and merge again"
    assert [line for line in err.splitlines() if str(closed) in line] == [told]
    assert {path.name.partition("-")[0] for path in (c / "plans").iterdir()} == {"two"}
    monkeypatch.undo()
    assert (files(a), files(b)) == before
    merged([a, b], out=c)
    assert {path.name.partition("-")[0] for path in (c / "plans").iterdir()} == {"one", "two"}


def test_a_plan_of_the_target_that_can_t_be_read_stays_as_it_is(tmp_path, monkeypatch):
    a, b = tmp_path / "a", tmp_path / "b"
    swept(a, "one", "16")
    shutil.copytree(a, b)
    (closed,) = (a / "plans").iterdir()
    (other,) = (b / "plans").iterdir()
    other.write_text(other.read_text() + "# the same plan, stored again\n")
    kept = closed.read_bytes()
    whole = os.open

    def refused(path, *more, **others):
        if Path(os.fsdecode(path)) == closed:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return whole(path, *more, **others)

    monkeypatch.setattr(os, "open", refused)
    merged([a, b], out=a)
    monkeypatch.undo()
    assert closed.read_bytes() == kept


@pytest.mark.slow
def test_each_record_of_a_source_is_opened_once(tmp_path, monkeypatch):
    """But for the copy."""
    a, b, c = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    swept(a, "one", "16,32")
    swept(b, "two", "64")
    opened = Counter()
    whole = os.open

    def counted(path, *more, **others):
        opened[os.fsdecode(path)] += 1
        return whole(path, *more, **others)

    monkeypatch.setattr(os, "open", counted)
    merged([a, b], out=c)
    monkeypatch.undo()
    sources = [str(path) for folder in (a, b) for path in (folder / "records").glob("*/*.json")]
    assert [opened[path] for path in sources] == [1, 1, 1]


def test_a_log_of_a_killed_try_keeps_its_number(tmp_path):
    a, b = tmp_path / "a", tmp_path / "b"
    swept(a, "one", "16")
    (record,) = records(a)
    shutil.copytree(a, b)
    Results(a).log(record.trial_id, 2).write_text("killed")
    second = Results(b).part("records", record.trial_id, 2, "json")
    told = json.loads(Results(b).part("records", record.trial_id, 1, "json").read_text())
    second.write_text(json.dumps(told | {"attempt": 2, "started_at": "2099-01-01 00:00:00"}))
    Results(b).log(record.trial_id, 2).write_text("second")
    merged([a, b], out=a)
    assert [one.attempt for one in records(a)] == [1, 3]
    assert Results(a).log(record.trial_id, 2).read_text() == "killed"
    assert Results(a).log(record.trial_id, 3).read_text() == "second"


def test_a_folder_named_like_a_plan_is_left_out_and_named(tmp_path, capsys):
    a, b = tmp_path / "a", tmp_path / "b"
    swept(a, "one", "16")
    (a / "plans" / "y.toml").mkdir()
    assert merged([a], out=b) == 0
    assert (b / "trials.csv").exists()
    assert f"{a / 'plans' / 'y.toml'} is left out" in capsys.readouterr().err


def test_names_of_folders_reach_the_terminal_without_control_characters(tmp_path, capsys):
    a = tmp_path / "a\x1b[31m\nb"
    swept(a, "one", "16")
    merged([a], out=tmp_path / "c\x1b[31m")
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert len(out.splitlines()) == 2


def test_a_group_goes_on_to_name_the_attempts_that_it_was_compared_with(tmp_path):
    def folder(name, started_at):
        made = tmp_path / name
        solo = {"trial_id": "taa1", "attempt": 1, "started_at": started_at}
        together = {"solos": [{"trial_id": "taa1", "attempt": 1}]}
        job = {"trial_id": "jaa1", "attempt": 1, "started_at": started_at, "together": together}
        group = {"group_id": "gaa1", "attempt": 1, "jobs": [job]}
        for told, own in ((solo, "taa1"), (group, "gaa1")):
            path = Results(made).part("records", own, 1, "json")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(told))
        return made

    sources = [Results(folder("a", "2026-01-01")), Results(folder("b", "2026-01-02"))]
    target = Results(tmp_path / "c")
    merge(sources, target, print)
    told = json.loads(target.part("records", "gaa1", 2, "json").read_text())
    assert told["jobs"][0]["together"]["solos"] == [{"trial_id": "taa1", "attempt": 2}]
    assert told["jobs"][0]["attempt"] == 2


def test_one_folder_gets_its_tables_anew(tmp_path, capsys):
    swept(tmp_path / "a", "one", "16,32").write_tables()
    kept = tables(tmp_path / "a")
    assert len(kept) == 3
    for name in kept:
        (tmp_path / "a" / name).unlink()
    merged([tmp_path / "a"], out=None)
    assert tables(tmp_path / "a") == kept
    assert "tables are written anew" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("after", [0, 1, 3, 5])
def test_an_interrupted_merge_is_completed_by_the_next(tmp_path, monkeypatch, after):
    a, b, c, d = (tmp_path / name for name in "abcd")
    swept(a, "one", "16,32")
    shutil.copytree(a, b)
    edited(b, started_at="2099-01-01 00:00:00", reason="another")
    merged([a, b], out=d)
    whole, left = merged_files.copy_whole, [after]

    def stops(source, target):
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        whole(source, target)

    monkeypatch.setattr(merged_files, "copy_whole", stops)
    with pytest.raises(KeyboardInterrupt):
        merged([a, b], out=c)
    monkeypatch.undo()
    for path in (c / "records").glob("*/*.json"):
        json.loads(path.read_text())
    merged([a, b], out=c)
    assert files(c) == files(d)


def test_a_full_disk_is_one_line_and_leaves_no_half_file(tmp_path, monkeypatch):
    a, c = tmp_path / "a", tmp_path / "c"
    swept(a, "one", "16")

    def full(_, target):
        Path(target).write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(UnusableError, match="No space left on device") as told:
        merged([a], out=c)
    assert "\n" not in str(told.value)
    assert not [path for path in c.rglob("*") if path.is_file()]


def test_a_log_without_a_record_goes_along(tmp_path):
    a, b = tmp_path / "a", tmp_path / "b"
    swept(a, "one", "16")
    (record,) = records(a)
    Results(a).log(record.trial_id, 2).write_text("killed")
    merged([a], out=b)
    assert Results(b).log(record.trial_id, 2).read_text() == "killed"
    once = files(b)
    merged([a], out=b)
    assert files(b) == once


# ---- whatever lies in them ----

CHAIN = st.lists(st.sampled_from("uvwxyz"), max_size=3, unique=True)
"""What the attempts of one folder at one trial hold, in the order of their numbers."""
FOLDER = st.dictionaries(st.sampled_from(["taa1", "tab1"]), CHAIN, max_size=2)
FOLDERS = st.lists(FOLDER, min_size=1, max_size=3)


def made_of(root, told):
    folder = Results(root)
    for own, chain in told.items():
        for number, content in enumerate(chain, 1):
            path = folder.part("records", own, number, "json")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"trial_id": own, "attempt": number, "started_at": content}))
    return folder


def held_by(folder):
    """(trial, content, number) of each attempt; numbers are without a gap where those of the sources are."""
    found = [json.loads(path.read_text()) for path in folder.record_files(print)]
    return sorted((one["trial_id"], one["started_at"], one["attempt"]) for one in found)


@settings(max_examples=25, deadline=None)
@given(FOLDERS, st.randoms(use_true_random=False))
def test_merging_keeps_all_adds_nothing_twice_and_does_not_ask_for_an_order(told, chance):
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        sources = [made_of(root / str(place), one) for place, one in enumerate(told)]
        first, second = Results(root / "first"), Results(root / "second")
        merge(sources, first, print)
        once = held_by(first)
        contents = {(own, content) for one in told for own, chain in one.items() for content in chain}
        assert {(own, content) for own, content, _ in once} == contents
        assert len(once) == len(contents)
        for own in {name for name, *_ in once}:
            numbers = sorted(number for name, _, number in once if name == own)
            assert len(set(numbers)) == len(numbers)
        other_way = list(sources)
        chance.shuffle(other_way)
        merge(other_way, second, print)
        assert held_by(second) == once
        merge([first, *other_way], first, print)
        assert held_by(first) == once
