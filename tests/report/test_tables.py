"""What a table says, and how it is laid out."""

import csv
import io
import unicodedata
from pathlib import Path

import pytest
from gpubench.report import markdown, spreadsheet, terminal
from gpubench.report.cells import signed_percent
from gpubench.report.contents import contents
from gpubench.report.heading import title
from gpubench.report.table import build, tables
from rich.console import Console
from swept import swept
from whole_rows import changed, row_with

from gpubench.sweep.announcing import announcement_lines

FIXED = {
    "model": "mobilenet_v2", "params_m": 3.5, "input_size": 224, "variant": "crop-resize", "gpus": 1,
    "strategy": "single", "precision": "bf16", "memory_format": "channels_last", "gpu_name": "NVIDIA H200",
    "gpu_count": 4, "cpu_name": "Xeon", "cpu_count": 64, "torch": "2.11.0", "experiment": "sizes", "epochs": 3,
}  # fmt: skip


def row(batch, status="ok", **values):
    base = FIXED | {"trial_id": f"t{batch}", "config_id": f"c{batch}", "batch_size": batch, "status": status}
    return row_with(**base | values)


def sweep():
    return [
        row(64, gpu_mem_mib=2435, epoch_time_s=3.21, epoch_time_iqr_s=0.04, epochs_measured=3,
            images_per_epoch=10240, images_per_s=10240 / 3.21, gpu_util_pct=97.2, cpu_util_pct=60.5),
        row(128, gpu_mem_mib=4271, epoch_time_s=3.0, epoch_time_iqr_s=0.02, epochs_measured=3,
            images_per_epoch=10240, images_per_s=10240 / 3, gpu_util_pct=99, cpu_util_pct=61,
            doubts="stranger", doubt_texts={"stranger": "pid 7 used the GPU too; measure again"}),
        row(256, "oom"),
        row(512, "skipped", reason="256 of the same configuration ran out of memory"),
        row(1024, "failed", reason="\x1b[31mRuntimeError: killed\x1b[0m\n  traceback …"),
    ]  # fmt: skip


EXPECTED = """\
sizes
Where does it stop paying?
mobilenet_v2, 3.5 M parameters, 224 px, crop-resize, 1 GPU, single, bf16, channels_last
4 × NVIDIA H200, Xeon (64 CPUs); torch 2.11.0
5 trials: 2 ok, 1 out of memory, 1 failed, 1 skipped

batch    GPU          GPU   CPU        epoch
 size    MiB  growth    %     %       time s  growth  images/s  status
-----  -----  ------  ---  ----  -----------  ------  --------  -------
   64  2,435           97  60.5  3.21 ± 0.02             3,190  ok
  128  4,271   +75 %   99  61.0  3.00 ± 0.01    −7 %     3,413  ok !
  256      –       –    –     –            –       –         –  oom
  512      –       –    –     –            –       –         –  skipped
 1024      –       –    –     –            –       –         –  failed

By one process each, a larger batch never pays: already from 64 to 128 memory grows 75 % while time per image falls \
7 %. Every difference is larger than the epochs of one process spread; some of these rows have doubts about their times.

By one process each, 128 is the smallest of these sizes that reaches 95 % of the best rate; by these figures each size \
is on the Pareto front of time and memory: none is beaten in both.
± is half the interquartile range over the measured epochs of one process.
skipped: 256 of the same configuration ran out of memory (batch_size=512)
failed: RuntimeError: killed (batch_size=1024)
! marks rows with doubts, which follow.
Doubt stranger: pid 7 used the GPU too; measure again (batch_size=128)
"""


def shown(rows, **options):
    return build("sizes", rows, **options)


def cells(table, name):
    place = [column.name for column in table.columns].index(name)
    return [row[place] for row in table.cells]


def on_console(rows, **options):
    out = io.StringIO()
    terminal.show([shown(rows)], Console(file=out, **options))
    return out.getvalue()


def test_the_whole_of_a_table():
    assert terminal.text(shown(sweep(), question="Where does it stop paying?")) == EXPECTED


def test_without_a_terminal_there_are_no_control_codes():
    plain = on_console(sweep(), force_terminal=False, width=20)
    assert plain == terminal.text(shown(sweep()))
    assert not [sign for sign in plain if unicodedata.category(sign) == "Cc" and sign != "\n"]


