"""What `gpubench predict` answers."""

import pytest
from whole_rows import row_with

from gpubench.analysis.gradient_wait import Wait
from gpubench.analysis.prediction import Demand, predict
from gpubench.analysis.slowdown import group_verdict, overlap_gain
from gpubench.analysis.track_record import track_record
from gpubench.report.prediction import BESIDE_OTHERS, Remedy, answer, no_answer, origin, track
from gpubench.schema.doubts import DOUBTS, doubt_of
from gpubench.schema.verdict import Verdict

# The published log's jobs on GPUs of their own: epoch time in s, CPU in per cent.
LOG = (("32@0", 16.2, 59.0, (0,)), ("64@1", 15.4, 61.0, (1,)), ("128@2+3", 11.3, 76.6, (2, 3)))


def log():
    return predict([
        Demand(epoch_time_s=t, cpu_s=8 * t * cpu / 100, gpu_s=None, cpus=8, cpu_set="all", gpus=ids)
        for _, t, cpu, ids in LOG
    ])  # fmt: skip


SURE = {"epoch_time_iqr_s": 0.0, "epochs_measured": 3}
"""As a row tells whose epochs do not spread."""


def asked(prediction, **options):
    solo = [row_with(epoch_time_s=t, source="published log") for _, t, *_ in LOG]
    return answer("three jobs", [job for job, *_ in LOG], solo, prediction, **options)


def test_sentences_are_as_wide_as_the_terminal_and_tables_and_commands_stay_whole():
    page = asked(
        log(), notes=["It leaves out memory bandwidth, and how far disks and a network keep up."], width=60
    )
    table, sentences = page.split("\n\n")[1:]
    assert table == asked(log()).split("\n\n")[1]
    lines = sentences.splitlines()
    assert max(map(len, lines)) <= 60
    assert [line[:2] for line in lines if line.startswith("  ")], "those that go on are indented"
    assert " ".join(line.strip() for line in lines).endswith(" and how far disks and a network keep up.")
    command = f"gpubench sweep --set model=lenet {'--set batch_size=16 ' * 5}"
    *said, order = no_answer("g", "why " * 30, Remedy(what="to measure", command=command), width=60).split(
        "\n\n"
    )[1:]
    assert max(map(len, "\n".join(said).splitlines())) <= 60
    assert order == f"{command}\n"
    for line in (
        origin("m", "h " * 60, is_here=True, width=60),
        track(track_record([]), "m " * 60, width=60),
    ):
        assert max(map(len, line.splitlines())) <= 60


def test_the_published_log():
    assert asked(log(), notes=["It leaves out memory bandwidth."]) == (
        "three jobs\n"
        "\n"
        "         alone  predicted    times\n"
        "job          s          s  as long\n"
        "-------  -----  ---------  -------\n"
        "32@0     16.20      31.85     1.97\n"
        "64@1     15.40      30.28     1.97\n"
        "128@2+3  11.30      22.22     1.97\n"
        "\n"
        "Predicted: perhaps partly parallel (overlap gain 0.26); by these rows jobs would wait for the CPUs.\n"
        "One epoch of each job that uses it takes at least 27.61 s of the CPUs.\n"
        "Each time is one figure of a published log.\n"
        "It leaves out memory bandwidth.\n"
    )


def test_markdown():
    text = asked(log(), as_markdown=True)
    assert text.startswith(
        "**three jobs**\n\n| job | alone s | predicted s | times as long |\n| :--- | ---: |"
    )
    assert "| 128@2+3 | 11.30 | 22.22 | 1.97 |" in text
    assert "\n- Predicted: perhaps partly parallel" in text


def test_the_fullest_resource_comes_first_and_nothing_may_be_full():
    def two(busy, **more):
        one = Demand(epoch_time_s=4, cpu_s=8, gpu_s=busy, gpus=(1,), cpus=8, cpu_set="all")
        return answer(
            "two", ["16", "16"], [row_with(epoch_time_s=4, **SURE), row_with()], predict([one, one]), **more
        )

    full, free = two(3.0), two(1.0)
    assert "jobs would wait for GPU time." in full
    assert "takes at least 6.00 s of GPU 1, and 2.00 s of the CPUs." in full
    assert "16    4.00       6.78     1.69\n16       –          –     1.69\n" in full, (
        "turns cost a part of the GPU"
    )
    assert "(overlap gain 1.00); by these rows jobs would wait for nothing that they share." in free
    assert "at least 2.00 s of" in free


def measured_group(group_id, slowdowns, predicted, group="3 copies", spread=0.0, **more):
    """Of epochs that moved the gain by so much; None: of too few to tell."""
    gain = overlap_gain(slowdowns)
    ends = None if spread is None else (gain - spread, gain + spread)
    found = group_verdict(gain, (), (), [Verdict(gain_range=ends)])
    return [
        row_with(**{
            "status": "ok", "group": group, "group_id": group_id, "job": f"{n} of {len(slowdowns)}",
            "slowdown": s, "predicted_slowdown": p, "gpu_name": "H200", "overlap_gain": gain,
            "sharing": found.cell, "verdict": found,
        } | more)
        for n, (s, p) in enumerate(zip(slowdowns, predicted, strict=True), 1)
    ]  # fmt: skip


