"""Every way in which a stored record or plan is damaged here: by name, with what the reader says of it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

Damage = Callable[[Path, str], None]
"""Puts something damaged at a path in place of this text."""

HUGE = "1" + "0" * 400
NUMBERS = ("NaN", "Infinity", "-Infinity", "1e999", HUGE, '"1.5"', "true", "[1.5]", "{}")
"""JSON of what is no finite number of this world."""

FIELDS: dict[str, tuple[str, ...]] = {
    "schema_version": ('"1"', "null", "0", "1.5", HUGE),
    "trial_id": ("3", "null", '"t00000000ffff"', '"../../t"'),
    "config_id": ("null", "[]"),
    "experiment": ("null", "{}"),
    "attempt": ('"1"', "0", "-1", "2", "1.5", "1000000000", HUGE, "null", "true"),
    "status": ('"well"', "null", "7"),
    "reason": ("null", "[]"),
    "machine_key": ("null", "{}"),
    "started_at": ("1", "null"),
    "trial": ("null", "[]", '"x"'),
    "trial.batch_size": ('"16"', "0", "-1", "1.5", "true", "NaN", HUGE),
    "trial.model": ("7", "[]"),
    "trial.gpu_ids": ('"0"', "[-1]", '["0"]', f"[{HUGE}]"),
    "trial.lr": (*NUMBERS, "0"),
    "trial.precision": ('"fp7"', "16"),
    "trial.repeat": ("-1", "NaN"),
    "variant_definition": ("3", "[]"),
    "variant_definition.files": ("3",),
    "data": ("3", "[]"),
    "data.train_images": ('"x"', HUGE),
    "resolved": ("null", "[]", "3"),
    "resolved.workers": ('"4"', "-1", HUGE),
    "resolved.cpu_ids": ("3", '["a"]', "[-1]"),
    "result": ("null", "[]", '"x"'),
    "result.epoch_time_s": (*NUMBERS, "-1.5", "0", "1e16"),
    "result.gpu_mem_mib": (*NUMBERS, "-5"),
    "result.epochs_measured": ("1.5", "-1", '"3"'),
    "result.epoch_time_source": ("3", "[]"),
    "result.batch_size": ("-1",),
    "missing": ("[]", '{"top1_pct": 3}'),
    "provenance": ("[]", '{"power_w": 3}', '{"power_w": {"samples": "x"}}'),
    "epochs": ("{}", "[3]", "[{}]", '[{"epoch": 0, "warmup": 1, "epoch_time_s": 1.5}]',
               '[{"epoch": 0, "warmup": false, "epoch_time_s": null}]'),
    "windows": ("{}", "[3]", "[{}]", '[{"epoch": 0, "t0": 1.5}]', '[{"epoch": 0, "t0": "1.5", "t1": 2}]'),
    "span": ("3", "[]", '""', '{"launched": "x"}', '{"launched": NaN}', '{"launched": 1.5}'),
    "phases": ('{"start": null}', '{"start": 1e999}'),
    "together": ("3", '{"solos": 3}', '{"gain_range": [1]}', '{"resources": [{}]}'),
    "doubts": ("[]", '{"spread": 3}'),
    "environment": ("null", "[]", "3"),
    "environment.gpu_count": ('"4"', "-1", "1.5", "1000000000"),
    "environment.torch": ("7", "{}"),
    "surprise": ("1",),
}  # fmt: skip
"""Place in a record -> JSON that must not stand there."""

NEEDED = ("trial_id", "config_id", "experiment", "status", "machine_key", "trial")


def changed(text: str, place: str, value: str) -> str:
    """A record's text with this JSON at this place: `trial.batch_size`."""
    record = json.loads(text)
    held = record
    *way, last = place.split(".")
    for key in way:
        held = held[key]
    held[last] = "IT STANDS HERE"
    return json.dumps(record).replace('"IT STANDS HERE"', value)


def _field(place: str, value: str) -> Damage:
    return lambda path, text: _put(path, changed(text, place, value))


