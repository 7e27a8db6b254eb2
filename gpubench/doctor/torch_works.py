"""torch, tried in a child: imports, CUDA on each GPU, memory by process, ranks that talk."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO

from gpubench.doctor import remedies
from gpubench.doctor.context import CheckContext, CheckResult, TorchReport, make_doubt, make_failure, make_ok
from gpubench.node.launch.fork_server import make_torch_environment
from gpubench.node.launch.user_code_probe import describe_last_words
from gpubench.node.watch.nvml_calls import PROCESSES
from gpubench.schema.missing import Unmeasured

IMPORT_LIMIT_S = 300.0
"""A cold network file system can take minutes to import torch."""
LINE_LIMIT_S = 120.0
"""Between two lines after that: starting CUDA on a large host, and more than any limit of the child's own."""
END_LIMIT_S = 5.0


def check_imports(context: CheckContext) -> Iterable[CheckResult]:
    """Whether all that a trial needs can be imported."""
    report = context.ask_torch()
    if report.imported is None:
        trouble = report.trouble or "the child that was to import torch said nothing"
        otherwise = "mend it until python -c 'import torch, torchvision' works"
        yield make_failure(
            "imports", trouble, remedies.choose_remedy(trouble, remedies.TORCH, otherwise), forbids=True
        )
        return
    facts = report.imported
    built = f"CUDA {facts['cuda']}" if facts["cuda"] else "CPU only"
    yield make_ok(
        "imports",
        f"torch {facts['torch']} ({built}), torchvision {facts['torchvision']} in {facts['seconds']:.1f} s; "
        f"image files are decoded by {facts['decoder']}",
    )


def check_cuda(context: CheckContext) -> Iterable[CheckResult]:
    """A matrix product on each GPU."""
    report, gpus = context.ask_torch(), context.list_torch_gpus()
    if report.imported is None or not gpus:
        return
    if report.imported["cuda"] is None:
        found = "this torch is built without CUDA, and can't use the GPUs"
        remedy = "install the torch build for CUDA (pytorch.org, Get Started), or --device cpu"
        yield make_failure("CUDA", found, remedy, forbids=True)
        return
    uuids_by_error: dict[str, list[str]] = {}
    for gpu in gpus:
        answer = report.gpus.get(gpu.uuid)
        error = answer["error"] if answer else report.trouble or "no answer"
        uuids_by_error.setdefault(error or "", []).append(gpu.uuid)
    for error, uuids in uuids_by_error.items():
        which = context.describe_gpus(uuids)
        if not error:
            yield make_ok("CUDA", f"{which}: a matrix product comes out right")
        else:
            remedy = remedies.choose_remedy(error, remedies.TORCH, "nvidia-smi and dmesg should say more")
            yield make_failure("CUDA", f"{which}: {error}", remedy, forbids="" not in uuids_by_error)


def check_driver_process_memory(context: CheckContext) -> Iterable[CheckResult]:
    """Whether the driver tells the memory of our own process: looked up while the child holds its GPUs."""
    report = context.ask_torch()
    working = [uuid for uuid, answer in report.gpus.items() if not answer["error"]]
    if not report.holding or not working:
        return
    try:
        listed = [context.nvml.ask(PROCESSES, uuid) for uuid in working]
    except Unmeasured as reason:
        problem, remedy = str(reason), "nvidia-smi should say more"
    else:
        held = [dict(processes).get(report.pid) for processes in listed]
        amounts = [f"{mib:,.0f}" for mib in held if mib is not None]
        if len(amounts) == len(held):
            words = f"the driver tells it: a bare context takes {', '.join(dict.fromkeys(amounts))} MiB"
            yield make_ok("process memory", words)
            return
        problem = f"the driver does not tell that of our process {report.pid}"
        remedy = "run in the host's pid namespace (docker run --pid=host), on a whole GPU without MIG"
    yield make_doubt(
        "process memory",
        f"{problem}: gpu_mem_mib is the growth of device memory (nvml-device-delta)",
        remedies.choose_remedy(problem, remedies.NVML, remedy),
    )


