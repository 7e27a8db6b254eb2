"""What a sweep says before it starts: how much it will do, how long that takes, where results and images lie."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpubench.basics.errors import GpubenchError
from gpubench.basics.words import listed, many
from gpubench.datasets import built, locate
from gpubench.datasets.locate import MakingStep
from gpubench.plan.estimate import asked_words, words
from gpubench.plan.experiment import Experiment
from gpubench.plan.plan import Plan
from gpubench.plan.rounds import Rounds
from gpubench.plan.shares import device_of
from gpubench.plan.state import Planned
from gpubench.schema.trial import Trial
from gpubench.schema.window import asked_s
from gpubench.sweep.sweep import Sweep

BUILT_IN = "batch-size"
"""Name of the experiments in `builtin/`."""


def announcement_lines(
    work: Sweep, planned: Sequence[Planned], steps: Sequence[MakingStep] = (), load: str = ""
) -> list[str]:
    """What is said before a sweep starts: what is to run, with which images.

    `steps`: what is to be made of them. `load`: how much other work takes of the CPUs, `1.8 of 2 CPUs`.
    """
    what = announcement(work, planned)
    done = sum(item.state == "done" for item in planned)
    skipped = sum(item.state == "skip" for item in planned)
    others = [f"{done} done already"] * bool(done) + [f"{skipped} skipped"] * bool(skipped)
    rest = f" ({', '.join(others)})" if others else ""
    about = "at most" if what["most"] else "about" if what["known"] else "roughly"
    needs = f"; first {', '.join(map(str, steps))}" if steps else ""
    rounds = work.plan.experiment.rounds
    trials, folder = (
        f"{counted(planned)} to run{rest}{left_in_rounds(planned, rounds)}",
        work.bench.results.folder,
    )
    lasts = f"{about} {words(what['seconds'])}{' a round' if rounds.is_open else ''}{beside(load)}"
    asked, jobs = work.plan.experiment, any(item.unit.is_group for item in planned)
    return [
        f"{name_experiment(asked, jobs=jobs)}: {trials}, {lasts}, results in {folder}",
        f"images: {'; '.join(what['places'])}{needs}",
    ]


def name_experiment(asked: Experiment, *, jobs: bool) -> str:
    """The experiment's name, or what it varies where the built-in one's name would mislead.

    That keeps its name whatever is asked with its help, for the results folder is called by it; its question goes where
    its axes are others. `jobs`: whether jobs run together.
    """
    fields = [
        field.replace("_", "-") for field in dict.fromkeys(field for axis in asked.varied for field in axis)
    ]
    if asked.name != BUILT_IN or asked.question or (fields == [asked.name] and not jobs):
        return asked.name
    beside = ["jobs side by side"] if jobs and "copies" not in fields else []
    return ", ".join([*fields, *beside]) or asked.name


def in_rounds(rounds: Rounds) -> str:
    """` in 5 rounds`, ` in rounds until …`; empty for one round."""
    if rounds.most == 1:
        return ""
    limits = ["rounds"] if rounds.is_endless else [f"{rounds.most} rounds"]
    if rounds.within_pct is not None:
        limits.append(f"until each time is known within {rounds.within_pct:g} %")
    if rounds.budget_s is not None:
        limits.append(f"for {asked_words(rounds.budget_s)}")
    if rounds.until_answered:
        limits[-1] += ","
        limits.append("until every question of the table is answered")
    how_many, *until = limits
    if rounds.is_endless:
        return f" in {how_many} {' or '.join(until)}"
    return f" in at most {how_many}, {' or '.join(until)}" if until else f" in {how_many}"


def left_in_rounds(planned: Sequence[Planned], rounds: Rounds) -> str:
    """In how many rounds what is to run is to run; where some are done, `: 5 measurements, in rounds 2 to 4`."""
    each = [item.rounds for item in planned if item.state == "run"]
    if rounds.is_open or rounds.budget_s is not None or not any(each):
        return in_rounds(rounds)
    numbers = {number for one in each for number in one or range(1, rounds.most + 1)}
    count = sum(len(one) or rounds.most for one in each)
    return f": {many(count, 'measurement')}, in {named(numbers)}"


def named(rounds: Iterable[int]) -> str:
    """`round 3`, `rounds 2 to 4`, `rounds 2, 4 and 6 to 8`."""
    numbers = sorted(rounds)
    runs = [list(run) for _, run in itertools.groupby(numbers, lambda one: one - numbers.index(one))]
    told = [f"{run[0]} to {run[-1]}" if len(run) > 1 else str(run[0]) for run in runs]
    return f"round{'s' * (len(numbers) > 1)} {listed(told)}"


def beside(load: str) -> str:
    """What stands behind an estimate, which takes no account of other work. `load`: how much that uses, or empty."""
    return f" (other work uses {load}; it may take longer)" if load else ""


def making_line(steps: Sequence[MakingStep], cpus: int) -> str:
    """How much the images take that are to be made, where, how long on so many CPUs, and what else one may do."""
    times = [step.cpu_s for step in steps]
    known = [seconds for seconds in times if seconds is not None]
    lasts = (
        f" and about {words(sum(known) / cpus)} on {many(cpus, 'CPU')}" if len(known) == len(times) else ""
    )
    size = built.amount(sum(step.need_bytes for step in steps))
    instead = (
        "To make fewer, give --data procedural:640; to use your own, give --data FOLDER. " if known else ""
    )
    return (
        f"Making these images takes about {size} in {steps[0].place.parent}{lasts}; it is done once. "
        f"{instead}GPUBENCH_DATA names another place."
    )


def steps_to_images(work: Sweep, planned: Sequence[Planned]) -> list[MakingStep]:
    """What is to be made before the units that are to run can read their images. It looks at the disk.

    Images that can't be made are left out: `prepare` says why, and so do the rows of their trials.
    """
    each = dict.fromkeys(
        one for item in planned if item.state == "run" for one in work.bench.wanted(item.unit)
    )
    steps: dict[MakingStep, None] = {}
    for wanted in each:
        with contextlib.suppress(GpubenchError):
            steps |= dict.fromkeys(locate.plan_steps(*wanted))
    return list(steps)


def counted(planned: Sequence[Planned]) -> str:
    """`4 trials and 2 groups` of those that are to run."""
    groups = sum(item.unit.is_group for item in planned if item.state == "run")
    trials = sum(item.state == "run" for item in planned) - groups
    parts = [many(trials, "trial")] if trials or not groups else []
    parts += [f"{many(groups, 'group')} of jobs"] if groups else []
    return " and ".join(parts)


def dropped_lines(plan: Plan) -> list[str]:
    """One line for the combinations that a crossed plan dropped."""
    if not plan.dropped:
        return []
    parts = [f"{count} × {reason}" for reason, count in plan.dropped.most_common(4)]
    more = len(plan.dropped) - len(parts)
    return [
        f"{plan.dropped.total()} combination{'s' if plan.dropped.total() > 1 else ''} dropped: {'; '.join(parts)}"
        + (f"; and {many(more, 'more reason')}" if more > 0 else "")
    ]


def training_line(plan: Plan) -> str:
    """`training: resnet34, synthetic, bf16; a window of 4 s; sgd with lr 0.05`: what is asked of all trials, also by
    default and by a built-in file."""
    trials = [job.trial for job in plan.jobs]
    works = [{str(getattr(t, field)) for t in trials} for field in ("model", "variant", "precision")]
    work = ", ".join(value for values in works if len(values) == 1 for value in values)
    lengths = _some(_length(t, device_of(t, plan.device)) for t in trials)
    steps = _some(f"{t.optimizer} with lr {t.lr:g}" for t in trials)
    return f"training: {'; '.join(filter(None, (work, lengths, steps)))}"


def _length(t: Trial, device: str) -> str:
    if t.epochs is None:
        return f"a window of {many(t.steps, 'step') if t.steps else f'{asked_s(t.window, device):g} s'}"
    warm_up = f", {t.warmup_epochs} of them to warm up" if t.warmup_epochs else ""
    if t.until_top1 is not None:
        return f"until top-1 {t.until_top1:g} %, at most {many(t.epochs, 'epoch')}{warm_up}"
    return f"{many(t.epochs, 'epoch')}{warm_up}"


def _some(words: Iterable[str], limit: int = 3) -> str:
    """`a`, `a or b`, `a or b or c or 4 others`."""
    each = list(dict.fromkeys(words))
    rest = many(len(each) - limit, "other")
    return " or ".join(each if len(each) <= limit else [*each[:limit], rest])


def announcement(sweep: Sweep, planned: Sequence[Planned]) -> Mapping[str, Any]:
    """What the two lines before a sweep say, as values."""
    to_run = [item.unit for item in planned if item.state == "run"]
    estimates = sweep.estimates_of_all(planned)
    places: dict[str, None] = {}
    for job in (job for unit in to_run for job in unit.jobs):
        if job.variant.files != "none":
            facts = sweep.bench.facts(job)
            where = facts.root or f"{facts.name} (torchvision)"
            places[f"{facts.train_images:,} images + {facts.val_images:,} for validation in {where}"] = None
        else:
            places["a resident batch of synthetic images"] = None
    return {
        "seconds": sum(e.seconds for e in estimates),
        "known": all(e.known for e in estimates),
        # Training until an accuracy ends earlier; nobody knows how much.
        "most": any(job.trial.until_top1 is not None for unit in to_run for job in unit.jobs),
        "places": list(places),
    }
