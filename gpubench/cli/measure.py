"""`gpubench sweep`. Imports nothing heavy at the top, so that --help answers at once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpubench import completion, usage
from gpubench.basics.errors import UsageError
from gpubench.basics.stopping import AT_ONCE, WITHOUT_CTRL_C, unwound_by_signals
from gpubench.cli.errors import print_error
from gpubench.cli.fields import given_fields
from gpubench.cli.options import field, how
from gpubench.cli.parameters import with_field_options

if TYPE_CHECKING:
    from gpubench.plan.options import Options

NOTHING = "stopped; nothing was measured"


@with_field_options
def sweep(
    experiment: Annotated[
        Path | None,
        typer.Argument(
            autocompletion=completion.experiment,
            metavar="EXPERIMENT.toml",
            help="Experiment file; none: the built-in one.",
        ),
    ] = None,
    *,
    fields: Mapping[str, str],
    set_: Annotated[
        list[str] | None,
        field(
            "--set",
            "any trial field, one value or an axis",
            metavar="FIELD=VALUES",
            completer=completion.assignment,
        ),
    ] = None,
    zip_: Annotated[
        list[str] | None,
        field("--zip", "fields that move together: batch_size,lr=16/0.1,32/0.2", metavar="F,F=V/V,…"),
    ] = None,
    exclude: Annotated[
        list[str] | None, field("--exclude", "leave out: strategy=dp,gpus=1", metavar="F=V,…")
    ] = None,
    job: Annotated[
        list[str] | None,
        field("--job", "one of several jobs that run together; give it once for each", metavar="F=V,F=V,…"),
    ] = None,
    pairs: Annotated[
        bool, field("--pairs", "measure every pair of the --job's on one GPU", metavar=None)
    ] = False,
    repeats: Annotated[
        int | None,
        how(
            "--repeats",
            text="Repeat each trial with seed + 0, 1, …",
            metavar="N",
            parser=usage.whole("--repeats", 1),
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        how(
            "--rounds",
            text="Measure each trial in so many processes, round after round (default: 3)",
            metavar="N",
            parser=usage.whole("--rounds", 1),
        ),
    ] = None,
    within: Annotated[
        str | None,
        how(
            "--within",
            text="Go on until half the 95 % interval of each time is as narrow: 2%",
            metavar="SHARE",
        ),
    ] = None,
    budget: Annotated[
        str | None,
        how(
            "--budget",
            text="Begin no process of a further round that would end after this: 10m. Alone: rounds until then, "
            "or until every question of the table is answered",
            metavar="TIME",
        ),
    ] = None,
    timeout: Annotated[
        str | None, how("--timeout", text="Deadline of each trial: 90s, 10m, 2h", metavar="TIME")
    ] = None,
    bad_images: Annotated[
        str | None,
        how(
            "--bad-images",
            text="fail (default), or skip: leave images out that can't be decoded",
            metavar="POLICY",
            words=("fail", "skip"),
        ),
    ] = None,
    order: Annotated[
        str | None,
        how(
            "--order",
            text="given or random (default: random where there are repeats)",
            metavar="ORDER",
            words=("given", "random"),
        ),
    ] = None,
    retry: Annotated[
        str | None,
        how(
            "--retry",
            text="Run these again: failed,timeout,stale,oom",
            metavar="STATUS,…",
            words=("failed", "timeout", "stale", "oom"),
        ),
    ] = None,
    allow_busy: Annotated[
        bool, how("--allow-busy", text="Measure on GPUs that somebody else keeps busy, all the same.")
    ] = False,
    yes: Annotated[bool, how("--yes", "-y", text="Make images without asking first.")] = False,
    find_max_batch: Annotated[
        bool,
        how("--find-max-batch", text="Then try larger batches until GPU memory ends, a few steps each."),
    ] = False,
    shard: Annotated[
        str | None,
        how(
            "--shard",
            text="Run one part of the plan, the second of eight: 2/8. gpubench merge puts the folders of all together.",
            metavar="I/N",
        ),
    ] = None,
    join: Annotated[
        bool | None,
        how(
            "--join/--no-join",
            text="Work through the plan together with others that were given the same command and folder (default in "
            "SLURM arrays, beside other srun tasks, and after a requeue).",
        ),
    ] = None,
    agent: Annotated[
        list[str] | None,
        how(
            "--agent",
            text="How a process is started on a further node: 'ssh n2'; once for each (default: srun, in a SLURM job)",
            metavar="COMMAND",
        ),
    ] = None,
    network: Annotated[
        str | None,
        how(
            "--network",
            text="By which name or IP address further nodes reach this one (default: its host name)",
            metavar="ADDRESS",
        ),
    ] = None,
    fresh: Annotated[bool, how("--fresh", text="Run everything again; earlier records are kept.")] = False,
    wait: Annotated[
        bool, how("--wait", text="Wait while another sweep writes into the results folder.")
    ] = False,
    out: Annotated[
        Path | None, how("--out", text="Results folder (default: results/NAME)", metavar="FOLDER")
    ] = None,
    dry_run: Annotated[bool, how("--dry-run", "-n", text="Print the plan and run nothing.")] = False,
    quiet: Annotated[bool, how("--quiet", "-q", text="Print only the path of the results.")] = False,
    json_: Annotated[bool, how("--json", text="Print a JSON line for each trial.")] = False,
) -> None:
    """Train over a grid and print the table."""
    with _nothing_measured():
        from gpubench.commands import sweep as command

        if dry_run and json_:
            raise UsageError("--json prints trials that ran, and --dry-run runs none; give one of them")
        options = asked_of(
            fields,
            set_=set_,
            zip_=zip_,
            exclude=exclude,
            repeats=repeats,
            rounds=rounds,
            within=within,
            budget=budget,
            timeout=timeout,
            bad_images=bad_images,
            job=job,
            pairs=pairs,
        )
        raise typer.Exit(
            command.sweep(
                experiment,
                options,
                order=order,
                retry=retry,
                fresh=fresh,
                allow_busy=allow_busy,
                yes=yes,
                wait=wait,
                find_max_batch=find_max_batch,
                shard=shard,
                join=join,
                agents=agent or (),
                network=network,
                out=out,
                mode="plan" if dry_run else "quiet" if quiet else "json" if json_ else "table",
            )
        )


def asked_of(
    fields: Mapping[str, str],
    *,
    set_: list[str] | None,
    zip_: list[str] | None,
    exclude: list[str] | None,
    repeats: int | None,
    rounds: int | None,
    within: str | None,
    budget: str | None,
    timeout: str | None,
    bad_images: str | None,
    job: list[str] | None,
    pairs: bool,
    **_: Any,
) -> Options:
    """What the options of a sweep ask of its experiment. How it is run is among the others."""
    from gpubench.plan.options import Options
    from gpubench.plan.values import assignments

    named, typed = given_fields(fields, set_ or ())
    for text in exclude or ():
        assignments(text, "--exclude")
    return Options(
        fields=named,
        typed=typed,
        zips=tuple(zip_ or ()),
        excludes=tuple(exclude or ()),
        repeats=repeats,
        rounds=rounds,
        within=within,
        budget=budget,
        timeout=timeout,
        bad_images=bad_images,
        jobs=tuple(job or ()),
        pairs=pairs,
    )


def sweep_options(words: Sequence[str]) -> Options:
    """What these words of a command line ask of an experiment, as `gpubench sweep` reads them. Nothing is run."""
    given = _sweep_alone().make_context("gpubench sweep", list(words)).params
    if given["experiment"] is not None:
        raise UsageError(f"{given['experiment']}: the experiment file stands before --")
    fields = sweep.taken(given)  # type: ignore[attr-defined]
    return asked_of(fields, **given)


def sweep_option_names() -> frozenset[str]:
    """All names of options of `gpubench sweep`."""
    return frozenset(name for param in _sweep_alone().params for name in (*param.opts, *param.secondary_opts))


def _sweep_alone() -> Any:
    alone = typer.Typer()
    alone.command(cls=usage.Command)(sweep)
    return typer.main.get_command(alone)


@contextlib.contextmanager
def _nothing_measured() -> Iterator[None]:
    """For a sweep, which hears signals itself from its first trial on until it has told all."""
    try:
        with unwound_by_signals(
            f"{NOTHING}; to continue, run the same command again", NOTHING, WITHOUT_CTRL_C
        ):
            yield
    except KeyboardInterrupt:
        print_error(NOTHING, after_echo=True)
        raise typer.Exit(AT_ONCE) from None
