"""How to measure a table again: the plans that its folder keeps, as files and commands."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpubench.analyze.folder import Folder, Table
from gpubench.basics.quoted import clean
from gpubench.basics.safe_name import safe_name
from gpubench.plan import experiment_file
from gpubench.plan.experiment import Experiment
from gpubench.render import words
from gpubench.results.plans import StoredPlan
from gpubench.schema import catalog

LONGEST = 20_000
"""Characters of a plan that are shown: a longer one lies in the folder."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanFile:
    """A plan as a file that a sweep takes."""

    name: str
    text: str
    command: str
    trials: frozenset[str]
    """Ids of what it asks for."""
    needs: tuple[str, ...]
    """Files with models of a user's own, and folders with images."""


def list_plans(folder: Folder, table: Table) -> list[PlanFile]:
    """The stored plans of a table's rows with the rounds that they went through, the newest last, equal ones once."""
    trials = set(folder.runs.loc[list(table.runs), "trial_id"])
    texts: dict[str, tuple[Experiment, frozenset[str]]] = {}
    for stored in folder.plans:
        ids = frozenset(job.trial_id for job in stored.plan.jobs)
        if stored.plan.experiment.name == table.experiment and ids & trials:
            experiment = add_rounds(stored, folder, ids)
            texts[experiment_file.to_toml(experiment, {})] = (experiment, ids)
    out = shlex.quote(f"results/{clean(folder.path.resolve().name)}")
    files = []
    for number, (text, (experiment, ids)) in enumerate(texts.items(), 1):
        stem = safe_name(experiment.name, "plan")
        name = f"{stem}-{number}.toml" if len(texts) > 1 else f"{stem}.toml"
        files.append(
            PlanFile(
                name=name,
                text=text if len(text) <= LONGEST else f"{text[:LONGEST]}\n{words.CUT_FILE}",
                command=f"gpubench sweep {shlex.quote(name)} --out {out}",
                trials=ids,
                needs=tuple(list_needs(experiment)),
            )
        )
    return files


def add_rounds(stored: StoredPlan, folder: Folder, ids: frozenset[str]) -> Experiment:
    """A plan's experiment. Where it left the number of rounds to the version that swept it, with that number: another
    version may make others of it."""
    experiment = stored.plan.experiment
    if experiment.rounds.number is not None or experiment.rounds.is_endless:
        return experiment
    runs = folder.runs[folder.runs["trial_id"].isin(ids) & (folder.runs["source"] == "measured")]
    rounds = runs["round"].dropna()
    number = stored.rounds or (int(rounds.max()) if len(rounds) else None)
    if number is None:
        return experiment
    return replace(experiment, rounds=replace(experiment.rounds, number=number))


def list_needs(experiment: Experiment) -> Sequence[str]:
    """What its author had and others may not: models from files, folders with images."""
    pairs = [*experiment.fixed.items()]
    for axis in experiment.axes:
        pairs += [pair for step in axis.values for pair in zip(axis.fields, step, strict=True)]
    pairs += [pair for group in experiment.groups for job in group.jobs for pair in job.items()]
    models = {clean(str(value)) for field, value in pairs if field == "model" and ".py:" in str(value)}
    images = {clean(str(value)) for field, value in pairs if field == "data" and value}
    known = {name for name in images if name.partition(":")[0] in (*catalog.NAMED_DATA, catalog.PROCEDURAL)}
    return sorted(models | (images - known))
