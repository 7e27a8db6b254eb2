"""Jobs that run side by side: what is asked for, and the jobs that it comes to for each combination of the axes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpubench.basics.errors import UsageError
from gpubench.basics.quoted import clean_line, quote_value
from gpubench.plan.values import BATCH_PER_GPU, KINDS, RIVALS, format_field_value
from gpubench.schema.catalog import LOADS
from gpubench.schema.command import list_placeholders

MOST_JOBS = 64
"""More at once is a slip of the pen."""
UNCHANGED = "base"
"""Stands in names for a job that gives no field of its own."""

BARE = ("model", "variant", "batch_size")
"""Fields that need no `field=` in a job's name: everybody knows them by their values."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """Jobs that run together, or by twos."""

    name: str = ""
    """May be empty: then it is named by its jobs."""
    jobs: tuple[Mapping[str, Any], ...]
    """The trial fields that each job has of its own, by name. The experiment's fields stand for all others."""
    pairs: bool = False
    """Not all at once, but every two of them, on one GPU."""

    @property
    def size(self) -> int:
        """Jobs of all its sets, copies counted once."""
        jobs = len(self.jobs)
        return jobs * (jobs - 1) if self.pairs else jobs

    @property
    def title(self) -> str:
        """What it is called where it stands for all of its jobs."""
        return self.name or _join_job_labels(self.jobs)


def list_job_sets(fields: Mapping[str, Any], group: Group | None) -> list[tuple[str, list[dict[str, Any]]]]:
    """What runs together for one combination of the axes: names, and the fields of each job.

    `group` None: the combination itself, as many times as its `copies` say. A job that runs alone has no name.
    Raises UsageError for too many jobs, and for pairs that can't be on one GPU.
    """
    if group is None:
        jobs = _repeat_copies([fields])
        return [(f"{len(jobs)} copies" if len(jobs) > 1 else "", jobs)]
    jobs = [_override_fields(fields, job) for job in group.jobs]
    if group.pairs:
        _check_pair_gpus(group, jobs)
        return _list_pairs(group, jobs)
    jobs = _repeat_copies(jobs)
    return [(group.title if len(jobs) > 1 else "", jobs)]


def is_training_job(job: Mapping[str, Any], command: str | None) -> bool:
    """Whether a job is a training beside commands: it names a model, and the command has no place for one."""
    return command is not None and "model" in job and "model" not in list_placeholders(command)


def check_group(group: Group, *, most_copies: int) -> None:
    """Raises UsageError for what is wrong with a group. `most_copies`: of the experiment's own `copies`."""
    called = f"group {quote_value(group.title)}"
    if group.pairs and (most_copies > 1 or any("copies" in job for job in group.jobs)):
        raise UsageError(
            f"{called}: a pair is of two jobs, without copies; to pair a job with itself, give it twice"
        )
    if group.pairs and len(group.jobs) < 2:
        raise UsageError(f"{called}: pairs need two jobs or more, not {len(group.jobs)}")
    if sum(count_copies(job) or most_copies for job in group.jobs) < 2:
        raise UsageError(
            f"{called}: {len(group.jobs)} job runs beside none; give two or more, or copies of one"
        )


def count_copies(fields: Mapping[str, Any]) -> int | None:
    """How many equal jobs these fields ask for; None where they leave it open, or say what a trial won't take."""
    copies = fields.get("copies")
    return copies if isinstance(copies, int) and not isinstance(copies, bool) and copies > 0 else None


def format_job_label(job: Mapping[str, Any]) -> str:
    """A job by its own fields, in one line: `resnet34 16`, `32@0+1`, `64 workers=4`."""
    words = [format_field_value(job[name]) for name in BARE if name in job]
    words += [f"{name}={format_field_value(v)}" for name, v in job.items() if name not in (*BARE, "gpu_ids")]
    text = " ".join(words) or UNCHANGED
    if "gpu_ids" in job:
        text += "@" + format_field_value(job["gpu_ids"])
    return clean_line(text)


