"""Jobs that ran together: their rows beside those of trials alone, and the sentence on each group."""

import csv
import io

import pytest
from gpubench.analysis.sharing import Resource
from gpubench.analysis.slowdown import group_verdict
from gpubench.report import layout, markdown, spreadsheet, terminal
from gpubench.report.groups import gathered
from gpubench.report.notes import which
from gpubench.report.table import build
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from test_tables import cells, names, row, shown
from whole_rows import changed

from gpubench.schema.verdict import Verdict

CPU = Resource(
    name="cpu", column="cpu_util_pct", unit="%", alone=(58.0, 61.0), together=(98.0, 98.0),
    full_alone=(False, False), full_together=True,
)  # fmt: skip


def alone(batch, time=2.0, **values):
    variant = values.get("variant", "crop-resize")
    return row(batch, config_id=f"c{batch}{variant}", copies=1, epoch_time_s=time, **values)


def group(
    name,
    slowdowns=(1.5, 1.7),
    predicted=(1.5, 1.6),
    batches=(32, 64),
    full=True,
    ends=(),
    why_not=None,
    **values,
):
    """The rows of a group that ended ok; `values` are the same for all jobs.

    `ends`: the range of its gain, else no wider than it is; None: not known. `why_not`: there is no verdict.
    """
    gain = (sum(1 / s for s in slowdowns) - 1) / (len(slowdowns) - 1)
    variant = values.get("variant", "crop-resize")
    common = {"group": name, "group_id": f"g{name}{variant}", "overlap_gain": gain, "copies": 1}
    common["together"] = {"resources": [CPU.as_dict()] if full else []}
    common |= {"full_together": "cpu" if full else None} | values
    rows = [
        row(
            batch, **{"job": f"{n} of {len(slowdowns)}", "config_id": f"{name}{n}{variant}", "slowdown": s,
                      "predicted_slowdown": p, "epoch_time_s": 2 * s, "solo_epoch_time_s": 2.0} | common
        )
        for n, (batch, s, p) in enumerate(zip(batches, slowdowns, predicted, strict=True), 1)
    ]  # fmt: skip
    before = Verdict(gain_range=(gain, gain) if ends == () else ends, why_not=why_not)
    found = group_verdict(rows[0].overlap_gain, (), rows, [before])
    return [changed(one, verdict=found, sharing=found.cell) for one in rows]


def ended(rows, *statuses, reason="job 2 of 2 ran out of GPU memory: no room"):
    """The jobs of these rows, ended like this, without figures."""
    gone = dict.fromkeys(("slowdown", "predicted_slowdown", "overlap_gain", "epoch_time_s", "sharing"))
    gone |= {"full_together": None, "together": {}, "verdict": None}
    return [
        changed(changed(one, **gone), status=s, reason=reason if s == "skipped" else "no room")
        for one, s in zip(rows, statuses, strict=True)
    ]


def test_rows_of_a_group_stand_together_in_the_order_of_its_jobs_behind_those_alone():
    b, a = group("b"), group("a")
    other = group("b", variant="pre-resized")
    mixed = [b[1], a[0], other[1], alone(32), b[0], other[0], alone(64), a[1]]
    table = shown(mixed)
    assert [(r.group, r.variant, r.job) for r in table.rows] == [
        (None, "crop-resize", None), (None, "crop-resize", None),
        ("b", "crop-resize", "1 of 2"), ("b", "crop-resize", "2 of 2"),
        ("b", "pre-resized", "1 of 2"), ("b", "pre-resized", "2 of 2"),
        ("a", "crop-resize", "1 of 2"), ("a", "crop-resize", "2 of 2"),
    ]  # fmt: skip
    assert cells(table, "group") == [
        "",
        "",
        "b (variant=crop-resize)",
        "",
        "b (variant=pre-resized)",
        "",
        "a",
        "",
    ]


def test_without_ids_the_second_row_of_a_job_is_one_of_another_group():
    first, second = group("g", group_id=None), group("g", group_id=None, variant="pre-resized")
    found = gathered([first[0], second[0], first[1], second[1]])
    assert [[r.variant for r in one.rows] for one in found] == [["crop-resize"] * 2, ["pre-resized"] * 2]
    assert [one.label for one in found] == ["g (variant=crop-resize)", "g (variant=pre-resized)"]


