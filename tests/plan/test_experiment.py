"""Experiment files and options: what is understood, what beats what, what is refused in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gpubench
from gpubench.basics.errors import UsageError
from gpubench.plan.experiment import Axis, Experiment
from gpubench.plan.experiment_file import parse_experiment, read_experiment_file
from gpubench.plan.options import apply_options
from gpubench.plan.sweep_options import ExperimentOptions
from gpubench.schema import catalog, trial
from gpubench.schema.trial_fields import MOST_EPOCHS

BUILTIN = sorted((Path(gpubench.__file__).parent / "builtin").glob("*.toml"))

WHOLE = """
name = "whole"
question = "Does every table work?"
[fixed]
model = "lenet"
lr = 1
gpu_mem_cap_mib = "12GiB"
workers = "auto"
[axes]
batch_size = [16, 32, 32]
input_size = "28:112:x2"
[[zip]]
gpu_ids = [[0], "1+2"]
strategy = ["single", "ddp"]
[[exclude]]
batch_size = 32
input_size = 28
[variants.mine]
data = "data/birds"
cpu = [ { RandomResizedCrop = { size = 28 } }, "RandomHorizontalFlip" ]
[variants.crop-resize]
files = "resized"
[run]
epochs = 5
warmup_epochs = 2
seed = 3
repeats = 2
timeout = "10m"
"""


def base(**tables: Any) -> Experiment:
    return Experiment(name="base", variants=catalog.VARIANTS, **tables)


def options(*, zips: Any = (), excludes: Any = (), **fields: str) -> ExperimentOptions:
    return ExperimentOptions(fields=fields, zips=zips, excludes=excludes)


# ---- files ----


def test_a_whole_file() -> None:
    found = parse_experiment(WHOLE, "whole.toml")
    assert found.name == "whole"
    assert found.fixed == {
        "model": "lenet", "lr": 1.0, "gpu_mem_cap_mib": 12288, "workers": None,
        "epochs": 5, "warmup_epochs": 2, "seed": 3,
    }  # fmt: skip
    assert isinstance(found.fixed["lr"], float)
    assert found.axes == (
        Axis(("batch_size",), ((16,), (32,))),
        Axis(("input_size",), ((28,), (56,), (112,))),
        Axis(("gpu_ids", "strategy"), (((0,), "single"), ((1, 2), "ddp"))),
    )
    assert found.varied == (("batch_size",), ("input_size",), ("gpu_ids", "strategy"))
    assert found.excludes == ({"batch_size": 32, "input_size": 28},)
    assert (found.repeats, found.timeout_s) == (2, 600.0)
    mine = found.variants["mine"]
    assert mine.data == "data/birds"
    assert mine.cpu == ({"RandomResizedCrop": {"size": 28}}, {"RandomHorizontalFlip": {}})
    # In place of the built-in definition.
    assert found.variants["crop-resize"].files == "resized"
    assert found.variants["cached"] is catalog.VARIANTS["cached"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name = ", "is not TOML"),
        ("", "name is missing"),
        ("name = '../up'", "name is refused"),
        ("nam = 'x'\nname = 'x'", "unknown key 'nam': did you mean name?"),
        ("[variants.a]\ncpus = []", "unknown key 'cpus': did you mean cpu?"),
        ("[variants.a]\nfiles = 'ful'", "files must be decoded, full, none or resized"),
        ("[fixed]\nbatchsize = 3", "unknown field 'batchsize': did you mean batch_size?"),
        ("[axes]\nbatch_size = []", "axis batch_size has no values"),
        ("[axes]\nbatch_size = 3", "must be a text in quotes or a list"),
        ("[axes]\nbatch_size = '16:x:2'", "not a whole number"),
        ("[fixed]\nbatch_size = [16, 32]", "batch_size must be a whole number, not a list"),
        ("[fixed]\nmodel = 3", "model must be a text in quotes, not 3"),
        ("[fixed]\nlr = 0.1\n[axes]\nlr = [0.1]", "lr is given twice"),
        ("[fixed]\nepochs = 2\n[run]\nepochs = 3", "epochs is given twice"),
        ("[run]\nwindow = '3s'\nepochs = 2", "window is given beside epochs"),
        ("[fixed]\nuntil_top1 = 60\n[axes]\nsteps = [5, 9]", "steps is given beside until_top1"),
        ("[run]\nwindow = 'soon'", "window: 'soon' is not a time; write 90s, 10m or 2h"),
        ("[run]\nwindow = true", "run.window must be a number or a text in quotes, not true"),
        ("[fixed]\nbatch_size = 8\n[axes]\nbatch_per_gpu = [4]", "is given beside batch_size"),
        ("[[zip]]\nlr = [0.1]\nbatch_size = [16, 32]", "lr has 1, batch_size has 2"),
        ("[[zip]]\nlr = []\nbatch_size = []", "one at least"),
        ("[[zip]]", "none is given"),
        ("[[exclude]]", "an empty [[exclude]]"),
        ("[[exclude]]\nstratgy = 'dp'", "did you mean strategy?"),
        ("[run]\ntimeout = 'soon'", "'soon' is not a time"),
        ("[run]\nrounds = true", "run.rounds must be a whole number, not true"),
        ("[[groups]]", "unknown key 'groups': did you mean group?"),
        ("[[group]]\nnam = 'x'\njobs = [{}, {}]", "unknown key 'nam': did you mean name?"),
        ("[[group]]\njobs = [{ batchsize = 3 }, {}]", "unknown field 'batchsize': did you mean batch_size?"),
        ("[[group]]\nname = 'x'", "group.0.jobs is missing"),
        ("[[group]]\njobs = [3, 4]", "group.0.jobs.0 must be a table, not 3"),
        ("[[group]]\njobs = [{}, {}]\npairs = 'all'", "group.0.pairs must be true or false, not 'all'"),
        ("[[group]]\njobs = [{lr = 1}]", "group 'lr=1.0': 1 job runs beside none; give two or more"),
        ("[[group]]\njobs = [{ batch_size = [16, 32] }, {}]", "batch_size must be a whole number, not a list"),
        ("[[group]]\nname = 'x'\njobs = [{ copies = 0 }]", "copies must be at least 1"),
        ("[[group]]\njobs = [{ gpus = 1, gpu_ids = [0] }, {}]", "gpu_ids is given beside gpus"),
        ("[[group]]\njobs = [{}, { copies = 2 }]\npairs = true", "a pair is of two jobs, without copies"),
        ("[fixed]\ncopies = 2\n[[group]]\njobs = [{}, {}]\npairs = true", "a pair is of two jobs, without copies"),
        (
            "[[group]]\nname = 'y'\njobs = [{}, {}]\n[[group]]\nname = ' y '\njobs = [{}, {}, {}]",
            "two groups are named 'y'; give each a name of its own",
        ),
        ("[variants.x]\ndata = 3", "variants.*.data must be a text in quotes"),
        ("run = 3", "run must be a table, not 3"),
        ("[run]\ntimeout = 2026-01-02", "run.timeout must be a number or a text in quotes, not '2026-01-02'"),
        (f'[run]\nepochs = "{"9" * 5000}"', f"run.epochs must be a whole number, not '{'9' * 119}…"),
        ("[variants.x]\ncpu = [3]", "variants.*.cpu.0 must be a text in quotes or a table"),
        (f"[fixed]\nlr = 1{'0' * 400}", f"lr must be a number that a computer holds, not 1{'0' * 119}…"),
        (f"x = {'9' * 5000}", "x.toml is not TOML"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused_in_one_line(text: str, says: str) -> None:
    """`text`: what follows the name of the experiment, unless it is about that."""
    is_of_name = not text or text.startswith("nam")
    with pytest.raises(UsageError) as caught:
        parse_experiment(text if is_of_name else f"name = 'x'\n{text}", "x.toml")
    assert says in str(caught.value)
    assert str(caught.value).startswith("x.toml")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("where", "seconds"),
    [
        ("[run]\nwindow = '3s'", [3.0]),
        ("[fixed]\nwindow = '1m'", [60.0]),
        ("[axes]\nwindow = ['3s', 5]", [3.0, 5.0]),
    ],
)
def test_a_window_is_a_time(where: str, seconds: list[float]) -> None:
    found = parse_experiment(f"name = 'x'\n{where}", "x")
    given = [found.fixed["window"]] if found.fixed else [value for (value,) in found.axes[0].values]
    assert given == seconds
    assert all(isinstance(value, float) for value in given)


# ---- plans that earlier versions stored ----


@pytest.mark.parametrize(
    ("told", "epochs"),
    [
        ("", 3),
        ("[fixed]\nepochs = 5", 5),
        ("[fixed]\nsteps = 50", 3),
        ("[fixed]\nsteps = 50\nepochs = 2", 2),  # it was asked for once, and is no longer refused
        ("[fixed]\nuntil_top1 = 60", None),  # what trial.make fills in
        ("[run]\nepochs = 4", 4),
    ],
)
def test_an_earlier_version_measured_whole_epochs_unasked(told: str, epochs: int | None) -> None:
    """Its stored plans don't say by which protocol."""
    text = f"name = 'x'\n{told}\n[plan]\ndevice = 'cuda'\n"
    earlier = parse_experiment(text, "x")
    assert earlier.fixed.get("epochs") == epochs
    assert trial.make_trial(earlier.fixed).epochs == (epochs or MOST_EPOCHS)


