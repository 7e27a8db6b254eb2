"""The command, as users run it: real processes, exit codes, what stands on which stream, what is written."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pandas as pd
import psutil
import pytest
from warm_command import Started, WarmCommand

import gpubench
from gpubench.cli import main
from gpubench.schema.columns import COLUMNS

SMALL = (
    "--device", "cpu", "--set", "input_size=28", "--data", "procedural:64x32",
    "--epochs", "2", "--rounds", "1",
)  # fmt: skip
TINY = ("--model", "lenet", *SMALL)
LIMIT_S = 60
LOAD = r"(?: \(other work uses [^)]*\))?"
"""What stands behind an estimate on a busy host, as that of these tests may be."""


class Place:
    """A folder of its own to run `gpubench` in; images and results lie below it."""

    def __init__(self, home: Path, warm: WarmCommand) -> None:
        self.home = home
        self.warm = warm
        self.environment = {
            **os.environ,
            "GPUBENCH_DATA": str(home / "images"),
            "CUDA_VISIBLE_DEVICES": "",
            "COLUMNS": "300",
        }
        self.environment.pop("GPUBENCH_OUT", None)

    def start(self, *arguments: str) -> Started:
        return self.warm.start(arguments, cwd=self.home, env=self.environment)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.warm.run(arguments, cwd=self.home, env=self.environment, timeout=LIMIT_S)

    def run_cold(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """As users do: with an interpreter that has imported nothing yet."""
        return subprocess.run(
            [sys.executable, "-m", "gpubench", *arguments], cwd=self.home, env=self.environment,
            text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=LIMIT_S, check=False,
        )  # fmt: skip

    def files(self) -> set[str]:
        return {str(path.relative_to(self.home)) for path in self.home.rglob("*")}

    def trials(self, name: str = "batch-size") -> pd.DataFrame:
        return pd.read_csv(self.home / "results" / name / "trials.csv").set_index("batch_size").sort_index()


@pytest.fixture
def place(tmp_path: Path, warm_command: WarmCommand) -> Place:
    return Place(tmp_path, warm_command)


@pytest.mark.parametrize(
    "arguments",
    [
        ("sweep", "--nosuch"),
        ("sweep", "--batch-size", "0"),
        ("sweep", "-n", *TINY, "--batch-size", "8,16"),
        ("table", "gone"),
        ("data", "list"),
        ("predict", "--help"),
    ],
    ids=" ".join,
)
def test_a_warm_command_says_what_a_cold_one_says(place: Place, arguments: Sequence[str]) -> None:
    """So that the tests below may use warm ones."""
    warm, cold = place.run(*arguments), place.run_cold(*arguments)
    said = [re.sub(LOAD, "", ended.stdout) for ended in (warm, cold)]
    assert (warm.returncode, said[0], warm.stderr) == (cold.returncode, said[1], cold.stderr)


def test_a_warm_command_is_a_process_of_its_own(place: Place, tmp_path: Path) -> None:
    """It ends by signals, with their exit codes, and its streams and folder are those that it was given."""
    started = place.start("sweep", "--device", "cpu", "--data", "procedural:3000")
    assert started.stderr is not None
    assert "results in results/batch-size" in started.stderr.readline()
    assert psutil.Process(started.pid).cwd() == str(tmp_path)
    with pytest.raises(subprocess.TimeoutExpired):
        started.wait(0)
    started.kill()
    assert started.wait(LIMIT_S) == -signal.SIGKILL
    started.kill()  # whoever has its id now is not meant


# ---- wrong input ----

# (arguments, exit code, words of the line)
WRONG: list[tuple[Sequence[str], int, str]] = [
    (["sweep", "--nosuch"], 2, "No such option: --nosuch"),
    (["swep"], 2, "Did you mean 'sweep'?"),
    (["sweep", "--set", "batchsize=8"], 2, "unknown field 'batchsize': did you mean batch_size?"),
    (["sweep", "--set", "batch_size"], 2, "'batch_size' is not FIELD=VALUES"),
    (["sweep", "--model", "mobilnet_v2"], 2, "unknown model 'mobilnet_v2': did you mean mobilenet_v2?"),
    (["sweep", "--model", "gone.py:net"], 2, "there is no file gone.py"),
    (["sweep", "--model", "gone.py"], 2, "there is no file gone.py; a model of your own is FILE.py:FUNCTION"),
    (["sweep", "--model", "./nets:net"], 2, "a model of your own is FILE.py:FUNCTION"),
    (["sweep", "--variant", "pre-resize"], 2, "unknown variant 'pre-resize': did you mean pre-resized?"),
    (["sweep", "--strategy", "dpp"], 2, "unknown strategy 'dpp': did you mean "),
    (["sweep", "--optimizer", "adm"], 2, "unknown optimizer 'adm': did you mean adam?"),
    (["sweep", "--precision", "fp23"], 2, "precision must be fp32, tf32, bf16 or fp16, not 'fp23'"),
    (["sweep", "--batch-size", "0"], 2, "--batch-size must be at least 1, not 0"),
    (["sweep", "--batch-size", "sixteen"], 2, "'sixteen' is not a whole number"),
    (["sweep", "--batch-size", "64:16:8"], 2, "'64:16:8' begins above its end"),
    (
        ["sweep", "--batch-size", "8", "--batch-per-gpu", "8"],
        2,
        "--batch-per-gpu is given beside --batch-size",
    ),
    (["sweep", "--zip", "batch_size=1/2"], 2, "--zip: "),
    (["sweep", "--exclude", "strategy"], 2, "--exclude: 'strategy' is not FIELD=VALUE"),
    (["sweep", "--repeats", "0"], 2, "--repeats must be at least 1, not 0"),
    (["sweep", "--repeats", "many"], 2, "--repeats must be a whole number, not 'many'"),
    (["sweep", "--lr", "0.1"], 2, "lr is a trial field: write --set lr=VALUES"),
    (["predict", "--batch-size=8"], 2, "batch_size is a trial field: write --set batch_size=VALUES"),
    (["sweep", "--batch_size", "8"], 2, "(Possible options: --batch-size)"),
    (["sweep", "--batch-size"], 2, "'--batch-size' requires an argument; see "),
    (
        ["audit", "empty", "my results", "--markdown"],
        2,
        "audit reads one results folder at a time; "
        "type python -m gpubench audit empty --markdown, then python -m gpubench audit 'my results' --markdown",
    ),
    (["audit", "r1", "r2", "r3"], 2, "gpubench audit r1, then python -m gpubench audit r2, then python"),
    (["sweep", "--device", "cuda"], 2, "it runs with --device cpu in place of --gpus or --gpu-ids"),
    (["data", "make", "--images", "0"], 2, "--images must be at least 1, not 0"),
    (["data", "resize", "empty", "new", "--size", "x"], 2, "--size must be a whole number, not 'x'"),
    (["sweep", "--timeout", "soon"], 2, "--timeout: 'soon' is not a time"),
    (["sweep", "--strategy", "dpp"], 2, "unknown strategy 'dpp': did you mean ddp?"),
    (["sweep", "--set", "strategy=dpp"], 2, "unknown strategy 'dpp': did you mean ddp?"),
    (["sweep", "--job", "strategy=dpp", "--job", "lr=1"], 2, "unknown strategy 'dpp': did you mean ddp?"),
    (["sweep", "--exclude", "strategy=dpp"], 2, "unknown strategy 'dpp': did you mean ddp?"),
    (["sweep", "--zip", "strategy,seed=dpp/1"], 2, "unknown strategy 'dpp': did you mean ddp?"),
    # An option is called what the user can type, a field of --set or of a file as it is written there.
    (["sweep", "--until-top1", "200"], 2, ": --until-top1 must be above 0 and below 100, not 200"),
    (["sweep", "--set", "until_top1=200"], 2, ": --set until_top1 must be above 0 and below 100, not 200"),
    (["sweep", "wrong.toml"], 2, ": batch_size must be at least 1, not 0"),
    (["sweep", "wrong.toml", "--batch-size", "-1"], 2, ": --batch-size must be at least 1, not -1"),
    (["sweep", "--gpu-mem-cap", "12Gi"], 2, "--gpu-mem-cap: '12Gi' is not a memory size; write 12GiB"),
    (["sweep", "--bad-images", "skp"], 2, "--bad-images is fail or skip, not 'skp'"),
    (["data", "resize", "empty", "new", "--bad-images", "skp"], 2, "--bad-images is fail or skip, not 'skp'"),
    (["sweep", "--exclude", "batch-size=x"], 2, "--exclude batch_size: 'x' is not a whole number"),
    (
        ["sweep", "--epochs", "1"],
        2,
        "the only epoch warms up, which leaves none to measure: write --epochs 2 ",
    ),
    (["sweep", "--retry", "faild"], 2, "did you mean failed?"),
    (["sweep", "--order", "ranom"], 2, "did you mean random?"),
    (["sweep", "--gpus", "1,2"], 2, "no trial is left"),
    (["sweep", "--device", "cpu", "--strategy", "dp"], 2, "no trial is left: strategy dp needs GPUs"),
    (["sweep", "--job", "batch_size=16"], 2, "--job: one job runs beside none; give two or more"),
    (["sweep", "--job", "lr=1", "--job", "lr"], 2, "--job: 'lr' is not FIELD=VALUE"),
    (
        ["sweep", "--job", "batchsize=3", "--job", "lr=1"],
        2,
        "unknown field 'batchsize': did you mean batch_size?",
    ),
    (
        ["sweep", "--job", "model=lenett", "--job", "model=mlp"],
        2,
        "unknown model 'lenett': did you mean lenet?",
    ),
    (["sweep", "--job", "lr=1", "--job", "lr=2", "--set", "lr=3"], 2, "lr has no effect beside --job"),
    (["sweep", "--pairs"], 2, "--pairs: there are no jobs to pair; give --job two or more times"),
    (
        ["sweep", "--pairs", "--job", "gpus=2", "--job", "gpus=1"],
        2,
        "pairs share one GPU; job 'gpus=2' has 2",
    ),
    (["sweep", "--copies", "0"], 2, "copies must be at least 1, not 0"),
    (["sweep", "--copies", "65"], 2, "65 jobs at once are too many; 64 is the most"),
    (["sweep", "--cpu-sharing", "own"], 2, "--cpu-sharing must be shared or pinned, not 'own'"),
    (
        ["sweep", "--cpu-sharing", "pinned"],
        2,
        "no trial is left: CPUs are pinned only among jobs that run together",
    ),
    (["sweep", "--copies", "2", "--until-top1", "60"], 2, "leave top-1 to the trial alone"),
    (["sweep", "--copies", "2", "--breakdown"], 2, "the parts of steps are timed alone"),
    (
        ["sweep", "--copies", "2", "--cpu-sharing", "pinned", "--cpus", "4000"],
        2,
        "no trial is left: needs 4000 CPUs",
    ),
    (["sweep", "group.toml"], 2, "group 'a': one job runs beside none"),
    (["sweep", "--data", "empty"], 2, "no images in "),
    (["sweep", "--data", "gone/away"], 2, "gone/away does not exist"),
    (["sweep", "--data", "cifar11"], 2, "did you mean cifar10?"),
    (["sweep", "gone.toml"], 2, "experiment file gone.toml does not exist"),
    (["sweep", "empty"], 2, "empty is a folder; name an experiment file (it holds none)"),
    (
        ["sweep", "--batch-size", "16", "32"],
        2,
        "'32' behind --batch-size 16 is neither an option nor an experiment file; between several values stand commas, "
        "no spaces: --batch-size 16,32",
    ),
    (["sweep", "prose.toml"], 2, "prose.toml is not TOML"),
    (["sweep", "key.toml"], 2, "key.toml: unknown key 'fixd': did you mean fixed?"),
    (["sweep", "value.toml"], 2, "lr must be a finite number, not inf"),
    (["sweep", "--device", "cpu", "--out", "prose.toml"], 4, "prose.toml is a file; name a folder"),
    (["sweep", "--device", "cpu", "--out", "prose.toml/below"], 4, "can't be written"),
    (["sweep", "--device", "cpu", "--out", "/proc/gpubench"], 4, "/proc/gpubench can't be written"),
    (
        ["table", "gone"],
        4,
        "gone is not a results folder; name one that gpubench sweep has written, such as results/NAME",
    ),
    (["table", "empty"], 4, "empty holds no records"),
    (["table", "home"], 4, "home holds results folders, and is none; name one of them: one and two"),
    (["table"], 4, "no results in results"),
    (["predict", "--copies", "2"], 4, "no results in results"),
    (["predict", "empty"], 4, "empty holds no records"),
    (
        ["predict", "gone", "--copies", "2"],
        4,
        "gone is not a results folder; name one that gpubench sweep has written, such as results/NAME",
    ),
    (["predict", "empty", "--set", "batchsize=8"], 2, "did you mean batch_size?"),
]


@pytest.mark.parametrize(("arguments", "code", "words"), WRONG, ids=[" ".join(a) for a, _, _ in WRONG])
def test_wrong_input_is_one_line_and_nothing_written(
    place: Place, arguments: Sequence[str], code: int, words: str
) -> None:
    (place.home / "empty").mkdir()
    for name in ("one", "two"):
        (place.home / "home" / name / "records").mkdir(parents=True)
    (place.home / "prose.toml").write_text("Once upon a time")
    (place.home / "key.toml").write_text('name = "x"\n[fixd]\nlr = 1.0\n')
    (place.home / "wrong.toml").write_text('name = "x"\n[fixed]\nbatch_size = 0\n')
    (place.home / "value.toml").write_text('name = "x"\n[fixed]\nlr = inf\n')
    (place.home / "group.toml").write_text('name = "x"\n[[group]]\nname = "a"\njobs = [{}]\n')
    before = place.files()
    ended = place.run(*arguments)
    assert (ended.returncode, ended.stdout) == (code, "")
    assert re.fullmatch(r"gpubench: [^\n]+\n", ended.stderr), ended.stderr
    assert words in ended.stderr
    assert place.files() == before


LONG = "a" * 300
# (arguments, exit code, words of the line), where the images of `bad` hold a dead link and `loop` is a link to itself.
PATHS: list[tuple[Sequence[str], int, str]] = [
    (
        ["sweep", "--device", "cpu", "--data", "bad"],
        2,
        "bad/a/x.jpg is a link to gone.jpg, which is not there",
    ),
    (["sweep", "-n", "--device", "cpu", "--data", "./bad"], 2, "x.jpg is a link to gone.jpg"),
    (["sweep", "--device", "cpu", "--variant", "cached", "--data", "bad"], 2, "x.jpg is a link to gone.jpg"),
    (["data", "resize", "bad", "new"], 2, "x.jpg is a link to gone.jpg"),
    (["data", "resize", "pipe", "new"], 2, "pipe/a/x.jpg is no file: remove it"),
    (["sweep", "--data", "./pipe"], 2, "pipe/a/x.jpg is no file: remove it"),
    (["data", "resize", "circle", "new"], 2, "leads back to a folder that it lies in"),
    (["data", "resize", "loop", "new"], 2, "does not exist"),
    (["data", "make", "loop"], 4, "can't use "),
    (["sweep", "--data", LONG], 4, "File name too long"),
    (["sweep", "--data", f"./{LONG}"], 4, "File name too long"),
    (["sweep", "--variant", LONG], 4, "File name too long"),
    (["sweep", "--model", f"{LONG}.py:net"], 4, "File name too long"),
    (["sweep", "--device", "cpu", "--out", LONG], 4, "File name too long"),
    (["table", LONG], 4, "File name too long"),
    (["audit", LONG], 4, "File name too long"),
]


@pytest.mark.parametrize(("arguments", "code", "words"), PATHS, ids=[" ".join(a)[:60] for a, _, _ in PATHS])
def test_a_bad_path_is_one_line_and_nothing_waits_or_is_written(
    place: Place, arguments: Sequence[str], code: int, words: str
) -> None:
    for name in ("bad", "pipe", "circle"):
        (place.home / name / "a").mkdir(parents=True)
        (place.home / name / "a" / "1.jpg").write_bytes(b"x")
    (place.home / "bad" / "a" / "x.jpg").symlink_to("gone.jpg")
    os.mkfifo(place.home / "pipe" / "a" / "x.jpg")
    (place.home / "circle" / "a" / "up").symlink_to("..")
    (place.home / "loop").symlink_to("loop")
    ended = place.run(*arguments)
    assert (ended.returncode, ended.stdout) == (code, "")
    assert re.fullmatch(r"gpubench: [^\n]+\n", ended.stderr), ended.stderr
    assert words in ended.stderr
    assert {path.name for path in place.home.iterdir()} == {"bad", "pipe", "circle", "loop"}


# ---- what users write themselves ----

NETS = """
from torch import nn

