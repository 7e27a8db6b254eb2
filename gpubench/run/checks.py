"""What must be so before a sweep runs: enough hardware, nobody else on it, and models and variants that can work."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpubench.basics.errors import UnusableError, UsageError
from gpubench.basics.quoted import quote_value
from gpubench.basics.words import format_count, format_list
from gpubench.node.environment import Machine
from gpubench.node.node import Node
from gpubench.plan.plan import Job, Unit
from gpubench.plan.resolve import CHANNELS, ResolvedTrial, fill_command
from gpubench.plan.skips import NEEDS
from gpubench.plan.state import PlannedUnit
from gpubench.render.live import View
from gpubench.run import busy_gpus, gpu_limits
from gpubench.run.sweep_state import SweepState
from gpubench.schema import catalog
from gpubench.schema.command import find_script
from gpubench.schema.doubts import OTHER_LOAD_PCT
from gpubench.schema.gpu_look import GpuLook, NoRightToSetError
from gpubench.schema.missing import Unmeasured

HOST_LOOK_S = 0.3


def check_enough_hardware(planned: Sequence[PlannedUnit], machine: Machine) -> None:
    """Raises UnusableError where every trial needs more GPUs or CPUs than there are."""
    requested = [item for item in planned if not item.unit.baseline]
    if all(item.state == "skip" and item.why.startswith(NEEDS) for item in requested):
        raise UnusableError(
            f"no trial is left: {requested[0].why}; {describe_hardware_remedy(planned, machine)}"
        )


def check_slurm_gpus_seen(planned: Sequence[PlannedUnit], machine: Machine, *, is_by_machine: bool) -> None:
    """Raises UnusableError where SLURM gave GPUs, none is seen, and nobody has asked for the CPU in their place.

    Else a node whose driver is broken would measure on its CPUs what the other tasks of an array measure on GPUs.
    `is_by_machine`: the experiment was chosen because no GPU is seen.
    """
    job = machine.allocation
    if machine.gpus or job is None or not job.gpus:
        return
    trials = [job.trial for item in planned if item.state == "run" for job in item.unit.jobs]
    if trials and (is_by_machine or any(t.device is None for t in trials)):
        raise UnusableError(
            f"{job.job_label} was given GPUs ({job.gpus}), but none is seen on {job.node or machine.host}: "
            "gpubench doctor in such a job says why; --device cpu measures on its CPUs"
        )


def check_commands_exist(planned: Sequence[PlannedUnit], state: SweepState) -> None:
    """Raises UsageError for a command whose program is not there, or the script that Python or a shell is to run."""
    for item in planned:
        jobs = zip(item.unit.jobs, state.runner.resolve_jobs(item.unit), strict=True)
        for words in {fill_command(job.trial, resolved) for job, resolved in jobs if job.trial.command}:
            program, script = words[0], find_script(words)
            if shutil.which(program) is None:
                where = "there is no such file that may be run" if "/" in program else "it is not on the PATH"
                raise UsageError(f"command {quote_value(program)} can't be run: {where}")
            if script is not None and not Path(script).exists() and shutil.which(script) is None:
                raise UsageError(
                    f"command {quote_value(program)} can't run {quote_value(script)}: no such file"
                )


def describe_hardware_remedy(planned: Sequence[PlannedUnit], machine: Machine) -> str:
    """What to do about trials that want more nodes, GPUs or CPUs than there are; empty where none does."""
    lacks = [item.why for item in planned if item.state == "skip" and item.why.startswith(NEEDS)]
    if not lacks:
        return ""
    where = "ask SLURM for more" if machine.allocation else "run it on a machine that has them"
    if any(" nodes, there " in why for why in lacks):
        where = "say how a process is started on each further node (--agent 'ssh n2')"
    on_cpu = "" if machine.gpus else "; on the CPU it runs with --device cpu"
    return f"ask for fewer (--nodes, --gpus, --gpu-ids, --cpus), or {where}{on_cpu}"


def describe_other_load(node: Node) -> str:
    """How much other work takes of the CPUs now, `1.8 of 2 CPUs`; empty where that is little, or not known."""
    busy, cpus = node.measure_host_load(HOST_LOOK_S), node.machine.cpu_count
    if busy is None or busy <= OTHER_LOAD_PCT:
        return ""  # where it is not known, each row says that of its CPU use, and `gpubench doctor` why
    return f"{busy / 100 * cpus:.1f} of {format_count(cpus, 'CPU')}"


def inspect_gpus(state: SweepState, planned: Sequence[PlannedUnit], view: View, *, allow_busy: bool) -> None:
    """Names who else is on the GPUs that the plan will use, and notes their idle power.

    Raises UnusableError where somebody keeps one of them busy and that is not allowed.
    """
    runner = state.runner
    units = [item.unit for item in planned if item.state == "run"]
    if not any(map(runner.is_gpu_unit, units)):
        return
    for index, words in runner.node.list_gpus_lost_at_start().items():
        view.say(
            f"the driver's GPU {index} is left out ({words}), so the numbers of the GPUs after it are one lower; "
            "to have it back, reset it or reboot"
        )
    used = {uuid for unit in units for resolved in runner.resolve_jobs(unit) for uuid in resolved.gpu_uuids}
    numbers = {gpu.uuid: gpu.index for gpu in runner.node.machine.gpus if gpu.uuid in used}
    if (shared := sorted(numbers[uuid] for uuid in runner.node.lock_gpus(list(numbers)))) and not allow_busy:
        names = format_list([str(number) for number in shared])
        which = f"GPU {names} is" if len(shared) == 1 else f"GPUs {names} are"
        raise UnusableError(
            f"{which} being measured on by another gpubench sweep of this host; wait for its end, give each sweep GPUs "
            "of its own (CUDA_VISIBLE_DEVICES, in SLURM --gpus-per-task), or add --allow-busy"
        )
    looks = runner.node.sample_gpus_before_sweep(list(numbers))
    ruling = busy_gpus.classify_gpu_use(looks, numbers)
    for line in ruling.check_not_busy(allow_busy=allow_busy):
        view.say(line)
    runner.idle_power = ruling.idle
    guard_limits(state, units, looks, numbers, view)


def guard_limits(
    state: SweepState,
    units: Sequence[Unit],
    looks: Mapping[str, GpuLook],
    numbers: Mapping[str, int],
    view: View,
) -> None:
    """Makes ready to set the limits that trials want on GPUs, where these are not set so already.

    Raises UnusableError where one can't be set, or may not be. `numbers`: uuid -> as `--gpu-ids` takes it.
    """
    node = state.runner.node
    wanted = gpu_limits.collect_wanted_limits(
        (job.trial, resolved.gpu_uuids)
        for unit in units
        for job, resolved in zip(unit.jobs, state.runner.resolve_jobs(unit), strict=True)
    )
    allowed = {uuid: node.read_allowed_limits(uuid) for uuid in wanted}
    gpu_limits.check_within_range(wanted, allowed, numbers)
    to_set = {
        uuid: limits for uuid, limits in wanted.items() if gpu_limits.needs_setting(limits, allowed[uuid])
    }
    if not to_set:
        return
    gpu_limits.check_not_in_use(to_set, looks, numbers)
    try:
        node.guard_limits(to_set)
    except NoRightToSetError as reason:
        raise UnusableError(gpu_limits.describe_missing_right(to_set, allowed, str(reason))) from None
    except Unmeasured as reason:
        raise UnusableError(f"no limit is set on a GPU: {reason}") from None
    for line in gpu_limits.describe_guarded_limits(to_set, allowed, numbers):
        view.say(line)


# ---- what users wrote themselves ----

LIMIT_S = 60
"""For one try. A model may be right and take longer."""

Try = Mapping[str, Any]
"""What `gpubench.train.user_code_probe` is to try."""


def try_user_code(
    state: SweepState, planned: Sequence[PlannedUnit], say: Callable[[str], None], *, limit_s: int = LIMIT_S
) -> None:
    """Tries the users' own variants and models of the units that are to run, in a child process.

    Raises UsageError for a transform or an argument that there is not, and for a model that can't be built, with file
    and line; UnusableError where torch can't be imported. Says so where a model took too long to be tried.
    """
    check_commands_exist([item for item in planned if item.state == "run"], state)
    tries: dict[str, Try] = {}
    for item in planned:
        if item.state == "run":
            for job, resolved in zip(item.unit.jobs, state.runner.resolve_jobs(item.unit), strict=True):
                for name, each in _list_user_code_tries(job, resolved).items():
                    tries.setdefault(name, each)
    if tries:
        run_user_code_tries(state.runner.node, tries, limit_s, say)


def _list_user_code_tries(job: Job, resolved: ResolvedTrial) -> dict[str, Try]:
    """What is tried of a job, by what it is called; of each model, the first sizes that are asked for."""
    tries: dict[str, Try] = {}
    t, variant = job.trial, job.variant
    if t.command is not None:
        return tries
    if (variant.cpu or variant.gpu) and catalog.VARIANTS.get(t.variant) != variant:
        definition = variant.make_definition()
        parts = {name: definition[name] for name in ("cpu", "gpu")}
        tries[f"variant {t.variant!r}"] = {**parts, "input_size": resolved.input_size}
    if catalog.is_user_model(t.model):
        sizes = {"num_classes": resolved.num_classes, "input_size": resolved.input_size}
        tries[f"model {t.model!r}"] = {"model": t.model, **sizes, "channels": CHANNELS, "width": t.width}
    return tries


def run_user_code_tries(
    node: Node, tries: Mapping[str, Try], limit_s: int, say: Callable[[str], None]
) -> None:
    """Has all of them tried on the node, each for `limit_s` seconds at most. Raises as `try_user_code` does."""
    ended = node.probe_user_code(list(tries.values()), limit_s)
    for description, line in zip(tries, ended.verdicts, strict=False):
        if "failed" in line:
            raise UnusableError(f"torch can't be imported: {line['failed']}")
        if error := line["error"]:
            raise UsageError(error if error.startswith(description) else f"{description}: {error}")
    if len(ended.verdicts) < len(tries):
        description = list(tries)[len(ended.verdicts)]
        if ended.code != -signal.SIGALRM:
            raise UsageError(f"{description}: its process died while it was tried ({ended.last_words})")
        say(
            f"{description}: not ready after {limit_s} s, so nobody knows yet whether it works; its trials will tell"
        )
