"""How many images fit: the line through memory, its doubt, and what it has to agree with."""

import committed
import pytest
from gpubench.analysis.knee import knees
from gpubench.analysis.memory_line import largest_that_fits
from hypothesis import given
from hypothesis import strategies as st
from whole_rows import changed, row_with

LOG = committed.HOME / "titan-xp-2021" / "trials.csv"


def row(batch: int, mib: float | None, status: str = "ok", **more):
    values = {
        "status": status, "batch_size": batch, "gpu_mem_mib": mib, "gpu_mem_source": "nvml-process",
        "gpus": 1, "device": "cuda", "gpu_total_mib": 12_288.0, "gpu_reserved_mib": 288.0, "epoch_time_s": 10.0,
        "config_id": f"c{batch}", "trial_id": f"t{batch}", "model": "resnet34", "gpu_name": "H",
    }  # fmt: skip
    return row_with(**values | more)


def rows(*memory: float, first: int = 16, **more):
    """Batch sizes 16, 32, …"""
    return [row(first << place, mib, **more) for place, mib in enumerate(memory)]


EVEN = (1160.0, 1320.0, 1640.0, 2280.0)
"""1,000 MiB, and 10 an image. Off the line by nothing, so by 20 MiB as far as one knows: 12,000 MiB are reached at
1,100; the middle is at 60, the squares about it sum up to 7,360, t is 4.3027, and so the ends are
60 + (104,000 ∓ 10,476) / 98.99."""


def test_what_the_line_says_and_that_nobody_tried():
    assert largest_that_fits(rows(*EVEN)) == (
        "About 1,100 images fit into the 12,000 MiB that the driver leaves of a GPU (95 %: 1,000 to 1,220), by the "
        "line through 4 sizes; not tried here: it leads to 8.6 times the largest that ran (128), and the interval "
        "holds only if memory goes on growing as it did up to there."
    )


def test_near_the_largest_that_ran_no_word_is_lost_on_how_far_the_line_leads():
    capped = rows(*EVEN, gpu_mem_cap_mib=2400)
    assert largest_that_fits(capped).endswith("; not tried here, where the largest that ran is 128.")


def test_a_cap_is_the_room_and_several_devices_share_the_batch():
    capped = rows(*EVEN, gpu_mem_cap_mib=4096, gpus=4)
    assert largest_that_fits(capped) == (
        "About 308 images over 4 GPUs fit into the cap of 4,096 MiB (95 %: 284 to 336), by the line through 4 sizes; "
        "not tried here: it leads to 2.4 times the largest that ran (128), and the interval holds only if memory goes "
        "on growing as it did up to there."
    )
    unknown = rows(*EVEN, gpu_reserved_mib=None)
    assert " fit into a GPU's 12,288 MiB, of which the driver may keep some (95 %: " in largest_that_fits(
        unknown
    )


def test_what_was_tried_bounds_the_answer():
    tried = [*rows(*EVEN), row(1080, None, "oom"), row(2048, None, "skipped")]
    assert largest_that_fits(tried) == (
        "About 1,070 images fit into the 12,000 MiB that the driver leaves of a GPU (95 %: 1,000 to 1,070), by the "
        "line through 4 sizes, which agrees with what was tried: 128 ran, 1,080 ran out of memory."
    )


def test_a_line_that_contradicts_what_was_tried_is_no_answer():
    full = [*rows(*EVEN), row(256, None, "oom")]
    assert largest_that_fits(full) == (
        "How many images fit can't be told more closely (128 ran, 256 ran out of memory): the line through 4 sizes "
        "says about 1,100, though 256 ran out of memory."
    )
    ran = rows(*EVEN, gpu_mem_cap_mib=2000)
    assert largest_that_fits(ran) == (
        "How many images fit can't be told: the line through 4 sizes says about 100, though 128 ran."
    )


def test_small_sizes_off_the_line_are_left_out_and_other_bends_are_refused():
    """cuDNN's workspaces at a small batch; at a large one."""
    small = rows(1400.0, 1320.0, 1640.0, 2280.0, 3560.0)
    assert ", by the line through the 4 largest sizes; not tried here: " in largest_that_fits(small)
    bent = rows(1160.0, 1320.0, 1640.0, 2280.0, 9000.0)
    assert largest_that_fits(bent) == (
        "How many images fit can't be told: memory is no straight line over these sizes."
    )


@pytest.mark.parametrize(
    "found",
    [
        rows(*EVEN[:2]),
        rows(*EVEN, gpu_total_mib=None),
        rows(*EVEN, gpu_mem_source="torch-reserved"),
        [*rows(*EVEN[:3]), row(128, EVEN[3], gpu_mem_source="nvml-device-delta")],
        [*rows(*EVEN[:2]), row(64, None, "failed")],
        rows(*EVEN[:3], status="oom"),
    ],
    ids=["two sizes", "no room on record", "the allocator's", "two sources", "a third failed", "nothing ran"],
)
def test_where_nobody_can_know_nothing_is_said(found):
    assert largest_that_fits(found) == ""


def test_the_table_says_it_beside_the_pareto_front():
    (found,) = knees([changed(one, epoch_time_s=20.0 - place) for place, one in enumerate(rows(*EVEN))])
    assert found.remark.startswith(
        "By one process each, 128 is the smallest of these sizes that reaches 95 % of the best rate; by these figures "
    )
    assert ": none is beaten in both. About 1,100 images fit into " in found.remark


@given(st.lists(st.floats(200, 1e5), min_size=3, max_size=6), st.randoms(use_true_random=False))
def test_the_answer_does_not_depend_on_the_order_of_rows(memory, chance):
    found = rows(*memory)
    mixed = list(found)
    chance.shuffle(mixed)
    assert largest_that_fits(mixed) == largest_that_fits(found)