@given(
    batches=st.lists(st.sampled_from([16, 32, 64, 128]), min_size=1, unique=True),
    times=st.lists(st.floats(0.5, 50), min_size=4, max_size=4),
    places=st.lists(st.integers(0, 8), min_size=4, max_size=4),
)
def test_rows_alone_read_as_they_would_without_groups(batches, times, places):
    solos = [
        alone(b, t, gpu_mem_mib=100.0 + b, gpus=1 + (b > 64), images_per_epoch=10240)
        for b, t in zip(batches, times, strict=False)
    ]
    mixed = list(solos)
    jobs = [*group("three on one", gpus=3, batches=(16, 512)), *group("own", gpus=1)]
    for place, job in zip(places, jobs, strict=True):
        mixed.insert(place, job)
    before, after = shown(solos), shown(mixed)
    kept = ("gpu_mem_growth_pct", "epoch_time_growth_pct", "speedup", "strong_efficiency_pct", "batch_size")
    assert [r.values(kept) for r in before.rows] == [r.values(kept) for r in after.rows[: len(solos)]]
    assert all(r.epoch_time_growth_pct is r.speedup is None for r in after.rows[len(solos) :])
    said = [note for note in after.notes if "three on one" not in note and not note.startswith("own:")]
    if len(batches) > 1:  # else the batch size varies among jobs alone
        assert said == list(before.notes)


def test_what_nobody_asked_of_the_rows_alone_is_not_answered():
    rows = [alone(32, gpus=1), alone(64, gpus=2, strategy="ddp"), *group("g", gpus=1, device="cuda")]
    assert any("caling" in note for note in shown(rows).notes)
    assert not any("caling" in note for note in shown(rows, axes=[["variant"]]).notes)
    together = shown([alone(32), alone(64, 1.5, gpu_mem_mib=9), *group("g")], axes=[["variant"]])
    assert [note for note in together.notes if "larger batch" in note] == []
    asked = shown([alone(32), alone(64, 1.5), *group("g")], axes=[["batch_size"]])
    assert any("batch" in note and not note.startswith("g:") for note in asked.notes)


def test_the_sentence_on_a_group():
    """Verdict, gain and prediction first; then what was full; then what that rests on. No sentence is long."""
    (note,) = shown(group("three jobs, own GPUs")).notes
    assert note == (
        "three jobs, own GPUs: by one process each, partly parallel (overlap gain 0.25); predicted 1.50 and 1.60 times "
        "as long as alone, measured 1.50 and 1.70 (error 0 and −6 %). The CPUs were full together (98 %; alone 58 and "
        "61 %)."
    )
    assert "(overlap gain 0.25); " in shown(group("g", ends=(0.246, 0.254))).notes[0], "it reads the same"
    between = "between merely concurrent and partly parallel"
    told = shown(group("g", ends=(0.05, 0.4))).notes[0]
    assert f"{between} (overlap gain 0.25, 0.05 to 0.40); predicted" in told


@given(st.sampled_from([(), None, (0.05, 0.4), (0.05, 1.0)]), st.sampled_from([None, "noise"]))
def test_the_sentence_has_the_word_of_the_column(ends, why_not):
    rows = group("g", ends=ends, why_not=why_not)
    (note,) = shown(rows).notes
    sharing = rows[0].sharing
    said = f"by one process each, {sharing}" if sharing else "no verdict"
    assert note.startswith(f"g: {said} (overlap gain 0.25")


@pytest.mark.parametrize(
    ("slowdowns", "ends", "said"),
    [
        ((11.0, 11.0), (), "merely concurrent, and slower than one after the other (overlap gain −0.82)"),
        (
            (2.1, 2.1),
            (-0.1, 0.02),
            "merely concurrent, perhaps slower than one after the other (overlap gain −0.05",
        ),
        (
            (11.0, 11.0),
            None,
            "perhaps merely concurrent, perhaps slower than one after the other (overlap gain −0.82)",
        ),
        ((2.0, 2.0), (-0.1, 0.02), "merely concurrent (overlap gain 0.00"),
    ],
)
def test_the_sentence_on_jobs_that_lose_by_running_together_says_so_first(slowdowns, ends, said):
    rows = group("g", slowdowns=slowdowns, ends=ends)
    (answer,) = shown(rows).answers
    assert answer.startswith(f"g: by one process each, {said}")
    assert rows[0].sharing in ("merely concurrent", "perhaps merely concurrent"), "the column's words stay"