def test_axes_and_jobs_of_an_earlier_plan_say_themselves_how_many_epochs() -> None:
    axis = parse_experiment("name = 'x'\n[axes]\nepochs = [2, 5]\n[plan]\n", "x")
    assert "epochs" not in axis.fixed
    jobs = "[[group]]\njobs = [{ seed = 1, epochs = 9 }, { seed = 2 }]\n"
    assert parse_experiment(f"name = 'x'\n{jobs}[plan]\n", "x").fixed == {"epochs": 3}


def test_a_plan_that_says_its_protocol_means_what_it_says() -> None:
    for resolved in ("", "[plan]\nprotocol = 'steady'\n", "[plan]\nprotocol = 'epochs'\n"):
        assert parse_experiment(f"name = 'x'\n[fixed]\nsteps = 5\n{resolved}", "x").fixed == {"steps": 5}


def test_a_file_that_can_not_be_read(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "gone.toml"):
        with pytest.raises(UsageError, match="between several values of an option stand commas"):
            read_experiment_file(path)
    (tmp_path / "latin.toml").write_bytes(b"name = '\xe9'")
    with pytest.raises(UsageError, match=r"latin\.toml is no text in UTF-8; save it as one$"):
        read_experiment_file(tmp_path / "latin.toml")


# ---- options ----


