"""How to measure it again: the plans that a folder keeps, as files and commands."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from gpubench.basics.words import clean
from gpubench.export.page.markup import Markup, element, joined
from gpubench.plan import experiment_file, values
from gpubench.plan.experiment import Experiment
from gpubench.plan.groups import label
from gpubench.plot.table import PlotTable
from gpubench.results.plans import StoredPlan
from gpubench.schema import catalog

LONGEST = 20_000
"""Characters of a plan that are shown: a longer one lies in the folder."""


def repeat(table: PlotTable) -> Markup:
    """The section's text."""
    plans = _plans(table)
    if not plans:
        return element(
            "p", "No plan of these trials is stored, so there is no command that measures them again."
        )
    several = len(plans) > 1
    said = [
        element(
            "p",
            f"These rows are of {len(plans)} plans. Save each of them" if several else "Save this plan",
            " as a file and give it to ",
            element("code", "gpubench sweep"),
            ", on a machine like the one above. Trials that a folder holds already are not measured again: "
            "with another folder after --out they are.",
        )
    ]
    if (table.runs["source"] != "measured").any():
        said.append(
            element("p", "The figures above were taken from a published log; the command measures them anew.")
        )
    folder = shlex.quote(f"results/{clean(table.folder.path.resolve().name)}")
    for number, plan in enumerate(plans, 1):
        stem = clean(plan.name).replace("/", "-") + (f"-{number}" if several else "")
        file = shlex.quote(f"{stem}.toml")
        text = experiment_file.to_toml(plan, {})
        shown = (
            text if len(text) <= LONGEST else f"{text[:LONGEST]}\n# … the rest lies in the folder's plans/"
        )
        if several:
            said.append(element("p", f"Plan {number}, {_asks(plan, plans)}:"))
        said += [
            element("pre", element("code", f"gpubench sweep {file} --out {folder}"), tabindex="0"),
            element(
                "details",
                element("summary", f"{stem}.toml"),
                element("pre", element("code", shown), tabindex="0", aria_label=f"{stem}.toml"),
            ),
        ]
    if own := sorted({str(model) for plan in plans for model in _own_files(plan)}):
        said.append(element("p", f"It also needs images or models that its author had: {', '.join(own)}."))
    return joined(said)


def _plans(table: PlotTable) -> Sequence[Experiment]:
    """The stored plans of these rows with the rounds that they went through, the newest last, equal ones once."""
    mine = set(table.runs["trial_id"])
    found = [
        _with_rounds(stored, table)
        for stored in table.folder.plans
        if stored.plan.experiment.name == table.table.experiment
        and any(job.trial_id in mine for job in stored.plan.jobs)
    ]
    return list({experiment_file.to_toml(one, {}): one for one in found}.values())


def _with_rounds(stored: StoredPlan, table: PlotTable) -> Experiment:
    """A plan's experiment. Where it left the number of rounds to the version that swept it, with that number: another
    version may make others of it."""
    plan = stored.plan.experiment
    if plan.rounds.number is not None or plan.rounds.is_endless:
        return plan
    runs = table.runs[table.runs["trial_id"].isin([job.trial_id for job in stored.plan.jobs])]
    rounds = runs.loc[runs["source"] == "measured", "round"].dropna()
    number = stored.rounds or (int(rounds.max()) if len(rounds) else None)
    return plan if number is None else replace(plan, rounds=replace(plan.rounds, number=number))


def _asks(plan: Experiment, plans: Sequence[Experiment]) -> str:
    """In what a plan differs from the others: its question, its values, its groups, its rounds."""
    every = [_told(one) for one in plans]
    mine = _told(plan)
    differ = [name for name in mine if len({told.get(name) for told in every}) > 1]
    return clean("; ".join(f"{name} {mine[name]}".strip() for name in differ)) or "under other conditions"


def _told(plan: Experiment) -> dict[str, str]:
    """What a plan asks -> in which words. A question needs none before it."""
    found = {"": plan.question} if plan.question else {}
    found |= {name.replace("_", " "): _values([value]) for name, value in plan.fixed.items()}
    for axis in plan.axes:
        for at, name in enumerate(axis.fields):
            found[name.replace("_", " ")] = _values([step[at] for step in axis.values])
    if plan.groups:
        found["together:"] = " and ".join(
            group.name or " + ".join(label(job) for job in group.jobs) for group in plan.groups
        )
    return found | {
        "without": ", ".join(label(one) for one in plan.excludes),
        "rounds:": str(plan.rounds.number or ""),
        "repeats:": str(plan.repeats),
    }


def _values(given: Iterable[Any]) -> str:
    return ", ".join(str(values.to_toml(one)) for one in given)


def _own_files(plan: Experiment) -> list[str]:
    """Files with models of a user's own, and folders with images."""
    named = [*plan.fixed.items()]
    named += [
        (field, value)
        for axis in plan.axes
        for step in axis.values
        for field, value in zip(axis.fields, step, strict=True)
    ]
    named += [pair for group in plan.groups for job in group.jobs for pair in job.items()]
    models = [clean(value) for field, value in named if field == "model" and ".py:" in str(value)]
    images = [
        clean(value)
        for field, value in named
        if field == "data" and value and value not in catalog.NAMED_DATA
    ]
    return models + [one for one in images if one.partition(":")[0] != catalog.PROCEDURAL]
