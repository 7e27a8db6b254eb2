"""What GPUs were set to before a sweep changed them: kept on disk until they are set so again.

A file a GPU, by its UUID, written before the first change and removed once the GPU was read back as it was. Whoever
changes a GPU, or puts it back, has its lock meanwhile: a file whose lock is free was left by a sweep that is gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from msgspec import Struct

from gpubench.basics.errors import UnusableError
from gpubench.basics.linux import read_boot_id
from gpubench.basics.litter import make_temporary_path, remove_abandoned_files
from gpubench.node.locks import SweepLocks
from gpubench.node.watch.nvml import Nvml, NvmlError, NvmlSetter, open_nvml_setter
from gpubench.node.watch.nvml_calls import POWER_LIMIT
from gpubench.schema.events import Finite
from gpubench.schema.gpu_look import LeftLimits
from gpubench.schema.validation import convert_to_plain, convert_value

SAME_W = 1.0
"""Limits that are nearer to each other than this are one: a driver may round what it is given."""


class KeptSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one GPU was set to, and what the sweep sets."""

    uuid: str
    boot: str
    """In which boot: after another one the driver has forgotten all limits."""
    power_limit_w: Finite | None
    """Before the sweep; None: it leaves that alone."""
    sweep_limits_w: tuple[int, ...]
    """Any that the sweep may set. What the GPU is set to besides is somebody else's doing."""
    is_clock_limited: bool
    """Whether the sweep limits clocks. To what they were limited before no driver tells."""


def choose_state_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """This user's, on a disk that outlives a power cut."""
    home = environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "gpubench" / "limits"


def make_lock_name(uuid: str) -> str:
    """Of the lock on a GPU's settings, among all processes of the host."""
    return f"limits-{uuid}"


def keep_settings(kept: KeptSettings) -> None:
    """Writes it down, so that a power cut does not take it along. Raises UnusableError where that can't be done."""
    path = _make_path(kept.uuid)
    temporary = make_temporary_path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("w") as file:
            json.dump(convert_to_plain(kept), file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        raise UnusableError(f"what was set before can't be written to {path}: {error.strerror}") from None


def check_nothing_kept(uuid: str) -> None:
    """Raises UnusableError where a GPU still has limits of a sweep that is gone: what it has now is not to be kept."""
    if _make_path(uuid).exists():
        raise UnusableError(
            f"{uuid} has limits that a killed sweep has left: gpubench doctor says why they are still set"
        )


def put_back(nvml: NvmlSetter, kept: KeptSettings) -> bool:
    """Sets a GPU as it was, reads that back, and forgets it; whether anything had to be set.

    What somebody else has set since stays. Raises NvmlError where it can't be set.
    """
    is_same_boot = kept.boot == read_boot_id()
    watts = find_power_to_set(nvml, kept, None) if is_same_boot else None
    has_clock_limit = is_same_boot and kept.is_clock_limited
    if has_clock_limit:
        nvml.free_clock(kept.uuid)
    if watts is not None:
        nvml.set_power_limit(kept.uuid, watts)
        check_power_limit(nvml, kept.uuid, watts)
    _make_path(kept.uuid).unlink(missing_ok=True)
    _sync_folder(choose_state_folder())
    return has_clock_limit or watts is not None


def find_power_to_set(nvml: NvmlSetter, kept: KeptSettings, wanted: int | None) -> float | None:
    """The limit in W that is to be set for a GPU to have this one; None: it has. Raises NvmlError.

    `wanted`: None for the one before the sweep, or for what somebody else has set since.
    """
    if kept.power_limit_w is None:
        return None
    now = nvml.ask(POWER_LIMIT, kept.uuid)
    is_from_sweep = any(abs(now - limit) < SAME_W for limit in kept.sweep_limits_w)
    target = wanted if wanted is not None else kept.power_limit_w if is_from_sweep else now
    return None if now == target else target


def check_power_limit(nvml: Nvml, uuid: str, watts: float) -> None:
    """Raises NvmlError where a GPU is not at this limit, to which it was set."""
    now = nvml.ask(POWER_LIMIT, uuid)
    if abs(now - watts) >= SAME_W:
        raise NvmlError(f"power limit: {watts:g} W was asked for, and {now:g} W is read back")


def put_back_left_settings() -> list[LeftLimits]:
    """Puts back what sweeps that are gone have left on GPUs of this machine; what came of each that was changed."""
    remove_abandoned_files(choose_state_folder(), time.time())
    uuids = [path.stem for path in sorted(choose_state_folder().glob("[!.]*.json"))]
    if not uuids:
        return []
    try:
        nvml = open_nvml_setter()
    except NvmlError:  # without a driver they are another machine's, with which this one shares the folder
        return []
    here = {gpu.uuid for gpu in nvml.devices}
    outcomes = [_put_back_if_left(nvml, uuid) for uuid in uuids if uuid in here]
    return [outcome for outcome in outcomes if outcome is not None]


def _put_back_if_left(nvml: NvmlSetter, uuid: str) -> LeftLimits | None:
    lock = SweepLocks()
    if lock.take_free([make_lock_name(uuid)]):
        return None  # its sweep lives
    try:
        kept = convert_value(json.loads(_make_path(uuid).read_text()), KeptSettings)
        left = LeftLimits(uuid=uuid, power_limit_w=kept.power_limit_w, is_clock_limited=kept.is_clock_limited)
        try:
            return left if put_back(nvml, kept) else None
        except NvmlError as error:
            return replace(left, trouble=str(error))
    except FileNotFoundError:  # it has ended meanwhile
        return None
    except (OSError, ValueError, RecursionError) as error:
        return LeftLimits(uuid=uuid, trouble=f"{_make_path(uuid)} can't be read: {error}")
    finally:
        lock.release()


def _make_path(uuid: str) -> Path:
    return choose_state_folder() / f"{uuid}.json"


def _sync_folder(folder: Path) -> None:
    """Has the file system keep what names its files have; some can't sync a folder."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