def format_trial_labels(trials: Sequence[Mapping[str, Any]]) -> list[str]:
    """What trials that run together are called: by model, variant, batch and GPUs, and by whatever tells them apart."""
    # Told anyway, or following from other fields, mostly.
    following = (*BARE, "strategy", "lr", "gpus", "gpu_ids")
    apart = [
        name
        for name in trials[0]
        if name not in following and any(trial[name] != trials[0][name] for trial in trials)
    ]
    labels = []
    for trial in trials:
        devices = [name for name in ("gpu_ids", "gpus") if trial[name]][:1]
        labels.append(format_job_label({name: trial[name] for name in (*BARE, *apart, *devices)}))
    return labels


def format_group_label(group: str, jobs: Sequence[Mapping[str, Any]], fields: Iterable[str]) -> str:
    """A group's name, with those of the fields, but for its copies, that all of its jobs agree in."""
    agreed = [
        f"{name}={format_field_value(jobs[0][name])}"
        for name in fields
        if name != "copies"
        and jobs[0].get(name) is not None
        and all(job[name] == jobs[0][name] for job in jobs)
    ]
    return f"{group} ({', '.join(agreed)})" if agreed else group


def _join_job_labels(jobs: Iterable[Mapping[str, Any]]) -> str:
    return " & ".join(format_job_label(job) for job in jobs)


def _override_fields(fields: Mapping[str, Any], job: Mapping[str, Any]) -> dict[str, Any]:
    """A job's own fields over those of the experiment, in place of their rivals too.

    A job that names a model trains it, also where the others run a command. One that names a known load has a size of
    its own: what the experiment gives beside a network, or to a command, is none of a load.
    """
    beaten = {rival for name in job for rival in RIVALS.get(name, ())}
    if is_training_job(job, fields.get("command")):
        beaten |= {"command", "epoch_pattern", "metrics", "until"} | (fields.keys() - KINDS.keys())
    if job.get("model") in LOADS and ("command" in fields or fields.get("model", job["model"]) not in LOADS):
        beaten |= {"batch_size", BATCH_PER_GPU}
    return {name: value for name, value in fields.items() if name not in beaten} | dict(job)


def _repeat_copies(jobs: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each job as many times as its `copies` say. They keep that field, so that their rows tell it."""
    counts = [(job, count_copies(job) or 1) for job in jobs]
    together = sum(count for _, count in counts)
    if together > MOST_JOBS:
        raise UsageError(f"{together:,} jobs at once are too many; {MOST_JOBS} is the most")
    return [dict(job) for job, count in counts for _ in range(count)]


def _list_pairs(group: Group, jobs: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Every two of the jobs, once: of equal jobs one pair is enough."""
    before = f"{group.name}: " if group.name else ""
    pairs: dict[frozenset[frozenset[tuple[str, Any]]], tuple[str, list[dict[str, Any]]]] = {}
    for (own, job), (other_own, other) in itertools.combinations(zip(group.jobs, jobs, strict=True), 2):
        key = frozenset({frozenset(own.items()), frozenset(other_own.items())})
        pairs.setdefault(key, (before + _join_job_labels([own, other_own]), [dict(job), dict(other)]))
    return list(pairs.values())


def _check_pair_gpus(group: Group, jobs: Sequence[Mapping[str, Any]]) -> None:
    """Raises UsageError where pairs would not be on one GPU."""
    used: dict[int, None] = {}
    for given, job in zip(group.jobs, jobs, strict=True):
        ids, gpus = job.get("gpu_ids"), job.get("gpus")
        count = len(ids) if isinstance(ids, tuple) else gpus if isinstance(gpus, int) else 1
        if count > 1:
            raise UsageError(f"pairs share one GPU; job {quote_value(format_job_label(given))} has {count}")
        if count and job.get("device") != "cpu":
            used[ids[0] if isinstance(ids, tuple) and ids else 0] = None  # without ids: the first GPU
    if len(used) > 1:
        named = " and ".join(str(number) for number in used)
        raise UsageError(f"pairs share one GPU; these jobs are on GPUs {named}, so name one for all")
