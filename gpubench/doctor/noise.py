"""The machine's own noise: what `gpubench doctor --noise` measures, and how it is told."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import resources

from gpubench.analysis.certainty.noise import Noise
from gpubench.analysis.machine_noise import Limit, MachineKnown, MachineNoise, MeasuredNoise
from gpubench.analysis.repeats import merge_repeats
from gpubench.basics.words import WORDS, many
from gpubench.node.environment import Machine, environment_facts
from gpubench.plan import experiment_file
from gpubench.plan.experiment import Experiment
from gpubench.report.contents import contents
from gpubench.results.kept_noise import FEWEST_PROCESSES, LARGEST_SD
from gpubench.results.store import Results
from gpubench.schema.record import Record
from gpubench.schema.row import TableRow

LIMITED_BY: dict[Limit, str] = {
    "gpu": "the GPU",
    "cpu": "the CPU that trains",
    "launches": "the CPU that launches the GPU's work",
    "loader": "the loaders",
}
VERSIONS = ("gpubench", "torch", "torchvision", "driver", "python", "kernel")


def noise_experiment(*, has_gpu: bool) -> Experiment:
    """The configurations that are measured, each in several processes."""
    name = "noise-gpu.toml" if has_gpu else "noise-cpu.toml"
    return experiment_file.parse(resources.files("gpubench.builtin").joinpath(name).read_text("utf-8"), name)


def measured_noise(results: Results, records: Sequence[Record], rounds: int) -> list[MeasuredNoise]:
    """How far the processes of each configuration differ; those that not all rounds have measured are left out."""
    found = contents(results, records).rows
    merged = [row for row in merge_repeats(found) if row.repeats >= max(rounds, FEWEST_PROCESSES)]
    return [one for row in merged if (one := _measured(row)) is not None]


def _measured(row: TableRow) -> MeasuredNoise | None:
    times = [run.epoch_time_s for run in row.runs if run.epoch_time_s]
    if len(times) < max(row.repeats, 2) or not row.epoch_time_s:
        return None
    middle = math.fsum(map(math.log, times)) / len(times)
    total = math.sqrt(math.fsum((math.log(time) - middle) ** 2 for time in times) / (len(times) - 1))
    errors = [run.step_error_pct / 100 for run in row.runs if run.step_error_pct is not None]
    if total > LARGEST_SD:
        return None
    return MeasuredNoise(
        configuration=_called(row),
        device="cpu" if row.device == "cpu" else "cuda",
        cpus=row.cpus or 1,
        processes=len(times),
        total_sd=total,
        within_sd=math.sqrt(math.fsum(error**2 for error in errors) / len(errors)) if errors else None,
        epoch_time_s=row.epoch_time_s,
        gpu_util_pct=row.gpu_util_pct,
        data_wait_pct=row.data_wait_pct,
    )


def _called(row: TableRow) -> str:
    return f"{row.model}, {row.input_size} px, batch size {row.batch_size:,}, {row.variant}"


def machine_noise(
    machine: Machine, key: str, measured: Sequence[MeasuredNoise], records: Sequence[Record]
) -> MachineNoise:
    """What is kept of it. `records`: what it comes from; that of the last begun says on which day."""
    facts = environment_facts(machine)
    return MachineNoise(
        machine=MachineKnown(key=key, host=machine.host, cpu_name=machine.cpu_name),
        day=max(record.started_at for record in records)[:10],
        versions={name: str(facts[name]) for name in VERSIONS if facts.get(name)},
        measured=tuple(measured),
    )


def before(experiment: Experiment, configurations: int) -> str:
    """What is about to be measured, in one line."""
    processes = experiment.rounds.most
    return (
        f"measuring this machine's own noise: {many(configurations, 'configuration')}, each in "
        f"{processes} processes ({processes * configurations} in all), in random order. Ctrl-C ends it, and then "
        "nothing is kept"
    )


def lines(noise: MachineNoise) -> list[str]:
    """What was found, a line for each configuration."""
    return [_line(one) for one in noise.measured]


def _line(one: MeasuredNoise) -> str:
    low, high = Noise(sd=one.total_sd, freedom=one.freedom).interval()
    inside = "what is inside a process was too short to tell how far it moves that"
    if one.within_sd is not None:
        between = math.sqrt(max(0.0, one.total_sd**2 - one.within_sd**2))
        inside = (
            f"by themselves by {_pct(between)} %, and what is inside each moves it by {_pct(one.within_sd)} %"
        )
    limited = " or ".join(LIMITED_BY[limit] for limit in sorted(one.limits))
    return (
        f"{one.configuration} (limited by {limited}): processes differ by {_pct(one.total_sd)} % "
        f"(95 % interval {_pct(low)} to {_pct(high)} %); {inside}"
    )


def _pct(share: float) -> str:
    """In per cent, with two digits that count."""
    percent = 100 * share
    return f"{percent:.0f}" if percent >= 10 else f"{percent:.1f}" if percent >= 1 else f"{percent:.2f}"


def lacking(asked: int, measured: Sequence[MeasuredNoise], records: Sequence[Record]) -> str:
    """What to say where not all configurations could be measured in every process; empty where all were."""
    left = asked - len(measured)
    if not left:
        return ""
    why = dict.fromkeys(
        WORDS.get(one.status, one.status) + (f": {one.reason}" if one.reason else "")
        for one in records
        if one.status != "ok"
    )
    said = f"{left} of {many(asked, 'configuration')} could not be measured in every process"
    return f"{said} ({'; '.join(why) or 'no time is known'})"


def disturbed(records: Sequence[Record]) -> str:
    """What to say where others were at work meanwhile; empty where nobody was seen."""
    if not any({"other-load", "stranger"} & set(record.doubts) for record in records):
        return ""
    return (
        "other work went on meanwhile, so the noise is larger than on a quiet machine, and so are the intervals that "
        "it gives; the same command measures it anew"
    )