def test_the_sentence_on_a_group_beside_other_work_says_why_its_verdict_is_open():
    found = Verdict(words=("partly parallel",), sure="doubtful", rests="; each row is of one process only")
    (answer,) = shown([changed(row, verdict=found) for row in group("g")]).answers
    assert answer.startswith("g: perhaps partly parallel (overlap gain 0.25)")
    assert "Each row is of one process only, and somebody else's work took a part of the machine." in answer


UNKNOWN = "how far the times spread is not known."
GAIN = "partly parallel (overlap gain 0.25"


@pytest.mark.parametrize(
    ("values", "begins", "ends"),
    [
        (
            {"epochs_measured": 2, "ends": None},
            f"by one process (and two epochs) each, perhaps {GAIN}",
            f" H{UNKNOWN[1:]}",
        ),
        (
            {"epochs_measured": 1, "ends": None},
            f"by one process (and one epoch) each, perhaps {GAIN}",
            f" H{UNKNOWN[1:]}",
        ),
        ({"epochs_measured": 3}, f"by one process each, {GAIN}", " alone 58 and 61 %)."),
        (
            {"epoch_time_source": "extrapolated", "ends": None},
            f"by one process each, perhaps {GAIN}",
            f" Epoch times are extrapolated from steps, and {UNKNOWN}",
        ),
        (
            {"source": "published log", "ends": None},
            f"perhaps {GAIN}",
            " Each time is one figure of a published log.",
        ),
    ],
)
def test_a_verdict_on_one_process_begins_with_that(values, begins, ends):
    (note,) = (note for note in shown(group("g", **values)).notes if note.startswith("g: "))
    assert note.startswith(f"g: {begins}")
    assert note.endswith(ends)


def repeated(repeats, **more):
    return [changed(one, repeat=n, seed=n) for n in range(repeats) for one in group("g", **more)]


@pytest.mark.parametrize(
    ("repeats", "ends", "word", "said"),
    [
        (2, None, "partly parallel", "Each row is of two processes only."),
        (2, (), "partly parallel", "Each row is of two processes only."),
        (
            3,
            None,
            "partly parallel",
            "How full each resource was is told by the first of 3 processes of each job.",
        ),
    ],
)
def test_a_verdict_on_fewer_than_three_repeats_says_so(repeats, ends, word, said):
    """As the sentences of knees and scaling do."""
    (answer,) = shown(repeated(repeats, ends=ends, epochs_measured=2)).answers
    assert answer.startswith(f"g: {word} (overlap gain 0.25)")
    assert answer.endswith(f" {said}")


def test_what_is_not_known_of_a_group_is_said_or_left_out():
    (bare,) = shown(group("log", full=False)).notes
    assert bare.startswith("log: by one process each, partly parallel (overlap gain 0.25); predicted")
    assert bare.endswith(" (error 0 and −6 %).")
    why = {"no_prediction": "GPU seconds of job 1 are not known"}
    (note,) = shown(group("g", full=False, predicted=(None, None), together=why)).notes
    assert note == (
        "g: by one process each, partly parallel (overlap gain 0.25); not predicted: GPU seconds of job 1 are not "
        "known."
    )
    unknown = {"overlap_gain": None, "slowdown": None, "missing": {"overlap_gain": "job 2 failed alone"}}
    (note,) = shown(group("g", **unknown)).notes
    assert note == "g: no verdict: job 2 failed alone; predicted 1.50 and 1.60 times as long as alone."
    assert not shown(group("g", predicted=(None, None), **unknown | {"missing": {}})).notes


