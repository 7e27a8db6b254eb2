"""What reads texts that others wrote: each reads a text and does with it what gpubench does, or refuses it."""

from __future__ import annotations

import dataclasses
import json
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from fakes import Given
from scripted import computer
from whole_conversations import RICH, STREAMED, WHOLE
from whole_records import GROUP, TEXT

from gpubench.basics.errors import UsageError
from gpubench.datasets.facts import NO_DATA
from gpubench.node.allocation import find_job_time_limit
from gpubench.node.launch.event_checker import InvalidEventError, parse_event
from gpubench.node.parts.files import encode_json_line, parse_answer
from gpubench.node.watch.meters.growing_csv import GrowingCsv
from gpubench.node.watch.meters.meter import Reading
from gpubench.node.watch.meters.over_http import parse_power
from gpubench.plan import experiment_file
from gpubench.plan.batch_script import BatchScript, split_sbatch_arguments
from gpubench.plan.batch_script import parse_time_limit as batch_seconds
from gpubench.plan.command_line import read_experiment
from gpubench.plan.experiment import Experiment
from gpubench.plan.options import apply_options
from gpubench.plan.plan import expand_experiment
from gpubench.plan.resolve import fill_command, resolve_unit_trials
from gpubench.plan.sweep_options import ExperimentOptions
from gpubench.results.csv_text import format_csv
from gpubench.results.plans import read_stored_plans
from gpubench.results.rows import list_epoch_rows, make_row
from gpubench.results.store import Results
from gpubench.results.stored_record import DamagedRecordError, read_attempt
from gpubench.schema.attempt import Attempt
from gpubench.schema.columns import COLUMNS, EPOCH_COLUMNS
from gpubench.schema.events import Hello, LeaderExit
from gpubench.schema.missing import Unmeasured
from gpubench.schema.order import parse_transforms
from gpubench.schema.samples import Samples
from gpubench.schema.watched import WatchedTrial
from gpubench.script.marks import MarkedEpochs


