"""The half that is built anew says what the old one said: figures and intervals of all folders of the net."""

from __future__ import annotations

import shutil

import held
import new_adapter
import pytest
from held import Allowed, Difference
from test_net import GONE_COLUMNS, NEW_COLUMNS, miscounted, unlisted

WORDS = "sharing is none, some or full by the point value of the overlap gain, until the question of sharing decides"
REFUSED = (
    "an overlap gain has its interval, too, where its word was refused because a job took far less than alone"
)
ALLOWED = [
    Allowed("trials.csv", "sharing", WORDS, 411),
    Allowed("table.csv", "sharing", WORDS, 188),
    Allowed("table.csv", "overlap_gain_low", REFUSED, 30),
    Allowed("table.csv", "overlap_gain_high", REFUSED, 30),
    Allowed("intervals", "overlap_gain.(all)", REFUSED, 30),
    *(entry for entry in held.load_allowed() if entry.where != "claims"),
]


@pytest.fixture(scope="module")
def differences(tmp_path_factory: pytest.TempPathFactory) -> list[Difference]:
    """All in which the new half's figures differ from the stored ones; claims are not looked at."""
    home = tmp_path_factory.mktemp("net")
    differences: list[Difference] = []
    for part, names in held.list_parts().items():
        stored = held.load(part)
        for name in names:
            path = held.put(name, home)
            folder = new_adapter.read(path)
            shutil.rmtree(path)
            now = held.as_plain(new_adapter.write_csvs(folder), new_adapter.analyze(folder), "")
            differences += held.compare(
                name, _without_counts(stored[name]), _without_counts(now), NEW_COLUMNS, GONE_COLUMNS
            )
    return differences


def _without_counts(plain: dict) -> dict:  # type: ignore[type-arg]
    """A state without claims, and without the numbers of processes that its intervals are of."""
    return plain | {"claims": {}, "intervals": {key: ends[:3] for key, ends in plain["intervals"].items()}}


def test_figures_are_what_they_were(differences: list[Difference]) -> None:
    wrong = unlisted(differences, ALLOWED)
    assert not wrong, wrong


def test_what_may_differ_differs_as_often_as_it_is_listed(differences: list[Difference]) -> None:
    wrong = [message for entry in ALLOWED if (message := miscounted(differences, entry))]
    assert not wrong, "\n".join(wrong)
