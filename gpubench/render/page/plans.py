"""How to measure a table again: the plans that its folder keeps, as files and commands."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace

from gpubench.analyze.folder import Folder, Table
from gpubench.basics.quoted import clean_line
from gpubench.basics.safe_name import make_safe_file_name
from gpubench.plan import experiment_file
from gpubench.render import words

LONGEST = 20_000
"""Characters of a plan that are shown: a longer one lies in the folder."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DownloadablePlan:
    """A plan as a file that a sweep takes."""

    name: str
    text: str
    command: str
    trials: frozenset[str]
    """Ids of what it asks for."""


def list_downloadable_plans(folder: Folder, table: Table) -> list[DownloadablePlan]:
    """The stored plans of a table's rows, the newest last, equal ones once."""
    trials = set(folder.runs.loc[list(table.runs), "trial_id"])
    texts: dict[str, frozenset[str]] = {}
    for stored in folder.plans:
        ids = frozenset(job.trial_id for job in stored.plan.jobs)
        if stored.plan.experiment.name == table.experiment and ids & trials:
            experiment = stored.plan.experiment
            rounds = experiment.rounds
            if rounds.number is None and stored.facts.rounds:  # another version may make others of it
                experiment = replace(experiment, rounds=replace(rounds, number=stored.facts.rounds))
            texts[experiment_file.format_experiment(experiment, {})] = ids
    out = shlex.quote(f"results/{clean_line(folder.path.resolve().name)}")
    files = []
    for number, (text, ids) in enumerate(texts.items(), 1):
        stem = make_safe_file_name(table.experiment, "plan")
        name = f"{stem}-{number}.toml" if len(texts) > 1 else f"{stem}.toml"
        files.append(
            DownloadablePlan(
                name=name,
                text=text if len(text) <= LONGEST else f"{text[:LONGEST]}\n{words.CUT_FILE}",
                command=f"gpubench sweep {shlex.quote(name)} --out {out}",
                trials=ids,
            )
        )
    return files
