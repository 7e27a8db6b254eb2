"""210 synthetic results folders, written as plain files without gpubench: 21 families of ten."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from records import (
    A100,
    CPU_ONLY,
    H100,
    H200,
    NETWORKS,
    ODD_TEXTS,
    SPEED,
    VARIANTS,
    Fields,
    Folder,
    Machine,
    round_off,
)

EACH = 10
"""Folders of a family."""


def draw_sizes(folder: Folder, most: int = 6, fewest: int = 1) -> list[int]:
    """Batch sizes."""
    first = folder.draw.whole(2, 6)
    return [2 ** (first + step) for step in range(folder.draw.whole(fewest, most))]


def sweep(folder: Folder, trials: Sequence[Fields], rounds: int = 1, gaps: float = 0.0) -> None:
    """All trials, round by round. One that ended badly goes through no further round; `gaps`: share of further rounds
    that were not measured."""
    dead: set[str] = set()
    for round_ in range(1, rounds + 1):
        for trial in trials:
            trial_id = folder.hash_ids(trial)[1]
            if trial_id in dead or (round_ > 1 and folder.draw.is_one_of(gaps)):
                continue
            record = folder.run_alone(trial, round_)
            if record["status"] != "ok" and (round_ == 1 or folder.draw.is_one_of(0.5)):
                dead.add(trial_id)
            if round_ == 1 and record["status"] in ("failed", "timeout") and folder.draw.is_one_of(0.3):
                folder.run_alone(trial, status="ok")  # asked for again
                dead.discard(trial_id)


def ladders(folder: Folder, number: int) -> None:
    """Batch sizes, one process each; every second folder with its plan, in which a size has no record yet."""
    folder.fields = {
        "precision": folder.draw.pick(tuple(SPEED)),
        "epochs": folder.draw.whole(2, 6),
        "model": folder.draw.pick(("mobilenet_v2", "resnet50", "vgg16")),
    }
    sizes = draw_sizes(folder, fewest=4 + (number == 5)) if number else [64]
    folder.machine = H200 if number == 5 else folder.machine
    variants = [folder.draw.pick(tuple(VARIANTS))] if number % 3 else [*VARIANTS][number // 3 :]
    trials = [folder.make_trial(batch_size=size, variant=variant) for variant in variants for size in sizes]
    if number % 2:
        axes = {"variant": variants, "batch_size": sizes}
        folder.store_plan(axes=axes, question="Where does a larger batch stop paying?")
    over = False
    for place, trial in enumerate(trials):
        over = over and number % 2 == 1 and place % len(sizes) > 0
        if not over and not (number == 5 and place == 1):
            over = folder.run_alone(trial)["status"] == "oom"


def ladders_in_rounds(folder: Folder, number: int) -> None:
    """Batch sizes in two to five rounds, some of which lack a size."""
    folder.fields = {"variant": folder.draw.pick(("synthetic", "pre-resized", "gpu-augment")), "epochs": 3}
    folder.fields["model"] = folder.draw.pick(("mobilenet_v2", "resnet18", "resnet50"))
    rounds = 2 + number % 4
    sizes = draw_sizes(folder, fewest=2, most=min(6, 36 // rounds))
    if number % 2:
        folder.store_plan(axes={"batch_size": sizes}, rounds=rounds, run={"rounds": rounds})
    sweep(folder, [folder.make_trial(batch_size=size) for size in sizes], rounds, 0.2 if number > 6 else 0.0)


def repeats(folder: Folder, number: int) -> None:
    """Batch sizes in two to five repeats, each with a seed of its own."""
    folder.fields = {"variant": "pre-resized", "epochs": folder.draw.whole(2, 4), "precision": "bf16"}
    folder.has_trouble = number % 2 == 0
    count, sizes = 2 + number % 4, draw_sizes(folder, most=4)
    if number % 3:
        folder.store_plan(axes={"batch_size": sizes}, run={"repeats": count})
    sweep(
        folder,
        [folder.make_trial(batch_size=size, repeat=repeat) for repeat in range(count) for size in sizes],
    )


def variants(folder: Folder, number: int) -> None:
    """Ways to feed the same images."""
    folder.fields = {"model": folder.draw.pick(("mobilenet_v2", "resnet18")), "epochs": 3, "workers": 8}
    names = list(VARIANTS)[number % 2 : 2 + number % 4]
    sizes, rounds = draw_sizes(folder, most=3), folder.draw.whole(1, 5)
    rounds = min(rounds, 40 // (len(names) * len(sizes)))
    if number % 2:
        folder.store_plan(axes={"variant": names, "batch_size": sizes}, rounds=rounds)
    sweep(
        folder, [folder.make_trial(variant=name, batch_size=size) for name in names for size in sizes], rounds
    )


def strategies(folder: Folder, number: int) -> None:
    """One global batch on ever more GPUs, under several strategies."""
    folder.machine = folder.draw.pick((H200, H100))
    folder.fields = {
        "model": folder.draw.pick(("mobilenet_v2", "resnet50")),
        "variant": "synthetic",
        "epochs": 2,
    }
    names = ["single", "ddp", "dp", "fsdp", "local"][: 2 + number % 4]
    counts = [1, 2, 4][: 2 + number % 2]
    sizes, rounds = ([128], [64, 256])[number % 3 == 0], folder.draw.whole(2 - number % 2, 4)
    # Version 0.1.0 divides by zero where several processes of `ddp` ran on one GPU, too.
    if number % 2:
        axes = {"strategy": names, "gpus": counts, "batch_size": sizes}
        folder.store_plan(axes=axes, exclude=[{"strategy": "ddp", "gpus": 1}], rounds=rounds)
    trials = [
        folder.make_trial(strategy=name, gpus=count, batch_size=size)
        for name in names
        for count in counts
        for size in sizes
        if (count == 1) == (name == "single")
    ]
    sweep(folder, trials, min(rounds, 40 // len(trials)))


def weak_scaling(folder: Folder, number: int) -> None:
    """One batch a GPU on ever more of them, and the global batch beside it."""
    folder.machine = folder.draw.pick((H200, H100))
    folder.fields = {"model": "resnet18", "variant": folder.draw.pick(("synthetic", "cached")), "epochs": 4}
    rounds, each = 2 + number % 4, folder.draw.pick((32, 64))
    trials = [folder.make_trial(gpus=count, batch_size=each * count) for count in (1, 2, 4)]
    trials += [folder.make_trial(gpus=count, batch_size=each * 4) for count in (1, 2)] if number % 2 else []
    if number % 3:
        table = {"gpus": [t["gpus"] for t in trials], "batch_size": [t["batch_size"] for t in trials]}
        folder.store_plan(zip=[table], rounds=rounds)
    sweep(folder, trials, rounds)


def ways(folder: Folder, number: int) -> None:
    """Precisions, executions, memory formats, optimizers."""
    folder.fields = {"model": "resnet50", "variant": "synthetic", "epochs": 3}
    axes: Fields = [
        {"precision": ["fp32", "tf32", "bf16", "fp16"]},
        {"execution": ["eager", "compile", "graph"], "precision": ["fp32", "bf16"]},
        {"memory_format": ["channels_last", "contiguous"], "batch_size": [32, 128]},
        {"optimizer": ["sgd", "adam", "adagrad"]},
        {"cudnn_benchmark": [False, True], "batch_size": [16, 64]},
    ][number % 5]  # type: ignore[assignment]
    (first, some), *rest = axes.items()
    second, others = rest[0] if rest else ("prefetch", [2])
    trials = [folder.make_trial(**{first: value, second: other}) for value in some for other in others]
    if number % 2:
        folder.store_plan(axes=axes, rounds=5)
    sweep(folder, trials, folder.draw.whole(1, 5), 0.1 if number > 7 else 0.0)


def copies(folder: Folder, number: int) -> None:
    """One to three equal jobs on one GPU."""
    size = folder.draw.pick((16, 64, 256))
    folder.fields = {
        "batch_size": size,
        "cpus": 8,
        "workers": 8,
        "variant": "pre-resized",
        "epochs": 4,
        "gpus": 1,
    }
    rounds, counts = 1 + number % 5, [1, 2, 3]
    folder.between = folder.draw.pick((0.001, 0.004, 0.015))
    if number % 2:
        folder.store_plan(axes={"copies": counts}, rounds=rounds)
    for round_ in range(1, rounds + 1):
        folder.run_alone(folder.make_trial(copies=1), round_, status="ok")
        for count in counts[1:]:
            bad = folder.draw_trouble(0.3)
            status = folder.draw.pick(("oom", "failed")) if bad else "ok"
            folder.run_together(f"{count} copies", [folder.make_trial(copies=count)] * count, round_, status)


def different_jobs(folder: Folder, number: int) -> None:
    """Two unlike jobs on one GPU, with their trials alone."""
    folder.fields = {"variant": "synthetic", "epochs": 4, "cpus": 8, "workers": 0, "gpus": 1}
    every = ({"batch_size": 16}, {"batch_size": 64, "model": "resnet50"}, {"batch_size": 256})
    named = [("small and large", every[:2]), ("large and largest", every[1:])][: 1 + number % 2]
    rounds = 1 + number // 2 % 5
    if number % 3:
        folder.store_plan(group=[{"name": name, "jobs": list(jobs)} for name, jobs in named], rounds=rounds)
    for round_ in range(1, rounds + 1):
        for job in every[: 1 + len(named)]:
            if not (number == 8 and round_ == 2):
                folder.run_alone(folder.make_trial(**job), round_, status="ok")
        for name, jobs in named:
            folder.run_together(name, [folder.make_trial(**job) for job in jobs], round_)


def jobs_on_several_gpus(folder: Folder, number: int) -> None:
    """Three jobs on all GPUs, and on GPUs of their own."""
    folder.machine = folder.draw.pick((H200, H100))
    folder.fields = {"cpus": 12, "workers": 12, "epochs": folder.draw.whole(2, 5), "variant": "pre-resized"}
    every = [{"batch_size": size, "gpus": 4} for size in (32, 64, 128)]
    apart = [
        {"batch_size": 32, "gpu_ids": [0]},
        {"batch_size": 64, "gpu_ids": [1]},
        {"batch_size": 128, "gpu_ids": [2, 3]},
    ]
    named = {"three jobs on all four GPUs": every, "three jobs on GPUs of their own": apart}
    rounds = 1 + number % 4
    if number % 2:
        folder.store_plan(group=[{"name": name, "jobs": jobs} for name, jobs in named.items()], rounds=rounds)
    for round_ in range(1, rounds + 1):
        for name, jobs in named.items():
            trials = [folder.make_trial(**job) for job in jobs]
            for trial in trials:
                folder.run_alone(folder.make_baseline(trial), round_, status="ok")
            if not folder.draw_trouble(0.3):
                folder.run_together(name, trials, round_)


def network_sizes(folder: Folder, number: int) -> None:
    """From what size of network two GPUs pay."""
    folder.machine = folder.draw.pick((H200, H100, A100))
    folder.fields = {
        "variant": "synthetic",
        "batch_size": 256,
        "precision": "bf16",
        "epochs": 2,
        "num_classes": 10,
    }
    names = list(NETWORKS)[number % 3 : 5 + number % 4]
    rounds = min(1 + number % 5, 40 // (2 * len(names)))
    if number % 2:
        folder.store_plan(
            axes={"gpus": [1, 2]}, zip=[{"model": names, "width": [1.0] * len(names)}], rounds=rounds
        )
    sweep(folder, [folder.make_trial(model=name, gpus=count) for name in names for count in (1, 2)], rounds)


def until_top1(folder: Folder, number: int) -> None:
    """Trainings until an accuracy is reached, or not."""
    folder.has_trouble = False
    folder.fields = {
        "variant": "gpu-augment", "until_top1": folder.draw.pick((40.0, 60.0, 97.0)), "epochs": 12,
        "confirm_top1": number % 2 == 0, "precision": "bf16",
    }  # fmt: skip
    seeds = 1 + number % 4
    sizes = draw_sizes(folder, most=5, fewest=4 if seeds == 1 else 2)
    if number % 3:
        folder.store_plan(axes={"batch_size": sizes}, run={"repeats": seeds})
    sweep(
        folder,
        [folder.make_trial(batch_size=size, repeat=repeat) for repeat in range(seeds) for size in sizes],
    )


def accuracies(folder: Folder, number: int) -> None:
    """Top-1 of several seeds under several variants."""
    folder.has_trouble = number == 7
    folder.fields = {"epochs": 3, "batch_size": 64}
    seeds, names = 2 + number % 5, ["crop-resize", "pre-resized", "gpu-augment"][: 2 + number % 2]
    if number % 2:
        folder.store_plan(axes={"variant": names}, run={"repeats": seeds})
    sweep(
        folder, [folder.make_trial(variant=name, repeat=repeat) for repeat in range(seeds) for name in names]
    )


def windows_of_steps(folder: Folder, number: int) -> None:
    """Epoch times that are extrapolated from steps, and whole epochs beside them."""
    folder.fields = {
        "variant": folder.draw.pick(("synthetic", "pre-resized")),
        "epochs": 3,
        "warmup_epochs": 1,
    }
    sizes, rounds = draw_sizes(folder, most=5, fewest=2), 1 + number % 3
    steps = [50] if number % 2 else [None, 50]
    trials = [folder.make_trial(batch_size=size, steps=count) for count in steps for size in sizes]
    if number in (1, 5, 9):
        folder.store_plan(axes={"batch_size": sizes}, fixed={"steps": 50}, rounds=rounds)
    sweep(folder, trials, min(rounds, 40 // len(trials)))


def missing_figures(folder: Folder, number: int) -> None:
    """Rows without memory, energy, images, CPU figures or models of GPUs; trials on a CPU."""
    on_cpu = number % 3 == 2
    folder.machine = CPU_ONLY if on_cpu else folder.machine
    folder.fields = {"model": folder.draw.pick(("lenet", "mlp")), "epochs": 4, "variant": "cached"}
    if on_cpu:
        folder.fields["device"] = "cpu"
        trials = [
            folder.make_trial(ranks=ranks, batch_size=size) for ranks in (1, 2, 4) for size in (64, 128)
        ]
    else:
        trials = [folder.make_trial(batch_size=size) for size in draw_sizes(folder, fewest=3)]
    gone = (
        "gpu_mem_mib", "energy_j", "images_per_epoch", "cpu_s_per_epoch", "epoch_time_s", "top1_pct", "images_per_s",
    )  # fmt: skip
    for round_ in range(1, 2 + number % 4):
        for trial in trials:
            record = folder.make_record(trial, "ok", round_, folder.machine)
            record["attempt"] = folder.next_attempt(record["trial_id"])
            for name in gone:
                if folder.draw.is_one_of(0.25):
                    record["result"].pop(name, None)
                    record["missing"][name] = "NVML record nothing"
            if folder.draw.is_one_of(0.2) and not on_cpu:
                record["result"]["gpu_mem_source"] = folder.draw.pick(("torch-reserved", "nvml-device-delta"))
            for part in ("provenance", "phases", "windows", "span", "doubts"):
                if folder.draw.is_one_of(0.2):
                    del record[part]
            if folder.draw.is_one_of(0.15):
                record["environment"] = {"gpu_name": folder.machine.gpu, "cpu_name": folder.machine.cpu}
            folder.store(record["trial_id"], record["attempt"], record)


def several_machines(folder: Folder, number: int) -> None:
    """One plan on machines of unlike models, or under several allowances of CPUs on one."""
    folder.fields = {"variant": "pre-resized", "epochs": 3, "model": "resnet18"}
    sizes, rounds = draw_sizes(folder, most=4, fewest=2), 1 + number % 3
    if number % 2:
        folder.store_plan(axes={"batch_size": sizes}, rounds=rounds)
    same = [Machine(cpus=64), Machine(cpus=16)]
    places = same if number % 4 > 1 else [folder.draw.pick((H200, H100)), A100]
    for place in places:
        for round_ in range(1, rounds + 1):
            for size in sizes:
                folder.run_alone(folder.make_trial(batch_size=size), round_, machine=place, status="ok")


def nodes(folder: Folder, number: int) -> None:
    """Rounds on several nodes of one kind, and trials over two of them."""
    folder.fields = {"variant": "synthetic", "epochs": 3, "model": "resnet18"}
    places = [Machine(host=f"n{place}", speed=1 + 0.05 * place) for place in range(1, 3 + number % 2)]
    sizes, rounds = draw_sizes(folder, most=3, fewest=2), 2 + number % 4
    for round_ in range(1, rounds + 1):
        for place, size in enumerate(sizes):
            at = places[(round_ + (place if number % 3 else 0)) % len(places)]
            folder.run_alone(folder.make_trial(batch_size=size), round_, machine=at, status="ok")
        if number > 5:
            both = [
                {
                    "node": f"n{rank + 1}", "first_rank": rank, "ranks": 1, "cpus": 64, "clock_offset_s": 0.1 * rank,
                    "clock_drift_s": 1e-05, "clock_error_s": 2e-05, "cpu_util_pct": 12.5, "cpu_s_per_epoch": 3.25,
                    "host_mem_mib": 2048.0, "gpu_uuids": [f"GPU-n{rank + 1}-0"],
                }
                for rank in range(2)
            ]  # fmt: skip
            trial = folder.make_trial(batch_size=sizes[-1], gpus=2, nodes=2)
            folder.run_alone(trial, round_, machine=Machine(host="n1 + n2", gpus=8), status="ok", nodes=both)


def damaged(folder: Folder, number: int) -> None:
    """Records and plans that can't be read, beside others; attempts that took the place of others."""
    folder.fields = {"variant": "cached", "epochs": 3}
    folder.has_trouble = True
    sizes = draw_sizes(folder, fewest=4)
    folder.store_plan(axes={"batch_size": sizes})
    sweep(folder, [folder.make_trial(batch_size=size) for size in sizes], 1 + number % 4)
    for size in sizes[:2]:
        folder.run_alone(folder.make_trial(batch_size=size), status="ok")
    paths = [path for path in folder.files if path.startswith("records/")]
    for path in sorted({folder.draw.pick(paths) for _ in range(2)}):
        text = folder.files[path]
        record = json.loads(text)
        record["result"]["epoch_time_s"] = "fast"
        folder.files[path] = [
            text[: len(text) // 2],
            "",
            json.dumps(record),
            text.replace('"schema_version": 1', '"schema_version": 99'),
            text.replace('"trial_id": "t', '"trial_id": "tx'),
            text.replace('"status": "ok"', '"status": "splendid"'),
            "[]",
            text.replace("{", '{\n "shoe_size": 42,', 1),
            text.replace('"attempt": 1,', '"attempt": -1,'),
            "\x00\x01" + text,
        ][number]
    folder.files["records/zz/t00000000zzzz-1.json"] = "{}\n"
    if number % 2:
        folder.files["plans/broken-00000000.toml"] = "name = 'broken'\n[fixed\n"
    else:
        folder.files["plans/strange-00000000.toml"] = 'name = "strange"\n[fixed]\nshoe_size = 42\n'


def odd_texts_and_numbers(folder: Folder, number: int) -> None:
    """Names that spreadsheets, Markdown and CSVs could misread; figures far from all others."""
    texts = [folder.draw.pick(ODD_TEXTS) for _ in range(2)]
    folder.experiment = ODD_TEXTS[number]
    name = texts[0] if number % 2 else "mine"
    folder.variants[name] = {"files": "resized", "cpu": [{"RandomHorizontalFlip": {"p": 0.25}}], "gpu": []}
    folder.fields = {"epochs": 5}
    folder.doubt_share = 0.8
    models = ["mobilenet_v2", "models/net v2.py:make"]
    trials = [
        folder.make_trial(variant=variant, model=model, batch_size=size)
        for variant in (name, "pre-resized")
        for model in models[: 1 + number % 2]
        for size in (16, 48, 300)
    ]
    sweep(folder, trials, 1 + number % 3)
    for path in [path for path in folder.files if path.startswith("records/")]:
        record = json.loads(folder.files[path])
        if folder.draw.is_one_of(0.4):
            record["reason"] = folder.draw.pick(ODD_TEXTS) if record["status"] != "ok" else ""
            record["environment"] |= {"os": texts[1], "slurm_job": "4711_2", "slurm_partition": texts[0]}
            record["missing"]["loss"] = texts[1]
        if folder.draw.is_one_of(0.3) and record["status"] == "ok":
            record["result"] |= folder.draw.pick(
                (
                    {"epoch_time_s": 3.2e-07, "images_per_s": 8e12},
                    {"epoch_time_s": 123456789012.5, "energy_j": 9.9e14},
                    {"gpu_mem_mib": 0.125, "loss": 3.4e38},
                    {"loss": -0.0, "top1_pct": 100.0, "data_wait_pct": -3.125},
                    {"gpu_mem_mib": 1e15, "cpu_s_per_epoch": 0.0},
                    {"epoch_time_s": 18.457, "energy_j": 0.0},
                )
            )
        folder.files[path] = json.dumps(record, indent=1, ensure_ascii=False) + "\n"


def capped(folder: Folder, number: int) -> None:
    """Cards that are smaller than the machine's, and doubts of many kinds."""
    folder.machine = folder.draw.pick((H200, H100))
    folder.fields = {"model": "resnet50", "variant": "synthetic", "epochs": 2 + number % 3}
    folder.doubt_share = 0.7
    caps = [None, 12288, 24576][number % 2 :]
    sizes, rounds = draw_sizes(folder, most=4, fewest=3), 1 + number % 3
    if number % 2:
        folder.store_plan(axes={"gpu_mem_cap_mib": caps, "batch_size": sizes}, rounds=rounds)
    trials = [folder.make_trial(gpu_mem_cap_mib=cap, batch_size=size) for cap in caps for size in sizes]
    sweep(folder, trials, min(rounds, 40 // len(trials)))


def mixtures(folder: Folder, number: int) -> None:
    """Two networks, two experiments, axes of numbers, parts of steps, what moves along with the batch size."""
    folder.fields = {"variant": "pre-resized", "epochs": 3}
    sizes, rounds = draw_sizes(folder, most=3, fewest=2), 2 + number % 3
    kind = number % 5
    if kind == 0:
        names = ["mobilenet_v2", "resnet18"]
        folder.store_plan(axes={"model": names, "batch_size": sizes}, rounds=rounds)
        sweep(
            folder,
            [folder.make_trial(model=name, batch_size=size) for name in names for size in sizes],
            rounds,
        )
    elif kind == 1:
        folder.store_plan(axes={"batch_size": sizes})
        sweep(folder, [folder.make_trial(batch_size=size) for size in sizes], rounds)
        folder.experiment = "another-precision"
        folder.store_plan(axes={"batch_size": [*sizes, 1024]}, fixed={"precision": "bf16"})
        sweep(folder, [folder.make_trial(batch_size=size, precision="bf16") for size in [*sizes, 1024]])
    elif kind == 2:
        axis = folder.draw.pick(("workers", "cpus", "prefetch"))
        values = [1, 4, 16] if axis == "cpus" else [1, 2, 4]
        folder.store_plan(axes={axis: values}, rounds=rounds)
        sweep(folder, [folder.make_trial(**{axis: value}) for value in values], rounds)
    elif kind == 3:
        folder.machine = H200
        folder.store_plan(
            axes={"gpus": [1, 2, 4]}, fixed={"breakdown": True, "batch_size": 128}, rounds=rounds
        )
        trials = [folder.make_trial(gpus=count, breakdown=True, batch_size=128) for count in (1, 2, 4)]
        sweep(folder, trials, rounds)
    else:
        rates = [round_off(0.01 * size) for size in sizes]
        folder.store_plan(zip=[{"batch_size": sizes, "lr": rates}], rounds=rounds)
        trials = [
            folder.make_trial(batch_size=size, lr=rate) for size, rate in zip(sizes, rates, strict=True)
        ]
        sweep(folder, trials, rounds)


FAMILIES: dict[str, Callable[[Folder, int], None]] = {
    "ladders": ladders, "ladders-in-rounds": ladders_in_rounds, "repeats": repeats, "variants": variants,
    "strategies": strategies, "weak-scaling": weak_scaling, "ways": ways, "copies": copies,
    "different-jobs": different_jobs, "jobs-on-several-gpus": jobs_on_several_gpus, "network-sizes": network_sizes,
    "until-top1": until_top1, "accuracies": accuracies, "windows-of-steps": windows_of_steps,
    "missing-figures": missing_figures, "several-machines": several_machines, "nodes": nodes, "damaged": damaged,
    "odd": odd_texts_and_numbers, "capped": capped, "mixtures": mixtures,
}  # fmt: skip


def list_folders(family: str) -> list[str]:
    """Those of a family's folders."""
    return [f"{family}-{number}" for number in range(EACH)]


@functools.lru_cache(maxsize=1)
def make_files(name: str) -> dict[str, str]:
    """A folder: path -> text."""
    family, _, number = name.rpartition("-")
    folder = Folder(name)
    FAMILIES[family](folder, int(number))
    return folder.files


def write(name: str, into: Path) -> None:
    """Writes a folder. `into` need not exist."""
    for path, text in make_files(name).items():
        file = into / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="")


def digest(name: str) -> str:
    """Of all that is written of a folder."""
    content = hashlib.sha256()
    for path, text in sorted(make_files(name).items()):
        content.update(f"{path}\0{text}\0".encode())
    return content.hexdigest()[:16]
