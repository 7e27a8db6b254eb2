"""What the first node and a part of a trial on a further node give each other.

The first node writes two lines of JSON to the part's input, and ends the part by closing it. The part answers by files
in a folder beside the attempt, which both nodes see. Each side checks what it reads.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from gpubench import __version__
from gpubench.basics.errors import UnusableError
from gpubench.basics.quoted import clean_line
from gpubench.node.environment import Machine
from gpubench.schema.order import TrialOrder
from gpubench.schema.validation import convert_to_plain, convert_value, make_converter

T = TypeVar("T")

# ---------------------------------------------------------------- what a part reads


class PreparePart(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="request", tag="prepare"
):
    """The first line: make ready, and write what this node is."""

    first: str
    """The first node, by name or IP address."""
    folder: Path
    """Where the part writes its files."""
    mark: str
    """What the first node has written there."""
    number: int
    """Of the part's node among those of the trial, from 1."""


class RunPart(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="request", tag="run"):
    """The second line: run this node's part of the trial."""

    order: TrialOrder
    left_out: tuple[str, ...]
    timeout_s: float
    may_share: bool
    """Whether it runs on GPUs that another sweep of that node has, too."""


Request = PreparePart | RunPart
read_request: Callable[[Any], Request] = make_converter(Request)


# ---------------------------------------------------------------- what a part writes


class NodeInfo(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="file", tag="node"):
    """What its node is. Trials can be started there from now on."""

    version: str
    """Of gpubench."""
    machine: Machine
    """As the part may use it."""
    address: str
    """The first node's IP address, as this node knows it."""
    interface: str
    """The network interface by which that is reached from here."""
    network_stack: str
    """Nodes share their loopback addresses where this is the same."""


class OtherVersionError(Exception):
    """Another version of gpubench has written a file. The text names it."""


def parse_answer(kind: type[T], data: bytes) -> T:
    """What `write_answer` has written: a NodeInfo, or an Attempt of this node's ranks and clock. Raises
    OtherVersionError; ValueError and RecursionError for what no part writes."""
    answer = json.loads(data)
    # Before all else: other versions may have other fields.
    if isinstance(answer, dict) and (version := answer.get("version", __version__)) != __version__:
        raise OtherVersionError(clean_line(str(version), 40))
    return convert_value(answer, kind)


# ---------------------------------------------------------------- the folder between


def encode_json_line(value: Any) -> bytes:
    """As a line of JSON."""
    return json.dumps(convert_to_plain(value), separators=(",", ":")).encode() + b"\n"


@dataclass(frozen=True, slots=True)
class PartsFolder:
    """The folder beside an attempt through which its parts on further nodes are heard."""

    path: Path

    @property
    def mark_path(self) -> Path:
        """What the first node has written: who reads the same there sees the same folder."""
        return self.path / "mark"

    def make_info_path(self, number: int) -> Path:
        return self.path / f"node-{number}.json"

    def make_attempt_path(self, number: int) -> Path:
        return self.path / f"attempt-{number}.json"

    def make_log_path(self, number: int) -> Path:
        """What the processes of a further node print."""
        return self.path / f"node-{number}.log"

    def read_if_present(self, path: Path) -> bytes | None:
        """A file of it; None where it is not there yet.

        A network's client may take what it has once seen of a folder for true for a minute, unless it has changed the
        folder itself: so it makes a file there.
        """
        look = self.path / ".look"
        with contextlib.suppress(OSError):
            look.touch()
            look.unlink()
        try:
            return path.read_bytes()
        except OSError:
            return None


def write_answer(path: Path, value: Any) -> None:
    """Writes a file that is there whole or not at all. Raises OSError."""
    part = path.with_name(f".{path.name}.tmp")
    part.write_bytes(encode_json_line(value))
    part.replace(path)


@contextlib.contextmanager
def open_parts_folder(log: Path) -> Iterator[tuple[PartsFolder, str]]:
    """A new folder beside an attempt's log, and the mark in it. At its end the logs of further nodes must have been
    taken out of it. Raises UnusableError where it can't be made."""
    folder, mark = PartsFolder(log.with_suffix(".parts")), secrets.token_hex(16)
    try:
        folder.path.mkdir()
        folder.mark_path.write_text(mark)
    except OSError as error:
        raise UnusableError(f"{folder.path} can't be made: {error.strerror}") from None
    try:
        yield folder, mark
    finally:
        shutil.rmtree(folder.path, ignore_errors=True)
