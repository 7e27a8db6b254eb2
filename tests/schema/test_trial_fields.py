"""One entry a field: what is made of it, and what a new one leaves alone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import committed
import msgspec
import pytest
from whole_rows import row_with

import gpubench
from gpubench.analyze.frames import build_runs
from gpubench.analyze.series import COUNTS, EncodedFields
from gpubench.plan.skips import make_memory_chain_key
from gpubench.schema.columns import BY_NAME
from gpubench.schema.field import order_names
from gpubench.schema.kinds import find_column_kind
from gpubench.schema.trial import make_trial
from gpubench.schema.trial_fields import ABOUT, DEFAULTS, FIELDS, TYPES

NEW = """
    flavour: Annotated[
        float,
        Bounds(ge=0, le=1),
        FieldWords("what nothing uses", phrase="flavour {}"),
        FieldRules(added=True),
    ] = 0.0


class PlanFields("""
ASKED = (
    "--device", "cpu", "--variant", "synthetic", "--model", "lenet", "--batch-size", "16", "--epochs", "2",
)  # fmt: skip


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with one field more."""
    root = tmp_path_factory.mktemp("extended")
    shutil.copytree(Path(gpubench.__file__).parent, root / "gpubench")
    fields = root / "gpubench" / "schema" / "trial_fields.py"
    text = fields.read_text("utf-8")
    assert text.count("\n\nclass PlanFields(") == 1
    fields.write_text(text.replace("\n\nclass PlanFields(", NEW), "utf-8")
    return root


def run_python(package: Path, cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONPATH": str(package), "COLUMNS": "200"}
    command = [sys.executable, *words]
    return subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_new_field_is_its_entry(extended: Path, tmp_path: Path) -> None:
    planned = run_python(
        extended, tmp_path, "-m", "gpubench", "sweep", "-n", *ASKED, "--set", "flavour=0,0.1"
    )
    assert planned.returncode == 0, planned.stderr
    assert "flavour=0.1" in planned.stdout
    refused = run_python(extended, tmp_path, "-m", "gpubench", "sweep", "-n", *ASKED, "--set", "flavour=2")
    assert refused.returncode == 2
    assert re.search(r"\bflavour\b.*\b1\b.*\b2\b", refused.stderr)


IDS = """
from gpubench.schema import catalog, trial
variant = catalog.VARIANTS["crop-resize"].make_definition()
print(trial.derive_config_id(trial.make_trial({"batch_size": 16}), variant, "images"))
"""


def test_a_new_field_changes_no_id(extended: Path) -> None:
    before, after = (
        run_python(package, package, "-c", IDS) for package in (Path(gpubench.__file__).parents[1], extended)
    )
    assert before.returncode == 0, before.stderr
    assert after.stdout == before.stdout


READ = """
import sys
from pathlib import Path
from gpubench.analyze.audit import audit_folder
from gpubench.analyze.folder import read_folder
from gpubench.analyze.questions import make_folder_reports
from gpubench.render import terminal
for path in sys.argv[1:]:
    folder = read_folder(Path(path), print)
    print(terminal.format_text(make_folder_reports([folder])), audit_folder(folder))
"""


@pytest.mark.slow
def test_a_new_field_changes_no_stored_table(extended: Path, tmp_path: Path) -> None:
    """Of a log of an older version, and of groups of jobs in rounds."""
    folders = [committed.folder(name) for name in ("titan-xp-2021", "h200-copies-rounds-2026")]
    before, after = (
        run_python(package, tmp_path, "-c", READ, *map(str, folders))
        for package in (Path(gpubench.__file__).parents[1], extended)
    )
    assert before.returncode == 0, before.stderr
    assert len(before.stdout) > 5000
    assert after.stdout == before.stdout


def test_entries_name_only_fields_and_columns_that_there_are() -> None:
    for name, about in ABOUT.items():
        named = {*about.rivals, about.behind, *about.moves_with, *about.follows} - {""}
        assert named <= {*TYPES, *BY_NAME}, name
        assert all(name in ABOUT[rival].rivals for rival in about.rivals), name


def test_every_option_has_a_name_of_its_own() -> None:
    names = [about.option.name for about in ABOUT.values() if about.option]
    assert len(set(names)) == len(names)


def test_only_what_can_be_left_to_the_machine_is() -> None:
    assert [name for name in TYPES if ABOUT[name].auto and DEFAULTS[name] is not None] == []


@pytest.mark.parametrize(
    ("names", "behind", "found"),
    [
        ("abc", {}, "abc"),
        ("abc", {"a": "b"}, "bac"),
        ("abcd", {"a": "d", "b": "a"}, "cdab"),
        ("abcd", {"b": "d", "c": "d"}, "adcb"),
    ],
)
def test_names_are_put_behind_others(names: str, behind: dict[str, str], found: str) -> None:
    assert "".join(order_names(names, behind)) == found


UNLIKE = {
    "text": ("a", "b"), "whole": (1, 2), "number": (1.0, 2.0), "yes or no": (False, True), "list": ([1], [2]),
}  # fmt: skip


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_tells_workloads_and_memory_apart_unless_its_entry_says_otherwise(name: str) -> None:
    """As a later field does, of whose entry nothing else is known."""
    about = ABOUT[name]
    value, other = (make_trial({}), msgspec.structs.replace(make_trial({}), **{name: "something else"}))
    assert (make_memory_chain_key(value, {}) != make_memory_chain_key(other, {})) is (
        about.memory == "changes"
    )
    values = UNLIKE[find_column_kind(BY_NAME[name])]
    fields = EncodedFields.from_frame(build_runs([row_with(**{name: value}) for value in values]))
    assert (fields.list_varied_fields([[name]]) == (name,)) is not about.repeats
    _, workloads = fields.encode_series("batch_size", [name])
    is_alike = bool(workloads[0] == workloads[1])
    may_move = (
        name in COUNTS or "batch_size" in about.moves_with
    )  # larger batches may be tied to more devices
    assert is_alike is (about.repeats or name == "batch_size" or may_move)
