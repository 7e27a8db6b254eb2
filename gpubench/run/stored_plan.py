"""A sweep's plan, kept with its results."""

from __future__ import annotations

import contextlib

from gpubench.basics.errors import UsageError
from gpubench.plan import experiment_file
from gpubench.plan.plan import Plan, derive_plan_id, find_code_fingerprint
from gpubench.plan.shards import Shard, join_shards
from gpubench.results.plans import is_newest_plan, list_plan_files, make_plan_stamp
from gpubench.run.sweep_state import SweepState


def store_plan(state: SweepState, whole: Plan | None = None, shard: Shard | None = None) -> None:
    """Keeps the plan as resolved, with the facts that its trials' ids rest on.

    `whole`: the plan of which the sweep runs a part, where it does; `shard`: which. A folder is asked for all parts
    that were ever asked for there.

    One that is asked again after another of its experiment (an edit was taken back) is stored anew: the last one
    says which trials of an edited model, variant or images stand in the tables. So is one that is asked again for
    other rounds, or for another part: what is left follows from them.
    """
    plan, runner = whole or state.plan, state.runner
    name, id_, rounds = plan.experiment.name, derive_plan_id(plan.units), plan.experiment.rounds
    files = list_plan_files(runner.results)
    before = next((file for file in files if file.path == runner.results.make_plan_path(name, id_)), None)
    new_parts = () if shard is None else (shard,)
    parts = join_shards([new_parts] if before is None else [before.facts.parts, new_parts])
    if before is not None and is_newest_plan(before, files) and before.facts.parts == parts:
        with contextlib.suppress(UsageError):
            if before.parse_experiment().rounds == rounds and before.facts.rounds == rounds.most:
                return
    for job in plan.jobs:  # for a plan that was expanded elsewhere
        runner.find_data_facts(job)
        find_code_fingerprint(job.trial, runner.sources)
    facts = {
        **make_plan_stamp(files),
        "device": plan.device,
        "gpus": len(runner.node.machine.gpus),
        "cpus": runner.node.machine.cpu_count,
        "rounds": rounds.most,
        experiment_file.PROTOCOL: "steady" if plan.jobs[0].trial.epochs is None else "epochs",
        **({"shards": ",".join(map(str, parts)), "order": plan.order} if parts else {}),
        **runner.sources.encode_sources(),
    }
    runner.results.save_plan(name, id_, experiment_file.format_experiment(plan.experiment, facts))
