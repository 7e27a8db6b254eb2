"""What of a GPU's busy time is waiting for other ranks' gradients, worked out by hand."""

import random

import pytest
from gpubench.analysis.gradient_wait import Wait, gradient_wait
from whole_rows import row_with


def row(batch, gpus, busy_ms, **more):
    """An epoch of 100 steps, in each of which each GPU is busy for so long."""
    return row_with(**{
        "status": "ok", "model": "resnet50", "variant": "synthetic", "precision": "bf16", "batch_size": batch,
        "gpus": gpus, "strategy": "ddp" if gpus > 1 else "single", "images_per_epoch": 100 * batch,
        "gpu_busy_s_per_epoch": None if busy_ms is None else gpus * 100 * busy_ms / 1e3,
    } | more)  # fmt: skip


WIDE = row(64, 4, 20.0)
"""Four GPUs, 16 images on each."""


def part(job, *others):
    found = gradient_wait(job, others)
    return found and (round(found.part, 6), "measured" if found.measured else "estimated")


def test_measured_in_its_own_steps():
    assert part(row(64, 4, 20.0, comm_ms=5.0)) == (0.25, "measured")
    assert part(row(64, 4, 20.0, comm_ms=0.0)) == (0.0, "measured")
    assert part(row(64, 4, 20.0, comm_ms=-0.1)) == (0.0, "measured"), "a difference of two times"
    assert part(row(64, 4, 20.0, comm_ms=30.0)) == (1.0, "measured"), "no more than all of it"


def test_measured_in_another_row_of_the_same_configuration():
    """By its own busy time, which the marks may have made longer."""
    told = row(64, 4, 25.0, comm_ms=5.0, breakdown=True)
    assert part(WIDE, told) == (0.2, "measured")
    assert part(WIDE, told, row(16, 1, 5.0)) == (0.2, "measured"), "rather than estimated"
    for other in (
        {"batch_size": 32},
        {"model": "resnet18"},
        {"strategy": "fsdp"},
        {"status": "failed"},
        {"group": "2 copies"},
        {"gpu_busy_s_per_epoch": None},
    ):
        assert part(WIDE, row(64, 4, 25.0, **{"comm_ms": 5.0, "breakdown": True} | other)) is None


def test_the_newest_measurement_counts_in_whatever_order_the_rows_come():
    rows = [row(64, 4, 20.0, comm_ms=ms, started_at=f"2026-11-2{ms:.0f}") for ms in (2.0, 4.0, 3.0)]
    for seed in range(6):
        random.Random(seed).shuffle(rows)
        assert part(WIDE, *rows) == (0.2, "measured")


def test_estimated_by_a_single_gpu_with_as_many_images():
    assert part(WIDE, row(16, 1, 5.0)) == (0.75, "estimated")


def test_a_larger_batch_on_one_gpu_takes_no_less_than_a_smaller_one():
    """12 of the 20 ms may be work, however little of it the fewer images would need."""
    assert part(WIDE, row(64, 1, 12.0)) == (0.4, "estimated")


def test_a_smaller_batch_on_one_gpu_takes_no_less_for_an_image():
    """4 images in 3 ms: 16 in 12 at most."""
    assert part(WIDE, row(4, 1, 3.0)) == (0.4, "estimated")


def test_of_several_rows_the_one_that_allows_least_work_counts():
    assert part(WIDE, row(64, 1, 12.0), row(4, 1, 2.5), row(32, 1, 11.0)) == (0.5, "estimated")


def test_other_counts_of_images_and_a_breakdown_make_no_difference():
    alone = row(16, 1, 5.0, breakdown=True, train_images=99, images_per_epoch=32, gpu_busy_s_per_epoch=0.01)
    assert part(WIDE, alone) == (0.75, "estimated")


@pytest.mark.parametrize(
    "other",
    [
        {"model": "resnet18"},
        {"precision": "fp32"},
        {"variant": "gpu-augment"},
        {"variant_definition": {"files": "none"}},
        {"gpus": 2, "strategy": "ddp"},
        {"status": "oom"},
        {"group": "2 copies"},
        {"busy_ms": None},
        {"images_per_epoch": None},
        {"batch_size": None},
    ],
)
def test_what_another_row_does_not_tell(other):
    told = row(**{"batch": 16, "gpus": 1, "busy_ms": 5.0} | other)
    assert part(WIDE, told) is None


def test_nothing_is_known_without_rows_or_where_one_gpu_is_as_busy():
    assert gradient_wait(WIDE, []) is None
    assert part(WIDE, row(16, 1, 20.0)) is None
    assert part(row(64, 4, None), row(16, 1, 5.0)) is None
    assert gradient_wait(row(64, 4, 20.0), [row(16, 1, 19.0)]) == Wait(
        part=pytest.approx(0.05), measured=False
    )
