"""The options of `gpubench sweep` besides those of trial fields, each declared here and nowhere else.

The command's signature is made of them (`cli/parameters.py`), and they are handed on as objects. Imports nothing heavy:
`--help` reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from gpubench.schema.catalog import BAD_IMAGES

Mode = Literal["table", "json", "quiet", "plan"]
"""What a sweep prints."""


ORDERS = ("given", "random")
RETRY = ("failed", "timeout", "stale", "oom")
"""What may be run again."""


@dataclass(frozen=True, slots=True)
class Declared:
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """What the command line asks of an experiment. Fields as text, as typed."""

    fields: Mapping[str, str] = field(default_factory=dict)
    """Trial field -> values, in the order given: by options of their own, and by --set."""
    zips: Annotated[
        tuple[str, ...],
        Declared(
            ("--zip",),
            "fields that move together: batch_size,lr=16/0.1,32/0.2",
            metavar="F,F=V/V,…",
            tries=True,
        ),
    ] = ()
    excludes: Annotated[
        tuple[str, ...],
        Declared(("--exclude",), "leave out: strategy=dp,gpus=1", metavar="F=V,…", tries=True),
    ] = ()
    jobs: Annotated[
        tuple[str, ...],
        Declared(
            ("--job",),
            "one of several jobs that run together; give it once for each",
            metavar="F=V,F=V,…",
            tries=True,
        ),
    ] = ()
    """Each as `batch_size=32,gpu_ids=2+3`: they take the place of the file's groups."""
    pairs: Annotated[
        bool, Declared(("--pairs",), "measure every pair of the --job's on one GPU", tries=True)
    ] = False
    """The jobs by twos, the file's own too."""
    repeats: Annotated[
        int | None, Declared(("--repeats",), "Repeat each trial with seed + 0, 1, …", metavar="N", least=1)
    ] = None
    rounds: Annotated[
        int | None,
        Declared(
            ("--rounds",),
            "Measure each trial in so many processes, round after round (default: 3)",
            metavar="N",
            least=1,
        ),
    ] = None
    within: Annotated[
        str | None,
        Declared(
            ("--within",),
            "Go on until half the 95 % interval of each time is as narrow: 2%",
            metavar="SHARE",
        ),
    ] = None
    budget: Annotated[
        str | None,
        Declared(
            ("--budget",),
            "Begin no process of a further round that would end after this: 10m. Alone: rounds until then, or until "
            "every question of the table is answered",
            metavar="TIME",
        ),
    ] = None
    timeout: Annotated[
        str | None, Declared(("--timeout",), "Deadline of each trial: 90s, 10m, 2h", metavar="TIME")
    ] = None
    bad_images: Annotated[
        str | None,
        Declared(
            ("--bad-images",),
            "fail (default), or skip: leave images out that can't be decoded",
            metavar="POLICY",
            words=BAD_IMAGES,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOptions:
    """How a sweep is run, whatever it measures."""

    order: Annotated[
        str | None,
        Declared(
            ("--order",),
            "given or random (default: random where there are repeats)",
            metavar="ORDER",
            words=ORDERS,
        ),
    ] = None
    retry: Annotated[
        str | None,
        Declared(
            ("--retry",),
            "Run these again: failed,timeout,stale,oom",
            metavar="STATUS,…",
            words=RETRY,
        ),
    ] = None
    allow_busy: Annotated[
        bool, Declared(("--allow-busy",), "Measure on GPUs that somebody else keeps busy, all the same.")
    ] = False
    yes: Annotated[
        bool,
        Declared(
            (
                "--yes",
                "-y",
            ),
            "Make images without asking first.",
        ),
    ] = False
    find_max_batch: Annotated[
        bool,
        Declared(("--find-max-batch",), "Then try larger batches until GPU memory ends, a few steps each."),
    ] = False
    shard: Annotated[
        str | None,
        Declared(
            ("--shard",),
            "Run one part of the plan, the second of eight: 2/8. gpubench merge puts the folders of all together.",
            metavar="I/N",
        ),
    ] = None
    agents: Annotated[
        tuple[str, ...],
        Declared(
            ("--agent",),
            "How a process is started on a further node: 'ssh n2'; once for each (default: srun, in a SLURM job)",
            metavar="COMMAND",
        ),
    ] = ()
    network: Annotated[
        str | None,
        Declared(
            ("--network",),
            "By which name or IP address further nodes reach this one (default: its host name)",
            metavar="ADDRESS",
        ),
    ] = None
    fresh: Annotated[bool, Declared(("--fresh",), "Run everything again; earlier records are kept.")] = False
    out: Annotated[
        Path | None,
        Declared(("--out",), "Results folder (default: results/NAME)", metavar="FOLDER"),
    ] = None
    dry_run: Annotated[
        bool,
        Declared(
            (
                "--dry-run",
                "-n",
            ),
            "Print the plan and run nothing.",
        ),
    ] = False
    quiet: Annotated[
        bool,
        Declared(
            (
                "--quiet",
                "-q",
            ),
            "Print only the path of the results.",
        ),
    ] = False
    json: Annotated[bool, Declared(("--json",), "Print a JSON line for each trial.")] = False

    @property
    def mode(self) -> Mode:
        return "plan" if self.dry_run else "quiet" if self.quiet else "json" if self.json else "table"