@pytest.mark.parametrize("width", [1, 30, 60, 79])
def test_on_a_narrow_terminal_a_table_comes_in_blocks_that_begin_with_what_was_varied(width):
    table = shown(sweep())
    seen = on_console(sweep(), force_terminal=True, color_system=None, width=width).split("\n")
    rules = [line for line in seen if line and set(line) == {"─", " "}]
    keys = len(table.varied)
    assert sum(len(rule.split()) - keys for rule in rules) == len(table.columns) - keys, "each column once"
    for rule in rules:
        assert len(rule) <= width or len(rule.split()) <= keys + 2, "only what can't be split is wider"
    rows = [line.split() for line in seen if line.split()[:keys] == list(table.cells[0][:keys])]
    assert len(rows) >= len(rules)


def test_on_a_terminal_the_words_are_the_same_and_coloured():
    coloured = on_console(sweep(), force_terminal=True, color_system="truecolor", width=300)
    assert "\x1b[" in coloured
    seen = "".join(part.partition("m")[2] if n else part for n, part in enumerate(coloured.split("\x1b[")))
    seen, text = seen.replace("─", "-"), terminal.text(shown(sweep()))
    assert seen.split() == text.split()
    assert set(text.split("\n\n")[1].splitlines()) <= {line.rstrip() for line in seen.splitlines()}


def test_a_terminal_that_lacks_the_signs_gets_plain_ones():
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="ascii")
    terminal.show([shown(sweep())], Console(file=file))
    file.flush()
    assert b"-7 %" in raw.getvalue()
    assert b"4 x NVIDIA H200" in raw.getvalue()


def test_a_usual_table_fits_80_columns():
    rows = [changed(sweep()[0], batch_size=64 << n, config_id=f"c{n}", data_wait_pct=12.5) for n in (0, 1)]
    assert max(map(len, terminal.text(shown(rows)).split("\n\n")[1].splitlines())) <= 80


def test_columns_that_nobody_measured_are_left_out_and_the_status_stays():
    table = shown([row(64, "missing"), row(128, "missing")])
    assert [column.name for column in table.columns] == ["batch_size", "status"]
    assert "2 trials: 2 missing" in table.heading


def test_extrapolated_times_are_marked():
    table = shown([row(64, epoch_time_s=3.0, epoch_time_source="extrapolated"), row(128, epoch_time_s=2.0)])
    assert cells(table, "epoch_time_s") == ["~3", "2"]
    assert any(note.startswith("~ marks") for note in table.notes)


def test_repeats_are_one_row_and_counted():
    rows = [row(64, epoch_time_s=t, repeat=n, trial_id=f"t{n}") for n, t in enumerate((1.0, 2.0, 9.0))]
    table = shown(rows)
    assert cells(table, "repeats") == ["3"]
    # The third root of 18; a standard error of 0.6485 times 4.303 is a factor of 16.29.
    assert cells(table, "epoch_time_s") == ["2.62 ± >100 %"]
    assert "3 trials: 3 ok" in table.heading


@pytest.mark.parametrize(
    ("time", "iqr", "text"),
    [
        (1.5, 0.06, "1.50 ± 0.03"),
        (1.5, 0.004, "1.500 ± 0.002"),
        (1.5, 0.0002, "1.5000 ± 0.0001"),
        (1.5, 0.00004, "1.5000 ± <0.0001"),
        (1.5, 0.0, "1.5 ± 0.0"),
        (12.0, 3.0, "12 ± 2"),
    ],
)
def test_a_spread_that_was_measured_never_reads_nothing(time, iqr, text):
    (cell,) = cells(
        shown([row(64, epoch_time_s=time, epoch_time_iqr_s=iqr, epochs_measured=3)]), "epoch_time_s"
    )
    assert cell == text


def test_the_heading_says_how_many_images_unless_they_vary_and_no_data_where_none_were_read():
    facts = {"images": {"files": "none"}, "variant": "synthetic", "data": "procedural"}
    line = shown(
        [
            row(64, train_images=2560, **facts),
            row(128, "skipped", train_images=2560, variant="synthetic", data="procedural"),
        ]
    ).heading[0]
    assert "2,560 training images" in line
    assert "data" not in line
    read = facts | {"images": {"files": "full"}}
    mixed = shown([row(64, train_images=2560, **facts), row(64, train_images=64, config_id="r", **read)])
    assert "data procedural" in mixed.heading[0]
    assert "training images" not in mixed.heading[0]


