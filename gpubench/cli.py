"""The commands: parse, call, print. Imports nothing heavy at the top, so that --help answers at once."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from gpubench import __version__, completion, usage
from gpubench.basics.errors import GpubenchError, UnusableError, UsageError, unknown
from gpubench.basics.stopping import AT_ONCE
from gpubench.export.formats import FORMATS, PLAINLY, SHEETS, Asked
from gpubench.report.forms import FORMS, only_one
from gpubench.schema.field import Option, in_order
from gpubench.schema.trial_fields import ABOUT

app = typer.Typer(
    name="gpubench",
    cls=usage.CommandGroup,
    context_settings=dict(usage.SETTINGS),
    help="Trains real networks over a grid of configurations and leaves a table that can be trusted.",
    add_completion=True,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(cls=usage.CommandGroup, help="Image folders: make, resize, list.")
app.add_typer(data_app, name="data", rich_help_panel="Keep")


def _version(wanted: bool) -> None:
    if wanted:
        print(f"gpubench {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - its callback does the work
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


def _field(
    name: str, text: str, *, metavar: str | None = "VALUES", completer: completion.Completer | None = None
) -> Any:
    return typer.Option(
        name,
        metavar=metavar,
        help=text,
        autocompletion=completer,
        rich_help_panel="What to try (lists and ranges)",
    )


def _how(
    *names: str,
    text: str,
    metavar: str | None = None,
    parser: Callable[[Any], Any] | None = None,
    words: Sequence[str] = (),
) -> Any:
    return typer.Option(
        *names,
        metavar=metavar,
        help=text,
        parser=parser,
        autocompletion=completion.listed(words) if words else None,
        rich_help_panel="How to run it",
    )


def _count(name: str, text: str, *, least: int = 0) -> Any:
    return typer.Option(name, metavar="N", help=text, parser=usage.whole(name, least))


def _field_parameter(name: str, option: Option) -> inspect.Parameter:
    """A field's option as a parameter of a command."""
    kind: Any = bool if option.is_flag else str | None
    default = False if option.is_flag else None
    completer = completion.of_field(name) if completion.values_of(name) else None
    told = _field(option.name, option.help, metavar=option.metavar, completer=completer)
    if option.is_flag:
        told = _how(option.name, text=option.help)
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, told]
    )


def _with_field_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for each field that has one; its parameter `fields` gets those that were given.

    The options stand behind its argument, each in the order of the fields or behind the one that its entry names.
    """
    options = {name: about.option for name, about in ABOUT.items() if about.option}
    of_fields = {option.name: _field_parameter(name, option) for name, option in options.items()}
    signature = inspect.signature(command, eval_str=True)
    first, *own = (one for one in signature.parameters.values() if one.name != "fields")
    parameters = of_fields | {f"--{one.name.strip('_').replace('_', '-')}": one for one in own}
    names = in_order(list(parameters), {option.name: option.behind for option in options.values()})
    # Later axes vary faster, so this order is that of a plan's trials.
    axes = in_order(
        [name for name in names if name in of_fields],
        {option.name: option.varies_behind for option in options.values()},
    )

    @functools.wraps(command)
    def run(**given: Any) -> None:
        asked = {name: given.pop(of_fields[name].name) for name in axes}
        fields = {
            of_fields[name].name: "true" if value is True else value
            for name, value in asked.items()
            if value not in (None, False)
        }
        command(fields=fields, **given)

    return _with_parameters(run, [first, *(parameters[name] for name in names)])


def _with_form_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for each form that has one; its parameter `form` gets the name of the one given."""
    *own, _ = inspect.signature(command, eval_str=True).parameters.values()
    options = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=False,
            annotation=Annotated[bool, typer.Option(f"--{name}", help=form.help)],
        )
        for name, form in FORMS.items()
    ]

    @functools.wraps(command)
    def run(**given: Any) -> None:
        command(form=only_one([one.name for one in options if given.pop(one.name)]), **given)

    return _with_parameters(run, [*own, *options])


