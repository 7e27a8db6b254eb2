"""Codes that records hold in place of sentences: why a column is empty, and where a figure comes from.

A sentence stands in a record as its code, or as a list of the code and the values in it. One that is not listed here,
because it quotes a driver or a model, stands there in its own words. Records of earlier versions hold sentences alone.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any

ENDED = "ended"
"""A column is empty as the trial did not end ok: the record's status and reason say why."""

REASONS: Mapping[str, str] = {
    "alone": "the trial ran alone",
    "no-breakdown": "the parts of steps were not timed (--breakdown)",
    "one-process": "one process: nothing is exchanged",
    "dp": "DataParallel's copies run inside forward and backward",
    "exchange-untold": "the strategy does not tell how much its ranks exchange",
    "exchange-unseen": "the strategy does not tell when its ranks exchange: that is in forward, backward or optimizer",
    "one-process-all-devices": "one process drives all devices: what these exchange is not told",
    "few-marked-steps": "too few steps to compare marked ones with plain ones",
    "no-slowest-rank": "the ranks' own work differs by less than {} % of a step",
    "no-target": "no accuracy was asked for (--until-top1)",
    "target-missed": "top-1 was {} % after {} {}, not {} %",
    "target-missed-diverged": "training diverged: top-1 was {} % after {} {}, not {} %",
    "energy-on-the-way": "the energy of an epoch on the way is not known",
    "no-gpu": "the trial uses no GPU",
    "no-epochs": "a steady rate was measured, not whole epochs",
    "steps": "steps were measured, not whole epochs",
    "rate": "a steady rate was measured: --epochs trains, and judges the network in the end",
    "empty-validation": "the validation split is empty",
    "no-validation": "synthetic images have no validation split",
    "first-round-only": "judged in the first round only",
    "few-epochs": "fewer than {} epochs were measured: they have no spread",
    "few-steps": "fewer than {} steady steps were measured",
    "one-epoch": "one epoch was measured",
    "diverged": "the loss is not a finite number: training diverged",
    "not-lowered": "nothing lowered the clocks",
    "shared-gpu-busy": "the GPU was shared: whose its busy time was is not told",
    "shared-gpu-energy": "the GPU was shared with other jobs of the group; see power_w, which is the whole GPU's",
    "shared-gpu-work": "the GPU was shared, and how much of its work was this job's is not known",
    "none-full": "none of the watched resources was full",
    "none-known-full": "no watched resource is known to have been full; GPU time can't tell",
    "no-solo": "the same trial alone has no figures here",
    "no-slowdown": "not all jobs have a slowdown: job {} of {} {}",
    "no-slowdown-solo": "not all jobs have a slowdown: the same trial alone has no figures here",
    "not-predicted": "not predicted",
    "left-to-solo": "left to the same trial alone, {}",
    "short-energy": "{} s were measured, and energy takes {} s or more (--window)",
    "energy-apart": "the energy counter says {} J an epoch, sampled power {} J: more than {} % apart",
    "counter-back": "the energy counter went backwards",
    "counter-still": "the energy counter stood still",
    "counter-not-read": "the energy counter was not read near the window's edges",
    "no-power": "the driver tells a power of 0 W",
    "no-idle-power": "power was not read before the sweep",
    "no-meter": "no such meter was asked for (--meter)",
    "shared-meter": "the meter shows all jobs of the group together; see {}",
    "few-readings": "the meter told {} readings while the trial ran, too few to tell its delay",
    "meter-apart": "the meter does not follow the load: that is too small to be seen, or elsewhere",
    "meter-rough": "the meter's delay is known within {} s, which changes its figure by {} %: give a longer --window",
    "meter-zero": "the meter tells a power of 0 W",
    "no-buffer": "the driver keeps no buffer of it",
    "buffer-empty": "the driver's buffer has no sample within the windows",
    "short-buffer": "{} s are too short for the driver's buffer",
    "short-window": "{} s of measured windows is too short for a sample",
    "no-sample": "no sample was taken within the measured windows",
    "no-sample-at-edge": "no sample on either side of the window's edge",
    "gap-at-edge": "no sample for {} s around the window's edge",
    "gap": "no sample for more than {} s of the window",
    "empty-window": "the measured window is empty",
    "before-window": "the trial ended before a measured window had",
    "before-memory": "the trial ended before its memory was read",
    "elsewhere": "the trial used {} times the CPU time of its {} CPUs: it ran elsewhere",
    "not-reported": "not reported",
    "command": "a command does not tell it",
    "load": "a known load has none: it trains no network",
    "other-work": "the work of this load is not counted in {}",
    "whole-run": "the command's whole run was measured, not its epochs",
    "first-epoch": "what was to be reached was reached within the first epoch",
    "no-images": "nobody said how many images an epoch of the command has (--images)",
    "no-command-target": "nothing was to be reached (--until)",
    "command-target-missed": "{} was {} in the end, not {}",
    "many-epochs": "only the first {} epochs were counted",
    "command-target-unseen": "{} was never printed",
}
"""Code -> why a column is empty. A `{}` stands for a value."""

