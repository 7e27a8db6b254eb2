"""A sweep's plan, kept with its results."""

from __future__ import annotations

from gpubench.plan import experiment_file
from gpubench.plan.plan import Plan, plan_id
from gpubench.plan.shards import Shard, joined
from gpubench.results.plans import AskedOfPlan, asked_before, is_newest, next_stamp
from gpubench.sweep.sweep import Sweep


def store_plan(work: Sweep, whole: Plan | None = None, shard: Shard | None = None) -> None:
    """Keeps the plan as resolved, with the facts that its trials' ids rest on.

    `whole`: the plan of which the sweep runs a part, where it does; `shard`: which. A folder is asked for all parts
    that were ever asked for there.

    One that is asked again after another of its experiment (an edit was taken back) is stored anew: the last one
    says which trials of an edited model, variant or images stand in the tables. So is one that is asked again for
    other rounds, or for another part: what is left is told by them.
    """
    _store_plan(work, whole or work.plan, shard)


def has_others(work: Sweep, whole: Plan | None = None) -> bool:
    """Whether the folder holds plans, and none of them is this sweep's. `whole`: as of `store_plan`."""
    plan, results = whole or work.plan, work.bench.results
    stored = results.plans()
    return bool(stored) and results.plan(plan.experiment.name, plan_id(plan.units)) not in stored


def _store_plan(work: Sweep, plan: Plan, shard: Shard | None) -> None:
    bench = work.bench
    name, own_id = plan.experiment.name, plan_id(plan.units)
    rounds = plan.experiment.rounds
    before = asked_before(bench.results, name, own_id)
    own = () if shard is None else (shard,)
    parts = joined([own] if before is None else [before.parts, own])
    if before == AskedOfPlan(rounds=rounds, most=rounds.most, parts=parts) and is_newest(
        bench.results, name, own_id
    ):
        return
    for job in plan.jobs:  # for a plan that was expanded elsewhere
        bench.sources.data(job.trial.data)
        bench.sources.model(job.trial.model)
    machine, stamp = bench.node.machine, next_stamp(bench.results)
    of_parts = {"shards": ",".join(map(str, parts)), "order": plan.order} if parts else {}
    facts = {
        "stored_at": stamp.stored_at,
        "number": stamp.number,
        "device": plan.device,
        "gpus": len(machine.gpus),
        "cpus": machine.cpu_count,
        "rounds": rounds.most,
        experiment_file.PROTOCOL: "steady" if plan.jobs[0].trial.epochs is None else "epochs",
        **of_parts,
        **bench.sources.stored(),
    }
    toml = experiment_file.to_toml(plan.experiment, facts)
    bench.results.save_plan(name, own_id, toml)
