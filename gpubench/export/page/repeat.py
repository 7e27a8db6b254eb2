"""How to measure it again: the plans that a folder keeps, as files and commands."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from gpubench.basics.words import clean
from gpubench.export.page.markup import Markup, element, joined
from gpubench.plan import experiment_file
from gpubench.plan.experiment import Experiment
from gpubench.report.reading import Reading
from gpubench.report.table import Table
from gpubench.schema import catalog

LONGEST = 20_000
"""Characters of a plan that are shown: a longer one lies in the folder."""


def repeat(reading: Reading, table: Table) -> Markup:
    """The section's text."""
    plans = _plans(reading, table.name)
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
            ", on a machine like the one above. Trials that a folder holds already are not measured again.",
        )
    ]
    if any(row.source != "measured" for row in table.trials):
        said.append(
            element("p", "The figures above were taken from a published log; the command measures them anew.")
        )
    for number, plan in enumerate(plans, 1):
        stem = clean(plan.name).replace("/", "-") + (f"-{number}" if several else "")
        file, folder = (
            shlex.quote(f"{stem}.toml"),
            shlex.quote(f"results/{stem if not several else clean(plan.name)}"),
        )
        text = experiment_file.to_toml(plan, {})
        shown = (
            text if len(text) <= LONGEST else f"{text[:LONGEST]}\n# … the rest lies in the folder's plans/"
        )
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


def _plans(reading: Reading, name: str) -> Sequence[Experiment]:
    """The stored plans of an experiment, the newest last, equal ones once."""
    found = [
        stored.plan.experiment for stored in reading.contents.plans if stored.plan.experiment.name == name
    ]
    return list({experiment_file.to_toml(one, {}): one for one in found}.values())


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
