"""What a sweep says before it starts: how much it will do, how long that takes, where results and images lie."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence

from gpubench.basics.words import format_count, format_list
from gpubench.datasets.locate import MakingStep
from gpubench.node.node import Node
from gpubench.plan.estimate import format_exact_seconds, format_seconds
from gpubench.plan.plan import Plan, Unit, format_unit_label
from gpubench.plan.rounds import RoundLimits
from gpubench.plan.state import PlannedUnit
from gpubench.record.together import GroupPrediction
from gpubench.render.live import View
from gpubench.render.prediction import OVERLAPS, RESOURCES
from gpubench.render.words import format_number, join_words
from gpubench.run.checks import describe_hardware_remedy, describe_other_load
from gpubench.run.images import (
    ask_to_make_images,
    describe_making_steps,
    has_many_images,
    is_interactive,
    list_making_steps,
)
from gpubench.run.sweep_state import SweepState


def list_announcement_lines(
    state: SweepState, planned: Sequence[PlannedUnit], steps: Sequence[MakingStep] = (), load: str = ""
) -> list[str]:
    """What is said before a sweep starts: what is to run, with which images.

    `steps`: what is to be made of them. `load`: how much other work takes of the CPUs, `1.8 of 2 CPUs`.
    """
    to_run = [item.unit for item in planned if item.state == "run"]
    guesses = state.estimate_time_in_all_rounds(planned)
    done = sum(item.state == "done" for item in planned)
    skipped = sum(item.state == "skip" for item in planned)
    not_run = [f"{done} done already"] * bool(done) + [f"{skipped} skipped"] * bool(skipped)
    rest = f" ({', '.join(not_run)})" if not_run else ""
    # Training until an accuracy ends earlier; nobody knows how much.
    is_most = any(job.trial.until_top1 is not None for unit in to_run for job in unit.jobs)
    about = "at most" if is_most else "about" if all(guess.known for guess in guesses) else "roughly"
    needs = f"; first {', '.join(map(str, steps))}" if steps else ""
    experiment = state.plan.experiment
    rounds = experiment.rounds
    trials = f"{format_unit_counts(planned)} to run{rest}{format_rounds_clause(rounds)}"
    lasts = _format_total_time(sum(guess.seconds for guess in guesses), rounds, load)
    places = list_image_places(state, to_run)
    return [
        f"{experiment.name}: {trials}, {about} {lasts}, results in {state.runner.results.folder}",
        *([f"images: {'; '.join(places)}{needs}"] if places else []),
        *_list_meter_lines(state.runner.node),
    ]


def _list_meter_lines(node: Node) -> list[str]:
    """One line that names the meters, where there are any, and what they cost."""
    names = ", ".join(meter.name for meter in node.meters)
    waits = node.wait_for_meters_s
    late = f"; {waits:g} s after each trial for what comes late" if waits else ""
    return [f"meters: {names}{late}"] if names else []


def _format_total_time(total_s: float, rounds: RoundLimits, load: str) -> str:
    """How long it takes. An estimate takes no account of other work. `load`: how much that uses, or empty."""
    note = f" (other work uses {load}; it may take longer)" if load else ""
    return f"{format_seconds(total_s)}{' a round' if rounds.is_open_ended else ''}{note}"


def list_image_places(state: SweepState, units: Sequence[Unit]) -> list[str]:
    """How many images the trainings of these units read, and where they lie; each place once."""
    places: dict[str, None] = {}
    for job in (job for unit in units for job in unit.jobs if job.trial.workload == "training"):
        if job.variant.files != "none":
            facts = state.runner.find_data_facts(job)
            where = facts.root or f"{facts.name} (torchvision)"
            places[f"{facts.train_images:,} images + {facts.val_images:,} for validation in {where}"] = None
        else:
            places["a resident batch of synthetic images"] = None
    return list(places)


def format_rounds_clause(rounds: RoundLimits) -> str:
    """` in 5 rounds`, ` in rounds until …`; empty for one round."""
    if rounds.most == 1:
        return ""
    limits = ["rounds"] if rounds.has_no_round_limit else [f"{rounds.most} rounds"]
    if rounds.within_pct is not None:
        limits.append(f"until each time is known within {rounds.within_pct:g} %")
    if rounds.budget_s is not None:
        limits.append(f"for {format_exact_seconds(rounds.budget_s)}")
    if rounds.is_until_answered:
        limits[-1] += ","
        limits.append("until every question of the table is answered")
    how_many, *until = limits
    if rounds.has_no_round_limit:
        return f" in {how_many} {' or '.join(until)}"
    return f" in at most {how_many}, {' or '.join(until)}" if until else f" in {how_many}"


def format_unit_counts(planned: Sequence[PlannedUnit]) -> str:
    """`4 trials and 2 groups` of those that are to run."""
    groups = sum(item.unit.is_group for item in planned if item.state == "run")
    trials = sum(item.state == "run" for item in planned) - groups
    parts = [format_count(trials, "trial")] if trials or not groups else []
    parts += [f"{format_count(groups, 'group')} of jobs"] if groups else []
    return " and ".join(parts)


def list_dropped_lines(plan: Plan) -> list[str]:
    """One line for the combinations that a crossed plan dropped."""
    if not plan.dropped:
        return []
    parts = [f"{count} × {reason}" for reason, count in plan.dropped.most_common(4)]
    if more := len(plan.dropped) - len(parts):
        parts.append(f"and {format_count(more, 'more reason')}")
    total = plan.dropped.total()
    return [f"{total} combination{'s' if total > 1 else ''} dropped: {'; '.join(parts)}"]


def list_not_reused_lines(planned: Iterable[PlannedUnit]) -> list[str]:
    """One line for each reason why stored results are not reused."""
    reasons = Counter(item.why for item in planned if item.state == "run" and item.why)
    return [
        f"{number} stored result{'s are' if number > 1 else ' is'} not reused: {why}"
        for why, number in reasons.items()
    ]


def announce_and_confirm_sweep(
    state: SweepState, planned: Sequence[PlannedUnit], view: View, *, yes: bool
) -> bool:
    """Says what the sweep will do, and asks before it makes many images. False where the answer is no.

    Where nobody can be asked it says so and goes on, for scripts rely on that.
    """
    steps = list_making_steps(state.list_wanted_images(planned))
    load = describe_other_load(state.runner.node)  # before the fork server, whose start is a load of our own
    for line in list_announcement_lines(state, planned, steps, load):
        view.say(line)
    much, asks = has_many_images(steps), not yes and is_interactive()
    if much:
        alone = "" if yes or asks else " There is no terminal to ask on: they are made now."
        view.say(describe_making_steps(steps) + alone)
    if load:  # nobody is refused: it may be over before the first trial
        view.say(
            "times measured beside other work are doubtful; in a batch job --exclusive keeps others off the node"
            if state.runner.node.machine.allocation
            else "times measured beside other work are doubtful; better start again when it has ended (top shows it)"
        )
    return not (much and asks) or ask_to_make_images(steps)


# ---- the plan alone (-n) ----

LABEL_WIDTH = 40
"""Longer labels push what follows to the right, in their lines alone."""


def print_plan(state: SweepState, planned: Sequence[PlannedUnit], load: str = "") -> None:
    """`-n`: each trial's id, what becomes of it, and how long it should take. Plain text on stdout.

    `load`: how much other work takes of the CPUs, `1.8 of 2 CPUs`; empty for none.
    """
    estimates = iter(state.estimate_time_in_all_rounds(planned))
    rounds = state.plan.experiment.rounds
    lines, total = [], 0.0
    labels = [format_unit_label(state.plan, item.unit) for item in planned]
    wide = min(LABEL_WIDTH, max(map(len, labels), default=0))
    for item, label in zip(planned, labels, strict=True):
        if item.state == "run":
            guess = next(estimates)
            total += guess.seconds
            most = item.unit.jobs[0].trial.until_top1 is not None
            fate = f"{'at most' if most else 'about' if guess.known else 'roughly'} {format_seconds(guess.seconds)}"
            fate += _describe_planned_rounds(item, rounds)
            fate += f" (what is stored is not reused: {item.why})" if item.why else ""
        elif item.state == "done":
            fate = f"done ({item.why}{', stale: other versions' if item.stale else ''})"
        else:
            before = "timed out" if item.ended == "timeout" else "failed"
            fate = "skipped: " if item.state == "skip" else f"{before} before (--retry {item.ended}): "
            fate += item.why
        lines.append(f"{item.unit.unit_id}  {label:<{wide}}  {fate}")
    advice = describe_hardware_remedy(planned, state.runner.node.machine)
    lines += [f"what needs more than this machine has is skipped: {advice}"] if advice else []
    lines += list_dropped_lines(state.plan)
    to_run = sum(item.state == "run" for item in planned)
    of_all = f"of {len(planned)} planned"
    some = f" ({of_all})" if to_run < len(planned) else ""
    what = f"nothing to run {of_all}"
    if to_run:
        lasts = _format_total_time(total, rounds, load)
        what = f"{format_unit_counts(planned)} to run{some}{format_rounds_clause(rounds)}; {lasts}"
    lines.append(f"{what}; results in {state.runner.results.folder}")
    sys.stdout.write("\n".join(lines) + "\n")


def _describe_planned_rounds(item: PlannedUnit, rounds: RoundLimits) -> str:
    """In which rounds a unit is to run, where there are several."""
    if rounds.most == 1:
        return ""
    if rounds.is_open_ended:
        next_one = item.rounds[0] if item.rounds else 1
        return f" in round {next_one}" + ("; further rounds may follow" if next_one < rounds.most else "")
    return (
        f", in rounds {format_list([*map(str, item.rounds)])}"
        if item.rounds
        else f", in {rounds.most} rounds"
    )


def format_group_prediction(group_prediction: GroupPrediction) -> str:
    """One line: how many times as long each job should take, and why; or why that is not known."""
    prediction = group_prediction.prediction
    if prediction is None:
        return f"not predicted: {group_prediction.why_not}"
    times = ", ".join(format_number(job.slowdown, 2) for job in prediction.jobs)
    most = "at most " if prediction.is_upper_bound else ""
    waits = [RESOURCES[name] for name in prediction.waits_for] or ["nothing that they share"]
    return (
        f"predicted {most}{times} times as long as alone: {OVERLAPS[prediction.overlap].lower()} "
        f"(gain {format_number(prediction.overlap_gain, 2)}); they would wait for {join_words(waits)}"
    )