def _with_parameters(
    command: Callable[..., None], parameters: Sequence[inspect.Parameter]
) -> Callable[..., None]:
    """The command, of which the library that reads command lines sees these parameters."""
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    return command


@app.command(cls=usage.Command, rich_help_panel="Measure")
@_with_field_options
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
        _field(
            "--set",
            "any trial field, one value or an axis",
            metavar="FIELD=VALUES",
            completer=completion.assignment,
        ),
    ] = None,
    zip_: Annotated[
        list[str] | None,
        _field("--zip", "fields that move together: batch_size,lr=16/0.1,32/0.2", metavar="F,F=V/V,…"),
    ] = None,
    exclude: Annotated[
        list[str] | None, _field("--exclude", "leave out: strategy=dp,gpus=1", metavar="F=V,…")
    ] = None,
    job: Annotated[
        list[str] | None,
        _field("--job", "one of several jobs that run together; give it once for each", metavar="F=V,F=V,…"),
    ] = None,
    pairs: Annotated[
        bool, _field("--pairs", "measure every pair of the --job's on one GPU", metavar=None)
    ] = False,
    repeats: Annotated[
        int | None,
        _how(
            "--repeats",
            text="Repeat each trial with seed + 0, 1, …",
            metavar="N",
            parser=usage.whole("--repeats", 1),
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        _how(
            "--rounds",
            text="Measure each trial in so many processes, round after round (default: 3)",
            metavar="N",
            parser=usage.whole("--rounds", 1),
        ),
    ] = None,
    within: Annotated[
        str | None,
        _how(
            "--within",
            text="Go on until half the 95 % interval of each time is as narrow: 2%",
            metavar="SHARE",
        ),
    ] = None,
    budget: Annotated[
        str | None,
        _how(
            "--budget",
            text="Begin no process of a further round that would end after this: 10m. Alone: rounds until then, "
            "or until every question of the table is answered",
            metavar="TIME",
        ),
    ] = None,
    timeout: Annotated[
        str | None, _how("--timeout", text="Deadline of each trial: 90s, 10m, 2h", metavar="TIME")
    ] = None,
    bad_images: Annotated[
        str | None,
        _how(
            "--bad-images",
            text="fail (default), or skip: leave images out that can't be decoded",
            metavar="POLICY",
            words=("fail", "skip"),
        ),
    ] = None,
    order: Annotated[
        str | None,
        _how(
            "--order",
            text="given or random (default: random where there are repeats)",
            metavar="ORDER",
            words=("given", "random"),
        ),
    ] = None,
    retry: Annotated[
        str | None,
        _how(
            "--retry",
            text="Run these again: failed,timeout,stale,oom",
            metavar="STATUS,…",
            words=("failed", "timeout", "stale", "oom"),
        ),
    ] = None,
    allow_busy: Annotated[
        bool, _how("--allow-busy", text="Measure on GPUs that somebody else keeps busy, all the same.")
    ] = False,
    yes: Annotated[bool, _how("--yes", "-y", text="Make images without asking first.")] = False,
    ahead: Annotated[
        bool, _how("--ahead", text="Make trials of further rounds ready side by side (GPUs).")
    ] = False,
    find_max_batch: Annotated[
        bool,
        _how("--find-max-batch", text="Then try larger batches until GPU memory ends, a few steps each."),
    ] = False,
    fresh: Annotated[bool, _how("--fresh", text="Run everything again; earlier records are kept.")] = False,
    wait: Annotated[
        bool, _how("--wait", text="Wait while another sweep writes into the results folder.")
    ] = False,
    out: Annotated[
        Path | None, _how("--out", text="Results folder (default: results/NAME)", metavar="FOLDER")
    ] = None,
    dry_run: Annotated[bool, _how("--dry-run", "-n", text="Print the plan and run nothing.")] = False,
    explain: Annotated[
        bool,
        _how(
            "--explain",
            text="With -n: where each field has its value from; with --json a line for each trial.",
        ),
    ] = False,
    quiet: Annotated[bool, _how("--quiet", "-q", text="Print only the path of the results.")] = False,
    json_: Annotated[bool, _how("--json", text="Print a JSON line for each trial.")] = False,
) -> None:
    """Train over a grid and print the table."""
    with _nothing_measured():
        from gpubench.commands import sweep as command
        from gpubench.plan.experiment import Options
        from gpubench.plan.values import assignments

        named, typed = _fields(fields, set_ or ())
        for text in exclude or ():
            assignments(text, "--exclude")
        if explain and not dry_run:
            raise UsageError("--explain is about the plan: give -n, too")
        options = Options(
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
                ahead=ahead,
                find_max_batch=find_max_batch,
                out=out,
                explain=("json" if json_ else "text") if explain else None,
                mode="plan" if dry_run else "quiet" if quiet else "json" if json_ else "table",
            )
        )


