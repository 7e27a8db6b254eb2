"""What stands below a table about top-1 over seeds, and about when it was crossed."""

from __future__ import annotations

from gpubench.report.table import build
from whole_rows import row_with


def seeds(batch, *top1, **values):
    return [
        row_with(
            **{
                "trial_id": f"t{batch}-{number}", "config_id": f"c{batch}", "status": "ok", "batch_size": batch,
                "gpus": 1, "strategy": "single", "device": "cuda", "variant": "crop-resize", "gpu_name": "H200",
                "epoch_time_s": 10.0, "epoch_time_source": "measured", "images_per_epoch": 10240, "repeat": number,
                "top1_pct": value, "images": {"val_images": 5000}, **values,
            }
        )
        for number, value in enumerate(top1)
    ]  # fmt: skip


def aimed(batch, *crossings, word="confirmed"):
    """Rows that trained to 60 %, by when each seed crossed it."""
    return [
        row
        for number, time in enumerate(crossings)
        for row in seeds(
            batch, 61.0, until_top1=60.0, epochs=9, epochs_to_top1=3, time_to_top1_s=50.0, top1_crossing_s=time,
            top1_crossing=word, repeat=number, trial_id=f"t{batch}-{number}",
        )
    ]  # fmt: skip


def made(rows):
    return build("sizes", rows, axes=(("batch_size",),))


def of_top1(table):
    return [one for one in table.answers if one.startswith("Top-1")]


def cells(table, heading):
    place = table.headings.index(heading)
    return [row[place] for row in table.cells]


ROWS = [
    *seeds(32, 70, 70.1, 70.2), *seeds(64, 70, 70.1, 70.3), *seeds(128, 66, 66.2, 65.9), *seeds(256, 65, 67, 64),
]  # fmt: skip


def test_equal_different_and_open():
    table = made(ROWS)
    assert of_top1(table) == [
        "Top-1 is equal inside 1 point: batch_size=64 and batch_size=32 (0.0 points, −0.3 to +0.4).",
        "Top-1 differs: batch_size=128 is 4.1 points lower than batch_size=64 (−4.5 to −3.7).",
        "Top-1 is open, neither equal inside 1 point nor different: batch_size=256 against batch_size=128 (−0.7 "
        "points, −4.5 to +3.1; 54 seeds each, --repeats 54, would settle it in four of five cases, if the truth is "
        "what was seen).",
    ]
    assert (
        "Top-1 is compared over 3 seeds a row, with 95 % intervals of the difference. The tests are corrected for 3 "
        "comparisons." in table.remarks
    )


def test_of_fewer_seeds_nothing_is_claimed():
    table = made([*seeds(32, 70, 70.1), *seeds(64, 50, 50.1, 50.2)])
    assert of_top1(table) == []
    assert not any("Top-1" in one for one in table.remarks)


def test_of_many_pairs_those_farthest_apart_are_named():
    many = [row for step in range(7) for row in seeds(2**step, 70 - step, 70.01 - step, 69.99 - step)]
    (said,) = of_top1(made(many))
    assert said.startswith("Top-1 differs: ")
    assert said.count("lower than") == 4
    assert said.endswith("; and 2 more, closer together.")


def test_a_crossing_over_seeds_with_its_interval():
    table = made([*aimed(32, 10.0, 20.0, 40.0), *aimed(64, 30.0, 30.0, 30.0)])
    assert cells(table, "s to crossing") == ["20.0 (3.6–111.9)", "30.0 (30.0–30.0)"]
    assert (
        "s to crossing: when top-1 crossed its target, on a straight line between two evaluations; of several seeds "
        "the geometric mean, in parentheses its 95 % interval over them." in table.remarks
    )
    assert not any("Not confirmed" in one for one in table.remarks)


def test_what_nothing_confirmed_says_so():
    table = made([*aimed(32, 20.0, word="unconfirmed"), *aimed(64, 30.0)])
    assert cells(table, "s to crossing") == ["20", "30"]
    (said,) = [one for one in table.remarks if one.startswith("Not confirmed")]
    assert "(batch_size=32); --set confirm_top1=true trains on until two in a row are there" in said


def test_stored_rows_without_a_crossing_have_no_column_of_it():
    rows = seeds(32, 61.0, until_top1=60.0, epochs=9, time_to_top1_s=50.0)
    table = made([*rows, *seeds(64, 61.0, until_top1=60.0, epochs=9, time_to_top1_s=40.0)])
    assert "s to top-1" in table.headings
    assert "s to crossing" not in table.headings
