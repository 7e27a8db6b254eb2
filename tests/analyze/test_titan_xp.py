"""The published log as records: what is committed is what the import writes, and the tables are right."""

import csv
import importlib.util
from collections import Counter

import committed
import pytest

from gpubench.results.store import Results

HERE = committed.HOME / "titan-xp-2021"


@pytest.fixture(scope="module", autouse=True)
def here():
    committed.folder("titan-xp-2021")


@pytest.fixture(scope="module")
def tables():
    """Experiment -> its rows."""
    folder = committed.load("titan-xp-2021")
    return {table.name: folder.select_table_rows(table) for table in folder.tables}


def test_importing_again_gives_what_is_committed(tmp_path):
    spec = importlib.util.spec_from_file_location("import_logs", HERE / "import_logs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.write(tmp_path)
    for folder in ("records", "plans"):
        again = {path.relative_to(tmp_path): path.read_bytes() for path in (tmp_path / folder).rglob("*.*")}
        kept = {path.relative_to(HERE): path.read_bytes() for path in (HERE / folder).rglob("*.*")}
        assert again == kept


def test_every_row_of_the_log_stands_in_its_table(tables):
    with (HERE / "logs.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert Counter(line["table"] for line in lines) == {name: len(rows) for name, rows in tables.items()}
    for line in lines:
        rows = tables[line["table"]]
        variant = {"v7": "crop-resize", "v11": "pre-resized"}[line["variant"]]
        (row,) = rows[(rows["batch_size"] == int(line["batch_size"])) & (rows["variant"] == variant)].to_dict(
            "records"
        )
        assert (row["model"], row["gpus"], row["status"]) == (
            line["model"],
            int(line["gpus"]),
            line["status"],
        )
        assert row["source"] == "published log"
        for name in ("gpu_mem_mib", "cpu_util_pct", "epoch_time_s"):
            if line[name]:
                assert row[name] == float(line[name])


def list_rounded(values, digits=1):
    return [None if value != value else round(value, digits) for value in values.astype("float64")]


def test_growth_columns(tables):
    resnet34 = tables["resnet34-4gpu"]
    assert list_rounded(resnet34["gpu_mem_growth_pct"], 0) == [None, 22, 33, 58, 71, 79]
    assert list_rounded(resnet34["epoch_time_growth_pct"], 0) == [None, -43, -26, -7, 0, 12]
    other = tables["mobilenet_v2-4gpu"]
    assert list_rounded(other["gpu_mem_growth_pct"], 0) == [None, 37, 60, 75, 84, None]
    right = tables["mobilenet_v2-gpus"]
    assert list_rounded(right["gpu_mem_growth_pct"], 0) == [None, 77, 83, 1]
    assert list_rounded(right["epoch_time_growth_pct"])[1] == -10.5


def test_a_measurement_that_two_tables_share_is_one_record(tables):
    first, second = tables["mobilenet_v2-gpus"], tables["mobilenet_v2-v7-v11"]
    assert first["config_id"].tolist() == second["config_id"].tolist()[:4]
    assert len(list(HERE.glob("records/*/*.json"))) == 35


def test_what_sharing_cost(tables):
    gains = {
        name: list_rounded(rows["overlap_gain"], 2)[0]
        for name, rows in tables.items()
        if rows["group"].notna().all()
    }
    assert gains == {
        "mobilenet_v2-4gpu-together": 0.17,
        "mobilenet_v2-separate-gpus-together": 0.25,
        "mobilenet_v3_large-two-on-one-gpu": 0.25,
        "mobilenet_v2-separate-gpus-together-v11": None,
    }
    assert list_rounded(tables["mobilenet_v2-separate-gpus-together"]["slowdown"], 2) == [1.76, 1.85, 2.52]


def test_what_was_predicted_from_the_jobs_alone(tables):
    """31.8, 30.3 and 22.2 s, 28.1 s on average; all took 28.5 s."""
    rows = tables["mobilenet_v2-separate-gpus-together"]
    predicted = (rows["predicted_slowdown"] * rows["solo_epoch_time_s"]).tolist()
    assert predicted == [pytest.approx(s, abs=0.05) for s in (31.8, 30.3, 22.2)]
    assert sum(predicted) / 3 == pytest.approx(28.1, abs=0.05)
    assert tables["mobilenet_v2-separate-gpus-together-v11"]["predicted_slowdown"].tolist() == [1.0] * 3


def test_nothing_is_predicted_where_the_log_does_not_say_how_busy_a_shared_gpu_was(tables):
    for name in ("mobilenet_v3_large-two-on-one-gpu", "mobilenet_v2-4gpu-together"):
        assert tables[name]["predicted_slowdown"].isna().all()
        reasons = [r.missing["predicted_slowdown"] for r in Results(HERE).read_records() if r.group == name]
        assert all("GPU seconds an epoch" in reason for reason in reasons)


def test_what_the_log_does_not_state_is_not_made_up(tables):
    for rows in tables.values():
        assert rows["precision"].isna().all()
        assert rows["images_per_s"].isna().all()
