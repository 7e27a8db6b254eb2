"""A sweep's plan, kept with its results."""

from __future__ import annotations

from gpubench.plan import experiment_file
from gpubench.plan.plan import Plan, plan_id
from gpubench.plan.shards import Shard, join_parts
from gpubench.results.plans import PlanRequest, find_request, is_newest, next_stamp
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
    name, id_, rounds = plan.experiment.name, plan_id(plan.units), plan.experiment.rounds
    before = find_request(runner.results, name, id_)
    new_parts = () if shard is None else (shard,)
    parts = join_parts([new_parts] if before is None else [before.parts, new_parts])
    is_same = before == PlanRequest(rounds=rounds, most=rounds.most, parts=parts)
    if is_same and is_newest(runner.results, name, id_):
        return
    for job in plan.jobs:  # for a plan that was expanded elsewhere
        runner.sources.data(job.trial.data)
        runner.sources.model(job.trial.model)
    stamp = next_stamp(runner.results)
    facts = {
        "stored_at": stamp.stored_at,
        "number": stamp.number,
        "device": plan.device,
        "gpus": len(runner.node.machine.gpus),
        "cpus": runner.node.machine.cpu_count,
        "rounds": rounds.most,
        experiment_file.PROTOCOL: "steady" if plan.jobs[0].trial.epochs is None else "epochs",
        **({"shards": ",".join(map(str, parts)), "order": plan.order} if parts else {}),
        **runner.sources.stored(),
    }
    runner.results.save_plan(name, id_, experiment_file.to_toml(plan.experiment, facts))


def has_others(state: SweepState, whole: Plan | None = None) -> bool:
    """Whether the folder holds plans, and none of them is this sweep's. `whole`: as of `store_plan`."""
    plan, results = whole or state.plan, state.runner.results
    stored = results.plans()
    return bool(stored) and results.plan(plan.experiment.name, plan_id(plan.units)) not in stored
