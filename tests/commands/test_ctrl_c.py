"""Ctrl-C at any moment of a command, while it is still imported, too."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from place import LIMIT_S

import gpubench
from gpubench.cli.main import main


@pytest.mark.parametrize(
    "moment",
    [
        "typer.core.TyperGroup.parse_args",
        "gpubench.cli.usage.refuse_repeated_options",
        "gpubench.commands.table.table",
    ],
)
def test_ctrl_c_is_told_at_any_moment_of_a_command(
    moment: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """While the words of the command line are read, and while it runs."""

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(moment, stopped)
    monkeypatch.setattr(sys, "argv", ["gpubench", "table"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert capsys.readouterr() == ("", "gpubench: stopped\n")


INTERRUPTED_IMPORT = """
import sys
class Finder:
    def find_spec(self, name, *_):
        if name == "typer":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Finder())
"""
ENTRIES = {
    "module": "import runpy; runpy.run_module('gpubench', run_name='__main__', alter_sys=True)",
    "script": "from {module} import {function}; {function}()",
}


@pytest.mark.parametrize("way", ENTRIES)
def test_ctrl_c_while_the_command_is_imported_ends_as_it_does_later(way: str) -> None:
    project = tomllib.loads((Path(gpubench.__file__).parents[1] / "pyproject.toml").read_text())
    module, function = project["project"]["scripts"]["gpubench"].split(":")
    start = ENTRIES[way].format(module=module, function=function)
    ended = subprocess.run(
        [sys.executable, "-c", f"{INTERRUPTED_IMPORT}\n{start}"],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "gpubench: stopped\n")
