"""Why jobs that run together wait: which resource was full, alone and together.

Each resource is watched through one column, and WATCHED draws the line from which it counts as full. Two of them are
no shares of something: `input` is full where the GPUs wait for images, `power` where their clocks are lowered. Two
others are shares of time, not of what there is: that some kernel always ran, or memory was always being used, is no
evidence that a GPU was full. From their line on that is told, but they never count as full.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpubench.analysis.slowdown import PARALLEL, WORDS, loss, slowest
from gpubench.basics.rounding import half_up
from gpubench.basics.words import MINUS, listed
from gpubench.schema.doubts import FULL_PCT, THROTTLED_PCT
from gpubench.schema.group_facts import GroupFacts, Resource
from gpubench.schema.row import Row
from gpubench.schema.verdict import UNSURE, Verdict

UNWATCHED = {"GPUs": "kernel launches, PCIe and caches", "jobs": "memory bandwidth and caches"}
"""What nobody looks at, by what waits."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WatchedResource:
    """What is looked at for one resource, and how it is told."""

    name: str
    column: str
    full_from: float
    """The figure, in per cent, from which it counts as full; a share of time is told from there on."""
    label: str
    """How a list of figures names it: `CPUs 55 %`."""
    said: str
    """What is said where it was full. `{jobs}`: what waits; `{together}` and `{alone}`: figures in per cent."""
    too: str
    """What a job did that had it full alone, too: `one of the jobs filled them alone, too`."""
    of_gpus: bool = True
    """Whether only jobs on GPUs have it."""
    of_time: bool = False
    """Whether it is a share of time: then reaching the line is told, and is no evidence that it was full."""

    def reached(self, value: float | None) -> bool:
        """Whether a figure, in per cent, is known and lies on the line or above."""
        return value is not None and value >= self.full_from


WATCHED: tuple[WatchedResource, ...] = (
    WatchedResource(
        name="cpu",
        column="cpu_util_pct",
        full_from=90,
        label="CPUs",
        said="the CPUs were full together ({together}; alone {alone})",
        too="filled them",
        of_gpus=False,
    ),
    WatchedResource(
        name="gpu",
        column="gpu_util_pct",
        full_from=95,
        label="GPU time",
        # Two jobs whose small kernels ran 97 % of the time lost nothing beside each other.
        said="a kernel ran nearly all the time ({together}; alone {alone}), "
        "which does not tell whether the GPUs were full",
        too="did so",
        of_time=True,
    ),
    WatchedResource(
        name="gpu memory",
        column="gpu_mem_mib",
        full_from=FULL_PCT,
        label="GPU memory",
        said="GPU memory was full together ({together}; alone {alone})",
        too="filled it",
    ),
    WatchedResource(
        name="memory bandwidth",
        column="gpu_mem_util_pct",
        full_from=90,
        label="memory bandwidth",
        said="GPU memory was read or written nearly all the time ({together}; alone {alone}), "
        "which does not tell whether its bandwidth was used up",
        too="did so",
        of_time=True,
    ),
    WatchedResource(
        name="input",
        column="data_wait_pct",
        full_from=20,
        label="waiting for images",
        said="the {jobs} waited for images ({together} of the epoch instead of {alone})",
        too="waited",
        of_gpus=False,
    ),
    WatchedResource(
        name="power",
        column="throttled_pct",
        full_from=THROTTLED_PCT,
        label="clocks lowered",
        said="power or heat lowered the GPUs' clocks ({together} of the time instead of {alone})",
        too="had them lowered",
    ),
)
BY_NAME: dict[str, WatchedResource] = {one.name: one for one in WATCHED}

ROOM = ("cpu", "gpu", "gpu memory", "memory bandwidth")
"""Resources of which something can be left."""

AS_ALONE = 1.1
"""Slowdown up to which a job is about as fast as alone; down to 1 / AS_ALONE."""

NEAR = 0.1
"""How far below PARALLEL a gain may lie for its jobs to be parallel, perhaps, where nobody knows how it spreads."""

LOSS = {
    "no": "",
    "perhaps": ", perhaps slower than one after the other",
    "yes": ", and slower than one after the other",
}
"""What a headline adds to its verdict, which has no word for jobs that lose by running together."""

SHORT = "GPU memory ran short: the allocator had to give some back and try again ({together}; alone {alone})"
"""What is said of GPU memory that ran short without being full by the figures, which come from samples."""


def stored_resources(group: GroupFacts | None) -> list[Resource]:
    """Those of a stored group, without any that this version does not watch.

    A share of time that earlier versions took for full is not full.
    """
    return [
        replace(one, full_alone=(False,) * len(one.full_alone), full_together=False)
        if BY_NAME[one.name].of_time
        else one
        for one in (group.resources if group else ())
        if one.name in BY_NAME
    ]


