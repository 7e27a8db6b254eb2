"""torch, tried in a child: imports, CUDA on each GPU, numbering, memory by process, ranks that talk."""

from __future__ import annotations

from collections.abc import Iterable

from gpubench.doctor import remedies
from gpubench.doctor.context import CheckContext, name_gpus
from gpubench.doctor.finding import CheckResult, doubt, no, ok
from gpubench.node.watch.nvml_calls import PROCESSES
from gpubench.schema.missing import Unmeasured

SLOW_IMPORT_S = 30.0


def imports(context: CheckContext) -> Iterable[CheckResult]:
    """Whether all that a trial needs can be imported."""
    report = context.ask_torch()
    if report.imported is None:
        yield no(
            "imports",
            report.trouble or "the child that was to import torch said nothing",
            remedies.remedy(
                report.trouble, remedies.TORCH, "mend it until python -c 'import torch, torchvision' works"
            ),
            forbids=True,
        )
        return
    facts = report.imported
    built = f"CUDA {facts['cuda']}" if facts["cuda"] else "CPU only"
    slow = facts["seconds"] > SLOW_IMPORT_S
    yield CheckResult(
        name="imports",
        verdict="doubt" if slow else "ok",
        found=f"torch {facts['torch']} ({built}), torchvision {facts['torchvision']} in {facts['seconds']:.1f} s; "
        f"image files are decoded by {facts['decoder']}",
        remedy="try again when no other work runs; else a Python environment on a local disk" if slow else "",
    )


def cuda(context: CheckContext) -> Iterable[CheckResult]:
    """A matrix product on each GPU."""
    report, gpus = context.ask_torch(), context.torch_gpus()
    if report.imported is None:
        return
    if not gpus:
        if isinstance(report.numbering, (list, tuple)) and report.numbering:
            yield doubt(
                "CUDA",
                f"torch sees {len(report.numbering)} GPUs that NVML does not list: they are not used",
                "see the driver's line above",
            )
        return
    if report.imported["cuda"] is None:
        yield no(
            "CUDA",
            f"this torch is built without CUDA, and can't use {name_gpus(gpus, [g.uuid for g in gpus])}",
            "install the torch build for CUDA (pytorch.org, Get Started), or --device cpu",
            forbids=True,
        )
        return
    errors: dict[str, list[str]] = {}
    for gpu in gpus:
        answer = report.gpus.get(gpu.uuid)
        error = answer["error"] if answer else report.trouble or "no answer"
        if error:
            errors.setdefault(error, []).append(gpu.uuid)
    failing = sum(map(len, errors.values()))
    if failing < len(gpus):
        fine = [gpu.uuid for gpu in gpus if all(gpu.uuid not in uuids for uuids in errors.values())]
        yield ok("CUDA", f"{name_gpus(gpus, fine)}: a matrix product comes out right")
    for error, uuids in errors.items():
        yield no(
            "CUDA",
            f"{name_gpus(gpus, uuids)}: {error}",
            remedies.remedy(error, remedies.TORCH, "nvidia-smi and dmesg should say more"),
            forbids=failing == len(gpus),
        )


def numbering(context: CheckContext) -> Iterable[CheckResult]:
    """Whether torch numbers the GPUs as gpubench does, so that `--gpu-ids` means what it says."""
    report, gpus = context.ask_torch(), context.machine.gpus
    if not gpus or report.numbering is None:
        return
    if any(gpu.parent for gpu in gpus):
        return  # torch knows a slice by another uuid than the driver does
    nvml_uuids = [gpu.uuid.removeprefix("GPU-") for gpu in gpus]
    if list(report.numbering) == nvml_uuids:
        yield ok("numbering", "torch and NVML agree on every GPU's uuid")
        return
    torch_uuids = (
        report.numbering if isinstance(report.numbering, str) else ", ".join(report.numbering) or "no GPU"
    )
    yield doubt(
        "numbering",
        f"torch: {torch_uuids}; NVML: {', '.join(nvml_uuids)}. A trial goes by uuid, so it is watched "
        "where it runs, but --gpu-ids counts as NVML does",
        "name GPUs by uuid in CUDA_VISIBLE_DEVICES",
    )


def process_memory(context: CheckContext) -> Iterable[CheckResult]:
    """Whether the driver tells the memory of our own process: looked up while the child holds its GPUs."""
    report, gpus = context.ask_torch(), context.torch_gpus()
    working = [gpu for gpu in gpus if (answer := report.gpus.get(gpu.uuid)) and not answer["error"]]
    if not report.holding or not working:
        return
    cost = "gpu_mem_mib is the growth of device memory (nvml-device-delta)"
    uuids_by_problem: dict[tuple[str, str], list[str]] = {}
    amounts = []
    for gpu in working:
        problem = ("", "")
        try:
            processes = context.nvml.ask(PROCESSES, gpu.uuid)
        except Unmeasured as reason:
            problem = (str(reason), remedies.remedy(str(reason), remedies.NVML, "nvidia-smi should say more"))
        else:
            listed = dict(processes)
            mib = listed.get(report.pid)
            if mib is not None:
                amounts.append(f"{mib:,.0f}")
                continue
            if report.pid in listed:
                problem = (
                    "the driver lists the process, but not its memory",
                    "a whole GPU without MIG, on Linux's own driver: others don't tell it",
                )
            else:
                problem = (
                    f"the driver does not list our process {report.pid} by that number: another pid namespace",
                    "run in the host's pid namespace: docker run --pid=host, in Kubernetes hostPID: true",
                )
        uuids_by_problem.setdefault(problem, []).append(gpu.uuid)
    if amounts:
        yield ok(
            "process memory",
            f"the driver tells it: a bare context takes {', '.join(dict.fromkeys(amounts))} MiB",
        )
    for (problem_found, remedy), uuids in uuids_by_problem.items():
        yield doubt("process memory", f"{name_gpus(gpus, uuids)}: {problem_found}: {cost}", remedy)


def ranks(context: CheckContext) -> Iterable[CheckResult]:
    """Whether several processes can train together."""
    report = context.ask_torch()
    if report.imported is None:
        return
    version = report.imported["nccl"]
    expected = {"gloo": 2, "nccl": len(context.torch_gpus())}
    for backend, world in expected.items():
        answer = report.ranks.get(backend)
        if world < 2:
            if version and context.machine.gpus:
                yield ok("NCCL", f"{version}, not tried: it takes two GPUs")
            continue
        name, what = ("NCCL", "GPUs") if backend == "nccl" else ("gloo", "CPU ranks")
        error = answer["error"] if answer else report.trouble or "no answer"
        if error:
            yield no(
                name,
                f"an all-reduce over {world} {what} fails: {error}: ddp on several of them will fail",
                remedies.remedy(error, remedies.TORCH, "run once with NCCL_DEBUG=INFO")
                if backend == "nccl"
                else "GLOO_SOCKET_IFNAME=lo, and a network device lo that is up (ip link set lo up)",
            )
        elif answer:
            nccl_version = f"{version}, " if backend == "nccl" else ""
            yield ok(name, f"{nccl_version}an all-reduce over {world} {what} in {answer['seconds']:.1f} s")