def test_figures_that_allow_no_verdict_get_none():
    (note,) = shown(group("g", why_not="job 1 was too fast")).notes
    assert note.startswith("g: no verdict (overlap gain 0.25): job 1 was too fast; predicted")
    assert "full" not in note


def test_groups_of_one_name_are_told_apart_by_what_was_asked():
    rows = [*group("g"), *group("g", variant="pre-resized", data="smaller")]
    labels = [note.partition(":")[0] for note in shown(rows, axes=[["variant"]]).notes]
    assert labels == ["g (variant=crop-resize)", "g (variant=pre-resized)"]
    (whole,) = {note.partition(":")[0] for note in shown(rows[:2], axes=[["variant"]]).notes}
    assert whole == "g"


def test_jobs_that_failed_are_named_by_their_group():
    rows = [*group("g"), *ended(group("3 copies", variant="pre-resized"), "skipped", "oom"), alone(32)]
    table = shown(rows)
    assert cells(table, "status")[-2:] == ["skipped", "oom"]
    assert table.notes[-1] == (
        "skipped: job 2 of 2 ran out of GPU memory: no room "
        "(3 copies: job 1 of 2, variant=pre-resized batch_size=32)"
    )
    assert not any(note.startswith("3 copies") for note in table.notes), "there is nothing to say of it"
    fields = ["group", "job", "batch_size"]
    assert which(group("g"), rows, fields) == "g: both jobs"
    three = group("g", (1.5, 1.5, 1.5), (1, 1, 1), (32, 32, 32))
    assert which([three[0], three[2]], rows, fields) == "g: jobs 1 and 3 of 3, batch_size=32"
    assert which(group("g"), rows, ["job", "variant"]) == "both jobs, variant=crop-resize"


def test_trials_and_jobs_are_counted_apart():
    rows = [alone(32), *group("g"), *ended(group("h"), "skipped", "oom")]
    assert "1 trial and 4 jobs of 2 groups: 3 ok, 1 out of memory, 1 skipped" in shown(rows).heading
    assert "2 jobs of 1 group: 2 ok" in shown(group("g")).heading


def test_why_there_is_no_top1_is_asked_of_the_rows_alone():
    solo = alone(32, missing={"top1_pct": "no validation split"})
    rows = [solo, *group("g", missing={"top1_pct": "left to the trial alone"})]
    assert shown(rows).heading[-1] == "top-1 not measured: no validation split"
    table = shown([changed(solo, top1_pct=20.0), *rows[1:]])
    assert cells(table, "top1_pct") == ["20", "", ""]


def test_columns_of_groups_are_empty_for_rows_alone_and_unknown_for_jobs_that_failed():
    table = shown([alone(32), *group("g", full_together=None), *ended(group("h"), "skipped", "oom")])
    assert "full_together" not in names(table), "nothing was full anywhere, as the sentences say"
    table = shown([alone(32), *group("g", full_together=None), *group("h")])
    assert cells(table, "full_together") == ["", "nothing", "nothing", "cpu", "cpu"]
    table = shown([alone(32), *group("g"), *ended(group("h"), "skipped", "oom")])
    assert cells(table, "slowdown") == ["", "1.50", "1.70", "–", "–"]
    assert cells(table, "sharing") == ["", "partly parallel", "partly parallel", "–", "–"]
    assert cells(table, "full_together") == ["", "cpu", "cpu", "–", "–"]
    kept = names(table)
    assert kept.index("overlap_gain") < kept.index("sharing") < kept.index("full_together")


def test_people_need_no_column_for_what_the_group_or_the_ids_say():
    own = [
        changed(one, gpu_ids=ids, gpus=len(ids)) for one, ids in zip(group("g"), ([0], [1, 2]), strict=True)
    ]
    table = shown([*own, alone(32, gpu_ids=[0], gpus=1)])
    assert "gpu_ids" in names(table)
    assert "gpus" not in names(table)
    copies = shown([alone(32), *group("2 copies", batches=(32, 32), copies=2)], axes=[["copies"]])
    assert "copies" not in names(copies)
    lines = list(csv.DictReader(io.StringIO(spreadsheet.text([copies]))))
    assert [line["copies"] for line in lines] == ["1", "2", "2"]
    assert [line["group"] for line in lines] == ["", "2 copies", "2 copies"], "each row for itself"
    assert [line["slowdown"] for line in lines] == ["", "1.5", "1.7"]
    header = list(lines[0])
    after = header.index("doubts") + 1
    assert header[after : after + 6] == [
        "solo_epoch_time_s", "slowdown", "overlap_gain", "predicted_slowdown", "sharing", "full_together",
    ]  # fmt: skip
    assert "slowdown" not in spreadsheet.text([shown([alone(32)])])


