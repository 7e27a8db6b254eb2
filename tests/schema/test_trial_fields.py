"""One entry a field: what is made of it, and what a new one leaves alone."""

from __future__ import annotations

import os
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
from gpubench.schema import catalog
from gpubench.schema.columns import BY_NAME
from gpubench.schema.kinds import find_column_kind
from gpubench.schema.trial import derive_config_id, make_trial
from gpubench.schema.trial_fields import ABOUT, DEFAULTS, FIELDS, TYPES, order_names

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


def run_python(package: Path, cwd: Path, *words: str) -> str:
    """What it prints."""
    env = os.environ | {"PYTHONPATH": str(package), "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, *words], env=env, cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_new_field_is_its_entry(extended: Path, tmp_path: Path) -> None:
    planned = run_python(
        extended, tmp_path, "-m", "gpubench", "sweep", "-n", *ASKED, "--set", "flavour=0,0.1"
    )
    assert "flavour=0.1" in planned


IDS = """
from gpubench.schema import catalog, trial
from gpubench.schema.validation import InvalidValueError
variant = catalog.VARIANTS["crop-resize"].make_definition()
print(trial.derive_config_id(trial.make_trial({"batch_size": 16}), variant, "images"))
try:
    trial.make_trial({"flavour": 2})
except InvalidValueError as error:
    print(error)
"""


def test_a_new_field_changes_no_id_and_has_its_bounds(extended: Path) -> None:
    variant = catalog.VARIANTS["crop-resize"].make_definition()
    before = derive_config_id(make_trial({"batch_size": 16}), variant, "images")
    assert run_python(extended, extended, "-c", IDS) == f"{before}\nflavour must be at most 1, not 2\n"


READ = """
import sys
from pathlib import Path
from gpubench.analyze.audit import audit_folder
from gpubench.analyze.folder import read_folder
from gpubench.analyze.questions import make_folder_reports
from gpubench.render import terminal
folder = read_folder(Path(sys.argv[1]), print)
print(terminal.format_text(make_folder_reports([folder])), audit_folder(folder))
"""


@pytest.mark.slow
def test_a_new_field_changes_no_stored_table(extended: Path, tmp_path: Path) -> None:
    """Of groups of jobs in rounds."""
    path = str(committed.folder("h200-copies-rounds-2026"))
    before = run_python(Path(gpubench.__file__).parents[1], tmp_path, "-c", READ, path)
    assert len(before) > 2500
    assert run_python(extended, tmp_path, "-c", READ, path) == before


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


def test_names_are_put_behind_others() -> None:
    assert "".join(order_names("abcd", {"a": "d", "b": "a"})) == "cdab"
    assert "".join(order_names("abcd", {"b": "d", "c": "d"})) == "adcb"


UNLIKE = {
    "text": ("a", "b"), "whole": (1, 2), "number": (1.0, 2.0), "yes or no": (False, True), "list": ([1], [2]),
}  # fmt: skip


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_tells_workloads_and_memory_apart_unless_its_entry_says_otherwise(name: str) -> None:
    """As a later field does, of whose entry nothing else is known."""
    about = ABOUT[name]
    value, other = (make_trial({}), msgspec.structs.replace(make_trial({}), **{name: "something else"}))
    is_another_chain = make_memory_chain_key(value, {}) != make_memory_chain_key(other, {})
    assert is_another_chain is (about.memory == "changes")
    values = UNLIKE[find_column_kind(BY_NAME[name])]
    fields = EncodedFields.from_frame(build_runs([row_with(**{name: value}) for value in values]))
    assert (fields.list_varied_fields([[name]]) == (name,)) is not about.repeats
    _, workloads = fields.encode_series("batch_size", [name])
    is_alike = bool(workloads[0] == workloads[1])
    may_move = name in COUNTS or "batch_size" in about.moves_with  # larger ones may be tied to more devices
    assert is_alike is (about.repeats or name == "batch_size" or may_move)