class RefusedError(Exception):
    """The text can't be used. The message is what its user is told."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """One reader."""

    whole: tuple[bytes, ...]
    """Texts that it reads."""
    read: Callable[[bytes, Path], None]
    """Reads a text, with a folder of its own to write into. Raises RefusedError."""


def _record(name: str) -> Callable[[bytes, Path], None]:
    def read_it(text: bytes, folder: Path) -> None:
        path = folder / name
        path.write_bytes(text)
        try:
            records = read_attempt(path)
        except DamagedRecordError as error:
            raise RefusedError(str(error)) from None
        names = [column.name for column in COLUMNS]
        format_csv(names, (operator.attrgetter(*names)(make_row(record)) for record in records))
        format_csv([column.name for column in EPOCH_COLUMNS], list_epoch_rows(records))

    return read_it


def _plan(text: bytes, folder: Path) -> None:
    results = Results(folder)
    path = results.make_plan_path("x", "01234567")
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text)
    found, problems = read_stored_plans(results, [])
    if problems:
        raise RefusedError(problems[0].removeprefix(str(folder)))
    for one in found:
        one.facts.format_stored_at_local()


def _plan_or_refuse(asked: Callable[[], Experiment]) -> None:
    """As a sweep begins, on a machine without a GPU where all images are."""
    try:
        plan = expand_experiment(asked(), device="cpu", sources=Given(), cpus=8)
        for variant in plan.experiment.own_variants.values():
            definition = variant.make_definition()
            parse_transforms(definition["cpu"], 224)
            parse_transforms(definition["gpu"], 224)
        for unit in plan.units:
            if any(job.trial.command is not None for job in unit.jobs):
                resolved = resolve_unit_trials(unit, computer(cpus=8), lambda _: NO_DATA, "cpu")
                assert all(
                    fill_command(job.trial, trial)
                    for job, trial in zip(unit.jobs, resolved, strict=True)
                    if job.trial.command is not None
                )
    except UsageError as error:
        raise RefusedError(str(error)) from None
    except OSError as error:  # as the command does: a name may be longer than a file's can be
        raise RefusedError(f"can't use it: {error.strerror}") from None


def _experiment(text: bytes, folder: Path) -> None:
    path = folder / "x.toml"
    path.write_bytes(text)
    _plan_or_refuse(lambda: experiment_file.read_experiment_file(path))


def _options(text: bytes, _: Path) -> None:
    """A line an option: those of `given` with their value; `word` is one of a command; all others are trial fields."""
    names = ("zip", "exclude", "job", "timeout", "word", "metric", "epoch_pattern", "until")
    given: dict[str, list[str]] = {name: [] for name in names}
    fields: dict[str, str] = {}
    for line in text.decode(errors="surrogateescape").split("\n"):
        name, _, value = line.partition(" ")
        if name in given:
            given[name].append(value)
        else:
            fields[name] = value
    options = ExperimentOptions(
        fields=fields,
        zips=tuple(given["zip"]),
        excludes=tuple(given["exclude"]),
        jobs=tuple(given["job"]),
        timeout=(given["timeout"] or [None])[-1],
        command=tuple(given["word"]),
        metrics=tuple(given["metric"]),
        epoch_pattern=(given["epoch_pattern"] or [None])[-1],
        until=(given["until"] or [None])[-1],
    )
    if options.command:
        _plan_or_refuse(lambda: read_experiment(None, options, has_gpu=False))
    else:
        _plan_or_refuse(lambda: apply_options(BUILT_IN, options))


def _marks(text: bytes, _: Path) -> None:
    """A line a message on the socket of `gpubench.epoch()`: nothing that comes there is an error."""
    marked = MarkedEpochs(ended=10.0)
    for line in text.split(b"\n"):
        began, mark = marked.ended, marked.read_mark(line, now=20.0)
        assert mark is None or began <= mark.t0 <= (mark.t1 or 20.0) <= 20.0


def _conversation(text: bytes, _: Path) -> None:
    """A line a message, all of one rank."""
    try:
        for line in text.split(b"\n"):
            parse_event(0, line)
    except InvalidEventError as error:
        raise RefusedError(str(error)) from None


def _growing_csv(text: bytes, folder: Path) -> None:
    """A header and lines that come after it."""
    path = folder / "power.csv"
    header, _, lines = text.partition(b"\n")
    path.write_bytes(header + b"\n")
    try:
        meter = GrowingCsv(str(path))
    except UsageError as error:
        raise RefusedError(str(error).replace(str(path), "power.csv")) from None
    meter.start()
    with path.open("ab") as file:
        file.write(lines)
    read = [item for item in meter.read_new() if isinstance(item, Reading)]
    assert all(math.isfinite(item.watts) for item in read)


def _meter_answer(text: bytes, _: Path) -> None:
    try:
        assert math.isfinite(parse_power(text, ""))
    except (Unmeasured, ValueError) as error:
        raise RefusedError(str(error)) from None


EXPERIMENT = b"""name = "many-parts"
question = "Does every part of a file come through?"
[fixed]
model = "mobilenet_v2"
optimizer = "momentum"
lr = 0.05
workers = "auto"
[axes]
batch_size = "16:128:x2"
precision = ["fp32", "bf16"]
[[zip]]
seed = [1, 2]
cpus = [1, 2]
[[exclude]]
batch_size = 128
precision = "bf16"
[[group]]
name = "two"
pairs = true
jobs = [{ variant = "mine" }, { variant = "synthetic", ranks = 2 }]
[variants.mine]
data = "procedural:64x32"
files = "resized"
cpu = ["RandomHorizontalFlip", { RandomCrop = { size = 28, padding = 2 } }]
gpu = [{ RandomHorizontalFlip = { p = 0.5 } }]
[run]
epochs = 3
repeats = 2
timeout = "10m"
bad_images = "skip"
"""
FACTS = {
    "stored_at": "2026-11-20T09:53:00.000001+00:00",
    "number": 3,
    "device": "cpu",
    "gpus": 0,
    "cpus": 8,
    "data": {
        name: {
            "name": name, "kind": "named", "root": "/data/x", "fingerprint": "f", "train_images": 64,
            "val_images": 16, "num_classes": 4, "size": 32,
        }
        for name in ("procedural", "procedural:64x32")
    },
    "models": {},
}  # fmt: skip
BUILT_IN = experiment_file.parse_experiment('name = "x"', "x.toml")


def _job(text: bytes, _: Path) -> None:
    """Words of `gpubench slurm`, then a time; and the same as squeue would say it."""
    words, _, time = text.decode(errors="surrogateescape").rpartition("\n")
    try:
        file, options = split_sbatch_arguments(words.split("\n"))
        batch_seconds(time)
    except UsageError as error:
        raise RefusedError(str(error)) from None
    script = dataclasses.replace(JOB, options=options, time=time, command=["gpubench", "sweep", file or ""])
    assert script.format_script().startswith("#!/bin/bash\n")


def _time_left(text: bytes, _: Path) -> None:
    """What squeue says of a job's time."""
    told = text.decode(errors="surrogateescape")
    try:
        found = find_job_time_limit({}, "7", ask=lambda _: told)
    except Unmeasured as why:
        raise RefusedError(str(why)) from None
    assert found is None or (found.left_s >= 0 and found.whole_s > 0)