def test_how_good_predictions_have_been():
    rows = [
        *measured_group("g1", (2.0, 2.0, 2.0), (2.0, 2.1, 1.9)),
        *measured_group("g2", (2.5, 2.0, 1.0), (2.0, 2.0, 1.0)),
        *measured_group("g3", (1.6, 1.6), (1.0, 1.0), group="two"),
    ]
    assert track(track_record(rows), "NVIDIA H200, 143771 MiB") == (
        "8 jobs of 3 groups on NVIDIA H200, 143,771 MiB: half of the predictions were within 5 % (median of "
        "absolute errors), the worst was off by −38 %; the predicted verdict was right for 2 of 3 groups.\n"
        "\n"
        "                measured          predicted         error\n"
        "group     jobs  times as long     times as long     %\n"
        "--------  ----  ----------------  ----------------  ---------\n"
        "3 copies     3  2.00, 2.00, 2.00  2.00, 2.10, 1.90  0, +5, −5\n"
        "3 copies     3  2.50, 2.00, 1.00  2.00, 2.00, 1.00  −20, 0, 0\n"
        "two          2  1.60, 1.60        1.00, 1.00        −38, −38\n"
    ), "the answer first"
    assert "| two | 2 | 1.60, 1.60 | 1.00, 1.00 | −38, −38 |" in track(
        track_record(rows), "H", as_markdown=True
    )


def test_groups_without_a_verdict_are_told_apart():
    rows = [
        *measured_group("g1", (2.0, 2.0), (2.0, 2.0)),
        *measured_group("g2", (1.9, 1.9), (2.0, 2.0), spread=0.1),
    ]
    said = track(track_record(rows), "H", brief=True)
    assert said.endswith(
        "; the predicted verdict was right for 1 of 1 group; it is not decided for 1 group, whose measured "
        "verdict is not sure.\n"
    )
    few = [row for n in "12" for row in measured_group(f"g{n}", (2.0, 2.0), (2.0, 2.0), spread=None)]
    assert track(track_record(few), "H", brief=True).endswith(
        " %; whether the predicted verdict was right is not decided for 2 groups, whose spread is not known.\n"
    )
    assert track(
        track_record([*rows, *measured_group("g3", (2.0, 2.0), (2.0, 2.0), spread=None)]), "H", brief=True
    ).endswith(
        " right for 1 of 1 group; it is not decided for 1 group, whose measured verdict is not sure, and for 1 group, "
        "whose spread is not known.\n"
    )
    none = [
        row
        for n in "12"
        for row in measured_group(f"g{n}", (2.0, 0.5), (2.0, 2.0), verdict=Verdict(why_not="noise"))
    ]
    assert track(track_record(none), "H", brief=True).endswith(" %; 2 groups have no measured verdict.\n")


def test_without_a_measured_group_it_says_how_to_get_one():
    text = track(track_record([]), "Xeon")
    assert text.startswith(
        "By the rows in these results, no group has been predicted and measured on Xeon so far"
    )
    assert "gpubench sweep" in text


def test_an_answer_is_followed_by_one_line_on_earlier_ones():
    rows = measured_group("g1", (2.0, 2.0), (2.0, 2.1))
    assert track(track_record(rows), "H", brief=True) == (
        "So far: 2 jobs of 1 group on H: half of the predictions were within 3 % (median of absolute errors), the "
        "worst was off by +5 %; the predicted verdict was right for 1 of 1 group.\n"
    )


def test_equal_rounds_are_told_once():
    one = Demand(epoch_time_s=4, cpu_s=2, gpu_s=3.0, gpus=(0, 1, 2), cpus=8, cpu_set="all")
    text = answer("g", ["a", "b"], [row_with(), row_with()], predict([one, one]))
    assert "at least 6.00 s of each of GPU 0, GPU 1 and GPU 2, and 0.50 s of the CPUs.\n" in text


def test_a_group_without_a_prediction_says_why():
    assert (
        no_answer("32 & 64", "32 was not measured\x1b[0m")
        == "32 & 64\n\nNot predicted: 32 was not measured.\n"
    )
    assert no_answer("a*b", "a|b", as_markdown=True) == "**a\\*b**\n\nNot predicted: a\\|b.\n"


def predicted(gpu_s, *rows):
    one = Demand(epoch_time_s=4, cpu_s=2, gpu_s=gpu_s, gpus=(0,), cpus=8, cpu_set="all")
    rows = rows or ({}, {})
    solo = [row_with(**{"epoch_time_s": 4.0} | SURE | row) for row in rows]
    text = answer("g", ["a", "b"], solo, predict([one, one]))
    return next(line for line in text.splitlines() if line.startswith("Predicted: ")), text