SOURCES: Mapping[str, str] = {
    "nvml-memory": "NVML, memory of the trial's own processes",
    "tree-cpu": "/proc/PID/stat over the process tree, reaped children included",
    "proc-stat": "/proc/stat over the trial's CPUs",
    "power-buffer": "integral of NVML's power samples, the driver's buffer",
    "power-buffer-no-counter": "integral of NVML's power samples, the driver's buffer (the energy counter was not read "
    "near the window's edges)",
    "util-buffer": "NVML utilisation, gpu, the driver's buffer",
    "memory-util-buffer": "NVML utilisation, memory, the driver's buffer",
    "util": "NVML utilisation, gpu",
    "memory-util": "NVML utilisation, memory",
    "energy-counter": "NVML energy counter, read at the windows' edges",
    "smaps": "smaps_rollup, proportional, over the process tree",
    "power-before": "NVML power before the sweep, the last second of a look",
    "throttle": "NVML throttle reasons",
    "sm-clock": "NVML SM clock",
    "temperature": "NVML temperature of the GPU's core",
    "power": "NVML power usage (mean of the last second on Ampere and later)",
    "whole-gpu": "of the whole GPU, which other jobs shared",
    "whole-gpus": "of the whole GPUs, which other jobs shared",
    "divided": "the whole GPU's, divided by the busy time that each job's work takes alone: an estimate",
}
"""Code -> where a figure comes from, or what is to be said of that behind a semicolon."""

Coded = str | Sequence[str]
"""A code; a code and the values in its sentence; or a sentence in its own words."""


def format_reason(code: str, *values: object) -> str:
    """The sentence of a code, with these values."""
    return REASONS[code].format(*values)


_REASON_CODES = {sentence: code for code, sentence in REASONS.items()}
_SOURCE_CODES = {sentence: code for code, sentence in SOURCES.items()}


@functools.cache
def _compile_reason_patterns() -> list[tuple[str, re.Pattern[str]]]:
    """Of the reasons that have values."""
    return [
        (code, re.compile(re.escape(template).replace(r"\{\}", r"([^ ]{1,100})")))
        for code, template in REASONS.items()
        if "{}" in template
    ]


def encode_reason(sentence: str, ending: str = "") -> Coded:
    """A reason as a record holds it. `ending`: what the record's status and reason say."""
    if sentence == ending and sentence:
        return ENDED
    if sentence in _REASON_CODES:
        return _REASON_CODES[sentence]
    for code, pattern in _compile_reason_patterns():
        if (match := pattern.fullmatch(sentence)) is not None:
            return [code, *match.groups()]
    return sentence


def decode_reason(coded: Coded) -> str:
    """The sentence. `ENDED` stays, for the record tells what it says; so does what is no code."""
    if isinstance(coded, str):
        return REASONS.get(coded, coded)
    code, *values = coded or [""]
    template = REASONS.get(code, "")
    return template.format(*values) if template.count("{}") == len(values) > 0 else " ".join(coded)


def encode_source(sentence: str) -> Coded:
    """A source as a record holds it: its code, those of its parts, or its own words."""
    codes = [_SOURCE_CODES.get(part, "") for part in sentence.split("; ")]
    if not all(codes):
        return sentence
    return codes[0] if len(codes) == 1 else codes


def decode_source(coded: Coded) -> str:
    """The sentence; what is no code stays."""
    parts = [coded] if isinstance(coded, str) else coded
    return "; ".join(SOURCES.get(part, part) for part in parts)


def encode_record(record: dict[str, Any]) -> dict[str, Any]:
    """A record, or the records of a group, as it is to be stored: with codes."""
    if "jobs" in record:
        return record | {"jobs": [encode_record(job) for job in record["jobs"]]}
    ending = format_ending(record.get("status", ""), record.get("reason", ""))
    return record | {
        "missing": {
            column: encode_reason(reason, ending) for column, reason in record.get("missing", {}).items()
        },
        "provenance": encode_provenance(record.get("provenance", {})),
    }


def encode_provenance(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """Source -> its period and counts, and the columns that have them.

    A column of which that source tells other counts stands by itself, as all did in records of earlier versions.
    """
    stored: dict[str, Any] = {}
    for column, facts in provenance.items():
        if not isinstance(facts, dict):
            stored[column] = facts
            continue
        source = encode_source(facts["source"])
        counts = {name: value for name, value in facts.items() if name != "source"}
        key = source if isinstance(source, str) else "; ".join(source)
        group = stored.setdefault(key, {**counts, "columns": []})
        if counts == {name: value for name, value in group.items() if name != "columns"}:
            group["columns"].append(column)
        else:
            stored[column] = {"source": source, **counts}
    return stored


def decode_provenance(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """Column -> where its figure comes from, in words."""
    decoded: dict[str, Any] = {}
    for name, stored in provenance.items():
        if not isinstance(stored, dict):
            decoded[name] = stored
        elif stored.get("columns") is None:
            source = stored.get("source")
            decoded[name] = stored if source is None else stored | {"source": decode_source(source)}
        else:
            counts = {key: value for key, value in stored.items() if key != "columns"}
            parts = name.split("; ")
            facts = {"source": decode_source(parts if set(parts) <= SOURCES.keys() else name), **counts}
            decoded |= dict.fromkeys(stored["columns"], facts)
    return decoded


def decode_record(stored: dict[str, Any]) -> dict[str, Any]:
    """A stored record, or a job of a group, with words in place of codes."""
    decoded = dict(stored)
    if "missing" in stored:
        decoded["missing"] = {column: decode_reason(coded) for column, coded in stored["missing"].items()}
    if "provenance" in stored:
        decoded["provenance"] = decode_provenance(stored["provenance"])
    return decoded


def format_ending(status: str, reason: str) -> str:
    """What stands beside the empty columns of a trial that did not end ok."""
    return f"{status}: {reason}"[:LONGEST_ENDING]


LONGEST_ENDING = 200
"""Signs."""