def net(num_classes, channels, input_size):
    return nn.Sequential(nn.Flatten(), nn.Linear(channels * input_size**2, num_classes))

def reads_its_weights(num_classes, channels, input_size):  # which the meta device has none of
    made = net(num_classes, channels, input_size)
    return made if made[1].weight.sum().item() < 1e9 else None

def typo(num_classes):
    return nn.Linaer(3, num_classes)
"""
VARIANT = """
name = "x"
[fixed]
variant = "own"
device = "cpu"
data = "procedural:64x32"
model = "lenet"
input_size = 28
batch_size = 8
[variants.own]
"""
# (file of the model or variant, words of the line)
SEEN: list[tuple[str, str]] = [
    ("nets.py", "names no function: write FILE.py:FUNCTION, for example nets.py:net"),
    ("nets.py:", "names no function"),
    ("nets.py:nett", "unknown function of nets.py 'nett': did you mean net?"),
    ("syntax.py:net", "syntax.py, line 2: SyntaxError: "),
    ("empty.py:net", "empty.py defines no function"),
    (
        'cpu = ["RandomHorizontalFlop"]',
        "unknown transform on the CPU 'RandomHorizontalFlop': did you mean RandomHor",
    ),
    (
        'gpu = ["RandomHorizontalFlop"]',
        "unknown transform on the GPU 'RandomHorizontalFlop': did you mean RandomHor",
    ),
    (
        "gpu = [{ RandomCrop = { paddin = 8 } }]",
        "unknown argument of RandomCrop on the GPU 'paddin': did you mean padding",
    ),
    (
        "gpu = [{ RandomCrop = {}, RandomHorizontalFlip = {} }]",
        "one for each brace, not RandomCrop, RandomHor",
    ),
]
"""What is seen without torch."""
TYPO = ("nets.py:typo", "nets.py, line 12: AttributeError: module 'torch.nn' has no attribute 'Linaer'")
NO_SUCH_ARGUMENT = ("cpu = [{ RandomErasing = { q = 1 } }]", "transform RandomErasing: ")
"""What torch alone knows, in a child; train/test_tries.py has all that it finds."""


def asked_with(place: Place, own: str) -> Sequence[str]:
    """The command that trains with a user's own model or variant."""
    (place.home / "nets.py").write_text(NETS)
    (place.home / "syntax.py").write_text("x = 1\ndef net(:\n    pass\n")
    (place.home / "empty.py").write_text("")
    (place.home / "own.toml").write_text(VARIANT + own)
    return ["sweep", *SMALL, "--model", own] if ".py" in own else ["sweep", "own.toml"]