def test_pinned_cpus_and_mps_stand_in_the_heading():
    rows = [changed(one, cpu_sharing="pinned", cpus=4, mps="on") for one in group("g")]
    heading = shown(rows).heading
    assert "4 CPUs, CPUs pinned" in heading[0]
    assert heading[1].endswith("MPS on")
    quiet = shown([changed(one, cpu_sharing=None, mps="off") for one in group("g")]).heading
    assert "MPS" not in quiet[1]
    assert "shared" not in quiet[0]


def wide():
    more = {"model": "mobilenet_v3_large", "gpus": 2, "gpu_ids": [2, 3], "cpu_util_pct": 98.2}
    rows = [alone(32), *group("three jobs, own GPUs"), alone(64, variant="pre-resized", gpu_ids=[1])]
    return [*rows, *group("three jobs, own GPUs", variant="pre-resized", **more)]


def test_a_group_has_a_line_of_its_own_above_its_rows():
    lines = terminal.text(shown(wide(), axes=[["variant"]])).splitlines()
    place = lines.index("three jobs, own GPUs (variant=pre-resized)")
    assert lines[place + 1].startswith("1 of 2")
    assert lines[place - 1].startswith("2 of 2")
    assert not any(line.startswith("group") for line in lines), "and no column"
    assert "| three jobs, own GPUs (variant=crop-resize) | 1 of 2 |" in markdown.text(
        [shown(wide(), axes=[["variant"]])]
    )
    assert "|  | 2 of 2 |" in markdown.text([shown(wide(), axes=[["variant"]])])


def test_where_names_of_rows_leave_no_room_rows_have_numbers():
    table = shown(wide(), axes=[["variant"]])
    out = io.StringIO()
    terminal.show([table], Console(file=out, force_terminal=True, color_system=None, width=60))
    lines = out.getvalue().splitlines()
    heads = [line.split() for line in lines if line.startswith("row")]
    assert len(heads) > 1
    assert "model" in heads[0]
    assert all(head[:2] == ["row", "job"] and "model" not in head for head in heads[1:])
    assert max(map(len, lines)) <= 60
    assert sum(line.split()[:1] == ["6"] for line in lines) == len(heads)
    figures = {column.name for column in table.columns} - {"group"}
    fitted, blocks = layout.fitted(table, 60)
    assert {fitted.columns[n].name for block in blocks for n in block} == figures | {"row"}
    assert layout.fitted(table, 400)[0] is table


def test_trials_that_jobs_are_compared_with_are_not_compared_with_each_other():
    """`--job batch_size=16 --job batch_size=64`: nobody asked where a larger batch stops paying."""
    solos = [
        row(b, trial_id=f"t{b}", epoch_time_s=9.0 - n, gpu_mem_mib=900.0 * b) for n, b in enumerate((16, 64))
    ]
    jobs = [
        row(
            b,
            trial_id=f"j{b}",
            group="16 & 64",
            group_id="g1",
            job=f"{n} of 2",
            solo_id=f"t{b}",
            epoch_time_s=9.0,
        )
        for n, b in enumerate((16, 64), 1)
    ]
    together, by_themselves = build("t", [*solos, *jobs]), build("t", solos)
    assert not any(r.epoch_time_growth_pct for r in together.rows)
    assert not any("batch pays" in note or "least at" in note for note in together.notes)
    assert any(r.epoch_time_growth_pct for r in by_themselves.rows)


