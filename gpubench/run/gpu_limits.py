"""Limits that trials want on GPUs: which there are, whether they may be set, and how that is told. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gpubench.basics.errors import UnusableError
from gpubench.basics.words import format_list
from gpubench.schema.gpu_look import (
    IN_USE_PCT,
    AllowedLimits,
    GpuLook,
    LeftLimits,
    WantedLimits,
    make_setting_command,
)
from gpubench.schema.trial import Trial


def collect_wanted_limits(trials: Iterable[tuple[Trial, Sequence[str]]]) -> dict[str, WantedLimits]:
    """GPU -> what trials want of it, where they want anything. `trials`: each with the UUIDs of its GPUs."""
    power: dict[str, set[int]] = {}
    clock: dict[str, set[int]] = {}
    for t, uuids in trials:
        for uuid in uuids:
            for wanted, value in ((power, t.power_limit_w), (clock, t.sm_clock_limit_mhz)):
                if value is not None:
                    wanted.setdefault(uuid, set()).add(value)
    return {
        uuid: WantedLimits(power_w=frozenset(power.get(uuid, ())), clock_mhz=frozenset(clock.get(uuid, ())))
        for uuid in power | clock
    }


def needs_setting(wanted: WantedLimits, allowed: AllowedLimits) -> bool:
    """Whether a GPU is not set so already. To what its clock is limited no driver tells."""
    return bool(wanted.clock_mhz) or any(watts != allowed.power_w for watts in wanted.power_w)


def check_within_range(
    wanted: Mapping[str, WantedLimits], allowed: Mapping[str, AllowedLimits], numbers: Mapping[str, int]
) -> None:
    """Raises UnusableError for a limit that a GPU can't have. `numbers`: uuid -> as `--gpu-ids` takes it."""
    for uuid, limits in wanted.items():
        for field, key, unit, values, ends in (
            ("power_limit_w", "power_range_w", "W", limits.power_w, allowed[uuid].power_range_w),
            ("sm_clock_limit_mhz", "clock_range_mhz", "MHz", limits.clock_mhz, allowed[uuid].clock_range_mhz),
        ):
            gpu = f"GPU {numbers[uuid]}"
            if values and uuid.startswith("MIG-"):
                raise UnusableError(
                    f"{gpu} is a MIG slice, which has no limits of its own: leave {field} out"
                )
            if values and ends is None:
                raise UnusableError(
                    f"{gpu} has no {field} to set ({allowed[uuid].missing[key]}): leave it out"
                )
            outside = [value for value in sorted(values) if ends and not ends[0] <= value <= ends[1]]
            if outside and ends:
                given = format_list([str(value) for value in outside])
                raise UnusableError(
                    f"{gpu} takes a {field} of {ends[0]:g} to {ends[1]:g} {unit}, not {given}: choose others"
                )


def check_not_in_use(wanted: Iterable[str], looks: Mapping[str, GpuLook], numbers: Mapping[str, int]) -> None:
    """Raises UnusableError where somebody works on a GPU whose limits would be changed."""
    for uuid in wanted:
        if (looks[uuid].util_pct or 0.0) >= IN_USE_PCT:
            raise UnusableError(
                f"somebody else works on GPU {numbers[uuid]}, so its limits are not changed: wait, or take other GPUs "
                "with --gpu-ids"
            )


def describe_missing_right(
    wanted: Mapping[str, WantedLimits], allowed: Mapping[str, AllowedLimits], reason: str
) -> str:
    """Why no limit is set, and what an administrator can do."""
    how = []
    if values := {watts for limits in wanted.values() for watts in limits.power_w}:
        lowest = min(values)
        uuids = [uuid for uuid, limits in wanted.items() if lowest in limits.power_w]
        commands = " && ".join(make_setting_command(uuid, f"-pl {lowest}") for uuid in uuids)
        how.append(f"power_limit_w={lowest} alone is measured after `{commands}`")
    commands = " && ".join(
        make_setting_command(uuid, f"-lgc {ends[0]},{min(limits.clock_mhz)}")
        for uuid, limits in wanted.items()
        if limits.clock_mhz and (ends := allowed[uuid].clock_range_mhz)
    )
    how += [f"one clock limit is measured after `{commands}`, without sm_clock_limit_mhz"] if commands else []
    return (
        f"only root may set limits on GPUs ({reason}); where an administrator sets one, {', and '.join(how)}"
    )


def describe_guarded_limits(
    wanted: Mapping[str, WantedLimits], allowed: Mapping[str, AllowedLimits], numbers: Mapping[str, int]
) -> list[str]:
    """What is said before anything is set, a line a GPU."""
    lines = []
    for uuid, limits in sorted(wanted.items(), key=lambda item: numbers[item[0]]):
        power = f"power {format_list([f'{watts} W' for watts in sorted(limits.power_w)])}"
        clock = f"clock {format_list([f'{mhz} MHz' for mhz in sorted(limits.clock_mhz)])}"
        after = [f"{allowed[uuid].power_w:g} W"] if limits.power_w else []
        after += ["no clock limit, for no driver tells whether there was one"] if limits.clock_mhz else []
        what = " and ".join(
            words for words, values in ((power, limits.power_w), (clock, limits.clock_mhz)) if values
        )
        lines.append(
            f"GPU {numbers[uuid]} is limited for its trials ({what}); afterwards {' and '.join(after)}"
        )
    return lines


def describe_left_limits(left: LeftLimits) -> str:
    """What became of a GPU that a killed sweep had left with limits of its own."""
    if left.trouble:
        return f"{left.uuid} was left with a sweep's limits and is not as before: {left.trouble}"
    again = [f"{left.power_limit_w:g} W"] if left.power_limit_w is not None else []
    again += ["no clock limit"] if left.is_clock_limited else []
    return f"{left.uuid} was left with a sweep's limits; it is set as before again: {' and '.join(again)}"
