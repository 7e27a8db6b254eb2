"""What `gpubench audit` does: a results folder is read, the rules look at it, what they find is printed."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from gpubench.analyze.audit import audit_folder
from gpubench.analyze.folder import read_folder
from gpubench.commands.folders import print_text, print_warning
from gpubench.render import audit as render
from gpubench.render.terminal import WIDTH
from gpubench.results.home import find_newest_results_folder


def audit(path: Path | None, *, form: str | None = None) -> int:
    """`gpubench audit`: 0 whatever the rules find. `form`: markdown or json; None: text.

    Raises UnusableError for a folder that can't be read.
    """
    path = path or find_newest_results_folder()
    findings = audit_folder(read_folder(path, print_warning))
    console = Console(highlight=False)
    if form == "json":
        text = render.format_json(findings)
    elif form == "markdown":
        text = render.format_markdown(str(path), findings)
    else:
        text = render.format_text(str(path), findings, console.width if console.is_terminal else WIDTH)
    print_text(text)
    return 0
