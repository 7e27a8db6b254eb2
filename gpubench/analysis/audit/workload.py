"""Rules on the work that was timed: whole epochs, input included, to a solution, on inputs of reasonable size."""

from __future__ import annotations

from typing import Any

from gpubench.analysis.audit.facts import (
    NOTHING,
    AuditedFolder,
    Measured,
    RuleFinding,
    details,
    does,
    first_few,
    measured,
    of,
    rule_finding,
)
from gpubench.analysis.varied import CANDIDATES, inferred, known
from gpubench.schema.row import Row
from gpubench.schema.trial_fields import those

ENLARGED = 2.0
"""Times an image's native side from which an input counts as blown up."""
USUAL_PX = 256
"""Sides up to this are usual for photographs whose own size is not on record."""
FEW_STEPS = 20
"""Steps an epoch below which a batch is an unreasonable share of the images."""
FEEDING = frozenset({*those(lambda about: about.feeds), "lr"})
"""Fields that rows may differ in which show what reading the images takes. The learning rate takes no time."""


def whole_epochs(facts: AuditedFolder) -> RuleFinding:
    """Rule 5: whole epochs over all images, with every part of training in them."""
    if not facts.ok:
        return NOTHING
    part = [row for row in facts.ok if row.epoch_time_source == "extrapolated"]
    again = _in_further_rounds(facts)
    windows = [row for row in facts.ok if measured(row) in again and row not in part]
    subset = [row for row in facts.ok if _subset(row)]
    silent = [row for row in facts.ok if not row.images_per_epoch]
    broken, unclear = [], []
    if part:
        broken.append(
            f"epoch times of {of(part, facts.ok)} are extrapolated from steps (marked ~); --epochs measures all of it"
        )
    if windows:
        broken.append(
            f"epoch times of {of(windows, facts.ok)} rest in part on further rounds, which measure windows of steps; "
            "--repeats in place of --rounds measures whole epochs in each process"
        )
    if subset:
        used, whole = subset[0].train_images, details(subset[0]).train_images
        broken.append(
            f"{of(subset, facts.ok)} {does(subset, 'train')} on a part of the images ({used:,} of {whole:,})"
        )
    if silent:
        unclear.append(f"how many images an epoch has is not on record for {of(silent, facts.ok)}")
    counts = sorted({row.images_per_epoch for row in facts.ok if row.images_per_epoch})
    several = f"{counts[0]:,} to {counts[-1]:,}" if len(counts) > 1 else "".join(f"{n:,}" for n in counts)
    kinds = dict.fromkeys(row.kind for row in facts.ok)
    what = " or ".join(dict.fromkeys("a rate" if kind == "steady rate" else "whole epochs" for kind in kinds))
    return rule_finding(
        broken,
        unclear,
        f"{of(facts.ok, facts.ok)} {does(facts.ok, 'time')} {what} of full training steps ({several} images)",
    )


def input_included(facts: AuditedFolder) -> RuleFinding:
    """Rule 6: images are read, decoded and transformed within the time; what leaves that out stands beside it."""
    if not facts.ok:
        return NOTHING
    fed = {id(row): None if inferred(row, "variant") else details(row).files for row in facts.ok}
    unknown = [row for row in facts.ok if fed[id(row)] is None]
    without = [row for row in facts.ok if fed[id(row)] == "none"]
    loaded = {_but_feeding(row) for row in facts.ok if fed[id(row)] not in (None, "none")}
    lonely = [row for row in without if _but_feeding(row) not in loaded]
    broken = []
    if lonely:
        broken.append(
            f"{of(lonely, facts.ok)} {does(lonely, 'train')} on a resident batch, with no row "
            "beside that loads its images; add a variant such as crop-resize"
        )
    unclear = [f"how images were fed is not on record for {of(unknown, facts.ok)}"] if unknown else []
    decoded = [row for row in facts.ok if fed[id(row)] in ("decoded", "memory")]
    told = (
        [f"{len(without)} on a resident batch {does(without, 'stand')} beside, named so"] if without else []
    )
    told += (
        [f"{len(decoded)} {does(decoded, 'read')} decoded images: decoding is left out"] if decoded else []
    )
    foreign = {str(row.source) for row in facts.ok} - {"measured", "None"}
    told += [f"as a {source} says" for source in sorted(foreign)]
    reading = [row for row in facts.ok if fed[id(row)] not in (None, "none")]
    return rule_finding(
        broken,
        unclear,
        f"images are loaded within the epoch time in {of(reading, facts.ok)}"
        f"{' (' + '; '.join(told) + ')' if told else ''}; after the first epoch files may come from the page cache",
    )


