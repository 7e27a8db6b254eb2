"""`gpubench table` and `gpubench plot` of a sweep over power limits, over records that were made up after a V100."""

from __future__ import annotations

import io
import json
import math
import re
import shlex
from pathlib import Path

import pandas as pd
import pytest
from made_up_rows import under_limit
from msgspec import structs
from place import Place

from gpubench.results.store import Results

V100 = {150: (4149, 144.6), 175: (3852, 166.4), 200: (3686, 187.5), 250: (3515, 220.3)}
"""W -> s of an epoch and W drawn: 599,900, 641,000, 691,100 and 774,400 J."""
A40 = {175: (4706, 160.2), 200: (4124, 177.6), 250: (3865, 214.6), 300: (3847, 235.2)}
"""The same network and batch size on a newer card: 753,900, 732,400, 829,400 and 904,800 J."""
NOISE = (0.004, -0.004, 0.001)


def measure(path: Path, batch_size: int = 256, card: str = "V100") -> Path:
    """Three rounds of each limit; processes lie half a per cent apart, each limit's in another order."""
    gpu = {"gpu_name": f"NVIDIA {card}"}
    for place, (limit, (time_s, power_w)) in enumerate({"V100": V100, "A40": A40}[card].items()):
        for round_ in (1, 2, 3):
            noise = math.exp(NOISE[(place + round_) % 3])
            record = under_limit(batch_size, limit, time_s * noise, power_w)
            record = structs.replace(
                record, environment=record.environment | gpu, machine_key=f"NVIDIA {card}, 40960 MiB"
            )
            Results(path).save([structs.replace(record, round=round_, attempt=round_)], [[]], ["t"])
    return path


@pytest.fixture
def folder(place: Place) -> Path:
    return measure(place.home / "limits")


def read(place: Place, *args: object) -> str:
    ended = place.run("table", *map(str, args))
    assert ended.returncode == 0
    return " ".join(ended.stdout.split())


def test_the_answer_is_by_energy_by_energy_x_time_and_by_a_bound_on_time(place: Place, folder: Path) -> None:
    text = read(place, folder)
    assert "Which power limit is worth it?" in text
    assert (
        "Take 150 W: 23 % less energy for 18 % more time (sure); no other limit takes less energy (95 %)."
        in text
    )
    assert "Take 175 W: 9 % less energy x time" in read(place, folder, "--edp")
    assert "Take 200 W: 11 % less energy for 5 % more time (sure)" in read(
        place, folder, "--at-most-slower", "7%"
    )
    assert "Leave it at 250 W: no lower limit of those at most 2 % slower takes less energy" in read(
        place, folder, "--at-most-slower", "2%"
    )


def test_it_is_data_and_a_command(place: Place, folder: Path) -> None:
    (report,) = json.loads(place.run("table", str(folder), "--json", "--edp").stdout)["reports"]
    (finding,) = report["findings"]
    limits = {row["row"]: row["fields"]["power_limit_w"] for row in report["rows"]}
    assert (finding["question"], finding["verdict"]) == ("power_limit", "sure")
    assert limits[finding["choice"]["row"]] == 175
    assert finding["details"]["aim"] == {"goal": "edp", "at_most_slower": None}
    assert limits[finding["details"]["baseline"]] == 250
    assert {claim["metric"] for claim in finding["claims"]} == {"energy_j", "edp_js", "epoch_time_s"}
    words = shlex.split(place.run("table", str(folder), "--best").stdout)
    assert words[words.index("power_limit_w=150") - 1] == "--set"


def test_generations_of_gpus_are_compared_by_merging_their_folders(place: Place) -> None:
    old, new = measure(place.home / "old"), measure(place.home / "new", card="A40")
    merged = place.run("merge", str(old), str(new), "--out", "both")
    assert merged.returncode == 0, merged.stderr
    text = read(place, "both")
    assert "Take 150 W for V100: 23 % less energy for 18 % more time (sure)" in text
    assert "Take 200 W for A40: 19 % less energy for 7 % more time (sure)" in text
    rows = pd.read_csv(io.StringIO(place.run("table", "both", "--csv").stdout))
    least = rows.groupby("gpu_name")["energy_j"].min()
    assert least.to_dict() == pytest.approx({"NVIDIA A40": 732_400, "NVIDIA V100": 599_900}, rel=0.002)


def test_two_batch_sizes_have_answers_of_their_own(place: Place) -> None:
    path = measure(measure(place.home / "two"), 64)
    text = read(place, path, "--why")
    assert "Take 150 W for batch 64:" in text
    assert "Take 150 W for batch 256:" in text


def test_what_is_asked_of_limits_where_none_vary_is_refused(place: Place) -> None:
    path = place.home / "one"
    Results(path).save([under_limit(64, 150, 10.0, 100.0)], [[]], ["t"])
    for option in (["--edp"], ["--at-most-slower", "5%"]):
        ended = place.run("table", str(path), *option)
        assert (ended.returncode, ended.stdout) == (4, "")
        assert "no table here compares power limits" in ended.stderr
    ended = place.run("table", str(path), "--at-most-slower", "0.05")
    assert ended.returncode == 2
    assert "write 5%" in ended.stderr


def test_a_picture_of_it(place: Place, folder: Path) -> None:
    ended = place.run("plot", str(folder), "--only", "limits", "--out", str(place.home / "pictures"))
    assert ended.returncode == 0
    (picture,) = (place.home / "pictures").iterdir()
    assert picture.name == "alone-limits.svg"
    drawn = picture.read_text()
    assert re.search(r"150 W: (599|60\d),\d{3} J", drawn)
    assert re.search(r"150 W: 4,1[45]\d s", drawn)