JOB = BatchScript(name="fuzz", command=["sweep"], home="/", command_line="", cpus_per_task=1, time="1")
COMMAND_FILE = b"""name = "script"
[command]
run = ["python", "train.py", "--bs={batch_size}", "{depth}", "{{raw}}", "{gpus}", "{name}"]
epoch_pattern = 'Epoch (\\d+)'
metrics = ['acc=([\\d.]+)', 'last=Loss +(.+)']
until = "acc=60"
[axes]
batch_size = "16:64:x2"
depth = [2, 4]
[[zip]]
seed = [1, 2]
name = ["a b", "c"]
[[group]]
jobs = [{ depth = 3 }, { model = "lenet" }]
[run]
timeout = "24h"
"""
MARKS = (
    b'{"t0": 10.5}\n{"t0": 10.5, "t1": 12}\n{"t0": 12.25, "t1": 13.5}\n{"t0": 1e308, "t1": -1e308}\n[]\n\xff'
)
OPTIONS = (
    b"model lenet,mobilenet_v2\nbatch_size 16:64:16,128\nlr 0.1:0.3:0.1\ngpu_ids 0+1,2+3\ndevice cuda\n"
    b"exclude precision=bf16,seed=1\nzip seed,cpus=1/1,2/2\nprecision fp32,bf16\ntimeout 10m\n"
    b"gpu_mem_cap_mib 12GiB,800MiB",
    b"job batch_size=32,model=lenet\njob batch_size=64,ranks=2,workers=2\nepochs 3\noptimizer adam,sgd\ntimeout 2h",
    b"copies 1,2\nbatch_per_gpu 16:512:x2\nranks 1,2\nbreakdown yes,no\nworkers auto,2\nuntil_top1 50.5",
    b"word python\nword train.py\nword --bs={batch_size}\nword {depth}{{raw}}{lr}\nbatch_size 16,32\ndepth 1:3:1\n"
    b"lr 0.1\nmetric acc=([\\d.]+)\nmetric last=L +(.*?)$\nuntil acc=60\nepoch_pattern Epoch (\\d+)\ntimeout 1h",
)  # fmt: skip


def _messages(events: list[dict[str, object]]) -> bytes:
    return b"\n".join(json.dumps(event).encode() for event in events)


def _stored_plan(text: bytes) -> bytes:
    experiment = experiment_file.parse_experiment(text.decode(), "x.toml")
    return experiment_file.format_experiment(experiment, FACTS).encode()


def _part(text: bytes, _: Path) -> None:
    try:
        parse_answer(Attempt, text)
    except (ValueError, RecursionError) as error:
        raise RefusedError(str(error)) from None


SAMPLES = Samples()
SAMPLES.add_reading(1.0, "cpu_busy_s", 0.5)
SAMPLES.add_reading(2.0, "cpu_busy_s", 0.75)
WATCHED = WatchedTrial(
    samples=SAMPLES, gpus=["0"], uuids={"0": "GPU-1"}, baseline_mib={"0": 10.0}, cpus=2.0, cpu_metric="cpu_busy_s",
    trained_until=2.0, skipped=[(1.0, [3.0])],
)  # fmt: skip
HELLO = Hello(rank=0, pid=7, cuda=None, torch="2.0", decoder="torchcodec 0.10")
PART = encode_json_line(
    Attempt(
        events=[HELLO, LeaderExit(code=-9)], forced=("timeout", "did not end within 3 s"), launched=1.0, started=1.5,
        finished=2.0, watched=WATCHED,
    )
)  # fmt: skip
"""What a part of a trial on a further node writes."""


TARGETS: Mapping[str, Target] = {
    "record": Target(whole=(TEXT.encode(),), read=_record("t0123456789a-1.json")),
    "group record": Target(whole=(GROUP.encode(),), read=_record("g0123456789a-1.json")),
    "plan": Target(whole=(_stored_plan(EXPERIMENT), _stored_plan(COMMAND_FILE)), read=_plan),
    "experiment file": Target(whole=(EXPERIMENT, COMMAND_FILE), read=_experiment),
    "marks": Target(whole=(MARKS,), read=_marks),
    "options": Target(whole=OPTIONS, read=_options),
    "batch options": Target(
        whole=(b"--partition\ngpu\na.toml\n--gres=gpu:1\n-A\nme\n1-12:00:00",), read=_job
    ),
    "time left": Target(
        whole=(b"7|1-02:03:04|2-00:00:00", b"6|2:59|9:00\n7|2:59|UNLIMITED"), read=_time_left
    ),
    "conversation": Target(
        whole=(_messages(WHOLE), _messages(RICH), _messages(STREAMED)), read=_conversation
    ),
    "part": Target(whole=(PART,), read=_part),
    "CSV of a meter": Target(
        whole=(
            b"time,watts\n1,100\n2,120.5\n",
            b"Date and Time;Power (W)\n2026-03-01T12:30:00.5;123,4\n2026-03-01T12:30:01.5+01:00;-1\n",
        ),
        read=_growing_csv,
    ),
    "answer of a meter": Target(
        whole=(b"87.3", b'{"StatusSNS": {"ENERGY": {"Power": 87.3, "Voltage": 233}}}'), read=_meter_answer
    ),
}
"""What is read -> its reader."""
