"""What commands tell of themselves, and what that costs."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Sequence

import pytest
from place import Place

import gpubench
from gpubench.cli import app

COMMANDS = [(), ("sweep",), ("data", "make")]


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_has_no_type_behind_a_flag_and_is_there_for_h(place: Place, command: Sequence[str]) -> None:
    place.environment["COLUMNS"] = "80"
    long, short = place.run(*command, "--help"), place.run(*command, "-h")
    assert (long.returncode, short.returncode) == (0, 0)
    assert long.stdout == short.stdout
    assert "bool" not in long.stdout
    assert "range" not in long.stdout.replace("lists and ranges", "")
    assert "list[" not in long.stdout


def test_help_names_the_commands(place: Place) -> None:
    ended = place.run("--help")
    assert ended.returncode == 0
    for command in ("sweep", "table", "predict", "data"):
        assert re.search(rf"^\W*{command}\b", ended.stdout, re.MULTILINE), command
    assert place.run("--version").stdout == f"gpubench {gpubench.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "heavy"),
    [(["sweep", "--help"], {"torch", "pandas", "numpy", "psutil"}), (["--help"], {"msgspec", "numpy"})],
)
def test_help_imports_nothing_heavy(arguments: list[str], heavy: set[str]) -> None:
    """The list of commands not even what checks values."""
    code = (
        "import sys; from gpubench.cli.app import app\n"
        f"try: app({arguments}, standalone_mode=False)\n"
        f"finally: print({heavy} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.endswith("set()\n")


def test_what_a_command_declares_is_what_its_function_takes() -> None:
    """The parameters are handed on by name, which no checker of types follows."""
    checked = 0
    for entry in (*app.app.registered_commands, *app.data.registered_commands):
        names = inspect.getclosurevars(entry.callback).nonlocals
        if "module" in names:
            works = getattr(
                importlib.import_module(f"gpubench.commands.{names['module']}"), names["function"]
            )
            declared = inspect.signature(entry.callback).parameters.keys() - names["forms"].keys()
            inspect.signature(works).bind(**dict.fromkeys([*declared, *(["form"] if names["forms"] else [])]))
            checked += 1
    assert checked >= 10
