"""Writes the rows of logs.csv as gpubench records, so that `gpubench table` shows the published log.

    python results/titan-xp-2021/import_logs.py [FOLDER]

FOLDER is by default the one that this file lies in. Running it again changes nothing.
"""

from __future__ import annotations

import csv
import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpubench.analyze.predict import JobDemand, predict_slowdowns
from gpubench.core.prediction import NoPrediction, PredictedGroup, classify_overlap, compute_overlap_gain
from gpubench.plan.experiment import Axis, Experiment
from gpubench.plan.experiment_file import format_experiment
from gpubench.schema import catalog, trial
from gpubench.schema.record import Record

HERE = Path(__file__).parent
SOURCE = "published log"
DATA = "unpublished"
FINGERPRINT = "published-log-2021"
"""Stands for the content of images that the log neither describes nor counts (hence the zeros)."""

FACTS = {"name": DATA, "kind": "folder", "fingerprint": FINGERPRINT}
COUNTS = {"train_images": 0, "val_images": 0, "num_classes": 0}
RESOLVED = {"device": "cuda", "data": {DATA: {**FACTS, **COUNTS}}}
"""What a stored plan keeps of the data that its trials' ids rest on."""

EPOCHS = 3
"""Part of the ids, as it was the default when they were given."""

VARIANTS = {"v7": "crop-resize", "v11": "pre-resized"}
INFERRED = ("resnet34-4gpu", "mobilenet_v2-4gpu", "mobilenet_v2-4gpu-together")
"""Tables on four GPUs, for which the log states neither variant nor strategy."""

MACHINE = "Titan Xp, 12196 MiB (nominal)"
TORCH = {"resnet34": "1.5.1"}

HOST_GPUS = 4

QUESTIONS = {
    "resnet34-4gpu": "Where does a larger batch of resnet34 stop paying on four GPUs?",
    "mobilenet_v2-4gpu": "Where does a larger batch of mobilenet_v2 stop paying on four GPUs?",
    "mobilenet_v2-gpus": "What does a larger batch of mobilenet_v2 cost on one GPU, and on two?",
    "mobilenet_v2-v7-v11": "What does moving crop and resize out of the epoch save?",
    "mobilenet_v3_large-v11": "What does a larger batch of mobilenet_v3_large cost on one GPU, and on two?",
}
"""Of the tables of trials alone. Jobs of a group need no plan: their records say what ran together."""

STATED = (
    "schema_version", "trial_id", "config_id", "attempt", "experiment", "group", "job", "status", "reason",
    "machine_key", "trial", "variant_definition", "data", "result", "missing", "provenance", "doubts", "environment",
    "started_at", "source",
)  # fmt: skip
"""What the log states of a record, so that a new field of Record changes no old file."""

Line = dict[str, str]


def main() -> None:
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)


