"""Whether what users wrote themselves can work, before images are made: their variants, their models' files."""

from __future__ import annotations

import ast
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpubench.basics.errors import UnusableError, UsageError, unknown
from gpubench.node.node import Node
from gpubench.plan.plan import Job
from gpubench.plan.resolve import CHANNELS, Resolved
from gpubench.plan.state import Planned
from gpubench.plan.transforms import check_transforms
from gpubench.schema import catalog
from gpubench.sweep.sweep import Sweep

LIMIT_S = 60
"""For one try. A model may be right and take longer."""
_DYNAMIC = frozenset({"*", "__getattr__", "exec", "globals", "setattr"})
"""Names in a file that may define functions that its text does not show."""

Try = Mapping[str, Any]
"""What `gpubench.train.vetting` is to try."""


def vet(
    work: Sweep, planned: Sequence[Planned], say: Callable[[str], None], *, limit_s: int = LIMIT_S
) -> None:
    """Tries the users' own variants and models of the units that are to run, the models in a child process.

    Raises UsageError for a transform or an argument that there is not, and for a model that can't be built, with file
    and line; UnusableError where torch can't be imported. Says so where a model took too long to be tried.
    """
    for name, variant in work.plan.experiment.own_variants.items():
        check_transforms(name, variant)
    jobs = [
        pair
        for item in planned
        if item.state == "run"
        for pair in zip(item.unit.jobs, work.bench.resolve(item.unit), strict=True)
    ]
    for name in dict.fromkeys(job.trial.model for job, _ in jobs):
        if catalog.is_user_model(name):
            check_source(name)
    tries = _tries(jobs)
    if tries:
        run_tries(work.bench.node, tries, limit_s, say)


def check_source(name: str) -> None:
    """Raises UsageError where the file of `path/to/file.py:function` is not Python, or has no such function."""
    path, _, function = name.rpartition(":")
    try:
        text = Path(path).read_bytes()
        if b"\0" in text:  # of which Python says no line
            raise UsageError(
                f"model {name!r}: {path} is no Python text: it has null bytes, as binary files and texts in UTF-16 do; "
                "name a Python file, saved as UTF-8"
            )
        tree = ast.parse(text, path)
    except OSError as error:
        raise UsageError(f"model {name!r}: {path} can't be read: {error.strerror}") from None
    except SyntaxError as error:
        place = f"{path}, line {error.lineno}" if error.lineno else path
        raise UsageError(f"model {name!r}: {place}: SyntaxError: {error.msg}") from None
    defined = _names(tree)
    if function not in defined and not _DYNAMIC & defined:
        own = [node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
        if not own:
            raise UsageError(f"model {name!r}: {path} defines no function")
        raise UsageError(f"model {name!r}: {unknown(f'function of {path}', function, own)}")


def _names(tree: ast.AST) -> set[str]:
    """Every name that is defined, imported or used in the text."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name)
        elif isinstance(node, ast.Name):
            found.add(node.id)
    return found


def _tries(jobs: Sequence[tuple[Job, Resolved]]) -> dict[str, Try]:
    """What only torch can tell, by what it is called; of each model, the first sizes that are asked for."""
    found: dict[str, Try] = {}
    for job, resolved in jobs:
        t, variant = job.trial, job.variant
        if (variant.cpu or variant.gpu) and catalog.VARIANTS.get(t.variant) != variant:
            definition = variant.definition()
            found.setdefault(
                f"variant {t.variant!r}",
                {"cpu": definition["cpu"], "gpu": definition["gpu"], "input_size": resolved.input_size},
            )
        if catalog.is_user_model(t.model):
            sizes = {"num_classes": resolved.num_classes, "input_size": resolved.input_size}
            found.setdefault(
                f"model {t.model!r}", {"model": t.model, **sizes, "channels": CHANNELS, "width": t.width}
            )
    return found


def run_tries(node: Node, tries: Mapping[str, Try], limit_s: int, say: Callable[[str], None]) -> None:
    """Has all of them tried on the node, each for `limit_s` seconds at most. Raises as `vet` does."""
    found = node.probe_user_code(list(tries.values()), limit_s)
    for called, line in zip(tries, found.verdicts, strict=False):
        if "failed" in line:
            raise UnusableError(f"torch can't be imported: {line['failed']}")
        if error := line["error"]:
            raise UsageError(error if error.startswith(called) else f"{called}: {error}")
    if len(found.verdicts) < len(tries):
        called = list(tries)[len(found.verdicts)]
        if found.code != -signal.SIGALRM:
            raise UsageError(f"{called}: its process died while it was tried ({found.last_words})")
        say(
            f"{called}: not ready after {limit_s} s, so nobody knows yet whether it works; its trials will tell"
        )