def test_options_beat_the_file() -> None:
    given = ExperimentOptions(
        fields={"batch_size": "8,4", "model": "mlp", "epochs": "2", "input_size": "28"},
        repeats=5,
        timeout="90s",
        excludes=("batch-size=16,workers=auto",),
    )
    found = apply_options(parse_experiment(WHOLE, "x"), given)
    assert (found.repeats, found.timeout_s) == (5, 90.0)
    assert found.excludes == ({"batch_size": 32, "input_size": 28}, {"batch_size": 16, "workers": None})
    assert found.fixed["model"] == "mlp"
    assert found.fixed["epochs"] == 2
    assert found.fixed["input_size"] == 28
    assert [axis.fields for axis in found.axes] == [("batch_size",), ("gpu_ids", "strategy")]
    assert found.axes[0].values == ((8,), (4,))


@pytest.mark.parametrize(
    ("before", "given", "left"),
    [
        ({"gpus": 4}, {"gpu_ids": "0+1"}, {"gpu_ids": (0, 1)}),
        ({"gpu_ids": (0, 1)}, {"gpus": "1"}, {"gpus": 1}),
        ({"batch_per_gpu": 16}, {"batch_size": "64"}, {"batch_size": 64}),
        ({"batch_size": 64}, {"lr": "0.1"}, {"batch_size": 64, "lr": 0.1}),
        ({"window": 3.0}, {"epochs": "2"}, {"epochs": 2}),
        ({"epochs": 2}, {"steps": "50"}, {"steps": 50}),
        ({"steps": 50}, {"until_top1": "60"}, {"until_top1": 60.0}),
        ({"until_top1": 60.0, "epochs": 9}, {"window": "3s"}, {"window": 3.0}),
        ({"epochs": 9}, {"until_top1": "60", "epochs": "7"}, {"until_top1": 60.0, "epochs": 7}),
    ],
)
def test_a_field_takes_its_rivals_place(
    before: dict[str, Any], given: dict[str, str], left: dict[str, Any]
) -> None:
    assert apply_options(base(fixed=before), options(**given)).fixed == left


def test_the_built_in_experiments_are_files_like_any_other_and_train_until_an_accuracy() -> None:
    for path in BUILTIN:
        built_in = read_experiment_file(path)
        assert built_in.name == "batch-size"
        found = apply_options(built_in, options(until_top1="60"))
        assert trial.make_trial(found.fixed).epochs == MOST_EPOCHS


def test_an_option_takes_its_field_out_of_a_zip() -> None:
    found = apply_options(parse_experiment(WHOLE, "x"), options(gpus="2"))
    assert found.fixed["gpus"] == 2
    assert found.axes[-1] == Axis(("strategy",), (("single",), ("ddp",)))


def test_a_zip_takes_the_place_of_axes_and_fixed_fields() -> None:
    found = apply_options(
        base(fixed={"lr": 0.5}, axes=(Axis(("batch_size",), ((1,), (2,))),)),
        options(zips=("batch-size, lr=16/0.1,32/0.2",)),
    )
    assert found.fixed == {}
    assert found.axes == (Axis(("batch_size", "lr"), ((16, 0.1), (32, 0.2))),)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (options(zips=("batch_size=16,32",)), "write two fields or more"),
        (options(zips=("batch_size,lr=16/0.1/3",)), "the values of one step with / between"),
        (options(zips=("batch_size,lr=16/x",)), "lr: 'x' is not a number"),
        (options(zips=("batch_size,rate=16/1",)), "unknown field 'rate'"),
        (options(zips=("lr,lr=1/2",)), "two fields or more"),
        (options(zips=("batch_size,lr=16/1",), lr="2"), "lr is given twice"),
        (options(batch_size="16", batch_per_gpu="8"), "batch_per_gpu is given beside batch_size"),
        (options(gpus="2", gpu_ids="0+1"), "gpu_ids is given beside gpus"),
        (options(epochs="2", window="3s"), "window is given beside epochs"),
        (options(excludes=("strategy",)), "'strategy' is not FIELD=VALUE"),
        (options(excludes=("batch_size=big",)), "'big' is not a whole number"),
        (ExperimentOptions(timeout="0"), "longer than 0"),
    ],
)
def test_wrong_options_are_refused(given: ExperimentOptions, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        apply_options(base(), given)
    assert says in str(caught.value)