def check_ranks(context: CheckContext) -> Iterable[CheckResult]:
    """Whether several processes can train together."""
    report = context.ask_torch()
    if report.imported is None:
        return
    for backend, what, world in (("gloo", "CPU ranks", 2), ("nccl", "GPUs", len(context.list_torch_gpus()))):
        if world < 2:
            continue
        answer = report.ranks.get(backend)
        error = answer["error"] if answer else report.trouble or "no answer"
        if error or not answer:
            found = f"an all-reduce over {world} {what} fails: {error}: ddp on several of them will fail"
            network = "GLOO_SOCKET_IFNAME=lo, and a network device lo that is up (ip link set lo up)"
            is_gloo = backend == "gloo"
            nccl = remedies.choose_remedy(error or "", remedies.TORCH, "run once with NCCL_DEBUG=INFO")
            yield make_failure(backend, found, network if is_gloo else nccl)
        else:
            yield make_ok(backend, f"an all-reduce over {world} {what} in {answer['seconds']:.1f} s")


# ---- the child ----


@contextlib.contextmanager
def open_torch_probe(
    uuids: Sequence[str],
    *,
    environ: Mapping[str, str] = os.environ,
    import_limit_s: float = IMPORT_LIMIT_S,
    line_limit_s: float = LINE_LIMIT_S,
) -> Iterator[Callable[[], TorchReport]]:
    """Gives a function that tells what the child said; its first call starts the child, which ends with the block."""
    report = TorchReport()
    child: subprocess.Popen[bytes] | None = None
    with tempfile.TemporaryFile() as errors:

        @functools.cache
        def ask_torch() -> TorchReport:
            nonlocal child
            try:
                child = subprocess.Popen(
                    [
                        sys.executable,
                        "-P",
                        "-m",
                        "gpubench.train.machine_probe",
                        str(os.getpid()),
                        ",".join(uuids),
                    ],
                    env=make_torch_environment(environ),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    start_new_session=True,
                )
                _receive_report(report, child, errors, (import_limit_s, line_limit_s))
            except OSError as error:
                report.trouble = f"no process can be started: {error.strerror or error}"
            return report

        try:
            yield ask_torch
        finally:
            if child is not None:
                _end_child(child, is_listening=report.holding)


def _receive_report(
    report: TorchReport, child: subprocess.Popen[bytes], errors: IO[bytes], limits_s: tuple[float, float]
) -> None:
    """Takes down the child's lines until it holds its GPUs, ends, or keeps one waiting for too long.

    `limits_s`: how long it may take to its first line, and to each that follows.
    """
    assert child.stdout is not None
    report.pid = child.pid
    limit, later_limit = limits_s
    rest = b""
    while not report.holding:
        if not select.select([child.stdout], [], [], limit)[0]:
            report.trouble = f"nothing was heard of it for {limit:g} s"
            return
        limit = later_limit
        part = os.read(child.stdout.fileno(), 1 << 16)
        if not part:  # it has closed its output
            try:
                code = child.wait(END_LIMIT_S)
            except subprocess.TimeoutExpired as error:
                report.trouble = str(error)
            else:
                died = f"it died ({describe_last_words(errors, code)})" if code else ""
                report.trouble = report.trouble or died
            return
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            if line.startswith(b"{"):  # no site's own greetings
                report.add_line(json.loads(line))


def _end_child(child: subprocess.Popen[bytes], *, is_listening: bool) -> None:
    """Ends the child, and with it whatever it forked."""
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.close()
    if not is_listening:
        child.kill()
    try:
        child.wait(END_LIMIT_S)
    except subprocess.TimeoutExpired:
        child.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # stuck in the driver: nothing can end it
            child.wait(END_LIMIT_S)
    child.stdout.close()