@pytest.mark.parametrize("code", [doubt.code for doubt in DOUBTS if "time" in doubt.about])
def test_a_predicted_verdict_is_no_surer_than_the_times_it_is_made_of(code):
    assert predicted(1.0)[0] == (
        "Predicted: parallel (overlap gain 1.00); jobs would wait for nothing that they share."
    )
    line, text = predicted(1.0, {}, {"doubts": f"{code}+dp"})
    others = f" {BESIDE_OTHERS}." * doubt_of(code).of_others
    assert line == (
        "Predicted: perhaps parallel (overlap gain 1.00); by these rows jobs would wait for nothing that they share."
        f"{others}"
    )
    assert "Each row is of one process only, and the times alone are doubtful." in text


def waiting(*waits):
    """What is answered of jobs of two ranks each on the same two GPUs, busy for 3.2 of 4 s."""
    jobs = [
        Demand(epoch_time_s=4, cpu_s=2, gpu_s=3.2, gpus=(0, 1), cpus=8, cpu_set="all", ranks=2, wait=wait)
        for wait in waits
    ]
    names = [f"{number}: resnet50" for number, _ in enumerate(jobs, 1)]
    return answer("g", names, [row_with(epoch_time_s=4.0, **SURE) for _ in jobs], predict(jobs))


MAY_BE_LESS = " It may be less: ranks keep their GPU busy while they wait for each other, too.\n"


def test_what_ranks_only_wait_for_is_told_with_how_it_is_known():
    text = waiting(Wait(part=0.25, measured=True), Wait(part=0.5, measured=True))
    assert "takes at least 4.00 s of each of GPU 0 and GPU 1" in text, "2.4 + 1.6"
    assert (
        "Waiting for other ranks' gradients is left out: 25 % of the GPU time of 1: resnet50 and 50 % of the GPU time "
        "of 2: resnet50, as --breakdown measured it.\n"
    ) in text
    assert "estimated" not in text
    assert "It may be less" not in text


def test_an_estimate_of_the_wait_is_told_as_one():
    text = waiting(Wait(part=0.25, measured=False), Wait(part=0.125, measured=True))
    assert "left out: 13 % of the GPU time of 2: resnet50, as --breakdown measured it.\n" in text
    assert (
        "Waiting for other ranks' gradients is left out: at least 25 % of the GPU time of 1: resnet50, estimated from "
        "how long the same network keeps one GPU busy; --breakdown measures it.\n"
    ) in text
    assert MAY_BE_LESS in text


def test_where_nothing_tells_of_the_wait_it_may_be_less():
    text = waiting(None, None)
    assert "left out" not in text
    assert MAY_BE_LESS in text


def test_doubts_that_leave_the_times_alone_leave_the_predicted_verdict():
    assert predicted(1.0, {"doubts": "dp+short-window+skipped-images"}, {})[0].startswith(
        "Predicted: parallel"
    )


def test_a_predicted_verdict_of_few_epochs_is_a_perhaps_and_of_wild_ones_none():
    line, text = predicted(1.0, {"epochs_measured": 2}, {})
    assert line.startswith("Predicted: perhaps parallel")
    assert "how far the times alone spread is not known." in text
    line, text = predicted(1.0, {"epoch_time_iqr_s": 3.0}, {})
    assert line == (
        "Predicted: no verdict (overlap gain 1.00): epoch times spread by as much as they last; measure again on a "
        "quiet machine. By these rows jobs would wait for nothing that they share."
    )


def test_a_prediction_that_jobs_lose_by_running_together_says_so():
    assert "merely concurrent, and slower than one after the other (overlap gain −0.11)" in predicted(4.0)[0]


def test_a_command_stands_alone_on_its_line():
    """Nothing before it and nothing behind it would be copied with it."""
    remedy = Remedy(what="to measure", command="gpubench sweep --set data='a_b*' --out 'my results'")
    plain = no_answer("g", "32 was not measured", remedy)
    assert plain.splitlines()[2:] == ["Not predicted: 32 was not measured. To measure:", "", remedy.command]
    assert f"\n\n    {remedy.command}\n" in no_answer("g", "no", remedy, as_markdown=True), "a block of code"


def test_whose_results_they_are():
    assert origin("H200", "2 GPUs", is_here=True) == "By results of H200 (2 GPUs).\n"
    assert origin("H200", "", ["CPU", "Titan"], is_here=False) == (
        "By results of H200, which is not this machine. Results of CPU and Titan are left out.\n"
    )


def test_other_counts_among_the_rows_are_told():
    counts = ["4 GPUs, 16 CPUs", "2 GPUs, 64 CPUs", "1 GPU, 8 CPUs", "1 GPU, 4 CPUs"]
    assert origin("H200", "8 GPUs, 64 CPUs", ["Titan"], counts[:2], is_here=False) == (
        "By results of H200 (8 GPUs, 64 CPUs), which is not this machine. Some rows were measured where there were "
        "4 GPUs, 16 CPUs; or 2 GPUs, 64 CPUs. Results of Titan are left out.\n"
    )
    assert origin("H200", "", [], counts, is_here=True).endswith("; or 1 GPU, 8 CPUs; or others.\n")
