"""What a table says, and how it is laid out."""

import csv
import io
import unicodedata

from rich.console import Console

from gpubench import result
from gpubench.report import markdown, spreadsheet, terminal
from gpubench.report.table import build, signed_percent, tables

FIXED = {
    "model": "mobilenet_v2", "params_m": 3.5, "input_size": 224, "variant": "crop-resize", "gpus": 1,
    "strategy": "single", "precision": "bf16", "memory_format": "channels_last", "gpu_name": "NVIDIA H200",
    "gpu_count": 4, "cpu_name": "Xeon", "cpu_count": 64, "torch": "2.11.0", "experiment": "sizes",
}  # fmt: skip


def row(batch, status="ok", **values):
    base = dict.fromkeys(result.BY_NAME) | FIXED
    base |= {"trial_id": f"t{batch}", "config_id": f"c{batch}", "batch_size": batch, "status": status}
    return base | values


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
  128  4,271   +75 %   99  61.0  3.00 ± 0.01    −7 %     3,413  ok
  256      –       –    –     –            –       –         –  oom
  512      –       –    –     –            –       –         –  skipped
 1024      –       –    –     –            –       –         –  failed

A larger batch never pays: already from 64 to 128 memory grows 75 % while time per image falls 7 %.
± is half the interquartile range over measured epochs.
skipped: 256 of the same configuration ran out of memory (batch_size=512)
failed: RuntimeError: killed (batch_size=1024)
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


def test_on_a_terminal_the_words_are_the_same_and_coloured_at_any_width():
    coloured = on_console(sweep(), force_terminal=True, color_system="truecolor", width=30)
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
    rows = [
        row(64 << n, **sweep()[0] | {"batch_size": 64 << n, "config_id": n, "data_wait_pct": 12.5})
        for n in (0, 1)
    ]
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
    assert cells(table, "epoch_time_s") == ["2 ± 2"]
    assert "3 trials: 3 ok" in table.heading


def test_small_times_keep_their_digits():
    table = shown([row(64, epoch_time_s=0.01234), row(128, epoch_time_s=1.5)])
    assert cells(table, "epoch_time_s") == ["0.0123", "1.5000"]


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


def test_markdown():
    text = markdown.text([shown(sweep(), question="A | B?")])
    assert text.startswith("## sizes\n\nA | B?  \nmobilenet_v2")
    assert "| batch size | GPU MiB | growth |" in text
    assert "| ---: |" in text
    assert "| 128 | 4,271 | +75 % | 99 | 61.0 | 3.00 ± 0.01 | −7 % | 3,413 | ok |" in text
    assert "| 256 | – | – |" in text
    assert markdown.text([shown([row(1, variant="a|b"), row(2)])]).count("a\\|b") == 1


def test_spreadsheet_has_one_header_numbers_and_every_row():
    other = build(
        "single", [row(64, top1_pct=71.25, precision="fp16"), row(64, precision="fp32", config_id="c")]
    )
    text = spreadsheet.text([shown(sweep()), other])
    lines = list(csv.DictReader(io.StringIO(text)))
    assert text.splitlines()[0] == (
        "experiment,batch_size,precision,gpu_mem_mib,gpu_mem_growth_pct,cpu_util_pct,"
        "epoch_time_s,epoch_time_growth_pct,top1_pct,status"
    )
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