def test_small_times_keep_their_digits():
    table = shown([row(64, epoch_time_s=0.01234), row(128, epoch_time_s=1.5)])
    assert cells(table, "epoch_time_s") == ["0.0123", "1.5000"]


def test_a_figure_below_zero_has_the_sign_of_growth_and_zero_has_none():
    table = shown([row(64, breakdown=True, breakdown_cost_pct=-2.25),
                   row(128, breakdown=True, breakdown_cost_pct=-0.04)])  # fmt: skip
    assert cells(table, "breakdown_cost_pct") == ["−2.3", "0.0"]


def test_signed_percent():
    assert [signed_percent(v) for v in (22.2, -42.6, 0.0, -0.3, 1234.5)] == [
        "+22 %",
        "−43 %",
        "0 %",
        "0 %",
        "+1,235 %",
    ]


def test_precision_and_hardware_stand_in_the_heading():
    mixed = shown([row(64), row(128, torch="2.15.0", precision="fp32")])
    assert "torch 2.11.0 and 2.15.0" in "\n".join(mixed.heading)
    assert cells(mixed, "precision") == ["bf16", "fp32"]
    nobody_said = shown([row(64, precision=None, source="published log")])
    assert "precision not stated" in nobody_said.heading[0]
    assert "taken from a published log" in nobody_said.heading[1]
    assert "(1 CPU)" in "\n".join(shown([row(64, cpu_count=1)]).heading)


def test_the_hardware_of_a_trial_over_nodes_is_that_of_each():
    assert shown([row(64, nodes=1)]).heading[1].startswith("4 × NVIDIA H200")
    assert shown([row(64), row(128, nodes=2)]).heading[1].startswith("each node: 4 × NVIDIA H200")


def test_gpus_of_different_models_are_told_apart():
    table = shown([row(64), row(64, gpu_name="A40", config_id="c")])
    assert cells(table, "gpu_name") == ["NVIDIA H200", "A40"]


def test_one_table_an_experiment_and_shared_trials_in_both():
    rows = [row(16), row(64), row(32), row(256, experiment="other")]
    first, other = tables(rows, members={"other": ["t256", "t64"]}, questions={"sizes": "Which?"})
    assert (other.name, cells(other, "batch_size")) == ("sizes", ["16", "32"])
    assert other.heading[0] == "Which?"
    assert (first.name, cells(first, "batch_size")) == ("other", ["64", "256"])


def test_zipped_axes_grow_together():
    rows = [row(64, gpus=1, gpu_mem_mib=100), row(128, gpus=2, gpu_mem_mib=103)]
    apart, together = (build("x", rows, axes=axes) for axes in ((), [["batch_size", "gpus"]]))
    assert "gpu_mem_growth_pct" not in [column.name for column in apart.columns]
    assert cells(together, "gpu_mem_growth_pct") == ["", "+3 %"]


def test_jobs_show_their_place_and_slowdown():
    rows = [
        row(b, group="g", job=f"{b}@1", epoch_time_s=2.0, solo_epoch_time_s=1.0, slowdown=2.0)
        for b in (32, 64)
    ]
    table = shown(rows)
    assert table.headings == ("job", "batch size", "epoch time s", "alone s", "slowdown", "status")
    assert not table.notes


def names(table):
    return [column.name for column in table.columns]


def test_energy_and_what_it_buys():
    table = shown(
        [row(64, epoch_time_s=2.0, energy_j=500.0, images_per_epoch=10240), row(128, energy_j=None)]
    )
    assert cells(table, "energy_j") == ["500", "–"]
    assert cells(table, "images_per_joule") == ["20.48", "–"]
    assert "edp_js" not in names(table)
    assert table.rows[0].edp_js == 1000.0
    line = next(csv.DictReader(io.StringIO(spreadsheet.text([table]))))
    assert (line["energy_j"], line["images_per_joule"], line["edp_js"]) == ("500", "20.48", "1000")


def test_scaling_is_named_and_shown_only_where_it_applies():
    rows = [row(64, epoch_time_s=8.0), row(64, epoch_time_s=2.5, gpus=4, strategy="ddp", config_id="four")]
    table = shown([*rows, row(128, epoch_time_s=7.0)])
    assert cells(table, "strong_efficiency_pct") == ["100", "", "80"]
    assert cells(table, "speedup") == ["1.00", "", "3.20"]
    assert "weak_efficiency_pct" not in names(table)
    (note,) = [note for note in table.notes if note.startswith("Scaling")]
    assert "strong (same global batch, against single on 1 GPU)" in note


