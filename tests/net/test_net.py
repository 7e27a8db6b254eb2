"""All figures of 222 results folders are what they were at the commit that README.md names."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import held
import pytest
import synthetic
from adapters import analyze, read, write_csvs
from held import CSVS, Allowed, Difference

NEW_COLUMNS: tuple[str, ...] = ("window", "launch_cpu", "cpu_probe_ms", "cpu_speed_pct")
"""Columns of CSVs that came later, wherever they stand."""
GONE_COLUMNS: tuple[str, ...] = ()
"""Columns whose feature was dropped."""
HELD = (*CSVS, "intervals")
MOST_NAMED = 3
"""Places that a failure names."""


@pytest.fixture(scope="module", params=["one of each", pytest.param("all", marks=pytest.mark.slow)])
def differences(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Difference]:
    """All in which the present code's figures differ from the stored ones: worked out once for all tests.

    Of all folders, or of the committed ones and the first of each family.
    """
    home = tmp_path_factory.mktemp("net")
    differences: list[Difference] = []
    for part, names in held.list_parts().items():
        before = held.load(part)
        for name in names if request.param == "all" else names[:1]:
            path = held.put(name, home)
            folder = read(path)
            shutil.rmtree(path)
            now = held.as_plain(write_csvs(folder), analyze(folder), "")
            stored = without_counts(before[name])
            differences += held.compare(name, stored, without_counts(now), NEW_COLUMNS, GONE_COLUMNS)
    return differences


def without_counts(plain: dict[str, Any]) -> dict[str, Any]:
    """A state without claims, and without the numbers of processes that its intervals are of."""
    return plain | {"claims": {}, "intervals": {key: ends[:3] for key, ends in plain["intervals"].items()}}


def unlisted(differences: Sequence[Difference], allowed: Sequence[Allowed]) -> str:
    """How many differences no entry allows, of which columns, and where the first are; empty for none."""
    wrong = [each for each in differences if not any(entry.covers(each) for entry in allowed)]
    if not wrong:
        return ""
    counts = Counter(each.column for each in wrong).most_common(8)
    columns = ", ".join(f"{column} ({count})" for column, count in counts)
    head = f"{len(wrong)} figures are not what they were: {columns}"
    return "\n".join([head, *map(str, wrong[:MOST_NAMED])])


def miscounted(differences: Sequence[Difference], entry: Allowed) -> str:
    """That an entry's difference does not occur as often as it says; empty where it does."""
    covered = [each for each in differences if entry.covers(each)]
    if len(covered) == entry.count:
        return ""
    head = f"{entry.where}, {entry.column}: {len(covered)} places in place of {entry.count}"
    return "\n".join([head, *map(str, covered[:MOST_NAMED])])


@pytest.mark.parametrize("part", held.list_parts())
def test_the_net_was_made_of_the_folders_that_it_is_held_against(part: str) -> None:
    stored = held.load(part)
    assert [*stored] == held.list_parts()[part]
    assert {name: folder["made_of"] for name, folder in stored.items()} == {
        name: held.digest(name) for name in stored
    }


@pytest.mark.slow
@pytest.mark.parametrize("where", HELD)
def test_figures_are_what_they_were(where: str, differences: list[Difference]) -> None:
    wrong = unlisted([each for each in differences if each.where == where], held.load_allowed())
    assert not wrong, wrong


@pytest.mark.slow
@pytest.mark.parametrize("differences", ["all"], indirect=True)
def test_what_may_differ_differs_as_often_as_it_is_listed(differences: list[Difference]) -> None:
    wrong = [message for entry in held.load_allowed() if (message := miscounted(differences, entry))]
    assert not wrong, "\n".join(wrong)


def test_no_folder_was_refused() -> None:
    for part in held.list_parts():
        for name, folder in held.load(part).items():
            assert len(folder["trials.csv"]) > 2, name
            assert len(folder["table.csv"]) > 2, name


# ---- the net itself ----

