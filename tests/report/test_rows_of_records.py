"""What a table's row knows of its record besides the columns."""

import statistics

import committed
import pytest

from gpubench.report.table import row_of
from gpubench.store import Results


@pytest.mark.parametrize("folder", committed.folders(), ids=lambda folder: folder.name)
def test_a_row_names_a_log_that_is_there_and_the_times_that_its_epoch_time_is_the_median_of(folder):
    for record in Results(folder).records():
        row = row_of(record)
        if record.source == "measured":
            assert (folder / row["log"]).is_file()
        else:
            assert row["log"] is None
        if row["epoch_times_s"]:
            assert statistics.median(row["epoch_times_s"]) == pytest.approx(row["epoch_time_s"])
        else:
            assert row["epoch_time_source"] != "measured" or record.source != "measured"
