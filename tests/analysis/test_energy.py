"""Images per joule and the energy-delay product."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from whole_rows import row_with

from gpubench.analysis.energy import divided, edp_js, images_per_joule

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


@given(
    st.lists(
        st.tuples(positive, st.lists(st.floats(0.01, 1), min_size=2, max_size=4)), min_size=1, max_size=4
    )
)
def test_what_jobs_are_given_adds_up_to_what_the_gpus_drew(gpus):
    """Each GPU's jobs, with shares that add up to 1."""
    joules = {f"GPU-{i}": drawn for i, (drawn, _) in enumerate(gpus)}
    parts = []
    for i, (_, weights) in enumerate(gpus):
        parts += [divided({f"GPU-{i}": joules[f"GPU-{i}"]}, {f"GPU-{i}": w / sum(weights)}) for w in weights]
    assert sum(parts) == pytest.approx(sum(joules.values()))


def test_a_job_gets_its_share_of_each_of_its_gpus():
    assert divided({"a": 300.0, "b": 200.0}, {"a": 0.25, "b": 1.0, "c": 0.5}) == pytest.approx(275)


@pytest.mark.parametrize(
    ("joules", "shares"),
    [
        ({}, {}),
        ({}, {"a": 1.0}),
        ({"a": 3.0, "b": 2.0}, {"a": 0.5}),
        ({"a": 3.0}, {"a": None}),
        ({"a": 3.0}, {"a": 0.0}),
    ],
)
def test_a_share_that_is_not_known_leaves_nothing_to_divide(joules, shares):
    assert divided(joules, shares) is None
