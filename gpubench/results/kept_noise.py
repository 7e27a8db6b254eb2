"""What is known of machines' own noise: one small file a machine, in the user's folder of states.

It lies outside all results folders, for it is the machine's and not a sweep's; what is read back is checked.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json

from gpubench.analysis.machine_noise import MachineKnown, MachineNoise, MeasuredNoise
from gpubench.basics.errors import UnusableError
from gpubench.basics.quoted import clean
from gpubench.basics.regular_file import read_regular
from gpubench.results.store import Tell
from gpubench.results.whole_file import write_whole
from gpubench.schema.validation import error_message, first

LONGEST_SAID = 300
"""Characters of what is wrong: a name in a damaged file may be a whole line of it."""
SCHEMA = 1
LARGEST_SD = 2.0
"""On the log scale: one process takes seven times as long as the next. No noise is larger."""
FEWEST_PROCESSES = 3
"""Below which a noise is too little known to stand in for anything."""

Share = Annotated[float, Field(ge=0, le=LARGEST_SD)]
Percent = Annotated[float, Field(ge=0, le=100)]
Words = Annotated[str, Field(max_length=500)]


class _Checked(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class _Machine(_Checked):
    key: Words
    host: Words
    cpu_name: Words


class _Measured(_Checked):
    configuration: Words
    device: Literal["cuda", "cpu"]
    cpus: Annotated[int, Field(ge=1)]
    processes: Annotated[int, Field(ge=FEWEST_PROCESSES, le=1000)]
    total_sd: Share
    within_sd: Share | None
    epoch_time_s: Annotated[float, Field(gt=0)]
    gpu_util_pct: Percent | None = None
    data_wait_pct: Percent | None = None


class _File(_Checked):
    schema_: Annotated[int, Field(alias="schema", ge=1)]
    machine: _Machine
    day: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]
    versions: dict[Words, Words]
    measured: Annotated[list[_Measured], Field(min_length=1, max_length=100)]


def folder() -> Path:
    """Where the files lie: under $GPUBENCH_STATE, else in gpubench in the user's folder of states.

    It need not exist. Raises UnusableError where there is neither the variable nor a home.
    """
    if named := os.environ.get("GPUBENCH_STATE"):
        return Path(named).expanduser().absolute() / "noise"
    if state := os.environ.get("XDG_STATE_HOME"):
        return Path(state).absolute() / "gpubench" / "noise"
    try:
        return Path.home() / ".local" / "state" / "gpubench" / "noise"
    except RuntimeError as error:
        raise UnusableError(
            "no home folder to keep the machine's noise in: set GPUBENCH_STATE to a folder"
        ) from error


def file_of(machine: MachineKnown) -> Path:
    """The file of a machine. Raises UnusableError where there is no place for it."""
    identity = "\0".join(dataclasses.astuple(machine))
    name = re.sub(r"[^A-Za-z0-9]+", "-", machine.key).strip("-")[:60]
    return folder() / f"{name}-{hashlib.sha256(identity.encode()).hexdigest()[:12]}.json"


def keep(noise: MachineNoise) -> Path:
    """Writes the machine's file anew, whole or not at all. Raises UnusableError where it can't be written."""
    path = file_of(noise.machine)
    told = {"schema": SCHEMA, **dataclasses.asdict(noise)}
    write_whole(path, json.dumps(told, indent=1, ensure_ascii=True) + "\n")
    return path


def read(tell: Tell) -> list[MachineNoise]:
    """What is kept of all machines. `tell`: of each file that can't be used, which is as if it were not there."""
    found = []
    try:
        paths = sorted(folder().glob("*.json"))
    except (OSError, UnusableError):
        return []  # nobody can have kept anything there
    for path in paths:
        try:
            found.append(read_file(path))
        except ValueError as error:
            tell(f"{path} is left out: it {error}; gpubench doctor --noise on its machine writes it anew")
    return found


def read_file(path: Path) -> MachineNoise:
    """One file of the folder. Raises ValueError with what is wrong, in words that follow its name."""
    try:
        told = from_json(read_regular(path))
    except OSError as error:
        raise ValueError(f"can't be read ({error.strerror})") from None
    except ValueError:
        raise ValueError("is not JSON (half written?)") from None
    if isinstance(told, dict) and isinstance(told.get("schema"), int) and told["schema"] > SCHEMA:
        raise ValueError("was written by a later version of gpubench")
    try:
        file = _File.model_validate(told)
    except ValidationError as error:
        said = clean(error_message(first(error.errors(), _File), _File), LONGEST_SAID)
        raise ValueError(f"is damaged ({said})") from None
    return MachineNoise(
        machine=MachineKnown(**file.machine.model_dump()),
        day=file.day,
        versions=file.versions,
        measured=tuple(MeasuredNoise(**one.model_dump()) for one in file.measured),
    )
