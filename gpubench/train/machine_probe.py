"""A child that tries what every trial will need: the imports, CUDA on each GPU, ranks that talk to each other.

Run as `python -m gpubench.train.machine_probe PARENT UUID,UUID,…` (empty: no GPUs) by `gpubench doctor`. It prints a
JSON object a line, in this order, and leaves out what does not apply:

    {"imported": {"torch", "torchvision", "decoder", "cuda", "seconds"}}     or {"failed": reason}, and it ends
    {"ranks": "gloo" | "nccl", "error": reason or null, "seconds": …}
    {"gpu": uuid, "error": reason or null}         a matrix product on each
    {"holding": true}                              the CUDA contexts stay until standard input is closed

CUDA starts in forked children first, where several GPUs are to talk; in this process itself last of all.
"""

from __future__ import annotations

import functools
import json
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from gpubench.basics import linux

RANKS_LIMIT_S = 60.0
GRACE_S = 1.0
NO_ANSWER = "no answer"
SIDE = 512
"""The side of the matrices that are multiplied; their product of ones is exact in any precision."""

Job = Callable[[], Any]
"""What a forked child does."""


def main(parent: int, uuids: Sequence[str]) -> None:
    """Tells what works on the standard output, line by line. Never returns normally: it ends by os._exit."""
    linux.die_with_parent(parent)
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print must not get between the lines

    def tell(line: dict[str, Any]) -> None:
        out.write(json.dumps(line) + "\n")

    try:
        facts = import_and_collect_facts()
    except Exception as error:  # noqa: BLE001 - whatever a broken installation raises is the finding
        tell({"failed": describe_error(error)})
        os._exit(1)
    tell({"imported": facts})
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    tell(try_all_reduce("gloo", [""] * 2))
    if len(uuids) > 1:
        tell(try_all_reduce("nccl", uuids))
    if uuids:
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(uuids)
        for index, uuid in enumerate(uuids):
            tell({"gpu": uuid, "error": run_matrix_product(index)})
        tell({"holding": True})
        sys.stdin.read()
    os._exit(0)  # teardown of CUDA can hang, and there is nothing to save


def import_and_collect_facts() -> dict[str, Any]:
    """Imports what the fork server imports. Raises whatever a broken installation raises."""
    began = time.monotonic()
    import torch
    import torchvision

    from gpubench.train import warm

    warm.import_training_code()
    from gpubench.train.data.decoders import DECODER

    return {
        "torch": str(torch.__version__),
        "torchvision": str(torchvision.__version__),
        "decoder": DECODER.name,
        "cuda": torch.version.cuda,
        "seconds": time.monotonic() - began,
    }


def run_matrix_product(index: int) -> str | None:
    """What is wrong with a matrix product on torch's GPU `index`; None: nothing. Starts CUDA."""
    import torch

    try:
        ones = torch.ones(SIDE, SIDE, device=torch.device("cuda", index))
        mean = float((ones @ ones).mean().item())
    except Exception as error:  # noqa: BLE001 - the reason is the finding
        return describe_error(error)
    return None if mean == SIDE else f"a matrix product came out wrong: {mean} instead of {SIDE}"


def try_all_reduce(backend: str, uuids: Sequence[str]) -> dict[str, Any]:
    """One all-reduce over a rank for each uuid (`gloo`: for each entry, on the CPU)."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gpubench-doctor-") as scratch:
        meeting = str(Path(scratch) / "rendezvous")
        jobs = [
            functools.partial(run_all_reduce, backend, rank, uuids, meeting) for rank in range(len(uuids))
        ]
        answers = run_in_children(jobs, RANKS_LIMIT_S)
    errors = [answer for answer in answers if isinstance(answer, str)]
    return {
        "ranks": backend,
        # Who only waited for another knows no cause.
        "error": min(errors, key=lambda error: error.startswith(NO_ANSWER)) if errors else None,
        "seconds": time.monotonic() - began,
    }


def run_all_reduce(backend: str, rank: int, uuids: Sequence[str], meeting: str) -> bool:
    """One rank's part. Raises where the sum over all ranks is not what it should be."""
    import torch
    import torch.distributed as dist

    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(filter(None, uuids))
    device = torch.device("cuda", rank) if backend == "nccl" else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group(
        backend,
        store=dist.FileStore(meeting, len(uuids)),  # type: ignore[attr-defined]
        rank=rank,
        world_size=len(uuids),
        timeout=timedelta(seconds=RANKS_LIMIT_S),
        device_id=device if backend == "nccl" else None,
    )
    value = torch.full((1,), float(rank + 1), device=device)
    dist.all_reduce(value)
    total, right = value.item(), len(uuids) * (len(uuids) + 1) / 2
    if total != right:
        raise RuntimeError(f"the sum over {len(uuids)} ranks came out as {total} instead of {right}")
    return True


# ---------------------------------------------------------------- children


def run_in_children(jobs: Sequence[Job], limit_s: float) -> list[Any]:
    """What each job returned, from a forked child each, run at once; a string says why one has no answer.

    No job outlives the call: whoever has not answered within `limit_s` seconds is killed.
    """
    context = multiprocessing.get_context("fork")
    children: list[BaseProcess] = []
    ends: list[Connection] = []
    try:
        for job in jobs:
            reading_end, writing_end = context.Pipe(duplex=False)
            started = context.Process(target=_run_child_job, args=(job, writing_end, os.getpid()))
            ends.append(reading_end)
            started.start()
            children.append(started)
            writing_end.close()
        return _collect_answers(ends, limit_s)
    finally:
        for child in children:
            child.kill()
        for child in children:
            child.join()


def _run_child_job(job: Job, answer: Connection, parent: int) -> None:
    """The child: answers, and waits to be killed, since a rank that ends early takes the others' sockets away."""
    linux.die_with_parent(parent)
    try:
        answer.send(job())
    except Exception as error:  # noqa: BLE001 - the reason is the finding
        answer.send(describe_error(error))
    while True:
        signal.pause()


def _collect_answers(ends: Sequence[Connection], limit_s: float) -> list[Any]:
    """One answer from each pipe. After one that tells of an error the others get GRACE_S: they may wait for it."""
    answers: dict[Any, Any] = {}
    deadline = time.monotonic() + limit_s
    while waiting := [end for end in ends if end not in answers]:
        readable = wait(waiting, max(0.0, deadline - time.monotonic()))
        if not readable:
            break
        for end in readable:
            assert isinstance(end, Connection)
            try:
                answers[end] = end.recv()
            except (EOFError, OSError):
                answers[end] = "its process died"
            if isinstance(answers[end], str):
                deadline = min(deadline, time.monotonic() + GRACE_S)
    return [answers.get(end, f"{NO_ANSWER} within {limit_s:g} s") for end in ends]


def describe_error(error: BaseException) -> str:
    """The error in one line."""
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words}"[:300].rstrip(": ")


if __name__ == "__main__":
    main(int(sys.argv[1]), [uuid for uuid in sys.argv[2].split(",") if uuid])
