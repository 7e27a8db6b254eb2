"""torch, tried in a child: imports, CUDA on each GPU, memory by process, ranks that talk."""

from __future__ import annotations

from collections.abc import Iterable

from gpubench.doctor import remedies
from gpubench.doctor.context import CheckContext, CheckResult, make_doubt, make_failure, make_ok
from gpubench.node.watch.nvml_calls import PROCESSES
from gpubench.schema.missing import Unmeasured


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
