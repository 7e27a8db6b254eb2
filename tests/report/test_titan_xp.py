"""The published log as records: what is committed is what the import writes, and the tables are right."""

import csv
import importlib.util
from collections import Counter

import committed
import pytest
from gpubench.report import markdown, terminal
from gpubench.report.contents import contents

from gpubench.results.store import Results

HERE = committed.HOME / "titan-xp-2021"


@pytest.fixture(scope="module", autouse=True)
def here():
    committed.folder("titan-xp-2021")


def load(folder):
    results = Results(folder)
    return {table.name: table for table in contents(results, results.records()).tables}


@pytest.fixture(scope="module")
def shown():
    return load(HERE)


def column(table, name):
    return [row.value(name) for row in table.rows]


def printed(table, name):
    place = [c.name for c in table.columns].index(name)
    return [row[place] for row in table.cells]


def test_importing_again_gives_what_is_committed(tmp_path):
    spec = importlib.util.spec_from_file_location("import_logs", HERE / "import_logs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.write(tmp_path)
    for folder in ("records", "plans"):
        again = {path.relative_to(tmp_path): path.read_bytes() for path in (tmp_path / folder).rglob("*.*")}
        kept = {path.relative_to(HERE): path.read_bytes() for path in (HERE / folder).rglob("*.*")}
        assert again == kept


def test_every_row_of_the_log_stands_in_its_table(shown):
    with (HERE / "logs.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert Counter(line["table"] for line in lines) == {
        name: len(table.rows) for name, table in shown.items()
    }
    for line in lines:
        (row,) = (
            row
            for row in shown[line["table"]].rows
            if row.batch_size == int(line["batch_size"])
            and row.variant == {"v7": "crop-resize", "v11": "pre-resized"}[line["variant"]]
        )
        assert (row.model, row.gpus, row.status) == (
            line["model"],
            int(line["gpus"]),
            line["status"],
        )
        assert row.source == "published log"
        for name in ("gpu_mem_mib", "cpu_util_pct", "epoch_time_s"):
            if line[name]:
                assert row.value(name) == float(line[name])


def test_growth_columns(shown):
    resnet34 = shown["resnet34-4gpu"]
    assert printed(resnet34, "gpu_mem_growth_pct") == ["", "+22 %", "+33 %", "+58 %", "+71 %", "+79 %"]
    assert printed(resnet34, "epoch_time_growth_pct") == ["", "−43 %", "−26 %", "−7 %", "0 %", "+12 %"]
    assert printed(shown["mobilenet_v2-4gpu"], "gpu_mem_growth_pct") == [
        "",
        "+37 %",
        "+60 %",
        "+75 %",
        "+84 %",
        "–",
    ]
    right = shown["mobilenet_v2-gpus"]
    assert column(right, "gpu_mem_growth_pct")[1] == pytest.approx(76.8, abs=0.05)
    assert column(right, "epoch_time_growth_pct")[1] == pytest.approx(-10.5, abs=0.05)
    assert printed(right, "gpu_mem_growth_pct") == ["", "+77 %", "+83 %", "+1 %"]


def test_out_of_memory_is_a_row(shown):
    table = shown["mobilenet_v2-4gpu"]
    assert table.cells[-1] == ("512", "–", "–", "–", "–", "oom !")
    assert "6 trials: 5 ok, 1 out of memory" in table.heading


def test_the_page_shows_what_is_printed(shown):
    page = (HERE / "README.md").read_text()
    for row in markdown.text([shown["mobilenet_v2-4gpu"]]).splitlines():
        if row.startswith("| ") and row[2].isdigit():
            assert row in page


def test_a_measurement_that_two_tables_share_is_one_record(shown):
    first, second = shown["mobilenet_v2-gpus"], shown["mobilenet_v2-v7-v11"]
    assert column(first, "trial_id") == column(second, "trial_id")[:4]
    assert len(list(HERE.glob("records/*/*.json"))) == 35


def test_what_sharing_cost(shown):
    gains = {name: table.rows[0].overlap_gain for name, table in shown.items() if table.rows[0].group}
    assert {name: gain and round(gain, 2) for name, gain in gains.items()} == {
        "mobilenet_v2-4gpu-together": 0.17,
        "mobilenet_v2-separate-gpus-together": 0.25,
        "mobilenet_v3_large-two-on-one-gpu": 0.25,
        "mobilenet_v2-separate-gpus-together-v11": None,
    }
    assert printed(shown["mobilenet_v2-separate-gpus-together"], "slowdown") == ["1.76", "1.85", "2.52"]
    words = {row.sharing for table in shown.values() for row in table.rows if row.overlap_gain}
    assert words == {"perhaps partly parallel"}


def test_what_was_predicted_from_the_jobs_alone(shown):
    """31.8, 30.3 and 22.2 s, 28.1 s on average; all took 28.5 s."""
    table = shown["mobilenet_v2-separate-gpus-together"]
    predicted = [row.predicted_slowdown * row.solo_epoch_time_s for row in table.rows]
    assert predicted == [pytest.approx(s, abs=0.05) for s in (31.8, 30.3, 22.2)]
    assert sum(predicted) / 3 == pytest.approx(28.1, abs=0.05)
    assert column(shown["mobilenet_v2-separate-gpus-together-v11"], "predicted_slowdown") == [1.0] * 3


def test_nothing_is_predicted_where_the_log_does_not_say_how_busy_a_shared_gpu_was(shown):
    for name in ("mobilenet_v3_large-two-on-one-gpu", "mobilenet_v2-4gpu-together"):
        assert set(column(shown[name], "predicted_slowdown")) == {None}
        reasons = [r.missing["predicted_slowdown"] for r in Results(HERE).records() if r.group == name]
        assert all("GPU seconds an epoch" in reason for reason in reasons)


def test_what_the_log_does_not_state_is_not_made_up(shown):
    for table in shown.values():
        for row in table.rows:
            assert row.value("precision") is None
            assert row.images_per_s is None
        assert "precision not stated" in "\n".join(table.heading)
        assert "taken from a published log" in terminal.text(table)
    assert "torch 1.5.1" in "\n".join(shown["resnet34-4gpu"].heading)
    assert "torch" not in "\n".join(shown["mobilenet_v2-4gpu"].heading)
