"""The first node's side of a part on a further node, with stand-ins for the part's process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import gpubench
from gpubench.node.parts import process
from gpubench.node.parts.files import PartsFolder
from gpubench.node.parts.process import PartCommand, PartLostError, PartProcess


def part(folder: Path, *before: str, environ: dict[str, str] | None = None) -> PartProcess:
    command = PartCommand(name="n2", before=before)
    return PartProcess(command, PartsFolder(folder), 1, os.environ if environ is None else environ)


def test_a_part_takes_no_orders_that_srun_has_left_for_another(tmp_path: Path) -> None:
    orders = {"SLURM_CPU_BIND": "quiet,mask_cpu:0x1", "SLURM_CPU_BIND_LIST": "0x1", "SLURM_LABELIO": "1"}
    orders |= {"SLURM_EXPORT_ENV": "NONE", "SLURM_DISTRIBUTION": "cyclic", "SLURM_JOB_ID": "7"}
    seen = tmp_path / "seen"
    shows = part(tmp_path, "sh", "-c", f"env > {seen}", environ={"PATH": os.environ["PATH"], **orders})
    with pytest.raises(PartLostError):
        shows.await_node_info(lambda: False)
    process.close_all_parts([shows])
    given = [line for line in seen.read_text().splitlines() if line.startswith("SLURM_")]
    assert given == ["SLURM_JOB_ID=7"]


@pytest.mark.parametrize(
    ("written", "where"),
    [
        (f'{{"file":"node","version":"{gpubench.__version__}","machine":1}}'.encode(), "machine"),
        (b'{"file":"node","more":1}', "unknown key 'more'"),
        (b'{"file":"joke"}', "file is refused"),
        (b"[]", "it must be a table"),
        (b"no JSON", "Expecting value: "),
    ],
)
def test_a_file_that_no_part_writes_is_told_as_one(tmp_path: Path, written: bytes, where: str) -> None:
    PartsFolder(tmp_path).make_info_path(1).write_bytes(written)
    waits = part(tmp_path, "sh", "-c", "cat > /dev/null")
    try:
        with pytest.raises(PartLostError, match=rf"no part of gpubench writes \({where}"):
            waits.await_node_info(lambda: False)
    finally:
        process.close_all_parts([waits])


def test_a_part_of_another_version_takes_no_part(tmp_path: Path) -> None:
    """Whatever fields that one may have."""
    PartsFolder(tmp_path).make_info_path(1).write_text('{"file":"node","version":"0.0","host":"n2"}')
    waits = part(tmp_path, "sh", "-c", "cat > /dev/null")
    try:
        with pytest.raises(PartLostError, match=r"it has gpubench 0\.0, the first node"):
            waits.await_node_info(lambda: False)
    finally:
        process.close_all_parts([waits])