def _put(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _without(name: str) -> Damage:
    return lambda path, text: _put(path, json.dumps({k: v for k, v in json.loads(text).items() if k != name}))


def _sparse(path: Path, _: str) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


FILES: dict[str, Damage] = {
    "empty": lambda path, _: path.write_bytes(b"") and None,
    "half": lambda path, text: _put(path, text[: len(text) // 2]),
    "zeros": lambda path, text: _put(path, "\0" * len(text)),
    "binary": lambda path, _: path.write_bytes(bytes(range(256))) and None,
    "not-utf8": lambda path, text: path.write_bytes(text.replace("test", "t\xe4st").encode("latin-1") + b"\xff")
    and None,
    "byte-order-mark": lambda path, text: path.write_bytes(b"\xef\xbb\xbf" + text.encode()) and None,
    "deep": lambda path, _: _put(path, "[" * 100_000),
    "deep-inside": lambda path, text: _put(path, changed(text, "trial.model", "[" * 50_000 + "]" * 50_000)),
    "words-behind": lambda path, text: _put(path, text + "and so on"),
    "dangling-link": lambda path, _: path.symlink_to("nowhere"),
    "link-to-itself": lambda path, _: path.symlink_to(path.name),
    "link-to-a-device": lambda path, _: path.symlink_to("/dev/zero"),
    "fifo": lambda path, _: os.mkfifo(path),
    "folder": lambda path, _: path.mkdir(),
    "all-holes": _sparse,
}  # fmt: skip
"""What the file itself may be: of records and of plans."""

RECORDS: dict[str, Damage] = {
    **FILES,
    "null": lambda path, _: _put(path, "null"),
    "list": lambda path, _: _put(path, "[]"),
    "nothing-in-it": lambda path, _: _put(path, "{}"),
    "half-a-letter": lambda path, text: _put(path, changed(text, "reason", r'"\ud800"')),
    "newer": lambda path, text: _put(path, changed(text, "schema_version", "7")),
    **{f"without {name}": _without(name) for name in NEEDED},
    **{
        f"{place} {value[:12]}": _field(place, value)
        for place, values in FIELDS.items()
        for value in values
    },
}  # fmt: skip


def _replaced(old: str, new: str) -> Damage:
    def damage(path: Path, text: str) -> None:
        assert old in text, f"the plan has no {old}"
        _put(path, text.replace(old, new, 1))

    return damage


PLANS: dict[str, Damage] = {
    **{name: damage for name, damage in FILES.items() if name != "deep-inside"},
    "deep": lambda path, _: _put(path, "x = " + "[" * 100_000),
    "no name": _replaced('name = "', 'nmae = "'),
    "name 3": _replaced('name = "', 'name = 3 # "'),
    "repeats without end": _replaced("repeats = 1", "repeats = 1000000000000"),
    "repeats 0": _replaced("repeats = 1", "repeats = 0"),
    "timeout nan": _replaced("timeout = ", "timeout = nan # "),
    "axis without end": _replaced("[run]", '[[zip]]\nseed = "0:1000000000000:1"\n[run]'),
    "unknown model": _replaced('"lenet"', '"lonet"'),
    "batch nan": _replaced("[run]", "[[exclude]]\nbatch_size = [[nan]]\n[run]"),
    "plan 3": lambda path, text: _put(path, "plan = 3\n" + text.partition("[plan]")[0]),
    "device tpu": _replaced('device = "cpu"\ngpus', 'device = "tpu"\ngpus'),
    "gpus -1": _replaced("gpus = 0", "gpus = -1"),
    "cpus a billion": _replaced("cpus = ", "cpus = 1000000000 # "),
    "cpus nan": _replaced("cpus = ", "cpus = nan # "),
    "data 3": lambda path, text: _put(path, text.partition("[plan.data")[0] + "data = 3\n"),
    "images 3": lambda path, text: _put(path, text.partition("[plan.data")[0] + "[plan.data]\nprocedural = 3\n"),
    "other images": _replaced("[plan.data.procedural]", "[plan.data.other]"),
    "train_images x": _replaced("train_images = ", 'train_images = "x" # '),
    "num_classes inf": _replaced("num_classes = ", "num_classes = inf # "),
    "fingerprint 3": _replaced('fingerprint = "', 'fingerprint = 3 # "'),
    "models 3": _replaced("[plan.models]", "[plan.models]\nlenet = 3"),
}  # fmt: skip
