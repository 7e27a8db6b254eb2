"""The options of `gpubench sweep` besides those of trial fields, each declared here and nowhere else.

The command's signature is made of them (`cli/measure.py`), and they are handed on as objects. Imports nothing heavy:
`--help` reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from gpubench.schema.catalog import BAD_IMAGES
from gpubench.schema.command import join_command

Mode = Literal["table", "json", "quiet", "plan"]
"""What a sweep prints."""


ORDERS = ("given", "random")
RETRY = ("failed", "timeout", "stale", "oom")
"""What may be run again."""


@dataclass(frozen=True, slots=True)
class OptionDeclaration:
    """How an option stands on the command line and in `--help`."""

    names: tuple[str, ...]
    """`--yes`, `-y`."""
    help: str
    metavar: str | None = None
    words: tuple[str, ...] = ()
    """All that may be given, where that is a list."""
    least: int | None = None
    """Of a whole number, the smallest one."""
    tries: bool = False
    """Whether it says what is tried, rather than how that is run."""


def declare_option(
    names: str, help_: str, metavar: str | None = None, *, default: Any = None, **more: Any
) -> Any:
    """A field of options that stands on the command line. `names`: with blanks between them."""
    declared = OptionDeclaration(tuple(names.split()), help_, metavar, **more)
    return field(default=default, metadata={"declared": declared})


@dataclass(frozen=True, kw_only=True, slots=True)
class ExperimentOptions:
    """What the command line asks of an experiment. Fields as text, as typed."""

    fields: Mapping[str, str] = field(default_factory=dict)
    """Trial field -> values, in the order given: by options of their own, and by --set."""
    zips: tuple[str, ...] = declare_option(
        "--zip", "fields that move together: batch_size,lr=16/0.1,32/0.2", "F,F=V/V,…", default=(), tries=True
    )
    excludes: tuple[str, ...] = declare_option(
        "--exclude", "leave out: strategy=dp,gpus=1", "F=V,…", default=(), tries=True
    )
    jobs: tuple[str, ...] = declare_option(
        "--job",
        "one of several jobs that run together; give it once for each",
        "F=V,F=V,…",
        default=(),
        tries=True,
    )
    """Each as `batch_size=32,gpu_ids=2+3`: they take the place of the file's groups."""
    command: tuple[str, ...] = ()
    """The words behind `--`: a command that is run in place of trainings; none: trainings."""
    epoch_pattern: str | None = declare_option(
        "--epoch-pattern", r"of a command: what it prints once an epoch: 'Epoch (\d+)'", "REGEX", tries=True
    )
    metrics: tuple[str, ...] = declare_option(
        "--metric",
        r"of a command: a figure that it prints: 'acc=([\d.]+)'",
        "NAME=REGEX",
        default=(),
        tries=True,
    )
    until: str | None = declare_option(
        "--until",
        "of a command: end it once a --metric is at least so much: acc=60",
        "NAME=VALUE",
        tries=True,
    )
    pairs: bool = declare_option(
        "--pairs", "measure every pair of the --job's on one GPU", default=False, tries=True
    )
    """The jobs by twos, the file's own too."""
    repeats: int | None = declare_option("--repeats", "Repeat each trial with seed + 0, 1, …", "N", least=1)
    rounds: int | None = declare_option(
        "--rounds", "Measure each trial in so many processes, round after round (default: 3)", "N", least=1
    )
    within: str | None = declare_option(
        "--within", "Go on until half the 95 % interval of each time is as narrow: 2%", "SHARE"
    )
    budget: str | None = declare_option(
        "--budget",
        "Begin no process of a further round that would end after this: 10m. Alone: rounds until then, or until "
        "every question of the table is answered",
        "TIME",
    )
    timeout: str | None = declare_option("--timeout", "Deadline of each trial: 90s, 10m, 2h", "TIME")
    bad_images: str | None = declare_option(
        "--bad-images",
        "fail (default), or skip: leave images out that can't be decoded",
        "POLICY",
        words=BAD_IMAGES,
    )

    def collect_command_fields(self) -> dict[str, str | None]:
        """The trial fields that these options give of a command; None for one that is not given."""
        return {
            "command": join_command(self.command) if self.command else None,
            "epoch_pattern": self.epoch_pattern,
            "metrics": "\n".join(self.metrics) or None,
            "until": self.until,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOptions:
    """How a sweep is run, whatever it measures."""

    order: str | None = declare_option(
        "--order", "given or random (default: random where there are repeats)", "ORDER", words=ORDERS
    )
    retry: str | None = declare_option(
        "--retry", "Run these again: failed,timeout,stale,oom", "STATUS,…", words=RETRY
    )
    allow_busy: bool = declare_option(
        "--allow-busy", "Measure on GPUs that somebody else keeps busy, all the same.", default=False
    )
    yes: bool = declare_option("--yes -y", "Make images without asking first.", default=False)
    find_max_batch: bool = declare_option(
        "--find-max-batch", "Then try larger batches until GPU memory ends, a few steps each.", default=False
    )
    shard: str | None = declare_option(
        "--shard",
        "Run one part of the plan, the second of eight: 2/8. gpubench merge puts the folders of all together.",
        "I/N",
    )
    agents: tuple[str, ...] = declare_option(
        "--agent",
        "How a process is started on a further node: 'ssh n2'; once for each (default: srun, in a SLURM job)",
        "COMMAND",
        default=(),
    )
    network: str | None = declare_option(
        "--network",
        "By which name or IP address further nodes reach this one (default: its host name)",
        "ADDRESS",
    )
    meters: tuple[str, ...] = declare_option(
        "--meter",
        "Read a power meter besides, while trials run: rapl, csv:PATH or http://HOST/PATH; give it once for each",
        "METER",
        default=(),
    )
    fresh: bool = declare_option("--fresh", "Run everything again; earlier records are kept.", default=False)
    out: Path | None = declare_option("--out", "Results folder (default: results/NAME)", "FOLDER")
    dry_run: bool = declare_option("--dry-run -n", "Print the plan and run nothing.", default=False)
    quiet: bool = declare_option("--quiet -q", "Print only the path of the results.", default=False)
    json: bool = declare_option("--json", "Print a JSON line for each trial.", default=False)

    @property
    def mode(self) -> Mode:
        return "plan" if self.dry_run else "quiet" if self.quiet else "json" if self.json else "table"
