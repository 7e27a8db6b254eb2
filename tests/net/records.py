"""Records and plans in the stored format of version 0.1.0 (commit 1ae0951), made of drawn numbers without gpubench.

Ids are hashed here as that version hashed them. Every number comes from a seed and has at most nine digits, so that the
same bytes are written on every machine.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

Value = TypeVar("Value")
Fields = dict[str, Any]

# ---- what a trial is ----

TRIAL: Fields = {
    "model": "mobilenet_v2", "width": 1.0, "input_size": None, "num_classes": None, "variant": "crop-resize",
    "data": "procedural", "train_images": None, "batch_size": 64, "gpus": None, "gpu_ids": None, "ranks": None,
    "strategy": "single", "device": None, "precision": "fp32", "memory_format": "channels_last", "execution": "eager",
    "cudnn_benchmark": False, "optimizer": "sgd", "lr": 0.05, "accumulate": 1, "workers": None, "prefetch": 2,
    "cpus": None, "cpu_sharing": "shared", "copies": 1, "gpu_mem_cap_mib": None, "epochs": 3, "warmup_epochs": 1,
    "steps": None, "until_top1": None, "breakdown": False, "seed": 0, "repeat": 0, "sync_every": None,
    "confirm_top1": False, "nodes": 1,
}  # fmt: skip
"""Every field, in the order of records, with its default."""
ADDED: Fields = {
    "cpu_sharing": "shared", "until_top1": None, "breakdown": False, "sync_every": None, "confirm_top1": False,
    "nodes": 1,
}  # fmt: skip
"""Fields that older records lack, and that are in no id at their default."""
LR = {"sgd": 0.05, "momentum": 0.02, "adam": 0.001, "adagrad": 0.01}
FLIP: Fields = {"RandomHorizontalFlip": {}}
VARIANTS: dict[str, Fields] = {
    "crop-resize": {
        "files": "full",
        "cpu": [{"RandomResizedCrop": {"size": "$input_size", "antialias": True}}, FLIP],
        "gpu": [],
    },
    "pre-resized": {"files": "resized", "cpu": [FLIP], "gpu": []},
    "gpu-augment": {"files": "resized", "cpu": [], "gpu": [{"RandomResizedCrop": {}}, FLIP]},
    "cached": {"files": "decoded", "cpu": [FLIP], "gpu": []},
    "synthetic": {"files": "none", "cpu": [], "gpu": []},
}
FED = {"crop-resize": 254.0, "pre-resized": 600.0, "gpu-augment": 640.0, "cached": 4000.0, "synthetic": 1e9}
"""Images/s that a loader gives; of a variant of a user's own 500."""
NETWORKS = {
    "lenet": (0.061706, 0.00042), "mlp": (0.535818, 0.000535), "mobilenet_v3_small": (1.534, 0.0567),
    "mobilenet_v2": (2.244368, 0.299514752), "resnet18": (11.184, 1.814), "resnet34": (21.293, 3.664),
    "resnet50": (23.541, 4.089), "vgg16": (134.3, 15.47),
}  # fmt: skip
"""Parameters in millions, GMACs an image."""
SMALL = ("lenet", "mlp")
SPEED = {"fp32": 7000.0, "tf32": 15000.0, "bf16": 22000.0, "fp16": 20000.0}
"""GMACs a second."""
LAUNCH = {"eager": 1.0, "compile": 0.7, "graph": 0.25}
"""Share of the time in which a step's kernels are launched."""

PARTS = {"copy_ms": 0.04, "forward_ms": 0.3, "backward_ms": 0.5, "comm_ms": 0.1, "optimizer_ms": 0.06}
"""Of a step."""
CPU_MS = {"crop-resize": 2.6, "pre-resized": 1.1, "gpu-augment": 1.0, "cached": 0.3}
"""CPU time of an image."""
POWER_SOURCE = {"source": "integral of NVML's power samples", "period_s": 0.02, "samples": 99, "gaps": 0}

