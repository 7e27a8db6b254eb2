"""How words of a command line are taken: values of one option with spaces between them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import typer

from gpubench.basics.errors import UsageError
from gpubench.cli.app import app
from gpubench.usage import refuse_spaces

COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


def refuse(command: str, words: Sequence[str]) -> None:
    refuse_spaces(COMMANDS[command].params, words)


@pytest.mark.parametrize(
    ("words", "instead"),
    [
        (["--batch-size", "16", "32"], "'32' behind --batch-size 16 is"),
        (["--batch-size", "16", "32"], "--batch-size 16,32"),
        (["--batch-size", "16,", "32,", "64"], "--batch-size 16,32,64"),
        (["--batch-size=16", "32"], "--batch-size 16,32"),
        (["-n", "--model", "lenet", "mlp", "--epochs", "3"], "--model lenet,mlp"),
        (["--gpu-mem-cap", "1GiB", "2GiB"], "--gpu-mem-cap 1GiB,2GiB"),
        (["--job", "model=mlp", "lr=0.1", "--job", "model=lenet"], "--job model=mlp,lr=0.1"),
        (["mine.toml", "--set", "lr=0.1", "0.2"], "--set lr=0.1,0.2"),
    ],
)
def test_values_with_spaces_between_want_commas(words: Sequence[str], instead: str) -> None:
    with pytest.raises(UsageError) as caught:
        refuse("sweep", words)
    assert instead in str(caught.value)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("sweep", ["--batch-size", "16", "--epochs", "3"]),
        ("sweep", ["--batch-size", "16", "mine.toml"]),
        ("sweep", ["mine.toml", "--batch-size", "16"]),
        ("sweep", ["--batch-size", "16", "{file}"]),
        ("sweep", ["--batch-size"]),
        ("sweep", ["--quiet", "mine"]),
        ("sweep", ["--repeats", "3", "mine"]),
        ("predict", ["--copies", "2", "results-of-mine"]),
        ("table", ["--columns", "power_w", "results-of-mine"]),
    ],
)
def test_what_may_be_a_file_or_a_folder_is_left_alone(
    tmp_path: Path, command: str, words: Sequence[str]
) -> None:
    (tmp_path / "without-ending").touch()
    refuse(command, [word.format(file=tmp_path / "without-ending") for word in words])