TRIALS = "trial_id,epoch_time_s,status"
ENDS = {"estimate": 1.1, "low": 0.9, "high": 1.3}
CLAIM = "sweep | time, variant | t1-1 | t2-1"
INTERVAL = "sweep | t1-1 | epoch_time_s"


def state(**changes: Any) -> dict[str, Any]:
    """A folder of one row, as it is stored."""
    plain = {
        "trials.csv": [TRIALS, "t1,1.5,ok", ""],
        "epochs.csv": ["trial_id,epoch", "t1,0", ""],
        "table.csv": ["batch_size,doubts", "16,", ""],
        "intervals": {INTERVAL: [1.5, 1.4, 1.6, 3]},
        "claims": {CLAIM: [ENDS, [3, 3], {"equal": 0.2}]},
    }
    return plain | {name.replace("_csv", ".csv"): value for name, value in changes.items()}


def columns_apart(
    now: dict[str, Any], new: Sequence[str] = (), gone: Sequence[str] = ()
) -> list[tuple[str, str]]:
    return [(each.where, each.column) for each in held.compare("f", state(), now, new, gone)]


def test_a_figure_that_moved_is_seen_and_the_last_digits_of_sums_are_not() -> None:
    assert columns_apart(state()) == []
    assert columns_apart(state(trials_csv=[TRIALS, "t1,1.6,ok", ""])) == [("trials.csv", "epoch_time_s")]
    assert columns_apart(state(trials_csv=[TRIALS, 't1,"1.5",ok', ""])) == [("trials.csv", "(bytes)")]
    assert columns_apart(state(epochs_csv=["trial_id,epoch", "t1,0", "t1,1", ""])) == [
        ("epochs.csv", "(rows)")
    ]
    moved = {INTERVAL: [1.5, 1.4000000000001, 1.61, 3]}
    assert columns_apart(state(intervals=moved)) == [("intervals", "epoch_time_s.high")]
    assert columns_apart(state(intervals={INTERVAL: [1.5, 1.4, 1.6, 2]})) == [("intervals", "epoch_time_s.n")]
    assert columns_apart(state(intervals={})) == [("intervals", "epoch_time_s.(all)")]
    other_p = {CLAIM: [ENDS, [3, 3], {"equal": 0.21}]}
    assert columns_apart(state(claims=other_p)) == [("claims", "time, variant.p equal")]


def test_columns_come_and_go_where_they_are_named() -> None:
    more = state(trials_csv=["trial_id,watts,epoch_time_s,status", "t1,9,1.5,ok", ""])
    less = state(table_csv=["batch_size", "16", ""])
    assert columns_apart(more) == [("trials.csv", "(header)")]
    assert columns_apart(more, new=["watts"]) == []
    assert columns_apart(less) == [("table.csv", "(header)")]
    assert columns_apart(less, gone=["doubts"]) == []


def test_a_difference_is_allowed_where_it_is_listed_and_as_often() -> None:
    moved = state(trials_csv=[TRIALS, "t1,1.6,ok", ""])
    differences = [*held.compare("nodes-1", state(), moved, (), ())]
    entry = Allowed("trials.csv", "epoch_*", "a rule", 1, "nodes-*")
    place = unlisted(differences, []).splitlines()[1]
    assert place == "nodes-1, trials.csv, row 1, t1, epoch_time_s: '1.5', now '1.6'"
    assert not unlisted(differences, [entry])
    assert not miscounted(differences, entry)
    assert miscounted([], entry)
    assert unlisted(differences, [Allowed("trials.csv", "epoch_*", "a rule", 1, "ways-*")])


def test_the_generator_writes_the_same_whenever_it_is_asked(tmp_path: Path) -> None:
    first = synthetic.digest("odd-7")
    synthetic.write("odd-7", tmp_path / "odd-7")
    synthetic.make_files.cache_clear()
    assert synthetic.digest("odd-7") == first
    assert any((tmp_path / "odd-7" / "records").rglob("*.json"))
