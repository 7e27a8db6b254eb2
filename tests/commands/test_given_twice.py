"""Options that are given twice."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from place import TINY, Place

# What the second of two values would take away silently: (arguments, words of the line).
TWICE: list[tuple[Sequence[str], str]] = [
    (["sweep", "--batch-size", "8", "--batch-size=16"], "values at once: --batch-size 8,16"),
    (["sweep", "--variant", "cached", "--variant", "synthetic"], "--variant cached,synthetic"),
    (["sweep", "--model", "mlp", "-n", "--model", "lenet"], "at once: --model mlp,lenet"),
    (["sweep", "--device", "cpu", "--device", "cuda"], "at once: --device cpu,cuda"),
    (["sweep", "--gpu-mem-cap", "1GiB", "--gpu-mem-cap", "2GiB"], "at once: --gpu-mem-cap 1GiB,2GiB"),
    (["sweep", "--retry", "failed", "--retry", "oom"], "at once: --retry failed,oom"),
    (
        ["sweep", "--set", "lr=0.1", "--set", "lr=0.2"],
        "lr is given twice; give all its values at once: --set lr=0.1,0.2",
    ),
    (["sweep", "--batch-size", "8", "--set", "batch-size=16"], "at once: --set batch_size=8,16"),
    (["sweep", "--set", "batch_size=16", "--batch-size", "8"], "batch_size is given twice"),
    (["sweep", "--gpu-mem-cap", "1G", "--set", "gpu_mem_cap_mib=9"], "gpu_mem_cap_mib is given twice"),
    (["sweep", "--breakdown", "--set", "breakdown=false"], "breakdown is given twice"),
    (["sweep", "--set", "lr=1", "--zip", "lr,seed=1/2"], "lr is given twice"),
    (
        ["sweep", "--batch-size", "8", "--set", "batch_per_gpu=8"],
        "--set batch_per_gpu is given beside --batch-size",
    ),
    (["sweep", "--set", "gpu_ids=0", "--gpus", "1"], "--set gpu_ids is given beside --gpus"),
    (["sweep", "--out", "a", "--out", "b"], "--out is given twice; once is enough"),
    (["sweep", "--repeats", "2", "--repeats", "3"], "--repeats is given twice; once is enough"),
    (["sweep", "--timeout", "2", "--timeout", "3"], "--timeout is given twice; once is enough"),
    (["predict", "--copies", "2", "--copies", "3"], "at once: --copies 2,3"),
    (["predict", "--copies", "2", "--set", "copies=3"], "at once: --set copies=2,3"),
    (["predict", "--set", "lr=1", "--set", "lr=2", "--copies", "2"], "at once: --set lr=1,2"),
    (["predict", "--experiment", "a.toml", "--experiment", "b.toml"], "--experiment is given twice"),
    (["table", "--columns", "power_w", "--columns", "-loss"], "at once: --columns power_w,-loss"),
    (["data", "make", "--images", "32", "--images", "64"], "--images is given twice; once is enough"),
    (["data", "resize", "empty", "new", "--size", "9", "--size", "10"], "--size is given twice"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "words"), TWICE, ids=[" ".join(a) for a, _ in TWICE])
def test_what_is_given_twice_is_an_error_that_says_how_to_give_both(
    place: Place, arguments: Sequence[str], words: str
) -> None:
    (place.home / "empty").mkdir()
    before = place.files()
    ended = place.run(*arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert re.fullmatch(r"gpubench: [^\n]+\n", ended.stderr), ended.stderr
    assert words in ended.stderr
    assert place.files() == before


def test_flags_given_twice_and_options_that_are_lists_do_no_harm(place: Place) -> None:
    twice = ("-n", "-n", "--fresh", "--fresh", "--set", "lr=0.1", "--set", "seed=3", "--exclude", "lr=3",
             "--exclude", "lr=4")  # fmt: skip
    ended = place.run("sweep", *TINY, "--batch-size", "8", *twice)
    assert (ended.returncode, ended.stderr) == (0, "")