def test_a_verdict_says_which_doubts_the_trials_alone_carry():
    def told(*solos, **values):
        jobs = zip(group("g", **values), ("t1", "t2"), strict=True)
        rows = [changed(one, solo_id=solo_id) for one, solo_id in jobs]
        return next(note for note in shown([*solos, *rows]).notes if note.startswith("g: "))

    def solo(name, doubts, time=2.0, **values):
        return changed(alone(32, time, trial_id=name, doubts=doubts, **values), config_id=name)

    clean, harmless = solo("t1", None), solo("t2", "shared-gpu+short-window")
    assert "have doubts" not in told(clean, harmless)
    assert "have doubts" not in told(clean, solo("t9", "other-load")), "no job is compared with it"
    rests = " The trials alone that it is compared with have doubts (gaps, other-load)."
    assert rests in told(solo("t1", "other-load+short-window"), solo("t2", "gaps"))
    assert "have doubts" not in told(
        solo("t1", "other-load"), overlap_gain=None, missing={"overlap_gain": "lost"}
    )
    other_machine = solo("t1", "gaps", gpu_name="NVIDIA A100")
    assert "have doubts" not in told(clean, harmless, other_machine)


def test_doubts_of_any_repeat_of_a_trial_alone_count():
    """The group names its own repeat's trial; that another repeat was disturbed, or all lie apart, is no less true."""
    rows = [changed(one, solo_id="r1") for one in group("g")]
    solos = [
        alone(32, time, trial_id=f"r{n}", doubts="other-load" if n == 2 else None)
        for n, time in enumerate((2.0, 3.0, 4.0))
    ]
    said = next(note for note in shown([*solos, *rows]).notes if note.startswith("g: "))
    assert said.endswith(" The trials alone that it is compared with have doubts (other-load, spread).")


def test_a_verdict_on_jobs_of_which_one_was_faster_than_alone_says_so():
    (note,) = shown(group("g", (0.81, 1.2))).notes
    assert "The jobs took 0.81 to 1.20 times as long as alone. The CPUs were full together" in note
    assert "as fast as alone" not in note


def test_where_a_kernel_always_ran_nothing_is_not_said_to_be_full():
    def gpu(*together):
        one = Resource(
            name="gpu", column="gpu_util_pct", unit="%", alone=(60.0, 60.0), together=together,
            full_alone=(False, False), full_together=True,
        )  # fmt: skip
        return {"resources": [CPU.as_dict() | {"full_together": False}, one.as_dict()]}

    rows = [*group("g", full_together=None, together=gpu(99.0, 99.0)), *group("h")]
    assert cells(shown(rows), "full_together") == ["–", "–", "cpu", "cpu"]
    rows = [*group("g", full_together=None, together=gpu(60.0, 60.0)), *group("h")]
    assert cells(shown(rows), "full_together") == ["nothing", "nothing", "cpu", "cpu"]


def test_how_cpus_are_shared_is_a_column_only_where_groups_differ_in_it():
    solos = [changed(one, cpu_sharing="shared") for one in (alone(32), alone(64))]
    pinned = group("g", cpu_sharing="pinned")
    table = shown([*solos, *pinned])
    assert "cpu_sharing" not in names(table)
    assert "CPUs pinned" in table.heading[0]
    assert not any("cpu_sharing" in note for note in table.notes)
    both = shown([*solos, *pinned, *group("h", cpu_sharing="shared")])
    assert cells(both, "cpu_sharing") == ["shared", "shared", "pinned", "pinned", "shared", "shared"]
    assert "CPUs" not in both.heading[0]


def test_groups_are_told_apart_by_an_axis_that_one_job_settles():
    rows = [
        row(b, group="mine and another", group_id=f"g{other}", job=f"{n} of 2")
        for other in (64, 128)
        for n, b in enumerate((32, other), 1)
    ]
    found = [group.label for group in gathered(rows, axes=[("batch_size",)])]
    assert found == ["mine and another (batch_size=32/64)", "mine and another (batch_size=32/128)"]


@pytest.mark.parametrize("predicted", [1, 1.0])
def test_a_ratio_keeps_the_digits_of_its_column_whole_as_it_may_be(predicted):
    table = shown([alone(32), *group("g", predicted_slowdown=predicted)])
    assert cells(table, "predicted_slowdown") == ["", "1.00", "1.00"]
