"""What a sweep says before it starts: how much it will do, how long that takes, where results and images lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpubench.datasets import locate
from gpubench.errors import GpubenchError
from gpubench.experiment.plan import Plan
from gpubench.runner.estimate import words
from gpubench.runner.state import Planned
from gpubench.runner.sweep import Sweep


def announcement_lines(work: Sweep, planned: Sequence[Planned]) -> list[str]:
    """The two lines before a sweep starts."""
    what = announcement(work, planned)
    done = sum(item.state == "done" for item in planned)
    skipped = sum(item.state == "skip" for item in planned)
    others = [f"{done} done already"] * bool(done) + [f"{skipped} skipped"] * bool(skipped)
    rest = f" ({', '.join(others)})" if others else ""
    about = "at most" if what["most"] else "about" if what["known"] else "roughly"
    needs = f"; first {', '.join(what['needs'])}" if what["needs"] else ""
    trials, folder = f"{counted(planned)} to run{rest}", work.bench.results.folder
    return [
        f"{work.plan.experiment.name}: {trials}, {about} {words(what['seconds'])}, results in {folder}",
        f"images: {'; '.join(what['places'])}{needs}",
    ]


def counted(planned: Sequence[Planned]) -> str:
    """`4 trials and 2 groups` of those that are to run."""
    groups = sum(item.unit.is_group for item in planned if item.state == "run")
    trials = sum(item.state == "run" for item in planned) - groups
    parts = [f"{trials} trial{'s' if trials != 1 else ''}"] if trials or not groups else []
    parts += [f"{groups} group{'s' if groups != 1 else ''} of jobs"] if groups else []
    return " and ".join(parts)


def dropped_lines(plan: Plan) -> list[str]:
    """One line for the combinations that a crossed plan dropped."""
    if not plan.dropped:
        return []
    parts = [f"{count} × {reason}" for reason, count in plan.dropped.most_common(4)]
    more = len(plan.dropped) - len(parts)
    return [
        f"{plan.dropped.total()} combination{'s' if plan.dropped.total() > 1 else ''} dropped: {'; '.join(parts)}"
        + (f"; and {more} more reasons" if more > 0 else "")
    ]


def announcement(sweep: Sweep, planned: Sequence[Planned]) -> Mapping[str, Any]:
    """What the two lines before a sweep say, as values."""
    to_run = [item.unit for item in planned if item.state == "run"]
    estimates = sweep.estimates(to_run)
    needs: dict[str, None] = {}
    places: dict[str, None] = {}
    each = dict.fromkeys(one for unit in to_run for one in sweep.bench.wanted(unit))
    for wanted in each:  # it looks at the disk
        try:
            for step in locate.plan_of(*wanted):
                needs[step] = None
        except GpubenchError as error:
            needs[str(error)] = None
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
        "needs": list(needs),
        "places": list(places),
    }