def test_parts_of_steps_take_the_place_of_what_timing_them_moves():
    parts = {
        "copy_ms": 0.25,
        "comm_ms": 1.0,
        "comm_hidden_ms": 2.0,
        "comm_pct": 8.5,
        "slowest_rank": 3,
        "energy_j": 9.0,
        "gpu_util_pct": 90,
    }
    assert "copy_ms" not in names(shown([row(64, **parts)]))
    table = shown([row(64, breakdown=True, **parts)])
    assert {"copy_ms", "comm_pct", "slowest_rank"} < set(names(table))
    assert names(table).index("comm_hidden_ms") == names(table).index("comm_ms") + 1
    assert not {"energy_j", "gpu_util_pct"} & set(names(table))
    assert "parts of steps timed" in table.heading[0]


def test_a_top1_to_reach_stands_beside_the_top1_even_where_no_row_got_there():
    table = shown([row(64, until_top1=60.0, epochs=5, top1_pct=41.0)])
    assert names(table)[-3:] == ["top1_pct", "time_to_top1_s", "status"]
    assert cells(table, "time_to_top1_s") == ["–"]
    assert "until top-1 60 %" in table.heading[0]
    assert "Top-1 of 60 % was not reached within 5 epochs (the only row)" in table.notes
    assert "time_to_top1_s" not in names(shown([row(64, top1_pct=41.0)]))
    got = {"epochs_to_top1": 4, "time_to_top1_s": 31.25, "energy_to_top1_j": 21000.0}
    table = shown([row(64, until_top1=60.0, top1_pct=61.0, **got)])
    assert [cells(table, name) for name in got] == [["4"], ["31.3"], ["21,000"]]
    assert not table.notes
    one = {"until_top1": 60.0, "epochs": 5, "top1_pct": 61.0, "config_id": "c"}
    earlier = row(64, round=3, epoch_time_source="extrapolated", **one)  # did not train until then
    for other in ({"repeat": 1}, {"round": 2}):
        table = shown([row(64, **one, **got), row(64, **one, **other), earlier])
        assert (
            "Top-1 of 60 % was not reached within 5 epochs in 1 of 2 processes (the only row)" in table.notes
        )


def test_rows_from_before_a_field_came_do_not_differ_in_it():
    assert "breakdown" not in names(shown([row(64, breakdown=None), row(128, breakdown=False)]))


def test_the_heading_says_whether_loading_is_included_and_why_there_is_no_top1():
    def fed(batch, files, **more):
        why = {"top1_pct": "synthetic images have no validation split"} if files == "none" else {}
        return row(batch, images={"files": files}, missing=why, **more)

    included = shown([fed(64, "full", top1_pct=20.0)])
    assert included.heading[0].endswith(", input pipeline included")
    without = shown([fed(64, "none", variant="synthetic")])
    assert without.heading[0].endswith("no input pipeline (synthetic: one resident batch)")
    assert without.heading[-1] == "top-1 not measured: synthetic images have no validation split"
    mixed = shown([fed(64, "full", top1_pct=20.0), fed(64, "none", variant="synthetic", config_id="s")])
    assert mixed.heading[0].endswith("input pipeline included, but not in synthetic (one resident batch)")
    assert "top-1 not" not in "".join(mixed.heading)


def test_every_repeat_is_counted_in_the_heading_and_its_spread_is_a_doubt():
    rows = [row(64, epoch_time_s=t, repeat=n, config_id="c") for n, t in enumerate((1.0, 1.2))]
    table = shown([*rows, row(64, "failed", repeat=2, config_id="c", reason="killed")])
    assert "3 trials: 2 ok, 1 failed" in table.heading
    assert cells(table, "status") == ["2 ok, 1 failed !"]
    assert any(note.startswith("Doubt spread: epoch times of its processes") for note in table.notes)
    assert len(table.trials) == 3