@contextlib.contextmanager
def _nothing_measured() -> Iterator[None]:
    """For a sweep, which hears signals itself from its first trial on until it has told all."""
    try:
        yield
    except KeyboardInterrupt:
        _print_error("stopped; nothing was measured", after_echo=True)
        raise typer.Exit(AT_ONCE) from None


@app.command(cls=usage.Reader, rich_help_panel="Read")
@_with_form_options
def table(
    results: Annotated[
        list[Path] | None,
        typer.Argument(
            autocompletion=completion.results,
            metavar=usage.RESULTS,
            help="Results folders; none: the newest one.",
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            "--columns", metavar="NAME,-NAME,…", help="Add columns of docs/columns.md; -NAME removes one."
        ),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where",
            metavar="CONDITION",
            help="Show rows such as 'batch_size>=64' or variant=cached,synthetic; again for one more condition.",
        ),
    ] = None,
    sort: Annotated[
        str | None,
        typer.Option("--sort", metavar="NAME,-NAME,…", help="Show rows by columns; -NAME: largest first."),
    ] = None,
    by: Annotated[
        str | None, typer.Option("--by", metavar="NAME", help="Show rows in parts, one for each value.")
    ] = None,
    train_images: Annotated[
        int | None,
        _count("--train-images", "Tell an epoch of so many images, such as ImageNet's 1281167.", least=1),
    ] = None,
    efficiency: Annotated[
        str | None,
        typer.Option("--efficiency", metavar="90%", help="Judge several GPUs by this, in place of 80 %."),
    ] = None,
    sources: Annotated[
        bool, typer.Option("--sources", help="Where the figures come from, and why others are empty.")
    ] = False,
    *,
    form: str | None,
) -> None:
    """Print the tables of results folders, with growth columns."""
    from gpubench.commands import table as command

    raise typer.Exit(
        command.table(
            results or (),
            form=form,
            sources=sources,
            columns=columns,
            train_images=train_images,
            efficiency=efficiency,
            where=where or (),
            sort=sort,
            by=by,
        )
    )


@app.command(cls=usage.Reader, rich_help_panel="Read")
def predict(
    results: Annotated[
        list[Path] | None,
        typer.Argument(
            autocompletion=completion.results,
            metavar=usage.RESULTS,
            help="Results folders; none: all that sweeps have written here.",
        ),
    ] = None,
    job: Annotated[
        list[str] | None,
        typer.Option(
            "--job", metavar="F=V,F=V,…", help="One of several jobs that run together; give it once for each."
        ),
    ] = None,
    copies: Annotated[
        str | None, typer.Option("--copies", metavar="VALUES", help="Identical jobs at once: 2,3.")
    ] = None,
    pairs: Annotated[bool, typer.Option("--pairs", help="Every pair of the --job's on one GPU.")] = False,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="FIELD=VALUES", help="Any trial field, for all jobs that don't give it."
        ),
    ] = None,
    experiment: Annotated[
        Path | None,
        typer.Option("--experiment", metavar="FILE.toml", help="Take jobs and fields from a file."),
    ] = None,
    bad_images: Annotated[
        str | None,
        typer.Option(
            "--bad-images",
            metavar="POLICY",
            help="fail (default), or skip: of rows from which images were left out that can't be decoded.",
        ),
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="As Markdown.")] = False,
) -> None:
    """Say how much jobs would slow each other down, from stored rows of each alone; runs nothing.

    Also says how good such answers have been so far on this machine; without any jobs, only that.
    """
    from gpubench.commands import predict as command
    from gpubench.plan.experiment import Options

    fields, typed = _fields({} if copies is None else {"copies": copies}, set_ or ())
    options = Options(fields=fields, typed=typed, jobs=tuple(job or ()), pairs=pairs, bad_images=bad_images)
    raise typer.Exit(command.predict(results or (), options, experiment=experiment, markdown=markdown))


