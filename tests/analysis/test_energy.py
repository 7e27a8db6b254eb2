"""Images per joule and the energy-delay product."""

import pytest
from gpubench.analysis.energy import edp_js, images_per_joule
from hypothesis import given
from hypothesis import strategies as st
from whole_rows import row_with

positive = st.floats(1e-3, 1e9)


@given(positive, positive, st.integers(1, 10**9))
def test_they_undo_each_other(energy, time, images):
    row = row_with(energy_j=energy, epoch_time_s=time, images_per_epoch=images, images_per_s=images / time)
    per_joule, product = images_per_joule(row), edp_js(row)
    assert per_joule * energy == pytest.approx(images)
    assert product / time == pytest.approx(energy)
    assert per_joule * energy / time == pytest.approx(row.images_per_s)


@pytest.mark.parametrize("unknown", ["energy_j", "epoch_time_s", "images_per_epoch"])
@pytest.mark.parametrize("value", [None, 0])
def test_what_was_not_measured_gives_nothing(unknown, value):
    row = row_with(**{"energy_j": 100.0, "epoch_time_s": 2.0, "images_per_epoch": 64, unknown: value})
    assert images_per_joule(row) is None or unknown == "epoch_time_s"
    assert edp_js(row) is None or unknown == "images_per_epoch"
