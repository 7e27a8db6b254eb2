"""What users get wrong: one line that says what and what to do, and nothing is written."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

import pytest
from place import TINY, Place

LONG = "a" * 300
# (arguments, exit code, words of the line): one of each kind of line, the others stand with the modules that say them.
WRONG: list[tuple[Sequence[str], int, str]] = [
    (["sweep", "--nosuch"], 2, "No such option: --nosuch"),
    (["swep"], 2, "Did you mean 'sweep'?"),
    (["sweep", "--batch-size"], 2, "'--batch-size' requires an argument; see "),
    (["sweep", "--set", "batchsize=8"], 2, "unknown field 'batchsize': did you mean batch_size?"),
    (["sweep", "--set", "batch_size"], 2, "'batch_size' is not FIELD=VALUES"),
    (["sweep", "--model", "mobilnet_v2"], 2, "unknown model 'mobilnet_v2': did you mean mobilenet_v2?"),
    (["sweep", "--model", "gone.py:net"], 2, "there is no file gone.py"),
    (["sweep", "--batch-size", "0"], 2, "batch_size must be at least 1, not 0"),
    (["table", "--by", "strategy"], 2, "No such option: --by; sort rows with gpubench table --sort NAME"),
    (["sweep", "--budget", "10"], 2, "--budget 10: write 10m or 10s, for minutes or seconds\n"),
    (["sweep", "--gpu-mem-cap", "12Gi"], 2, "gpu_mem_cap_mib: '12Gi' is not a memory size; write 12GiB"),
    (["sweep", "--bad-images", "skp"], 2, "unknown --bad-images 'skp': did you mean skip?"),
    (["sweep", "--gpus", "1,2"], 4, "no trial is left"),
    (["sweep", "--device", "cpu", "--strategy", "dp"], 2, "no trial is left: strategy dp needs GPUs"),
    (["sweep", "gone.toml"], 2, "experiment file gone.toml can't be read"),
    (["sweep", "prose.toml"], 2, "prose.toml is not TOML"),
    (["sweep", "key.toml"], 2, "key.toml: unknown key 'fixd': did you mean fixed?"),
    (["sweep", "--device", "cpu", "--out", "prose.toml"], 4, "prose.toml is a file; name a folder"),
    (["table", "gone"], 4, "gone is not a results folder; name one that gpubench sweep has written"),
    (["table", "empty"], 4, "empty holds no records"),
    (["table", "home"], 4, "home holds results folders, and is none; name one of them: one and two"),
    (["table"], 4, "no results in results"),
    # The second of two values would take the first away silently.
    (
        ["sweep", "--batch-size", "8", "--batch-size=16"],
        2,
        "--batch-size is given twice: once is enough, with commas",
    ),
    (["sweep", "--set", "lr=1", "--zip", "lr,seed=1/2"], 2, "lr is given twice"),
    (
        ["sweep", "--batch-size", "8", "--set", "batch_per_gpu=8"],
        2,
        "batch_per_gpu is given beside batch_size",
    ),
    # Bad paths: a dead link, a pipe, a link to a folder that holds it, and one to itself.
    (
        ["sweep", "--device", "cpu", "--data", "bad"],
        2,
        "bad/a/x.jpg is no file: remove it, or leave it out with --bad-images skip",
    ),
    (["sweep", "--data", "./pipe"], 2, "pipe/a/x.jpg is no file: remove it"),
    (["data", "resize", "circle", "new"], 2, "leads back to a folder that it lies in"),
    (["data", "resize", "loop", "new"], 2, "does not exist"),
    (["data", "make", "loop"], 4, "can't use "),
    (["sweep", "--data", LONG], 4, "File name too long"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "code", "words"), WRONG, ids=[" ".join(a)[:60] for a, _, _ in WRONG])
def test_wrong_input_is_one_line_and_nothing_written(
    place: Place, arguments: Sequence[str], code: int, words: str
) -> None:
    (place.home / "empty").mkdir()
    for name in ("one", "two"):
        (place.home / "home" / name / "records").mkdir(parents=True)
    (place.home / "prose.toml").write_text("Once upon a time")
    (place.home / "key.toml").write_text('name = "x"\n[fixd]\nlr = 1.0\n')
    for name in ("bad", "pipe", "circle"):
        (place.home / name / "a").mkdir(parents=True)
        (place.home / name / "a" / "1.jpg").write_bytes(b"x")
    (place.home / "bad" / "a" / "x.jpg").symlink_to("gone.jpg")
    os.mkfifo(place.home / "pipe" / "a" / "x.jpg")
    (place.home / "circle" / "a" / "up").symlink_to("..")
    (place.home / "loop").symlink_to("loop")
    before = {path.name for path in place.home.iterdir()}
    ended = place.run(*arguments, trains=False)
    assert (ended.returncode, ended.stdout) == (code, "")
    assert re.fullmatch(r"gpubench: [^\n]+\n", ended.stderr), ended.stderr
    assert words in ended.stderr
    assert {path.name for path in place.home.iterdir()} == before


def test_flags_given_twice_and_options_that_are_lists_do_no_harm(place: Place) -> None:
    twice = ("-n", "-n", "--fresh", "--fresh", "--set", "lr=0.1", "--set", "seed=3", "--exclude", "lr=3",
             "--exclude", "lr=4")  # fmt: skip
    ended = place.run("sweep", *TINY, "--batch-size", "8", *twice)
    assert (ended.returncode, ended.stderr) == (0, "")