def _fields(named: Mapping[str, str], texts: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Trial field -> its values as text: those with an option of their own, and what --set gives.

    And trial field -> what the user called it, for messages.
    Raises UsageError for a field that is given twice.
    """
    from gpubench.plan.values import check_field

    fields = dict(named)
    typed = {name: option.name for name in fields if (option := ABOUT[name].option)}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--set: {text!r} is not FIELD=VALUES")
        field = check_field(name.strip().replace("-", "_"))
        if field in fields:
            both = f"--set {field}={fields[field]},{value}"
            raise UsageError(f"{field} is given twice; give all its values at once: {both}")
        fields[field] = value
        typed[field] = f"--set {field}"
    return fields, typed


@app.command(cls=usage.Reader, rich_help_panel="Read")
def status(
    results: Annotated[
        list[Path] | None,
        typer.Argument(
            autocompletion=completion.results,
            metavar=usage.RESULTS,
            help="Results folders; none: the newest one.",
        ),
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="A JSON line for each folder.")] = False,
) -> None:
    """Say what is done, running, failed or left, and for how long; disturbs no sweep.

    Exit code 0: complete. 1: finished, some trials failed. 5: a sweep is running.
    75: something is left, and nobody runs it.

    Of several folders the last of these that fits one; 4 where one can't be read.
    """
    from gpubench.commands import status as command

    raise typer.Exit(command.status(results or (), as_json=json_))


@app.command(cls=usage.Command, rich_help_panel="Keep")
def merge(
    results: Annotated[
        list[Path] | None,
        typer.Argument(
            autocompletion=completion.results,
            metavar=usage.RESULTS,
            help="Results folders; none: the newest one.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FOLDER", help="Where; of one folder: none writes its tables anew."),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait while a sweep writes into one of them.")] = False,
) -> None:
    """Put the records of several results folders into one, and write its tables anew."""
    from gpubench.commands import merge as command

    raise typer.Exit(command.merged(results or (), out=out, wait=wait))


@app.command(cls=usage.Reader, rich_help_panel="Keep")
def export(
    results: Annotated[
        list[Path] | None,
        typer.Argument(
            autocompletion=completion.results,
            metavar=usage.RESULTS,
            help="Results folders; none: the newest one.",
        ),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option("--format", metavar="NAME", help=f"{', '.join(FORMATS)}; by default as FILE ends."),
    ] = None,
    out: Annotated[
        str | None, typer.Option("--out", metavar="FILE", help="Where it is written; none: stdout for text.")
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="TRACKER",
            help="mlflow or tensorboard: a run for each trial; --out is then a folder, or an MLflow address.",
        ),
    ] = None,
    sheet: Annotated[
        str,
        typer.Option(
            "--sheet", metavar="NAME", help=f"What a CSV holds: {', '.join(SHEETS)}.", show_default=False
        ),
    ] = PLAINLY.sheet,
    excel: Annotated[
        bool, typer.Option("--excel", help="CSV for Excel where it has commas and decimal dots.")
    ] = False,
    excel_eu: Annotated[
        bool, typer.Option("--excel-eu", help="CSV for Excel where it has semicolons and decimal commas.")
    ] = False,
) -> None:
    """Write results in the format of another program, or hand them over to an experiment tracker."""
    from gpubench.commands import export as command

    dialect = only_one(["excel"] * excel + ["excel-eu"] * excel_eu) or PLAINLY.dialect
    if sheet not in SHEETS:
        raise unknown("sheet", sheet, SHEETS)
    asked = Asked(sheet=sheet, dialect=dialect)
    if to is not None:
        if form is not None or asked != PLAINLY:
            given = (
                "--format" if form is not None else "--sheet" if sheet != PLAINLY.sheet else f"--{dialect}"
            )
            raise UsageError(f"--to hands runs over, and {given} writes a file; give one of them")
        raise typer.Exit(command.hand_over(results or (), to=to, place=out))
    raise typer.Exit(command.export(results or (), form=form, out=Path(out) if out else None, asked=asked))


@app.command(cls=usage.Reader, rich_help_panel="Read")
def plot(
    results: Annotated[
        list[Path] | None,
        typer.Argument(metavar=usage.RESULTS, help="Results folders; none: the newest one."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FOLDER", help="Where they are written; none: RESULTS/plots."),
    ] = None,
    form: Annotated[str | None, typer.Option("--format", metavar="svg,png,pdf", help="Default: svg.")] = None,
    only: Annotated[
        str | None,
        typer.Option(
            "--only", metavar="NAME,…", help="These pictures of docs/plots.md; none: all there are."
        ),
    ] = None,
    trial: Annotated[
        str | None,
        typer.Option("--trial", metavar="ID", help="What was sampled of this trial; the id's start will do."),
    ] = None,
    terminal: Annotated[
        bool, typer.Option("--terminal", help="Draw the main picture here, as text.")
    ] = False,
) -> None:
    """Draw pictures of results: growth, scaling, variants, slowdowns, energy, a trial's samples."""
    from gpubench.commands import plot as command

    raise typer.Exit(
        command.plot(results or (), out=out, formats=form, only=only, trial_id=trial, in_terminal=terminal)
    )


@app.command(cls=usage.Reader, rich_help_panel="Read")
def compare(
    results: Annotated[
        list[Path] | None,
        typer.Argument(
            autocompletion=completion.results,
            metavar=usage.RESULTS,
            help="Two results folders, A and B; with --field one.",
        ),
    ] = None,
    field: Annotated[
        str | None,
        typer.Option(
            "--field",
            metavar="FIELD=V,V",
            autocompletion=completion.assignment,
            help="Two values of a field in one folder: precision=fp32,bf16.",
        ),
    ] = None,
    figures: Annotated[
        str | None,
        typer.Option(
            "--figures",
            metavar="NAME,…",
            autocompletion=completion.listed(("time", "memory", "energy", "top1")),
            help="Only these: time,memory,energy,top1.",
        ),
    ] = None,
    threshold: Annotated[
        str | None,
        typer.Option(
            "--threshold",
            metavar="SHARE",
            help="Exit 3 where B is shown to take more time, memory or energy by more than this: 5%.",
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 3 also where that is not excluded.")] = False,
    sort: Annotated[
        str | None,
        typer.Option("--sort", metavar="NAME", help="By a figure, the worst first, or by a field."),
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="As Markdown.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
) -> None:
    """Set B beside A: faster, slower, the same or open, for each trial that both have."""
    from gpubench.commands import compare as command

    form: Any = only_one(["json"] * json_ + ["markdown"] * markdown) or "text"
    raise typer.Exit(
        command.compare(
            results or (),
            field=field,
            figures=figures,
            threshold=threshold,
            strict=strict,
            sort=sort,
            form=form,
        )
    )


@app.command(cls=usage.Reader, rich_help_panel="Read")
def audit(
    results: Annotated[
        Path | None,
        typer.Argument(
            autocompletion=completion.results,
            metavar=usage.RESULTS,
            help="Results folder; none: the newest one.",
        ),
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="As Markdown.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="A JSON line for each rule.")] = False,
) -> None:
    """Say how honest a results folder is, rule by rule."""
    from gpubench.commands import audit as audit_command

    form: Any = only_one(["json"] * json_ + ["markdown"] * markdown) or "text"
    raise typer.Exit(audit_command.audit(results, form=form))


@app.command(cls=usage.Reader, rich_help_panel="Read")
def doctor(
    json_: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
    noise: Annotated[
        bool,
        typer.Option(
            "--noise",
            help="Measure how far processes of one configuration differ here, and keep that: it stands in where "
            "a row has one process. Takes some minutes.",
        ),
    ] = False,
) -> None:
    """Say what this machine can measure, what it can't, and the remedy; exit 4 where no sweep can run.

    Takes some ten seconds, and tries torch on each visible GPU for a moment.
    """
    from gpubench.commands import doctor as command

    only_one(["json"] * json_ + ["noise"] * noise)
    if noise:
        raise typer.Exit(command.noise())
    raise typer.Exit(command.doctor(as_json=json_))


@data_app.callback(invoke_without_command=True)
def _data(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


@data_app.command("make", cls=usage.Command)
def data_make(
    folder: Annotated[
        Path | None, typer.Argument(metavar="FOLDER", help="Where; none: the place where sweeps look.")
    ] = None,
    images: Annotated[int, _count("--images", "Training images, 1 or more.", least=1)] = 10_240,
    val_images: Annotated[int, _count("--val-images", "Validation images, 1 or more.", least=1)] = 1_024,
    classes: Annotated[int, _count("--classes", "Classes, 1 or more.", least=1)] = 16,
    seed: Annotated[int, _count("--seed", "Seed of every image, 0 or more.")] = 0,
) -> None:
    """Build the procedural JPEG images."""
    from gpubench.commands import data as data_command

    data_command.make(folder, images=images, val_images=val_images, classes=classes, seed=seed)


@data_app.command("resize", cls=usage.Command)
def data_resize(
    source: Annotated[Path, typer.Argument(metavar="SRC", help="Image folder.")],
    target: Annotated[Path, typer.Argument(metavar="DST", help="New folder.")],
    size: Annotated[int, _count("--size", "Side of the square copies in pixels, 8 or more.", least=8)] = 224,
    bad: Annotated[
        str,
        typer.Option(
            "--bad-images",
            metavar="POLICY",
            help="fail, or skip: leave images out that can't be decoded.",
        ),
    ] = "fail",
) -> None:
    """Make the pre-resized copy of an image folder."""
    from gpubench.commands import data as data_command

    data_command.resize(source, target, size=size, bad=bad)


@data_app.command("list", cls=usage.Reader)
def data_list() -> None:
    """List the variants and the data sets known by name."""
    from gpubench.commands import data as data_command

    data_command.show()


def main() -> NoReturn:
    """Entry point: errors become one line on stderr and an exit code."""
    completion.put_together(os.environ)
    try:
        code = app(standalone_mode=False)
    except GpubenchError as error:
        _print_error(str(error))
        code = error.exit_code
    except OSError as error:
        if error.filename is None:
            raise
        # A path that somebody named: too long, a link in circles, on a disk that fails.
        _print_error(f"can't use {os.fsdecode(error.filename)}: {error.strerror}")
        code = UnusableError.exit_code
    except (typer.Abort, KeyboardInterrupt):  # Ctrl-C; a sweep that has begun hears it itself
        _print_error("stopped", after_echo=True)
        code = AT_ONCE
    except Exception as error:
        # The command line library's own usage errors know their words and their exit code.
        if not hasattr(error, "format_message"):
            raise
        _print_error(usage.told(error))
        code = getattr(error, "exit_code", 2)
    sys.exit(code if isinstance(code, int) else 0)


def _print_error(text: str, *, after_echo: bool = False) -> None:
    """One line on stderr. `after_echo`: a terminal has just shown `^C`, and not begun a new line."""
    with contextlib.suppress(OSError):  # nobody may be there to read it; the exit code tells as well
        if after_echo and sys.stderr.isatty():
            print(file=sys.stderr)
        print(f"gpubench: {' '.join(text.split())}", file=sys.stderr, flush=True)