# ---- machines ----


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Where trials run."""

    gpu: str | None = "NVIDIA H200"
    mib: int = 143771
    gpus: int = 4
    cpu: str = "Intel(R) Xeon(R) Processor"
    cpus: int = 64
    host: str = "vm"
    speed: float = 1.0

    @property
    def key(self) -> str:
        return f"{self.gpu}, {self.mib} MiB" if self.gpu else self.cpu


H200 = Machine()
H100 = Machine(gpu="NVIDIA H100 80GB HBM3", mib=81559, gpus=8, cpus=96, host="node7", speed=0.8)
A100 = Machine(
    gpu="NVIDIA A100-SXM4-40GB", mib=40960, gpus=2, cpu="AMD EPYC 7742", cpus=16, host="a1", speed=0.5
)
DESK = Machine(
    gpu="NVIDIA GeForce RTX 4090", mib=24564, gpus=1, cpu="AMD Ryzen 9", cpus=24, host="desk", speed=0.6
)
CPU_ONLY = Machine(gpu=None, mib=0, gpus=0, cpu="AMD EPYC 9654", cpus=32, host="c3", speed=0.01)
MACHINES = (H200, H100, A100, DESK)

# ---- numbers ----


def round_off(value: float) -> float:
    """With nine digits: more would depend on the machine's mathematics."""
    return float(f"{value:.9g}")


