"""Limits of the system that end trials: shared memory and open files."""

from __future__ import annotations

import resource
import shutil
from collections.abc import Iterable
from pathlib import Path

from gpubench.datasets.built import amount
from gpubench.doctor.context import CheckContext
from gpubench.doctor.finding import CheckResult, doubt, no, ok
from gpubench.plan.resolve import DEFAULT_SIZE
from gpubench.plan.shares import default_workers

SHARED = Path("/dev/shm")
PREFETCH = 2
USUAL_BATCH, LARGE_BATCH = 64, 512
FEW_FILES = 4096


def queued_bytes(batch_size: int, workers: int) -> int:
    """What loaders hold ready in shared memory: uint8 images of the usual size."""
    return batch_size * 3 * DEFAULT_SIZE * DEFAULT_SIZE * workers * PREFETCH


def shared_memory(context: CheckContext, folder: Path = SHARED) -> Iterable[CheckResult]:
    """Whether the loaders' batches fit into /dev/shm. Docker gives 64 MiB unless told otherwise."""
    remedy = "docker run --shm-size=16g (or --ipc=host); elsewhere sudo mount -o remount,size=50% /dev/shm"
    if not folder.is_dir():
        yield no(
            "shared memory",
            f"{folder} is not there: loader workers can't hand over batches",
            "mount a tmpfs there, or --workers 0",
        )
        return
    room = shutil.disk_usage(folder)
    workers = default_workers(context.machine.cpu_count, 1, "cuda" if context.machine.gpus else "cpu")
    usual, large = queued_bytes(USUAL_BATCH, workers), queued_bytes(LARGE_BATCH, workers)
    has = f"{amount(room.free)} of {amount(room.total)} free in {folder}"
    with_workers = f"with {workers} loader worker{'s' if workers > 1 else ''}"
    if room.free < usual:
        yield no(
            "shared memory",
            f"{has}: batches of {USUAL_BATCH} images {with_workers} take {amount(usual)}, "
            "and a worker that finds no room dies (bus error)",
            remedy,
        )
    elif room.free < large:
        yield doubt(
            "shared memory",
            f"{has}: enough for batches of {USUAL_BATCH} images, but {LARGE_BATCH} {with_workers} take "
            f"{amount(large)}",
            remedy,
        )
    else:
        yield ok(
            "shared memory", f"{has}; batches of {LARGE_BATCH} images {with_workers} take {amount(large)}"
        )


def open_files(_: CheckContext) -> Iterable[CheckResult]:
    """The limit of open files: each batch under way is one, and each channel to a worker."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = soft != resource.RLIM_INFINITY and soft < FEW_FILES
    most = "unlimited" if hard == resource.RLIM_INFINITY else f"{hard:,}"
    raised = hard == resource.RLIM_INFINITY or hard >= FEW_FILES
    yield CheckResult(
        name="open files",
        verdict="doubt" if few else "ok",
        found=f"{soft:,} (ulimit -n; at most {most})"
        + (": many loader workers can use them up" if few else "")
        if soft != resource.RLIM_INFINITY
        else "unlimited",
        remedy=""
        if not few
        else f"ulimit -n {65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)}"
        if raised
        else "raise the hard limit: docker run --ulimit nofile=65536, or /etc/security/limits.conf",
    )
