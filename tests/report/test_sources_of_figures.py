"""Where figures come from, said once for all rows and columns of which it is true."""

from test_tables import row
from whole_rows import changed

from gpubench.report import sources
from gpubench.report.table import build


def measured(batch, samples, gaps=0, **values):
    power = {"source": "NVML power", "period_s": 0.1, "samples": samples, "gaps": gaps}
    missing = {"energy_j": "no counter", "energy_source": "no counter"}
    return row(batch, power_w=300.0, provenance={"power_w": power}, missing=missing, **values)


def lines(*rows):
    return sources.lines(build("sizes", rows))


def test_samples_gaps_and_reasons():
    found = lines(measured(64, 40), measured(128, 1200, gaps=2))
    assert "power_w: NVML power; every 0.1 s; 40 to 1,200 samples a row, up to 2 gaps (all rows)" in found
    assert "energy_j, energy_source: empty: no counter (all rows)" in found
    assert sum("gives no reason" in line for line in found) == 1


def test_rows_that_differ_are_named():
    sensor = {"power_w": {"source": "sensor", "period_s": None, "samples": 1}}
    odd = changed(measured(128, 1), provenance=sensor)
    found = lines(measured(64, 40), odd)
    assert "power_w: NVML power; every 0.1 s; 40 samples a row, no gaps (batch_size=64)" in found
    assert "power_w: sensor; read once; 1 sample a row, no gaps (batch_size=128)" in found


def test_repeats_are_rows_of_their_own():
    twice = [measured(64, n, repeat=n, trial_id=f"t{n}", config_id="c") for n in (1, 2)]
    twice[1] = changed(twice[1], power_w=None, missing={"power_w": "GPU lost"})
    found = lines(*twice)
    assert "power_w: NVML power; every 0.1 s; 1 sample a row, no gaps (batch_size=64 repeat=1)" in found
    assert "power_w: empty: GPU lost (batch_size=64 repeat=2)" in found


def test_what_differs_between_processes_is_empty_with_a_reason():
    runs = [
        measured(
            64, 40, round=n, trial_id="t", config_id="c", epoch_time_s=2.0 + n / 100, step_error_pct=error
        )
        for n, error in ((1, 1.0), (2, None))
    ]
    why = "empty: some of the row's processes have too few independent steps to tell how sure their mean is"
    assert f"between_pct: {why} (the only row)" in lines(*runs)
    sure = [changed(run, step_error_pct=1.0) for run in runs]
    assert not any(line.startswith("between_pct") for line in lines(*sure))


def test_rows_without_figures_say_why_once():
    long = "tried to allocate 196.00 MiB " * 20
    found = lines(measured(64, 40), row(128, "oom", reason=long), row(256, "skipped", reason="too big"))
    assert found[-1] == "no figures: skipped: too big (batch_size=256)"
    assert found[-2].startswith("no figures: oom: tried")
    assert found[-2].endswith(" … (batch_size=128)")
    assert set(found[-2].partition(" …")[0].split()[3:]) <= set(long.split())
    assert len(found[-2]) < 180
    assert "(batch_size=64)" in found[0]


def test_text_of_a_published_log_and_markdown():
    table = build(
        "log", [row(64, epoch_time_s=2.0, source="published log", provenance={"epoch_time_s": "page 3"})]
    )
    assert sources.text([table]) == (
        "Sources of log\nepoch_time_s: page 3 (the only row)\n"
        "all other columns: empty: not in the published log (the only row)\n"
    )
    assert sources.as_markdown([table]).startswith("## Sources of log\n\n- epoch_time_s: page 3")


def test_this_version_is_the_one_that_measured():
    old = {"missing": {"energy_j": "this version does not measure it"}}
    found = lines(row(64, gpubench="0.0.9", **old), row(128, gpubench=None, **old))
    assert "energy_j: empty: gpubench 0.0.9 did not measure it (batch_size=64)" in found
    assert "energy_j: empty: the gpubench of that time did not measure it (batch_size=128)" in found