def time_to_solution(facts: AuditedFolder) -> RuleFinding:
    """Rule 7: times to a solution, not rates of operations. One that was never reached has no time."""
    if not facts.ok:
        return NOTHING
    rates = [row for row in facts.ok if row.epoch_time_s is None and row.images_per_s is not None]
    reached = [row for row in facts.ok if row.time_to_top1_s is not None]
    asked = [row for row in facts.ok if row.until_top1]
    broken = [f"a rate and no time in {of(rates, facts.ok)}"] if rates else []
    unclear = []
    of_asked = (
        "the only row that was to has not" if len(asked) == 1 else f"none of the {len(asked):,} rows has"
    )
    if not reached:
        unclear.append(
            "times of epochs are shown and no rates of operations, but an epoch is no solution"
            + (
                f": {of_asked} reached its top-1; give more --epochs"
                if asked
                else "; gpubench sweep --until-top1 N measures the time to an accuracy"
            )
        )
    else:
        others = []
        if missed := len(asked) - len(reached):
            others.append(
                f"{missed} did not get there, so how long they take is not known; give them more --epochs"
            )
        if len(asked) < len(facts.alone):
            others.append(f"{'other rows' if missed else 'the others'} tell the time of an epoch only")
        if others:
            unclear.append("; ".join((f"a time to an accuracy in {of(reached, facts.ok)}", *others)))
    return rule_finding(broken, unclear, f"a time to an accuracy in {of(reached, facts.ok)}")


def sensible_sizes(facts: AuditedFolder) -> RuleFinding:
    """Rule 9: images are not blown up, and a batch is a small part of the epoch."""
    if not facts.ok:
        return NOTHING
    blown, unknown_size, few, unknown_steps = [], [], [], []
    for row in facts.ok:
        size, native = row.input_size, details(row).size
        if size is None or (native is None and size > USUAL_PX):
            unknown_size.append(row)
        elif native is not None and size >= ENLARGED * native:
            blown.append(row)
        if not row.images_per_epoch or not row.batch_size:
            unknown_steps.append(row)
        elif _steps(row) < FEW_STEPS:
            few.append(row)
    broken, unclear = [], []
    if blown:
        row = blown[0]
        broken.append(
            f"{of(blown, facts.ok)} {does(blown, 'train')} on images blown up to "
            f"{first_few(one.input_size for one in blown)} px from {details(row).size} px"
        )
    if few:
        most = max(few, key=lambda row: row.batch_size or 0)
        broken.append(
            f"in {of(few, facts.ok)} an epoch has fewer than {FEW_STEPS} steps (batch {most.batch_size:,}: "
            f"{_steps(most):.0f}), so the batch is out of proportion to the data; take more images or smaller batches"
        )
    if unknown_size:
        unclear.append(f"the images' own size is not on record for {of(unknown_size, facts.ok)}")
    if unknown_steps:
        unclear.append(f"how many steps an epoch has is not on record for {of(unknown_steps, facts.ok)}")
    sizes = sorted({row.input_size for row in facts.ok if row.input_size})
    least = min((_steps(row) for row in facts.ok if row.images_per_epoch and row.batch_size), default=0)
    return rule_finding(
        broken,
        unclear,
        f"inputs of {first_few(sizes)} px are not blown up, and every epoch has {least:.0f} steps or more",
    )


def _in_further_rounds(facts: AuditedFolder) -> set[Measured]:
    """The trials that rounds after the first measured again by less than the first, as versions before 0.2 did."""
    rows = (row for table in facts.tables for row in table.ok)
    return {measured(row) for row in rows if not row.has_all_figures}


def _subset(row: Row) -> bool:
    used, whole = row.train_images, details(row).train_images
    return bool(used and whole and used < whole)


def _steps(row: Row) -> float:
    return (row.images_per_epoch or 0) / (row.batch_size or 1)


def _but_feeding(row: Row) -> tuple[Any, ...]:
    """The configuration without what concerns its images."""
    return tuple(known(row, field) for field in CANDIDATES if field not in FEEDING)
