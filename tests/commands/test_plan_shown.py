"""`gpubench sweep -n`: the plan, of which nothing runs."""

from __future__ import annotations

import re

from place import LOAD, TINY, Place


def test_the_plan_without_running_it(place: Place) -> None:
    ended = place.run("sweep", "-n", *TINY, "--batch-size", "8,128", "--workers", "1", "--copies", "1,2")
    assert (ended.returncode, ended.stderr) == (0, "")
    alone, group, dropped, total = ended.stdout.splitlines()
    assert re.fullmatch(r"t[0-9a-f]{12}  batch_size=8 copies=1 +roughly \d+ s", alone)
    assert re.fullmatch(r"g[0-9a-f]{12}  2 copies batch_size=8 +roughly .*", group)
    assert dropped.startswith("2 combinations dropped: ")
    assert re.fullmatch(rf"1 trial and 1 .*; \d+ s{LOAD}; .* results/batch-size", total)
    assert place.files() == set()


def test_unasked_a_sweep_goes_over_its_plan_three_times(place: Place) -> None:
    ended = place.run("sweep", "-n", "--device", "cpu", "--batch-size", "8,16")
    assert (ended.returncode, ended.stderr) == (0, "")
    *_, total = ended.stdout.splitlines()
    assert "in 3 rounds; " in total
    twice = place.run("sweep", "-n", "--device", "cpu", "--batch-size", "8,16", "--repeats", "2")
    assert " in 2 rounds; " in twice.stdout


def test_a_plan_of_what_needs_more_gpus_says_what_to_do(place: Place) -> None:
    ended = place.run("sweep", "-n", "--gpus", "2", "--batch-size", "8,16")
    assert ended.returncode == 4
    assert "no trial is left: " in ended.stderr
    assert ended.stderr.count("\n") == 1
    first, second, advice, total = ended.stdout.splitlines()
    assert "skipped: needs 2 GPUs" in first
    assert "skipped: needs 2 GPUs" in second
    assert advice == (
        "what needs more than this machine has is skipped: ask for fewer (--nodes, --gpus, --gpu-ids, --cpus), or "
        "run it on a machine that has them; on the CPU it runs with --device cpu"
    )
    assert total.startswith("nothing to run of 2")
    some = place.run("sweep", "-n", "--set", "device=cpu,cuda", "--batch-size", "8")
    assert (some.returncode, some.stderr) == (0, "")
