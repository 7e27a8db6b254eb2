"""What a table's row knows of its record besides the columns."""

import committed
import pytest
from fakes import record

from gpubench.results.packed import is_file_or_member
from gpubench.results.rows import make_row
from gpubench.results.store import Results


@pytest.mark.parametrize("folder", committed.folders(), ids=lambda folder: folder.name)
def test_a_row_names_a_log_that_is_there(folder):
    for stored in Results(folder).read_records():
        row = make_row(stored)
        if stored.source == "measured":
            assert is_file_or_member(folder / row.log)
        else:
            assert row.log is None


SPREAD = {"spread": "epoch times spread by 9 % of their median", "dp": "copies"}


@pytest.mark.parametrize(("epochs", "kept"), [(1, False), (2, False), (3, True)])
def test_few_epochs_have_neither_a_spread_nor_the_doubt_about_one(epochs, kept):
    """Whatever earlier versions stored of them."""
    figures = {"epoch_time_s": 9.0, "epoch_time_iqr_s": 0.8, "epochs_measured": epochs}
    stored = record(result=figures, doubts=SPREAD)
    row = make_row(stored)
    assert row.epoch_time_iqr_s == (0.8 if kept else None)
    assert row.doubts == ("dp+spread" if kept else "dp")
    assert set(row.doubt_texts) == set(row.doubts.split("+"))
    # An empty cell has its reason.
    assert ("epoch_time_iqr_s" in row.missing) is not kept
    assert stored.doubts == SPREAD, "records stay as they are"


@pytest.mark.parametrize(("slowdown", "doubted"), [(0.94, True), (0.95, False), (1.2, False), (None, False)])
def test_a_job_that_was_faster_than_alone_has_the_doubt_whatever_version_stored_it(slowdown, doubted):
    row = make_row(record(result={"slowdown": slowdown}, group="g", doubts={"shared-gpu": "shared"}))
    assert row.doubts == ("faster-together+shared-gpu" if doubted else "shared-gpu")
    assert ("took 0.94 times as" in "".join(row.doubt_texts.get("faster-together", ()))) is doubted
    told = record(result={"slowdown": slowdown}, group="g", doubts={"faster-together": "as stored"})
    assert make_row(told).doubt_texts == {"faster-together": ("as stored",)}


@pytest.mark.parametrize(
    ("key", "kept", "total", "reserved"),
    [
        ("NVIDIA H200, 143771 MiB", 615, 143_771, 615),
        ("Titan Xp, 12196 MiB (nominal)", None, 12_196, None),
        ("NVIDIA A, 40960 MiB + NVIDIA B, 24576 MiB", 300, 24_576, 300),
        ("AMD EPYC 7763", None, None, None),
    ],
)
def test_how_much_memory_a_gpu_has_is_read_from_where_it_was_measured(key, kept, total, reserved):
    row = make_row(record(machine_key=key, environment={"gpu_reserved_mib": kept}))
    assert (row.gpu_total_mib, row.gpu_reserved_mib) == (total, reserved)


LINE = {"epoch": 0, "warmup": False, "epoch_time_s": 2.0}


@pytest.mark.parametrize(
    ("epochs", "steady_step_s"),
    [
        ([], None),
        ([LINE | {"warmup": True, "steady_steps": 3, "steady_step_s": 0.3}], None),
        ([LINE, LINE | {"epoch_time_s": 3.0, "steady_steps": 4, "steady_step_s": 1}], 1.0),
        ([LINE | {"steady_steps": 0, "steady_step_s": 0.5}], None),
        ([LINE | {"steady_steps": None, "steady_step_s": 0.25}], None),
        ([LINE | {"steady_steps": 6, "steady_step_s": None}], None),
        ([LINE | {"steady_steps": n, "steady_step_s": n / 10} for n in (2, 9, 4)], 0.4),
    ],
)
def test_a_steady_step_is_that_of_measured_epochs_which_tell_of_how_many_it_is(epochs, steady_step_s):
    stored = record(result={"epoch_time_s": 2.0, "epoch_time_source": "measured"}, epochs=epochs)
    assert make_row(stored).steady_step_s == steady_step_s