def write(folder: Path) -> None:
    """All records and plans into `folder`. An existing file is overwritten with the same."""
    lines = read(HERE / "logs.csv")
    for record in records(lines):
        path = folder / "records" / record.trial_id[1:3] / f"{record.trial_id}-{record.attempt}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        stated = {name: value for name, value in record.to_stored().items() if name in STATED}
        path.write_text(json.dumps(stated, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / "plans").mkdir(exist_ok=True)
    for name in QUESTIONS:
        asked = experiment(name, [line for line in lines if line["table"] == name])
        (folder / "plans" / f"{name}.toml").write_text(format_experiment(asked, RESOLVED), encoding="utf-8")


def read(path: Path) -> list[Line]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def records(lines: Sequence[Line]) -> list[Record]:
    """One record a measurement. A measurement that two tables print is one: it belongs to the table that
    printed it first, and takes from the second what only that one tells."""
    found: dict[str, Line] = {}
    for line in lines:
        first = found.setdefault(identity(line)[0], line)
        if first is not line:
            found[identity(line)[0]] = agreed(first, line)
    return [record(line, lines) for line in found.values()]


def agreed(first: Line, second: Line) -> Line:
    """Both lines as one. Raises ValueError where they contradict each other."""
    for name in ("gpu_mem_mib", "cpu_util_pct", "epoch_time_s"):
        if first[name] and second[name] and first[name] != second[name]:
            raise ValueError(f"{first['table']} and {second['table']} give different {name}")
    return {name: value or second[name] for name, value in first.items()}


def fields(line: Line) -> dict[str, Any]:
    """The trial fields that the log states or implies. Several GPUs of one process: DataParallel."""
    gpus = int(line["gpus"])
    return {
        "model": line["model"],
        "input_size": int(line["input_size"]),
        "variant": VARIANTS[line["variant"]],
        "data": DATA,
        "batch_size": int(line["batch_size"]),
        "gpus": gpus,
        "strategy": "single" if gpus == 1 else "dp",
        "device": "cuda",
    }


def identity(line: Line) -> tuple[str, str]:
    """The trial's id and its configuration's id. Jobs of a group have ids of their own, with a j."""
    made = trial.make_trial({**fields(line), "epochs": EPOCHS})
    config = trial.derive_config_id(made, catalog.VARIANTS[made.variant].make_definition(), FINGERPRINT)
    if not line["colocated_with"]:
        return trial.derive_trial_id(config, made.seed, made.repeat), config
    place = f"{config}/{line['table']}/{job(line)}"
    return "j" + hashlib.sha256(place.encode()).hexdigest()[:12], config


def job(line: Line) -> str:
    """`32@1`, as the log names jobs: batch size, and GPUs or `same` for a shared one."""
    return f"{line['batch_size']}@{'same' if line['colocated_with'].endswith('@same') else line['gpus']}"


def record(line: Line, lines: Sequence[Line]) -> Record:
    trial_id, config_id = identity(line)
    stated = fields(line)
    figures: dict[str, Any] = {
        n: float(line[n]) for n in ("gpu_mem_mib", "cpu_util_pct", "epoch_time_s") if line[n]
    }
    figures |= {"gpu_mem_source": "published-log"} if "gpu_mem_mib" in figures else {}
    figures |= {"epoch_time_source": "published-log"} if "epoch_time_s" in figures else {}
    derived = together(line, lines) if line["colocated_with"] else {}
    return Record(
        schema_version=1,
        trial_id=trial_id,
        config_id=config_id,
        attempt=1,
        experiment=line["table"],
        group=line["table"] if line["colocated_with"] else None,
        job=job(line) if line["colocated_with"] else None,
        status="oom" if line["status"] == "oom" else "ok",
        reason="out of GPU memory, says the log" if line["status"] == "oom" else "",
        machine_key=MACHINE,
        trial=stated,
        variant_definition=catalog.VARIANTS[stated["variant"]].make_definition(),
        data={"fingerprint": FINGERPRINT},
        result={**figures, **derived},
        missing=missing(line, figures) | (unpredicted(line, lines) if line["colocated_with"] else {}),
        provenance={
            **dict.fromkeys(figures, SOURCE),
            **dict.fromkeys(derived, "worked out from the log's figures"),
        },
        doubts=doubts(line),
        environment={
            "gpu_name": line["gpu"],
            "gpu_count": int(line["gpus_available"]) if line["gpus_available"] else None,
            "torch": TORCH.get(line["model"]),
        },
        started_at=line["date"],
        source=SOURCE,
    )


def together(line: Line, lines: Sequence[Line]) -> dict[str, Any]:
    """What the log's own figures say of a job in a group: alone, slowdown, how much the jobs overlapped, and what
    the jobs alone foretold."""
    group = members(line, lines)
    gain = compute_overlap_gain([slowed(other, lines) for other in group])
    foretold = prediction(line, lines)
    derived = {
        "solo_epoch_time_s": solo(line, lines),
        "slowdown": slowed(line, lines),
        "overlap_gain": gain,
        "predicted_slowdown": None,
        "sharing": None if gain is None else classify_overlap(gain),
    }
    if isinstance(foretold, PredictedGroup):
        derived["predicted_slowdown"] = foretold.jobs[group.index(line)].slowdown
    return {name: value for name, value in derived.items() if value is not None}


def unpredicted(line: Line, lines: Sequence[Line]) -> dict[str, str]:
    """Why a job of a group has no prediction, or no verdict. What jobs share must be known for the former."""
    absent = {}
    foretold = prediction(line, lines)
    if isinstance(foretold, NoPrediction):
        resources = foretold.why[0].figures["resources"]
        what = " and ".join(f"{name} seconds an epoch" for name in map(str.upper, resources))
        absent["predicted_slowdown"] = f"the log does not state what the jobs share: {what}"
    if not line["epoch_time_s"]:
        said = f"the log gives no figures: {line['note'].partition(';')[0]}"
        absent |= dict.fromkeys(("slowdown", "overlap_gain", "sharing"), said)
    return absent


def prediction(line: Line, lines: Sequence[Line]) -> PredictedGroup | NoPrediction | None:
    """What the group's jobs alone say of the group. The log's CPU shares are of the whole host: that is one CPU
    here. It does not say how busy a GPU was."""
    group = members(line, lines)
    placed = places(group)
    solos = [alone(other, lines) for other in group]
    demands = [demand(found, gpus) for found, gpus in zip(solos, placed, strict=True) if found]
    known = {str(number): needs for number, needs in enumerate(demands) if needs is not None}
    return predict_slowdowns(line["table"], known) if len(known) == len(group) else None


def demand(line: Line, gpus: tuple[int, ...]) -> JobDemand | None:
    """What an epoch of a trial alone takes: CPU share × epoch time, in s of the whole host."""
    time, share = (float(line[n]) if line[n] else None for n in ("epoch_time_s", "cpu_util_pct"))
    if not time:
        return None
    return JobDemand(
        epoch_time_s=time,
        cpu_s=time * share / 100 if share else None,
        gpu_s=None,
        gpus=gpus,
        cpus=1.0,
        cpu_ids=frozenset({0}),
    )


def places(group: Sequence[Line]) -> list[tuple[int, ...]]:
    """Which GPUs each job has: the first ones where all use the same, else each the next."""
    counts = [int(line["gpus"]) for line in group]
    apart = not any(line["colocated_with"].endswith("@same") for line in group) and sum(counts) <= HOST_GPUS
    starts = [sum(counts[:i]) if apart else 0 for i in range(len(counts))]
    return [tuple(range(start, start + count)) for start, count in zip(starts, counts, strict=True)]


def members(line: Line, lines: Sequence[Line]) -> list[Line]:
    """The lines of the jobs that ran together with this one, itself among them."""
    return [other for other in lines if other["table"] == line["table"]]


def slowed(line: Line, lines: Sequence[Line]) -> float | None:
    alone_s = solo(line, lines)
    return float(line["epoch_time_s"]) / alone_s if line["epoch_time_s"] and alone_s else None


def solo(line: Line, lines: Sequence[Line]) -> float | None:
    """Epoch time in s of the same configuration alone."""
    found = alone(line, lines)
    return float(found["epoch_time_s"]) if found and found["epoch_time_s"] else None


def alone(line: Line, lines: Sequence[Line]) -> Line | None:
    """The line of this line's configuration alone, with all that the log's tables say of it."""
    config = identity(line)[1]
    found: Line | None = None
    for other in lines:
        if not other["colocated_with"] and identity(other)[1] == config:
            found = agreed(found, other) if found else other
    return found


def missing(line: Line, figures: dict[str, Any]) -> dict[str, str]:
    why = "ran out of memory" if line["status"] == "oom" else "the log does not state it"
    absent = {name: why for name in ("gpu_mem_mib", "cpu_util_pct", "epoch_time_s") if name not in figures}
    absent |= {"epoch_time_s": line["note"].partition(";")[0]} if line["note"] else {}
    return absent | dict.fromkeys(("precision", "images_per_epoch", "top1_pct"), "the log does not state it")


def doubts(line: Line) -> dict[str, str]:
    found = {}
    if line["table"] in INFERRED:
        found["inferred"] = "the log states neither variant nor strategy; crop-resize and dp are inferred"
    elif int(line["gpus"]) > 1:
        found["inferred"] = "the log does not state the strategy; dp is inferred"
    if line["note"]:
        found["in-words"] = f"the log says this without figures: {line['note']}"
    return found


def experiment(name: str, lines: Sequence[Line]) -> Experiment:
    """The experiment that would ask a table's question again: fields that move together are one axis."""
    rows = [fields(line) for line in lines]
    values = {field: tuple(dict.fromkeys(row[field] for row in rows)) for field in rows[0]}
    moving = tuple(f for f, found in values.items() if len(found) > 1 and f != "variant")
    together = tuple(dict.fromkeys(tuple(row[field] for field in moving) for row in rows))
    variants = (
        (Axis(("variant",), tuple((v,) for v in values["variant"])),) if len(values["variant"]) > 1 else ()
    )
    return Experiment(
        name=name,
        question=QUESTIONS[name],
        fixed={field: found[0] for field, found in values.items() if len(found) == 1},
        axes=(*variants, Axis(moving, together)),
        variants=catalog.VARIANTS,
    )


if __name__ == "__main__":
    main()