def evidence(
    alone: Sequence[Row], together: Sequence[Row], gpu_memory_mib: Sequence[float | None]
) -> list[Resource]:
    """How full every watched resource was; those of GPUs are left out where no job uses one.

    Rows of the same job have the same place in both. `gpu_memory_mib`: what one GPU of each job has, in MiB.
    """
    on_gpus = any(row.gpus or row.gpu_ids for row in (*alone, *together))
    found = []
    for one in WATCHED:
        if one.of_gpus and not on_gpus:
            continue
        if one.name == "gpu memory":
            before = _memory(alone, gpu_memory_mib, together=False)
            now = _memory(together, gpu_memory_mib, together=True)
            short = [[bool(row.gpu_alloc_retries) for row in rows] for rows in (alone, together)]
        else:
            before, now = (tuple(row.value(one.column) for row in rows) for rows in (alone, together))
            short = [[False] * len(rows) for rows in (alone, together)]
        found.append(
            Resource(
                name=one.name,
                column=one.column,
                unit="%",
                alone=before,
                together=now,
                full_alone=_full(one, before, short[0]),
                full_together=any(_full(one, now, short[1])),
            )
        )
    return found


def full_together(resources: Sequence[Resource]) -> tuple[str, ...]:
    """The names of what was full while the jobs ran together."""
    return tuple(one.name for one in resources if one.full_together)


def busy(resources: Sequence[Resource]) -> list[Resource]:
    """Shares of time that reached their line while the jobs ran together."""
    return [
        one
        for one in resources
        if (watched := BY_NAME[one.name]).of_time and any(map(watched.reached, one.together))
    ]


def full_cell(names: Sequence[str]) -> str | None:
    """These names as the column `full_together` has them, `cpu+gpu-memory`; None for none."""
    return "+".join(name.replace(" ", "-") for name in names) or None


def not_full(resources: Sequence[Resource]) -> str:
    """Why `full_together` is empty: nothing was full, or a share of time does not tell."""
    seen = [BY_NAME[one.name].label for one in busy(resources)]
    if seen:
        return f"no watched resource is known to have been full; {' and '.join(seen)} can't tell"
    return "none of the watched resources was full"


def headline(found: Verdict, gain: float) -> str:
    """The verdict with its gain, `parallel (overlap gain 0.98, 0.92 to 1.03)`; no full stop. There must be one.

    Below 0 it says that the jobs lose: `merely concurrent, and slower than one after the other (overlap gain −0.82)`.
    """
    ends = [_digits(end, 2) for end in found.gain_range or ()]
    between = f", {' to '.join(ends)}" if len(set(ends)) > 1 else ""
    return f"{verdict_words(found, gain)} (overlap gain {_digits(gain, 2)}{between})"


def verdict_words(found: Verdict, gain: float) -> str:
    """The verdict as sentences have it, without its gain. There must be one."""
    if found.sure == "open":
        return f"open, {' or '.join(found.words)}{LOSS[loss(found, gain)]}"
    return f"{found.cell}{LOSS[loss(found, gain)]}"


def sentences(
    found: Verdict, gain: float, resources: Sequence[Resource], slowdowns: Sequence[float] = ()
) -> list[str]:
    """What speaks for a verdict, for people; without capitals and full stops.

    `slowdowns`: one a job; empty where they are not known.
    """
    if not resources:
        return []
    longest = slowest(slowdowns)
    nobody_waited = found.words == WORDS[-1:] or (longest is not None and longest <= 1)
    return _room(resources, slowdowns) if nobody_waited else _culprits(resources, _maybe(found, gain))


def _maybe(found: Verdict, gain: float) -> bool:
    """Whether the jobs may be parallel, and so may have waited for nothing."""
    return gain >= PARALLEL - NEAR if found.sure in UNSURE else WORDS[-1] in found.words


def _culprits(resources: Sequence[Resource], perhaps_none: bool) -> list[str]:
    """What was full; else that nothing was, what was seen of it, and what nobody looked at."""
    found = [_said(one, resources) for one in resources if one.full_together]
    ran = [_said(one, resources) for one in busy(resources)]
    if found:
        return [", and ".join(found), *ran]
    unwatched = f"{UNWATCHED[_waiting(resources)]} are not watched"
    unknown = [BY_NAME[one.name].label for one in resources if not _known(one.together)]
    unwatched += f", and not known: {listed(unknown)}" if unknown else ""
    seen = _figures([one for one in resources if _known(one.together) and one not in busy(resources)])
    unclear = f"{'whether they waited' if perhaps_none else 'what they waited for'} is not known"
    if ran:
        others = [f"none of the other watched resources was full ({seen})"] if seen else []
        return [unclear, *ran, *others, unwatched]
    nothing = f"none of the watched resources was full ({seen})" if seen else "no figure tells why"
    return [*[unclear] * perhaps_none, nothing, unwatched]


