"""How fast the host's CPU was while each row was measured, by the probe of its process."""

from fakes import record
from gpubench.analysis.cpu_speed import fastest_probes_ms, with_cpu_speed
from gpubench.analysis.repeats import merge_repeats
from whole_rows import row_with

SENTENCE = (
    "the host's CPU ran at 80 % of its fastest in this folder, and with it what waits for launches; run it again on a "
    "quiet host"
)
FASTEST = {("a", False): 2.0, ("a", True): 4.0, ("b", False): 1.0}


def probed(*probes_ms, **more):
    return [row_with(cpu_probe_ms=ms, **{"host": "a", "status": "ok"} | more) for ms in probes_ms]


def test_the_fastest_is_that_of_the_same_host_alone_or_in_groups():
    records = [
        record(result={"cpu_probe_ms": ms}, environment={"host": host}, group=group)
        for ms, host, group in (
            (2.5, "a", None),
            (2.0, "a", None),
            (4.0, "a", "two"),
            (1.0, "b", None),
            (1.5, "b", None),
            (None, "c", None),
        )
    ]
    assert fastest_probes_ms(records) == FASTEST


def test_a_row_is_held_against_its_host_and_a_job_against_jobs():
    rows = with_cpu_speed([*probed(2.0, 2.5), *probed(1.0, host="b"), *probed(5.0, group="two")], FASTEST)
    assert [row.cpu_speed_pct for row in rows] == [100, 80, 100, 80]
    assert [row.doubts for row in rows] == [None, "slow-cpu", None, "slow-cpu"]


def test_slow_begins_under_85_per_cent_of_the_fastest():
    rows = with_cpu_speed(probed(2.0, 1.7, 2.001), {("a", False): 1.7})
    assert [(row.cpu_speed_pct >= 85, row.doubts) for row in rows] == [
        (True, None),
        (True, None),
        (False, "slow-cpu"),
    ]


def test_the_doubt_stands_beside_others_and_says_how_slow():
    (row,) = with_cpu_speed(probed(2.5, doubts="throttled+dp", doubt_texts={"dp": "copies"}), FASTEST)
    assert row.doubts == "dp+slow-cpu+throttled"
    assert row.doubt_texts == {"dp": ("copies",), "slow-cpu": (SENTENCE,)}


def test_rows_without_a_probe_are_left_as_they_are():
    rows = [*probed(2.0), row_with(host="a", status="oom"), row_with(host="a", doubts="dp")]
    assert with_cpu_speed(rows, FASTEST)[1:] == rows[1:]


def test_several_processes_have_the_median_and_the_doubt_of_any():
    rows = [
        *probed(2.0, trial_id="t", config_id="c"),
        *probed(2.5, trial_id="t", config_id="c", round=2),
        *probed(2.1, trial_id="t", config_id="c", round=3),
    ]
    (row,) = merge_repeats(with_cpu_speed(rows, FASTEST))
    assert (row.cpu_probe_ms, row.doubts) == (2.1, "slow-cpu")
    assert row.cpu_speed_pct == 100 * 2.0 / 2.1
