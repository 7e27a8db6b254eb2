"""The thirteen rules: twelve in the order of T. Hoefler's list, and one of T. Hoefler and R. Belli (2015)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gpubench.analysis.audit import accuracy, fairness, runs, uncertainty, workload
from gpubench.analysis.audit.facts import AuditedFolder, RuleFinding


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule, named by how it is kept."""

    number: int
    title: str
    way: str
    """Its opposite: the way to fool the masses."""
    check: Callable[[AuditedFolder], RuleFinding]


RULES: tuple[Rule, ...] = (
    Rule(1, "accuracy holds while scaling", "accuracy ignored while scaling", accuracy.holds_while_scaling),
    Rule(2, "test accuracy is reported", "test accuracy not reported", accuracy.is_reported),
    Rule(3, "every run is kept", "tuning runs hidden", runs.all_kept),
    Rule(4, "like hardware with like", "old hardware against new", fairness.like_hardware),
    Rule(5, "whole epochs", "kernels or subsets only", workload.whole_epochs),
    Rule(6, "input is included", "I/O left out", workload.input_included),
    Rule(7, "time to a solution", "op rates instead of time to solution", workload.time_to_solution),
    Rule(
        8,
        "speed and accuracy of one run",
        "speed from one set of options and accuracy from another",
        accuracy.same_run,
    ),
    Rule(9, "inputs of sensible size", "unreasonably large inputs", workload.sensible_sizes),
    Rule(10, "training ends by epochs", "training for a fixed wall time", runs.ended_by_epochs),
    Rule(11, "strong and weak told apart", "strong and weak scaling confused", fairness.strong_or_weak),
    Rule(12, "no flattering comparison", "a comparison chosen to flatter", fairness.nothing_flattered),
    Rule(13, "repeats and uncertainty", "figures of one process, without uncertainty", uncertainty.repeated),
)


def audit(facts: AuditedFolder) -> list[tuple[Rule, RuleFinding]]:
    """What each rule finds."""
    return [(rule, rule.check(facts)) for rule in RULES]