def _room(resources: Sequence[Resource], slowdowns: Sequence[float]) -> list[str]:
    """What had room left. Something that was full is no culprit where no job was slower than alone.

    The gain alone does not tell that: one job that was faster than alone outweighs another that waited.
    """
    often = busy(resources)
    left = [
        one
        for one in resources
        if one.name in ROOM and not one.full_together and one not in often and _known(one.together)
    ]
    full = [_said(one, resources) for one in resources if one.full_together]
    longest = slowest(slowdowns)
    none_slower = longest is not None and longest <= 1
    parts = ["none of the jobs was slower than alone"] if none_slower else []
    parts += [f"there was room left ({_figures(left)})"] if left else []
    uneven = not none_slower and any(not 1 / AS_ALONE <= value <= AS_ALONE for value in slowdowns)
    if uneven:
        ends = " to ".join(_digits(end(slowdowns), 2) for end in (min, max))
        parts += [f"the jobs took {ends} times as long as alone"]
    if full and slowdowns and not uneven and not none_slower:
        parts += [f"each job was about as fast as alone although {', and '.join(full)}"]
    elif full:
        parts += [", and ".join(full)]
    parts += [_said(one, resources) for one in often]
    return parts or ["how much room was left is not known"]


def _said(one: Resource, resources: Sequence[Resource]) -> str:
    watched = BY_NAME[one.name]
    short = one.name == "gpu memory" and not any(map(watched.reached, one.together))
    text = SHORT if short else watched.said
    count = sum(map(watched.reached, one.alone)) if watched.of_time else sum(one.full_alone)
    already = ""
    if count:
        who = "each" if count == len(one.alone) else "one" if count == 1 else str(count)
        already = f"; {who} of the jobs {'ran short' if short else watched.too} alone, too"
    return text.format(
        jobs=_waiting(resources), together=_percent(one.together), alone=_percent(one.alone) + already
    )


def _waiting(resources: Sequence[Resource]) -> str:
    """Who waits: jobs on a CPU have no resource of GPUs."""
    return "GPUs" if any(BY_NAME[one.name].of_gpus for one in resources) else "jobs"


def _figures(resources: Sequence[Resource]) -> str:
    """How full these were together: `CPUs 55 %, GPU time 60 and 62 %`."""
    return ", ".join(f"{BY_NAME[one.name].label} {_percent(one.together)}" for one in resources)


def _percent(values: Sequence[float | None]) -> str:
    """Figures as text: `58, 61 and 77 %`, one for each job, or `98 %` where they all read the same."""
    shown = ["unknown" if value is None else _digits(value, 0) for value in values]
    if len(set(shown)) == 1:
        return shown[0] + ("" if shown[0] == "unknown" else " %")
    return f"{listed(shown)} %"


def _digits(value: float, digits: int) -> str:
    return str(half_up(value, digits)).replace("-", MINUS)


def _known(values: Sequence[float | None]) -> bool:
    return any(value is not None for value in values)


def _full(
    watched: WatchedResource, values: Sequence[float | None], short: Sequence[bool]
) -> tuple[bool, ...]:
    """For each job, whether it had the resource full. `short`: whether it ran short, whatever its figure says."""
    return tuple(
        ran_short or (watched.reached(value) and not watched.of_time)
        for value, ran_short in zip(values, short, strict=True)
    )


def _memory(
    rows: Sequence[Row], gpu_memory_mib: Sequence[float | None], *, together: bool
) -> tuple[float | None, ...]:
    """Per cent of the memory of each job's fullest GPU, by all jobs that are on it at the same time.

    A job's figure is that of its fullest GPU, taken for each of its GPUs; so it is at most this full.
    """
    found: list[float | None] = []
    for row, size in zip(rows, gpu_memory_mib, strict=True):
        held = [_held(rows, gpu) for gpu in row.gpu_ids or ()] if together else [row.gpu_mem_mib]
        known = [mib for mib in held if mib is not None]
        complete = bool(known) and len(known) == len(held)
        found.append(min(100.0, 100 * max(known) / size) if complete and size else None)
    return tuple(found)


def _held(rows: Sequence[Row], gpu: int) -> float | None:
    """MiB that the jobs hold on a GPU; None where one of them is not known."""
    held = [row.gpu_mem_mib for row in rows if gpu in (row.gpu_ids or ())]
    return None if None in held else sum(mib for mib in held if mib is not None)