def test_markdown():
    text = markdown.text([shown(sweep(), question="A | B?")])
    assert text.startswith("## sizes\n\nA | B?  \nmobilenet_v2")
    assert "| batch size | GPU MiB | growth |" in text
    assert "| ---: |" in text
    assert "| 128 | 4,271 | +75 % | 99 | 61.0 | 3.00 ± 0.01 | −7 % | 3,413 | ok ! |" in text
    assert "| 256 | – | – |" in text
    notes = [line for line in text.splitlines() if line.startswith("- ")]
    assert notes[0].startswith("- **By one process each, a larger batch never pays")
    assert "falls 7 %.** Every difference is larger than the epochs of one process spread; " in notes[0]
    assert notes[-1].startswith("- Doubt stranger")
    assert "**" not in "".join(notes[1:])
    assert markdown.text([shown([row(1, variant="a|b"), row(2)])]).count("a\\|b") == 1


def test_spreadsheet_has_one_header_numbers_and_every_row():
    other = build(
        "single", [row(64, top1_pct=71.25, precision="fp16"), row(64, precision="fp32", config_id="c")]
    )
    text = spreadsheet.text([shown(sweep()), other])
    lines = list(csv.DictReader(io.StringIO(text)))
    assert text.splitlines()[0] == (
        "experiment,batch_size,precision,gpu_mem_mib,gpu_mem_growth_pct,cpu_util_pct,"
        "epoch_time_s,epoch_time_growth_pct,top1_pct,status,energy_j,images_per_joule,edp_js,"
        "speedup,strong_efficiency_pct,weak_efficiency_pct,"
        "images_per_s,epoch_time_iqr_s,epoch_time_source,doubts,"
        "data_wait_pct,copy_ms,forward_ms,backward_ms,comm_ms,comm_hidden_ms,optimizer_ms,comm_pct,"
        "comm_mib_per_step,slowest_rank,breakdown_cost_pct,gpu_util_pct,"
        "epochs_to_top1,time_to_top1_s,energy_to_top1_j,"
        "epoch_time_low_s,epoch_time_high_s,between_pct,within_pct,"
        "epoch_time_growth_low_pct,epoch_time_growth_high_pct,cost_growth_pct,cost_growth_low_pct,cost_growth_high_pct,"
        "speedup_low,speedup_high,strong_efficiency_low_pct,strong_efficiency_high_pct,"
        "weak_efficiency_low_pct,weak_efficiency_high_pct,images_per_joule_low,images_per_joule_high,"
        "top1_crossing_s,top1_crossing,top1_crossing_low_s,top1_crossing_high_s"
    )
    assert [line["doubts"] for line in lines] == ["", "stranger", "", "", "", "", ""]
    assert (lines[1]["epoch_time_iqr_s"], lines[1]["images_per_s"]) == ("0.02", "3413.33")
    assert [line["status"] for line in lines] == ["ok", "ok", "oom", "skipped", "failed", "ok", "ok"]
    assert float(lines[1]["epoch_time_growth_pct"]) < 0  # an ASCII minus
    assert lines[2]["gpu_mem_mib"] == ""
    assert lines[5]["top1_pct"] == "71.25"
    assert lines[0]["precision"] == "bf16"


def test_spreadsheet_runs_no_formula_and_keeps_commas():
    rows = [row(1, model="=HYPERLINK(1)"), row(2, model="@a,b"), row(3, model='+"x"'), row(4, model="-1\n2")]
    text = spreadsheet.text([build("=cmd", rows)])
    for line in list(csv.reader(io.StringIO(text)))[1:]:
        assert line[0] == "'=cmd"
        assert line[1][0] == "'"
    assert [line[1] for line in csv.reader(io.StringIO(text))][2] == "'@a,b"


def test_spreadsheet_has_every_column_that_is_printed():
    """The answer of --until-top1 above all: whoever opens the file sees what the terminal showed."""
    wanted = {"until_top1": 60.0, "data_wait_pct": 12.5, "time_to_top1_s": 91.75, "epochs_to_top1": 4}
    parts = {"breakdown": True, "copy_ms": 1.5, "comm_pct": 7.0, "slowest_rank": 1}
    shown_tables = [
        shown(sweep()),
        build("to 60 %", [row(64, **wanted), row(128, **wanted)]),
        build("parts", [row(64, **parts), row(128, **parts)]),
    ]
    lines = list(csv.DictReader(io.StringIO(spreadsheet.text(shown_tables))))
    printed = {name for table in shown_tables for name in names(table)}
    assert {"time_to_top1_s", "data_wait_pct", "gpu_util_pct", "copy_ms"} <= printed <= set(lines[0])
    for line, given in ((lines[0], {"gpu_util_pct": 97.2}), (lines[5], wanted), (lines[7], parts)):
        for name in given.keys() - {"breakdown", "until_top1"}:
            assert float(line[name]) == given[name], name