class Draw:
    """Random numbers that every version of Python draws alike: of `random.Random` only what never changed is used."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def share(self) -> float:
        return self._random.random()

    def whole(self, low: int, high: int) -> int:
        """From low to high, both included."""
        return low + int(self.share() * (high - low + 1))

    def pick(self, options: Sequence[Value]) -> Value:
        return options[self.whole(0, len(options) - 1)]

    def is_one_of(self, share: float) -> bool:
        return self.share() < share

    def near(self, value: float, sd: float) -> float:
        """Lognormal around a value."""
        normal = math.sqrt(-2 * math.log(1 - self.share())) * math.cos(2 * math.pi * self.share())
        return value * math.exp(sd * normal)


# ---- ids, as version 0.1.0 makes them ----


def hash_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def hash_config(trial: Fields, fingerprint: str, definition: Fields) -> str:
    fields = {
        name: "auto" if value is None else value
        for name, value in trial.items()
        if name not in ("seed", "repeat") and not (name in ADDED and value == ADDED[name])
    }
    fields |= {"data": fingerprint, "variant": definition, "schema": 1}
    return "c" + hash_text(json.dumps(fields, sort_keys=True, separators=(",", ":")))


def hash_trial(config: str, trial: Fields) -> str:
    return "t" + hash_text(f"{config}/{trial['seed']}/{trial['repeat']}")


# ---- doubts and endings in words ----

DOUBTS = {
    "stranger": "another process used the GPU: python (4711), 2,048 MiB; run again when it is gone",
    "throttled": "the GPU's clocks were lowered for 12 % of the time by the power cap; compare only with rows that say "
    "the same, or look at cooling and power limit (nvidia-smi -q -d PERFORMANCE,POWER)",
    "spread": "epoch times spread by 9 % of their median; measure more epochs on a quieter host",
    "other-load": "other work used 17 % of the trial's CPUs meanwhile; run it again on a quiet host",
    "unbound-cpus": "the trial had 8 CPUs of its job, but could run on 64: it may have shared them with other jobs",
    "low-clock": "the GPU ran at 1,200 of 1,980 MHz; the reason may be heat, the power limit or locked clocks",
    "cpu-starved": "64 loader workers share 16 CPUs; use fewer workers or more CPUs",
    "short-warmup": "the first measured steps took 15 % longer than the last: the warm-up was too short; use --set "
    "warmup_epochs=2 with one epoch more",
    "short-epochs": "times and CPU use were measured over only 0.4 s; measure longer (--epochs, or more images)",
    "short-window": "energy was measured over 3.1 s: the driver's counter moves every 0.1 s",
    "solo-stale": "the same trial alone was measured under other versions of torch, driver or gpubench",
    "retries": "the allocator ran out of memory and had to free some 3 times, which takes time; use a smaller batch",
    "near-limit": "23,900 of 24,564 MiB were used: cuDNN may have had to take slower algorithms that need less",
    "gaps": "40 % of the samples of power_w are missing: the host was overloaded, or NVML failed",
    "energy": "the energy counter says 1,000 J, sampled power 1,200 J; measure longer epochs",
    "desktop": "a desktop draws on the GPU: Xorg; figures are steadier on a GPU without a screen",
    "diverged": "training diverged: its speed is that of a network that learnt nothing; use a smaller --set lr",
    "skipped-images": "3 of 10,240 images could not be decoded and were left out",
    "compile-cache": "the first steps compile the model",
    "dp": "DataParallel copies the model in every step, from one process; prefer ddp",
    "of-tomorrow": "a doubt that no version knows",
}
ENDINGS = {
    "oom": "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 23.99 GiB total)",
    "failed": "RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED",
    "timeout": "took longer than 10 min (--timeout)",
    "interrupted": "stopped by SIGTERM",
    "skipped": "job 1 of the group ran out of memory",
}
ALONE = (
    "solo_epoch_time_s", "slowdown", "overlap_gain", "predicted_slowdown", "sharing", "full_together", "group_id",
    "solo_id",
)  # fmt: skip
ODD_TEXTS = (
    "=cmd|'/c calc'!A1", "+1+1", "@here", "-2", 'say "hello", twice', "semi;colon", "tab\there", "two\nlines", "100 %",
    "größer → λ 画像", "it's | piped", "<b>&amp;</b>", "\\textbf{x}_$y$", " leading", "cr\rreturn",
)  # fmt: skip


# ---- a folder ----


class Folder:
    """A results folder while it is made: its files by their paths, and the noise of its machine."""

    def __init__(self, name: str) -> None:
        self.draw = draw = Draw(name)
        self.name = name.rpartition("-")[0]
        self.machine = draw.pick(MACHINES)
        self.files: dict[str, str] = {}
        self.variants = dict(VARIANTS)
        self.images = draw.pick((2560, 10240, 51200))
        self.between = draw.pick((0.001, 0.004, 0.015, 0.05, 0.15))
        """Standard deviations on the log scale: between processes, rounds, and epochs of a process."""
        self.drift = draw.pick((0.0, 0.0, 0.02, 0.08))
        self.within = draw.pick((0.0005, 0.003, 0.02, 0.06))
        self.crowding = draw.pick((0.03, 0.3, 0.7, 1.0, 1.4))
        """By how much jobs on one GPU hinder each other: 1 is one after the other."""
        self.is_early = draw.is_one_of(0.2)
        """Whether records lack what the first versions did not store."""
        self.has_trouble = draw.is_one_of(0.3)
        self.doubt_share = draw.pick((0.0, 0.1, 0.4))
        self.has_texts = draw.is_one_of(0.5)
        self.fields: Fields = {}
        """Of all its trials."""
        self.experiment = draw.pick(("batch-size", "try", "mobilenet_v2-1gpu"))
        self.clock = datetime.datetime(2026, 11, 20, 9, draw.whole(0, 59), 0)
        self.ended: dict[tuple[str, int], tuple[Fields, int]] = {}
        """By trial and round: the trial's record alone, and its attempt."""
        self._counts: dict[str, int] = {}
        self._rounds: dict[int, float] = {}
        self._planned = 0

    # -- trials --

    def make_trial(self, **fields: Any) -> Fields:
        """All fields of one."""
        given = self.fields | fields
        if given.get("gpu_ids") and not given.get("gpus"):
            given["gpus"] = len(given["gpu_ids"])
        if given.get("device") == "cpu":
            given.setdefault("gpus", 0)
        devices = given.get("gpus") or given.get("ranks") or given.get("nodes") or 1
        given.setdefault("strategy", "ddp" if devices > 1 else "single")
        given.setdefault("lr", LR[given.get("optimizer", "sgd")])
        if given["strategy"] == "local":
            given.setdefault("sync_every", 8)
        return TRIAL | given

    @property
    def facts(self) -> Fields:
        """Of its images."""
        number = self.images
        return {
            "name": "procedural", "kind": "folder", "fingerprint": hash_text(f"images {number}")[:16],
            "train_images": number, "val_images": 1024, "num_classes": 16,
        }  # fmt: skip

    def hash_ids(self, trial: Fields) -> tuple[str, str]:
        definition = self.variants[trial["variant"]]
        facts = self.facts
        fingerprint = facts["fingerprint"]
        if definition["files"] == "none":
            fingerprint = f"none, {facts['train_images']} images, {facts['num_classes']} classes, size None"
        config = hash_config(trial, fingerprint, definition)
        return config, hash_trial(config, trial)

    # -- what a process takes --

    def step_time(self, trial: Fields, machine: Machine) -> float:
        """The true time of a step."""
        params, gmacs = NETWORKS.get(trial["model"], NETWORKS["resnet18"])
        devices = trial["gpus"] or trial["ranks"] or 1
        batch, strategy = trial["batch_size"], trial["strategy"]
        work = batch / devices * gmacs * trial["width"] ** 2 / SPEED[trial["precision"]] / machine.speed
        launch = 0.004 * (1 + params / 20) * LAUNCH[trial["execution"]]
        shared = {
            "single": 0.0,
            "dp": 0.012 * devices,
            "ddp": 0.001 + params * 6e-5,
            "fsdp": 0.002 + params * 9e-5,
        }
        step = max(work, launch) + shared.get(strategy, 0.0005) * (devices > 1)
        return max(step, batch / (FED.get(trial["variant"], 500.0) * self.resolve(trial, machine)[1] + 1))

    def resolve(self, trial: Fields, machine: Machine) -> tuple[int, int]:
        """CPUs and loader workers."""
        cpus = trial["cpus"] or machine.cpus
        on_cpu = trial["device"] == "cpu"
        reads = self.variants[trial["variant"]]["files"] != "none"
        return cpus, trial["workers"] if trial["workers"] is not None else (
            cpus // (4 if on_cpu else 1)
        ) * reads

    def estimate_memory(self, trial: Fields) -> float:
        params, gmacs = NETWORKS.get(trial["model"], NETWORKS["resnet18"])
        share = 0.5 if trial["precision"] in ("bf16", "fp16") else 1.0
        return 1100 + 16 * params + trial["batch_size"] / (trial["gpus"] or 1) * share * (30 + 28 * gmacs)

    def draw_slowness(self, round_: int) -> float:
        """By how much one process of this round is slower than usual."""
        if round_ not in self._rounds:
            self._rounds[round_] = self.draw.near(1.0, self.drift)
        slow = 1.3 if self.draw.is_one_of(0.03) else 1.0
        return self.draw.near(self._rounds[round_] * slow, self.between)

    def draw_ending(self, trial: Fields, machine: Machine) -> str:
        """How an attempt at it ends."""
        limit = trial["gpu_mem_cap_mib"] or machine.mib
        if machine.gpu and trial["device"] != "cpu" and self.estimate_memory(trial) > limit:
            return "oom"
        return self.draw.pick(("failed", "timeout", "interrupted")) if self.draw_trouble(0.08) else "ok"

    def draw_trouble(self, share: float) -> bool:
        return self.has_trouble and self.draw.is_one_of(share)

    # -- records --

    def next_attempt(self, unit: str) -> int:
        self._counts[unit] = self._counts.get(unit, 0) + 1
        return self._counts[unit]

    def next_start(self) -> str:
        self.clock += datetime.timedelta(seconds=self.draw.whole(20, 400))
        return self.clock.strftime("%Y-%m-%d %H:%M:%S")

    def store(self, unit: str, attempt: int, record: Fields) -> str:
        path = f"records/{unit[1:3]}/{unit}-{attempt}.json"
        self.files[path] = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
        return path

    def make_record(
        self, trial: Fields, status: str, round_: int, machine: Machine, slower: float = 1.0, **changes: Any
    ) -> Fields:
        """A record of a trial, alone unless `changes` say otherwise."""
        config, own_id = self.hash_ids(trial)
        facts = self.facts
        on_cpu = trial["device"] == "cpu" or not machine.gpu
        cpus, workers = self.resolve(trial, machine)
        small = trial["model"] in SMALL
        gpu_ids = trial["gpu_ids"] or (None if on_cpu else list(range(trial["gpus"] or 1)))
        record: Fields = {
            "schema_version": 3 if "nodes" in changes else 2 if round_ > 1 else 1,
            "trial_id": own_id, "config_id": config, "attempt": 1,
            **({"round": round_} if round_ > 1 or not self.is_early else {}),
            "experiment": self.experiment, "group": None, "job": None, "group_id": None, "status": status,
            "reason": ENDINGS.get(status, ""), "machine_key": machine.cpu if on_cpu else machine.key,
            "trial": {
                name: value
                for name, value in trial.items()
                if not (self.is_early and name in ADDED and value == ADDED[name])
            },
            "variant_definition": self.variants[trial["variant"]],
            "data": {"fingerprint": "none"}
            if self.variants[trial["variant"]]["files"] == "none"
            else {**facts, "root": "/tmp/images", "size": None, "skipped_images": 0},
            "resolved": {
                "device": "cpu" if on_cpu else "cuda", "gpus": 0 if on_cpu else len(gpu_ids or ()), "gpu_ids": gpu_ids,
                "ranks": (trial["ranks"] or 1) if on_cpu else None, "cpus": cpus, "workers": workers,
                "input_size": trial["input_size"] or (28 if small else 224),
                "num_classes": trial["num_classes"] or facts["num_classes"],
                "train_images": trial["train_images"] or facts["train_images"],
                "gpu_uuids": [f"GPU-{machine.host}-{number}" for number in gpu_ids or ()],
                "cpu_ids": list(range(min(cpus, 8))),
            },
            "result": {}, "missing": {}, "provenance": {}, "epochs": [], "windows": [], "span": {}, "phases": {},
            "together": {}, "doubts": {},
            "environment": {
                "host": machine.host, "gpu_name": machine.gpu, "gpu_count": machine.gpus, "driver": "580.159.04",
                "torch": "2.11.0", "cpu_name": machine.cpu, "cpu_count": machine.cpus, "gpubench": "0.1.0",
                "mps": "off", "torchvision": "0.26.0", "python": "3.12.3", "os": "Ubuntu 24.04.3 LTS", "cuda": "13.0",
                **({} if self.is_early else {"gpu_reserved_mib": 615, "memory_limit_mib": 515000.0}),
            },
            "started_at": self.next_start(), "source": "measured",
        }  # fmt: skip
        if status == "ok":
            self._add_figures(record, trial, round_, machine, slower)
        if self.draw.is_one_of(self.doubt_share):
            for _ in range(self.draw.whole(1, 3)):
                code = self.draw.pick(tuple(DOUBTS))
                record["doubts"][code] = DOUBTS[code]
        return record | changes

    def _add_figures(
        self, record: Fields, trial: Fields, round_: int, machine: Machine, slower: float
    ) -> None:
        """Fills in what was measured."""
        draw = self.draw
        params, gmacs = NETWORKS.get(trial["model"], NETWORKS["resnet18"])
        devices = trial["gpus"] or trial["ranks"] or 1
        batch = trial["batch_size"]
        steps = max(1, record["resolved"]["train_images"] // batch)
        images = steps * batch
        step = self.step_time(trial, machine) * self.draw_slowness(round_) * slower
        fill = draw.near(0.004 if trial["variant"] == "synthetic" else 0.3, 0.3)
        by_steps = round_ > 1 or trial["steps"] is not None
        whole = 1 if by_steps else trial["epochs"] - trial["warmup_epochs"]
        power = (120 + 350 * draw.share()) * devices
        cpu_cost = CPU_MS.get(trial["variant"], 0.1)
        epochs, reached = [], False
        warm = 1 if by_steps else trial["warmup_epochs"]
        for number in range(warm + whole):
            is_warm = number < warm
            mean_step = step * draw.near(1.0, self.within) * (1.4 if is_warm else 1.0)
            took = round_off(steps * mean_step + fill)
            epoch: Fields = {
                "epoch": number, "warmup": is_warm, "epoch_time_s": took, "steps": steps, "images": images,
                "data_wait_s": round_off(fill * draw.near(1.1, 0.2)), "first_batch_s": round_off(fill),
            }  # fmt: skip
            if not self.is_early:
                even = 0 if steps < 20 else steps - 1
                epoch |= {
                    "steady_step_s": round_off(mean_step), "steady_steps": even, "steady_wait_s": 3e-06,
                    "tail_s": round_off(took - fill - steps * mean_step),
                }  # fmt: skip
            top1 = 100 * (1 - math.exp(-(number + 1) * 64 / (batch + 200))) * draw.near(1.0, 0.03)
            epoch |= {
                "train_loss": round_off(2.8 * math.exp(-0.2 * number) * draw.near(1.0, 0.02)),
                "top1_pct": round_off(min(99.0, top1)) if trial["until_top1"] else None,
                "cpu_s": round_off(draw.near(images * cpu_cost / 1000, 0.02)),
                "energy_j": round_off(power * took * draw.near(1.0, 0.01)) if machine.gpu else None,
            }  # fmt: skip
            if devices > 1 and trial["strategy"] != "dp" and not self.is_early:
                epoch["data_wait_s_by_rank"] = [round_off(fill * draw.near(1.0, 0.1)) for _ in range(devices)]
            epochs.append(epoch)
            if trial["until_top1"] and top1 >= trial["until_top1"] and number >= warm:
                reached = True
                break
        counted = [epoch for epoch in epochs if not epoch["warmup"]]
        times = [epoch["epoch_time_s"] for epoch in counted]
        middle = round_off(statistics.median(times))
        result: Fields = {
            "epoch_time_s": middle, "epoch_time_source": "extrapolated" if by_steps else "measured",
            "epochs_measured": None if by_steps else len(times), "epoch_time_iqr_s": None,
            "images_per_epoch": images, "images_per_s": round_off(images / middle),
            "data_wait_pct": round_off(100 * fill / middle), "first_batch_s": round_off(fill),
            "step_time_ms_p50": round_off(1000 * step),
            "step_time_ms_p95": round_off(1000 * step * draw.near(1.2, 0.05)),
            "params_m": params, "gmacs_per_image": gmacs, "cpu_util_pct": round_off(90 * draw.share()),
            "cpu_util_max_pct": 96.5, "cpu_util_trial_pct": round_off(60 * draw.share()),
            "cpu_s_per_epoch": round_off(statistics.median(epoch["cpu_s"] for epoch in counted)),
            "host_mem_mib": round_off(draw.near(2500, 0.1)),
        }  # fmt: skip
        missing = dict.fromkeys(ALONE, "the trial ran alone")
        missing |= {"copy_ms": "the parts of steps were not timed (--breakdown)"}
        if by_steps:
            missing["epochs_measured"] = missing["epoch_time_iqr_s"] = "steps were measured, not whole epochs"
        elif len(times) >= 3:
            low, _, high = statistics.quantiles(times, n=4, method="inclusive")
            result["epoch_time_iqr_s"] = round_off(high - low)
        else:
            missing["epoch_time_iqr_s"] = "fewer than 3 epochs were measured: they have no spread"
        if not self.is_early and steps >= 20:
            result["step_error_pct"] = round_off(100 * self.within * draw.near(0.3, 0.2))
        if machine.gpu and trial["device"] != "cpu":
            memory = round(self.estimate_memory(trial) * draw.near(1.0, 0.0004))
            counter = draw.is_one_of(0.8)
            result |= {
                "gpu_mem_mib": float(memory), "gpu_mem_source": "nvml-process",
                "gpu_mem_allocated_mib": round_off(memory * 0.78), "gpu_mem_reserved_mib": round(memory * 0.86) * 1.0,
                "gpu_alloc_retries": 3 if draw.is_one_of(0.03) else 0,
                "gpu_util_pct": round_off(60 + 39 * draw.share()), "gpu_util_max_pct": 99.0,
                "gpu_mem_util_pct": round_off(40 * draw.share()), "gpu_mem_util_max_pct": 52.0, "sm_clock_mhz": 1980.0,
                "temperature_c": float(draw.whole(35, 80)), "throttled_pct": 0.0, "power_w": round_off(power),
                "energy_j": round_off(statistics.median(epoch["energy_j"] for epoch in counted)),
                "energy_source": "nvml-counter" if counter else "nvml-power-integral",
                "energy_sampled_j": round_off(power * middle), "idle_power_w": 76.8 * devices,
                "gpu_busy_s_per_epoch": round_off(middle * (0.6 + 0.39 * draw.share()) * devices),
            }  # fmt: skip
            missing["throttle_reasons"] = "nothing lowered the clocks"
        if trial["until_top1"]:
            spent = [epoch["epoch_time_s"] for epoch in epochs]
            result["top1_pct"] = epochs[-1]["top1_pct"]
            if reached:
                result |= {
                    "epochs_to_top1": len(epochs), "time_to_top1_s": round_off(sum(spent)),
                    "energy_to_top1_j": round_off(sum(epoch["energy_j"] for epoch in epochs)),
                    "top1_crossing_s": round_off(sum(spent) - spent[-1] * draw.share()),
                    "top1_crossing": "confirmed" if trial["confirm_top1"] else "unconfirmed",
                }  # fmt: skip
            else:
                missing["time_to_top1_s"] = f"{trial['until_top1']} % were not reached"
        elif trial["variant"] != "synthetic" and round_ == 1 and trial["steps"] is None:
            result["top1_pct"] = round(1024 * min(0.99, draw.near(0.5, 0.015))) / 10.24
            result["loss"] = round_off(draw.near(1.2, 0.05))
        if devices > 1:
            result["comm_mib_per_step"] = round_off(params * 3.8147)
        if trial["breakdown"]:
            result |= {name: round_off(1000 * step * share) for name, share in PARTS.items()}
            cost = round_off(8 * draw.share() - 1)
            result |= {"comm_hidden_ms": 0.2, "comm_pct": 10.0, "breakdown_cost_pct": cost}
            result["slowest_rank"] = draw.whole(0, devices - 1)
        launched = round_off(1000 * draw.share())
        edge = launched + 3.5
        for epoch in epochs:
            record["windows"].append(
                {
                    "epoch": epoch["epoch"],
                    "t0": round_off(edge),
                    "t1": round_off(edge + epoch["epoch_time_s"]),
                }
            )
            edge += epoch["epoch_time_s"] + 0.01
        record["span"] = {"launched": launched, "finished": round_off(edge + 0.5)}
        wall = round_off(edge + 0.5 - launched)
        record["phases"] = {"start": 0.008, "context": 0.3, "first_step": 1.6, "wall": wall}
        record["provenance"] = {"power_w": POWER_SOURCE}
        record |= {"epochs": epochs, "result": result, "missing": missing}

    def run_alone(
        self,
        trial: Fields,
        round_: int = 1,
        *,
        status: str | None = None,
        machine: Machine | None = None,
        **changes: Any,
    ) -> Fields:
        """Stores an attempt at a trial alone."""
        machine = machine or self.machine
        record = self.make_record(
            trial, status or self.draw_ending(trial, machine), round_, machine, **changes
        )
        record["attempt"] = self.next_attempt(record["trial_id"])
        self.store(record["trial_id"], record["attempt"], record)
        if record["status"] == "ok":
            self.ended[record["trial_id"], round_] = record, record["attempt"]
        return record

    def run_together(self, name: str, trials: Sequence[Fields], round_: int = 1, status: str = "ok") -> None:
        """Stores an attempt at a group, after its trials alone: `status` of its first job."""
        ids = [self.hash_ids(trial) for trial in trials]
        group_config = "c" + hash_text("+".join(config for config, _ in ids))
        group_id = "g" + hash_text("+".join(job_trial for _, job_trial in ids))
        attempt, count = self.next_attempt(group_id), len(trials)
        solos = [self.make_baseline(trial) for trial in trials]
        known = [self.ended.get((self.hash_ids(solo)[1], round_)) for solo in solos]
        used = [set(trial["gpu_ids"] or range(trial["gpus"] or 1)) for trial in trials]
        jobs, rates = [], []
        common = self.draw_slowness(round_)
        for place, trial in enumerate(trials):
            beside = sum(bool(used[place] & other) for at, other in enumerate(used) if at != place)
            slower = common * (1 + self.crowding * beside + 0.05 * (count - 1 - beside))
            job_status = "skipped" if status != "ok" and place else status
            record = self.make_record(trial, job_status, round_, self.machine, slower)
            record |= {
                "trial_id": "j" + hash_text(f"{group_id}/{place}"),
                "config_id": "c" + hash_text(f"{group_config}/{place}"),
                "attempt": attempt, "group": name, "job": f"{place + 1} of {count}", "group_id": group_id,
                "started_at": jobs[0]["started_at"] if jobs else record["started_at"],
            }  # fmt: skip
            result = record["result"]
            solo = known[place]
            if job_status == "ok":
                for column in ("top1_pct", "loss"):
                    result.pop(column, None)
                    record["missing"][column] = "left to the same trial alone"
                result |= {"group_id": group_id, "solo_id": self.hash_ids(solos[place])[1]}
                if solo is not None:
                    time = solo[0]["result"]["epoch_time_s"]
                    slowdown = result["epoch_time_s"] / time
                    rates.append(1 / slowdown)
                    result |= {"solo_epoch_time_s": time, "slowdown": round_off(slowdown)}
                    result["predicted_slowdown"] = round_off(self.draw.near(1 + 0.6 * beside, 0.1))
                if beside:
                    record["doubts"]["shared-gpu"] = (
                        "GPU use, memory traffic and power are the GPU's, which is shared"
                    )
                if beside and self.draw.is_one_of(0.3):
                    record["doubts"]["beyond-turns"] = (
                        f"it took {result.get('slowdown', 2.0):.2f} times as long as alone, where {count} jobs one "
                        f"after the other would take {count}: they hinder each other"
                    )
            jobs.append(record)
        gain = round_off((sum(rates) - 1) / (count - 1)) if len(rates) == count else None
        word = None if gain is None else "parallel" if gain >= 0.9 else "partly parallel"
        cpu = [round_off(40 + 60 * self.draw.share()) for _ in trials]
        facts: Fields = {
            "jobs": count, "no_prediction": None,
            "solos": [solo and {"trial_id": solo[0]["trial_id"], "attempt": solo[1]} for solo in known],
            "gain_range": None if gain is None else [round_off(gain - 0.1), round_off(gain + 0.1)],
            "resources": [
                {
                    "name": "cpu", "column": "cpu_util_pct", "unit": "%", "alone": [30.0] * count, "together": cpu,
                    "full_alone": [False] * count, "full_together": max(cpu) > 95,
                },
                {
                    "name": "gpu", "column": "gpu_util_pct", "unit": "%", "alone": [None] + [70.0] * (count - 1),
                    "together": [98.5] * count, "full_alone": [False] * count, "full_together": True,
                },
            ],
        }  # fmt: skip
        for record in jobs:
            if record["status"] == "ok":
                record["result"] |= {"overlap_gain": gain, "sharing": word, "full_together": "gpu"}
                record["together"] = facts
        form = max(record["schema_version"] for record in jobs)
        group = {"schema_version": form, "group_id": group_id, "attempt": attempt, "jobs": jobs}
        self.store(group_id, attempt, group)

    @staticmethod
    def make_baseline(trial: Fields) -> Fields:
        """The trial that a job is compared with. Of jobs that name CPUs and workers nothing else differs."""
        return trial | {"copies": 1, "cpu_sharing": "shared"}

    # -- plans --

    def store_plan(self, *, rounds: int | None = None, **tables: Any) -> None:
        """Stores a plan: `fixed`, `axes`, `zip`, `group`, `exclude`, `run`, `question`."""
        self._planned += 1
        head = [f"name = {as_toml(self.experiment)}"]
        head += [f"question = {as_toml(tables.pop('question'))}"] if "question" in tables else []
        fixed = self.fields | tables.pop("fixed", {})
        parts = [("[fixed]", fixed), ("[axes]", tables.pop("axes", {}))]
        parts += [("[run]", {"repeats": 1, "timeout": 600.0} | tables.pop("run", {}))]
        for kind in ("zip", "exclude", "group"):
            parts += [(f"[[{kind}]]", table) for table in tables.pop(kind, ())]
        stamp: Fields = {"device": "cuda" if self.machine.gpu else "cpu", "cpus": self.machine.cpus}
        if not self.is_early:
            stored_at = f"2026-11-20T09:00:0{self._planned}.000000+00:00"
            stamp = {"stored_at": stored_at, "number": self._planned} | stamp
            stamp |= {"gpus": self.machine.gpus} | ({"rounds": rounds} if rounds else {})
        parts += [("[plan]", stamp), ("[plan.data.procedural]", self.facts), ("[plan.models]", {})]
        assert not tables
        for title, table in parts:
            if table or title == "[plan.models]":
                head += [
                    "",
                    title,
                    *(f"{as_toml_key(name)} = {as_toml(value)}" for name, value in table.items()),
                ]
        name = "".join(sign if sign.isalnum() or sign in "-_" else "_" for sign in self.experiment)
        self.files[f"plans/{name}-{hash_text(str(head))[:8]}.toml"] = "\n".join(head) + "\n"


def as_toml_key(name: str) -> str:
    return name if name.replace("_", "").isalnum() else json.dumps(name)


def as_toml(value: Any) -> str:
    """A value in TOML. Texts are JSON's, which TOML reads likewise."""
    if isinstance(value, Mapping):
        return (
            "{ " + ", ".join(f"{as_toml_key(name)} = {as_toml(item)}" for name, item in value.items()) + " }"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
