"""What must be so before a sweep runs: enough hardware, nobody else on it, and leave to make many images."""

from __future__ import annotations

import os
from collections.abc import Sequence

from gpubench.basics.errors import UnusableError
from gpubench.basics.words import listed, many
from gpubench.node.environment import Machine
from gpubench.node.node import Node
from gpubench.plan.skips import NEEDS
from gpubench.plan.state import Planned
from gpubench.render import live
from gpubench.schema.doubts import OTHER_LOAD_PCT
from gpubench.sweep import consent, guard
from gpubench.sweep.announcing import (
    announcement_lines,
    making_line,
    steps_to_images,
)
from gpubench.sweep.sweep import Sweep

HOST_LOOK_S = 0.3


def check_hardware(planned: Sequence[Planned], machine: Machine) -> None:
    """Raises UnusableError where every trial needs more GPUs or CPUs than there are."""
    asked = [item for item in planned if not item.unit.baseline]
    if all(item.state == "skip" and item.why.startswith(NEEDS) for item in asked):
        raise UnusableError(f"no trial is left: {asked[0].why}; {remedy(planned, machine)}")


def check_given_gpus(planned: Sequence[Planned], machine: Machine, *, is_by_machine: bool) -> None:
    """Raises UnusableError where SLURM gave GPUs, none is seen, and nobody has asked for the CPU in their place.

    Else a node whose driver is broken would measure on its CPUs what the other tasks of an array measure on GPUs.
    `is_by_machine`: the experiment was chosen because no GPU is seen.
    """
    job = machine.allocation
    if machine.gpus or job is None or not job.gpus:
        return
    trials = [one.trial for item in planned if item.state == "run" for one in item.unit.jobs]
    if trials and (is_by_machine or any(t.device is None for t in trials)):
        raise UnusableError(
            f"{job.called} was given GPUs ({job.gpus}), but none is seen on {job.node or machine.host}: "
            "gpubench doctor in such a job says why; --device cpu measures on its CPUs"
        )


def remedy(planned: Sequence[Planned], machine: Machine) -> str:
    """What to do about trials that want more GPUs or CPUs than there are; empty where none does."""
    lacks = [item.why for item in planned if item.state == "skip" and item.why.startswith(NEEDS)]
    if not lacks:
        return ""
    if any(" nodes, there " in why for why in lacks):
        return (
            "ask for fewer (--nodes), run it in a SLURM job that has them, or say how a process is started on each "
            "further node (--agent 'ssh n2')"
        )
    if not any("GPU" in why for why in lacks):
        return "ask for fewer (--cpus), or run it on a machine that has them"
    if machine.allocation:
        return "ask SLURM for more (--gpus-per-task, --gres=gpu:N), or for fewer here (--gpus, --gpu-ids)"
    if machine.gpus:
        return "ask for fewer (--gpus, --gpu-ids), or run it on a machine that has them"
    cpu = "on the CPU it runs with --device cpu in place of --gpus or --gpu-ids"
    return f"{cpu}; else run it on a machine that has GPUs"


def announced(work: Sweep, planned: Sequence[Planned], view: live.View, *, yes: bool) -> bool:
    """Says what the sweep will do, and asks before it makes many images. False where the answer is no.

    Where nobody can be asked it says so and goes on, for scripts rely on that.
    """
    steps = steps_to_images(work, planned)
    load = other_load(work.bench.node)  # before the fork server, whose start is a load of our own
    for line in announcement_lines(work, planned, steps, load):
        view.say(line)
    much, asks = consent.is_much(steps), not yes and consent.can_ask()
    if much:
        alone = "" if yes or asks else " There is no terminal to ask on: they are made now."
        view.say(making_line(steps, len(os.sched_getaffinity(0))) + alone)
    if load:  # nobody is refused: it may be over before the first trial
        view.say(
            "times measured beside other work are doubtful; in a batch job --exclusive keeps others off the node"
            if work.bench.node.machine.allocation
            else "times measured beside other work are doubtful; better start again when it has ended (top shows it)"
        )
    return not (much and asks) or consent.agreed(steps)


def other_load(node: Node) -> str:
    """How much other work takes of the CPUs now, `1.8 of 2 CPUs`; empty where that is little, or not known."""
    busy, cpus = node.host_load(HOST_LOOK_S), node.machine.cpu_count
    if busy is None or busy <= OTHER_LOAD_PCT:
        return ""  # where it is not known, each row says that of its CPU use, and `gpubench doctor` why
    return f"{busy / 100 * cpus:.1f} of {many(cpus, 'CPU')}"


def look_around(work: Sweep, planned: Sequence[Planned], view: live.View, *, allow_busy: bool) -> None:
    """Tells who else is on the GPUs that the plan will use, which were lost, and notes the idle power of the others.

    Raises UnusableError where somebody keeps one of them busy and that is not allowed, or none is left.
    """
    bench = work.bench
    units = [item.unit for item in planned if item.state == "run"]
    if not any(map(bench.uses_gpus, units)):
        return
    for index, why in bench.node.lost_at_start().items():
        view.say(
            f"the driver's GPU {index} is left out ({why}), so the numbers of the GPUs after it are one lower; "
            "to have it back, reset it or reboot"
        )
    work.look_at_gpus(planned, view)
    gone = {loss.gpu.uuid for loss in bench.lost.values()}
    used = {uuid for unit in units for one in bench.resolve(unit) for uuid in one.gpu_uuids} - gone
    numbers = {gpu.uuid: gpu.index for gpu in bench.node.machine.gpus if gpu.uuid in used}
    bench.looked_at = set(numbers.values())
    if (shared := sorted(numbers[uuid] for uuid in bench.node.lock_gpus(list(numbers)))) and not allow_busy:
        which = (
            f"GPU {shared[0]} is"
            if len(shared) == 1
            else f"GPUs {listed([str(number) for number in shared])} are"
        )
        raise UnusableError(
            f"{which} being measured on by another gpubench sweep of this host; wait for its end, give each sweep GPUs "
            "of its own (CUDA_VISIBLE_DEVICES, in SLURM --gpus-per-task), or add --allow-busy"
        )
    ruling = guard.rule(bench.node.look_at_gpus(list(numbers)), numbers)
    for line in ruling.enforce(allow_busy=allow_busy):
        view.say(line)
    bench.idle_power_w, bench.no_idle_power = dict(ruling.idle_power_w), dict(ruling.no_idle_power)
    bench.idle_readings = dict(ruling.idle_readings)