ALWAYS = """
gpu_mem_mib gpu_mem_growth_pct cpu_util_pct epoch_time_s epoch_time_growth_pct top1_pct status energy_j
images_per_joule edp_js speedup strong_efficiency_pct weak_efficiency_pct images_per_s epoch_time_iqr_s
epoch_time_source doubts
"""
OF_JOBS = """
solo_epoch_time_s slowdown overlap_gain predicted_slowdown sharing full_together
"""
LAST = """
data_wait_pct copy_ms forward_ms backward_ms comm_ms comm_hidden_ms optimizer_ms comm_pct comm_mib_per_step slowest_rank
breakdown_cost_pct gpu_util_pct epochs_to_top1 time_to_top1_s energy_to_top1_j
epoch_time_low_s epoch_time_high_s between_pct within_pct
epoch_time_growth_low_pct epoch_time_growth_high_pct cost_growth_pct cost_growth_low_pct cost_growth_high_pct
speedup_low speedup_high strong_efficiency_low_pct strong_efficiency_high_pct
weak_efficiency_low_pct weak_efficiency_high_pct images_per_joule_low images_per_joule_high
top1_crossing_s top1_crossing top1_crossing_low_s top1_crossing_high_s
"""
LAST_OF_JOBS = """
slowdown_low slowdown_high overlap_gain_low overlap_gain_high
"""


def test_the_columns_of_table_csv_are_these_for_ever():
    """New ones come last, so that a sheet that refers to the others keeps working."""
    alone = spreadsheet.text([shown(sweep())]).splitlines()[0].split(",")
    assert alone == ["experiment", "batch_size", *ALWAYS.split(), *LAST.split()]
    jobs = [row(64, job=f"j{n}", group="two", group_id="g1", config_id=f"j{n}") for n in (1, 2)]
    repeated = [row(64, repeat=n, config_id="c") for n in (0, 1)]
    both = spreadsheet.text([build("jobs", jobs), build("again", repeated)]).splitlines()[0].split(",")
    figures = [*ALWAYS.split(), *OF_JOBS.split(), *LAST.split(), *LAST_OF_JOBS.split()]
    assert both == ["experiment", "job", "batch_size", "repeats", *figures]


def test_the_heading_says_what_jobs_shared_behind_what_they_were_given():
    given = {"cpus": 2, "gpu_mem_cap_mib": 12288, "steps": 20, "cpu_sharing": "pinned", "copies": 2}
    line = shown([row(64, **given), row(128, **given)]).heading[0]
    assert line.endswith("2 CPUs, GPU memory capped at 12,288 MiB, CPUs pinned, 20 steps, 2 copies")


@pytest.mark.parametrize(
    ("axes", "question", "jobs", "said"),
    [
        ([("batch_size",)], "Where does a larger batch stop paying?", False, "batch-size"),
        ([("batch_size",)], "", False, "batch-size"),
        ([], "", False, "batch-size"),
        ([("variant",), ("batch_size",)], "", False, "variant, batch-size"),
        ([("strategy", "gpus")], "", False, "strategy, gpus"),
        ([("copies",), ("batch_size",)], "", True, "copies, batch-size"),
        ([("variant",)], "", True, "variant, jobs side by side"),
        ([], "", True, "jobs side by side"),
    ],
)
def test_the_title_fits_what_was_swept(
    axes: list[tuple[str, ...]], question: str, jobs: bool, said: str
) -> None:
    """The built-in experiment's; whatever a user has called one stays."""
    assert title("batch-size", question, axes, jobs=jobs) == said
    assert title("my-question", question, axes, jobs=jobs) == "my-question"


def test_a_title_of_other_axes_stands_over_the_table_in_every_form(tmp_path: Path) -> None:
    work = swept(tmp_path, "batch-size", "8", optimizer="sgd,adam")
    (table,) = contents(work.bench.results, work.records).tables
    assert terminal.text(table).startswith("optimizer\n")
    assert markdown.text([table]).startswith("## optimizer\n")
    assert {row.experiment for row in table.rows} == {"batch-size"}
    assert announcement_lines(work, work.survey())[0].startswith("optimizer: ")