def _refused(place: Place, words: str, *arguments: str) -> None:
    before = place.files()
    ended = place.run(*arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert re.fullmatch(r"gpubench: [^\n]+\n", ended.stderr), ended.stderr
    assert words in ended.stderr
    assert not {path for path in place.files() - before if "__pycache__" not in path}


@pytest.mark.parametrize(
    ("own", "words"), [*SEEN, NO_SUCH_ARGUMENT], ids=[own for own, _ in [*SEEN, NO_SUCH_ARGUMENT]]
)
def test_what_users_wrote_themselves_is_tried_by_a_plan(place: Place, own: str, words: str) -> None:
    _refused(place, words, *asked_with(place, own), "-n")


def test_what_users_wrote_themselves_is_tried_before_anything_is_made(place: Place) -> None:
    own, words = TYPO
    asked = asked_with(place, own)
    _refused(place, words, *asked)
    (place.home / "results" / "there" / "records").mkdir(parents=True)  # a folder that has been there before
    _refused(place, words, *asked, "--out", "results/there")


def test_what_is_right_is_not_refused(place: Place) -> None:
    (place.home / "nets.py").write_text(NETS)
    (place.home / "own.toml").write_text(
        VARIANT + 'files = "resized"\ncpu = ["RandomHorizontalFlip", { RandomErasing = { p = 0.2 } }, '
        '{ RandomResizedCrop = { size = "$input_size", interpolation = "bicubic" } }]\n'
        "gpu = [{ RandomCrop = { padding = 2 } }, { RandomResizedCrop = { scale = [0.5, 1.0] } }]"
    )
    ended = place.run("sweep", "-n", "own.toml", "--model", "nets.py:net,nets.py:reads_its_weights")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "2 trials to run" in ended.stdout


def test_a_model_whose_trials_are_done_is_not_tried_again(place: Place) -> None:
    told = place.home / "told"
    (place.home / "nets.py").write_text(f"open({str(told)!r}, 'a').write('imported ')\n{NETS}")
    command = ("sweep", *SMALL, "--model", "nets.py:net", "--batch-size", "8")
    assert place.run(*command).returncode == 0
    before = told.read_text()
    assert before.count("imported") >= 2, "once to try it, once to train"
    again = place.run(*command)
    assert again.stderr == "nothing left to do: 1 done, 0 skipped, 0 failed before\n"
    assert told.read_text() == before


# ---- many images ----


def test_without_a_terminal_many_images_are_announced_and_made(place: Place) -> None:
    started = place.start("sweep", "--device", "cpu", "--data", "procedural:3000")
    assert started.stderr is not None
    lines = [started.stderr.readline() for _ in range(3)]
    started.kill()
    started.communicate()
    assert "first 3,000 + 300 images to make (about 0.3 GB)" in lines[1]
    assert re.match(
        rf"Making these images takes about 0\.3 GB in {place.home}/images and about \d+ s on \d+ CPU.*"
        r"--data procedural:640.*--data FOLDER.* There is no terminal to ask on: they are made now\.\n",
        lines[2],
    )


def _on_a_terminal(place: Place, answer: bytes, *arguments: str) -> tuple[int, str]:
    """Exit code and screen of a sweep whose user types `answer` where they are asked; Ctrl-C once images are made."""
    ours, theirs = pty.openpty()
    running = place.warm.start(
        ("sweep", "--device", "cpu", *arguments), cwd=place.home, env=place.environment,
        stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    screen, answered, stopped = "", False, False
    while select.select([ours], [], [], LIMIT_S)[0]:
        try:
            screen += os.read(ours, 4096).decode(errors="replace")
        except OSError:  # nobody holds the other end any more
            break
        if "[Y/n]" in screen and not answered:
            answered = True
            os.write(ours, answer)
        if "making images" in screen and not stopped:
            stopped = True
            running.send_signal(signal.SIGINT)
    os.close(ours)
    return running.wait(LIMIT_S), screen


@pytest.mark.parametrize("answer", [b"n\n", b"No\n", b"\x04", b"maybe\nn\n"])
def test_on_a_terminal_it_asks_before_it_makes_many_images(place: Place, answer: bytes) -> None:
    code, screen = _on_a_terminal(place, answer, "--data", "procedural")
    assert code == 75
    assert "Making these images takes about 1.1 GB" in screen
    assert f"Make about 1.1 GB of images in {place.home}/images? [Y/n]" in screen.replace("\r\n", "")
    assert "nothing was made, nothing was run" in screen
    assert place.files() <= {"results"}


@pytest.mark.parametrize("answer", [b"\n", b"y\n"])
def test_a_yes_makes_them(place: Place, answer: bytes) -> None:
    code, screen = _on_a_terminal(place, answer, "--data", "procedural:3000")
    assert code == 75
    assert "images: 3,000 + 300 images to make" in screen


@pytest.mark.parametrize(
    "arguments", [("--data", "procedural:3000", "--yes"), ("--data", "procedural:3000", "-y"), ()]
)
def test_nobody_is_asked_with_yes_and_for_few_images(place: Place, arguments: Sequence[str]) -> None:
    code, screen = _on_a_terminal(place, b"", *arguments)
    assert code == 75
    assert "[Y/n]" not in screen
    assert "There is no terminal" not in screen


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


# ---- help and plan ----


COMMANDS = [(), ("sweep",), ("table",), ("predict",), ("audit",), ("doctor",), ("data",),
            ("data", "make"), ("data", "resize"), ("data", "list")]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("width", ["80", "120"])
def test_help_has_no_type_behind_a_flag_and_is_there_for_h(
    place: Place, command: Sequence[str], width: str
) -> None:
    place.environment["COLUMNS"] = width
    long, short = place.run(*command, "--help"), place.run(*command, "-h")
    assert (long.returncode, short.returncode) == (0, 0)
    assert long.stdout == short.stdout
    assert "bool" not in long.stdout
    assert "range" not in long.stdout.replace("lists and ranges", "")
    assert "list[" not in long.stdout


def test_help_names_the_commands(place: Place) -> None:
    ended = place.run("--help")
    assert ended.returncode == 0
    for command in ("sweep", "table", "predict", "data"):
        assert re.search(rf"^\W*{command}\b", ended.stdout, re.MULTILINE), command
    assert place.run("--version").stdout == f"gpubench {gpubench.__version__}\n"


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from gpubench import cli\n"
        "try: cli.app(['sweep', '--help'], standalone_mode=False)\n"
        "finally: print({'torch', 'pandas', 'numpy', 'psutil'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.endswith("set()\n")


def test_the_list_of_commands_needs_no_checker_of_values() -> None:
    code = (
        "import sys; from gpubench import cli\n"
        "try: cli.app(['--help'], standalone_mode=False)\n"
        "finally: print({'pydantic', 'pydantic_core'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.endswith("set()\n")


def test_the_plan_without_running_it(place: Place) -> None:
    ended = place.run("sweep", "-n", *TINY, "--batch-size", "8,16,128")
    assert (ended.returncode, ended.stderr) == (0, "")
    first, second, dropped, training, total = ended.stdout.splitlines()
    assert re.fullmatch(r"t[0-9a-f]{12}  batch_size=8 +roughly \d+ s", first)
    assert re.fullmatch(r"t[0-9a-f]{12}  batch_size=16 +roughly \d+ s", second)
    assert dropped == "1 combination dropped: 1 × a batch of 128 is larger than the epoch of 64 images"
    assert training == "training: 2 epochs, 1 of them to warm up; sgd with lr 0.05"
    assert re.fullmatch(rf"2 trials to run; \d+ s{LOAD}; results in results/batch-size", total)
    assert place.files() == set()


def test_unasked_a_sweep_goes_over_its_plan_three_times(place: Place) -> None:
    ended = place.run("sweep", "-n", "--device", "cpu", "--batch-size", "8,16")
    assert (ended.returncode, ended.stderr) == (0, "")
    *_, total = ended.stdout.splitlines()
    assert total.startswith("2 trials to run in 3 rounds; ")
    twice = place.run("sweep", "-n", "--device", "cpu", "--batch-size", "8,16", "--repeats", "2")
    assert "4 trials to run in 2 rounds; " in twice.stdout


def test_a_plan_of_what_needs_more_gpus_says_what_to_do(place: Place) -> None:
    ended = place.run("sweep", "-n", "--gpus", "2", "--batch-size", "8,16")
    assert (ended.returncode, ended.stderr) == (0, "")
    first, second, advice, _, total = ended.stdout.splitlines()
    assert first.endswith("skipped: needs 2 GPUs, this machine shows 0")
    assert second.endswith("skipped: needs 2 GPUs, this machine shows 0")
    assert advice == (
        "what needs more than this machine has is skipped: on the CPU it runs with --device cpu in place of "
        "--gpus or --gpu-ids; else run it on a machine that has GPUs"
    )
    assert total.startswith("nothing to run of 2 planned; ")


def test_jobs_share_their_cpus_in_both_ways_before_there_are_more_of_them(place: Place) -> None:
    """The order of a plan's trials is for ever, whatever the order of options."""
    both = ("--cpu-sharing", "shared,pinned", "--copies", "2,3", "--workers", "1")
    ended = place.run("sweep", "-n", *TINY, "--batch-size", "8", *both)
    groups = [line.split(None, 1)[1] for line in ended.stdout.splitlines() if line.startswith("g")]
    found = [(re.search(r"\d copies", line), re.search("shared|pinned", line)) for line in groups]
    assert [tuple(one[0] for one in both_of if one) for both_of in found] == [
        (f"{copies} copies", sharing) for copies in (2, 3) for sharing in ("shared", "pinned")
    ]


def test_the_plan_of_groups(place: Place) -> None:
    ended = place.run("sweep", "-n", *TINY, "--batch-size", "8", "--workers", "1", "--copies", "1,2")
    assert (ended.returncode, ended.stderr) == (0, "")
    alone, group, _, total = ended.stdout.splitlines()
    assert re.fullmatch(r"t[0-9a-f]{12}  copies=1 +roughly \d+ s", alone)
    assert re.fullmatch(r"g[0-9a-f]{12}  2 copies +roughly \d+ s", group)
    assert re.fullmatch(r"1 trial and 1 group of jobs to run; .*; results in results/batch-size", total)
    assert place.files() == set()


# ---- images that are made by themselves ----


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_making_images_that_is_stopped_leaves_nothing_and_says_so(place: Place, name: str) -> None:
    made = place.start("data", "make", "images/own", "--images", "20000")
    until(lambda: any(place.home.glob("images/.own.partial-*/train/*/*.jpg")), "the first image")
    made.send_signal(signal.Signals[name])
    out, err = made.communicate(timeout=LIMIT_S)
    assert (made.returncode, out) == (75, "")
    begun, told = err.splitlines()
    assert begun == "making images in images/own (21,024 in all)"
    assert told == "gpubench: stopped; what was half made is removed, and the same command begins it anew"
    assert place.files() == {"images"}


def test_who_waits_for_another_s_images_hears_a_signal(place: Place) -> None:
    (place.home / "images").mkdir()
    lock = place.home / "images" / ".own.lock"
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        waits = place.start("data", "make", "images/own", "--images", "40")
        # It has opened the lock, and nothing else is there to be seen.
        until(lambda: any(_opens(waits.pid, lock)), "the lock to be opened")
        waits.send_signal(signal.SIGTERM)
        _, err = waits.communicate(timeout=LIMIT_S)
    assert (waits.returncode, len(err.splitlines())) == (75, 2)
    assert place.files() == {"images", "images/.own.lock"}, "the lock is another's"


def _opens(pid: int, path: Path) -> Iterator[bool]:
    """Of each file that a process has open, whether it is this one."""
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            yield file.samefile(path)


# ---- the life of a results folder ----


def test_a_sweep_is_resumed_extended_and_finished(place: Place) -> None:
    first = place.run("sweep", *TINY, "--batch-size", "8,16")
    assert first.returncode == 0, first.stderr
    announced, images, *rest = first.stderr.splitlines()
    assert re.fullmatch(
        rf"batch-size: 2 trials to run, roughly \d+ s{LOAD}, results in results/batch-size", announced
    )
    assert re.match(
        r"images: 64 images \+ 64 for validation in .*/images/.*; first 64 \+ 64 images to make", images
    )
    told = [line.split("  ")[1] for line in rest if line.startswith("[")]  # a busy host has a line of its own
    assert told == ["started", "ok", "started", "ok"]
    assert "2 trials: 2 ok" in first.stdout

    # As a spreadsheet or pandas sees it.
    table = place.trials()
    assert [table.index.name, *table.columns] != []
    assert set(table.columns) | {"batch_size"} == {column.name for column in COLUMNS}
    assert list(table["status"]) == ["ok", "ok"]
    for row in table.to_dict("records"):
        assert row["images_per_s"] * row["epoch_time_s"] == pytest.approx(row["images_per_epoch"], rel=1e-4)
        assert 0 < row["epoch_time_s"] < LIMIT_S
        assert 0 <= row["data_wait_pct"] <= 100
        assert pd.isna(row["gpu_mem_mib"]), "no GPU: empty, never 0"
    short = pd.read_csv(place.home / "results" / "batch-size" / "table.csv")
    assert len(short) == 2
    epochs = pd.read_csv(place.home / "results" / "batch-size" / "epochs.csv")
    assert list(epochs["warmup"]) == [1, 0, 1, 0]

    # What was planned is told beforehand the next time, and only what is new runs.
    planned = place.run("sweep", "-n", *TINY, "--batch-size", "8,16,32").stdout.splitlines()
    assert [line.split(None, 2)[2].split()[0] for line in planned[:3]] == ["done", "done", "about"]
    before = {p: p.read_bytes() for p in (place.home / "results").rglob("records/*/*")}
    second = place.run("sweep", *TINY, "--batch-size", "8,16,32", "--json")
    assert second.returncode == 0, second.stderr
    assert "1 trial to run (2 done already)" in second.stderr
    assert second.stderr.count("started") == 1
    lines = [json.loads(line) for line in second.stdout.splitlines()]
    assert sorted(line["batch_size"] for line in lines) == [8, 16, 32]
    assert {p: p.read_bytes() for p in before} == before, "what was measured is left alone"
    assert list(place.trials().loc[:16, "epoch_time_s"]) == list(table["epoch_time_s"])

    # Nothing left to do.
    fastest = min(_timed(place, "sweep", *TINY, "--batch-size", "8,16,32", "-q") for _ in range(2))
    assert fastest < 2.0
    finished = place.run("sweep", *TINY, "--batch-size", "8,16,32")
    assert finished.returncode == 0
    assert finished.stderr == "nothing left to do: 3 done, 0 skipped, 0 failed before\n"
    assert "3 trials: 3 ok" in finished.stdout
    assert place.run("sweep", *TINY, "--batch-size", "8,16,32", "-q").stdout == "results/batch-size\n"

    # The table, from the newest folder.
    shown = place.run("table")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout == finished.stdout
    as_markdown = place.run("table", "results/batch-size", "--markdown")
    assert as_markdown.stdout == (place.home / "results" / "batch-size" / "table.md").read_text()
    assert not list((place.home / "results").rglob(".lock")), "the folder is free again"


def test_a_sweep_that_is_stopped_before_it_has_begun_says_that_nothing_was_measured(place: Place) -> None:
    """Here while it waits for the user's own model to be tried."""
    (place.home / "slow.py").write_text(
        "import pathlib, time\npathlib.Path('tried').touch()\ntime.sleep(60)\ndef net(num_classes): pass\n"
    )
    sweep = place.start("sweep", "--device", "cpu", "--model", "slow.py:net")
    until(lambda: (place.home / "tried").exists(), "the model to be tried")
    sweep.send_signal(signal.SIGINT)
    out, err = sweep.communicate(timeout=LIMIT_S)
    assert (sweep.returncode, out) == (130, "")
    assert err == "gpubench: stopped; nothing was measured\n"
    assert not (place.home / "results").exists()


@pytest.mark.parametrize(
    "moment",
    ["typer.core.TyperGroup.parse_args", "gpubench.usage.refuse_repeated", "gpubench.commands.table.table"],
)
def test_ctrl_c_is_told_at_any_moment_of_a_command(
    moment: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """While the words of the command line are read, and while it runs."""

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(moment, stopped)
    monkeypatch.setattr(sys, "argv", ["gpubench", "table"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert capsys.readouterr() == ("", "gpubench: stopped\n")


def test_what_jobs_would_do_to_each_other_is_what_the_sweep_predicted(place: Place) -> None:
    """First from a trial that was measured alone; once the group was measured, with how good that was."""
    ask = ("--set", "model=lenet", "--set", "device=cpu", "--set", "input_size=28", "--set", "data=procedural:64x32",
           "--set", "batch_size=8", "--copies", "2")  # fmt: skip
    assert place.run("sweep", *TINY, "--batch-size", "8", "--workers", "1").returncode == 0
    before = place.files()
    first = place.run("predict", *ask, "--set", "workers=1")
    assert first.returncode == 0, first.stderr
    assert "By the rows in results, no group has been predicted and measured" in first.stdout
    wrong = place.run("predict", *ask, "--bad-images", "some")
    assert (wrong.returncode, wrong.stderr) == (2, "gpubench: --bad-images is fail or skip, not 'some'\n")
    assert place.files() == before, "nothing is run, nothing written"

    measured = place.run("sweep", *TINY, "--batch-size", "8", "--workers", "1", "--copies", "2")
    predicted = re.search(
        r"predicted ([0-9.]+), ([0-9.]+) times as long as alone: ([a-z ]+), ", measured.stderr
    )
    assert predicted, measured.stderr
    told = [line.split()[-1] for line in first.stdout.splitlines() if re.match(r"\d of 2: lenet", line)]
    assert [*told, f"Predicted: {predicted[3]}"] == [
        predicted[1], predicted[2], re.search(r"Predicted: [a-z ]+(?= \()", first.stdout)[0]  # type: ignore[index]
    ]  # fmt: skip
    again = place.run("predict", *ask, "--set", "workers=1")
    assert "So far: 2 jobs of 1 group on " in again.stdout


def _timed(place: Place, *arguments: str) -> float:
    began = time.monotonic()
    assert place.run_cold(*arguments).returncode == 0
    return time.monotonic() - began


HELD = """
import time
from pathlib import Path
from torch import nn

class Held(nn.Module):
    def __init__(self, classes, inputs):
        super().__init__()
        self.layer = nn.Linear(inputs, classes)

    def forward(self, x):
        while Path({hold!r}).exists():
            time.sleep(0.02)
        return self.layer(x.flatten(1))

def net(num_classes, channels, input_size):
    return Held(num_classes, channels * input_size**2)
"""


def test_a_sweep_can_be_stopped_and_killed_and_goes_on(place: Place) -> None:
    """A model that waits for as long as a file is there: stopped in the middle of its first epoch, for certain."""
    hold = place.home / "hold"
    hold.touch()
    (place.home / "nets.py").write_text(HELD.format(hold=str(hold)))
    command = ("sweep", *SMALL, "--model", "nets.py:net", "--batch-size", "8,16", "--workers", "1")

    killed = place.start(*command)
    family = _in_training(killed)
    killed.kill()
    killed.communicate()
    all_gone(family)

    stopped = place.start(*command)
    family = _in_training(stopped)
    refused = place.run(*command)
    assert refused.returncode == 4
    assert f"another sweep writes into results/batch-size (process {stopped.pid} on " in refused.stderr
    assert refused.stderr.count("\n") == 1
    stopped.send_signal(signal.SIGINT)
    out, err = stopped.communicate(timeout=LIMIT_S)
    assert stopped.returncode == 75
    assert err.endswith("stopped; to continue, run the same command again\n")
    assert "interrupted" in out
    all_gone(family)
    assert dict(place.trials()["status"]) == {8: "interrupted"}

    hold.unlink()
    again = place.run(*command)
    assert again.returncode == 0, again.stderr
    assert dict(place.trials()["status"]) == {8: "ok", 16: "ok"}
    (trial_id,) = place.trials().loc[[8], "trial_id"]
    kept = {path.stem for path in (place.home / "results").rglob("records/*/*.json")}
    assert {f"{trial_id}-2", f"{trial_id}-3"} <= kept, "attempt 1 was killed and left its log only"


def _in_training(sweep: Started) -> list[psutil.Process]:
    """Its processes, once a rank and its loader are there."""

    def family() -> list[psutil.Process]:
        return psutil.Process(sweep.pid).children(recursive=True)

    def training() -> bool:
        # Below the sweep: the fork server, the leader, the rank, the loader's worker.
        try:
            return any(
                len(process.parents()) >= len(psutil.Process(sweep.pid).parents()) + 4 for process in family()
            )
        except psutil.NoSuchProcess:
            return False

    until(lambda: sweep.poll() is not None or training(), "the trial to begin")
    assert sweep.poll() is None, sweep.communicate()[1]
    time.sleep(0.5)
    return family()


def all_gone(family: Sequence[psutil.Process]) -> None:
    until(lambda: not any(_lives(process) for process in family), "its processes to end")


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def until(true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not true():
        assert time.monotonic() < deadline, f"waited too long for {what}"
        time.sleep(0.05)


# ---- Ctrl-C before anything is imported ----

INTERRUPTED_IMPORT = """
import sys
class Finder:
    def find_spec(self, name, *_):
        if name == "typer":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Finder())
"""
ENTRIES = {
    "module": "import runpy; runpy.run_module('gpubench', run_name='__main__', alter_sys=True)",
    "script": "from {module} import {function}; {function}()",
}


@pytest.mark.parametrize("way", ENTRIES)
def test_ctrl_c_while_the_command_is_imported_ends_as_it_does_later(way: str) -> None:
    project = tomllib.loads((Path(gpubench.__file__).parents[1] / "pyproject.toml").read_text())
    module, function = project["project"]["scripts"]["gpubench"].split(":")
    start = ENTRIES[way].format(module=module, function=function)
    ended = subprocess.run(
        [sys.executable, "-c", f"{INTERRUPTED_IMPORT}\n{start}"],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "gpubench: stopped\n")
