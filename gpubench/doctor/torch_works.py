"""torch, tried in a child: imports, CUDA on each GPU, numbering, memory by process, ranks that talk."""

from __future__ import annotations

from collections.abc import Iterable

from gpubench.doctor import remedies
from gpubench.doctor.context import CheckContext, named
from gpubench.doctor.finding import CheckResult
from gpubench.node.watch.nvml_calls import PROCESSES
from gpubench.schema.missing import Unmeasured

GROUP = "torch at work"
SLOW_IMPORT_S = 30.0


def imports(context: CheckContext) -> Iterable[CheckResult]:
    """Whether all that a trial needs can be imported."""
    told = context.ask_torch()
    if told.imported is None:
        yield CheckResult(
            group=GROUP,
            name="imports",
            verdict="no",
            found=told.trouble or "the child that was to import torch said nothing",
            remedy=remedies.remedy(
                told.trouble, remedies.TORCH, "mend it until python -c 'import torch, torchvision' works"
            ),
            forbids=True,
        )
        return
    facts = told.imported
    built = f"CUDA {facts['cuda']}" if facts["cuda"] else "CPU only"
    slow = facts["seconds"] > SLOW_IMPORT_S
    yield CheckResult(
        group=GROUP,
        name="imports",
        verdict="doubt" if slow else "ok",
        found=f"torch {facts['torch']} ({built}), torchvision {facts['torchvision']} in {facts['seconds']:.1f} s; "
        f"image files are decoded by {facts['decoder']}",
        remedy="try again when no other work runs; else a Python environment on a local disk" if slow else "",
    )


def cuda(context: CheckContext) -> Iterable[CheckResult]:
    """A matrix product on each GPU."""
    told, gpus = context.ask_torch(), context.tried()
    if told.imported is None:
        return
    if not gpus:
        if isinstance(told.numbering, (list, tuple)) and told.numbering:
            yield CheckResult(
                group=GROUP,
                name="CUDA",
                verdict="doubt",
                found=f"torch sees {len(told.numbering)} GPUs that NVML does not list: they are not used",
                remedy="see the driver's line above",
            )
        return
    if told.imported["cuda"] is None:
        yield CheckResult(
            group=GROUP,
            name="CUDA",
            verdict="no",
            found=f"this torch is built without CUDA, and can't use {named(gpus, [g.uuid for g in gpus])}",
            remedy="install the torch build for CUDA (pytorch.org, Get Started), or --device cpu",
            forbids=True,
        )
        return
    errors: dict[str, list[str]] = {}
    for gpu in gpus:
        answer = told.gpus.get(gpu.uuid)
        error = answer["error"] if answer else told.trouble or "no answer"
        if error:
            errors.setdefault(error, []).append(gpu.uuid)
    failing = sum(map(len, errors.values()))
    if failing < len(gpus):
        fine = [gpu.uuid for gpu in gpus if all(gpu.uuid not in uuids for uuids in errors.values())]
        yield CheckResult(
            group=GROUP,
            name="CUDA",
            verdict="ok",
            found=f"{named(gpus, fine)}: a matrix product comes out right",
        )
    for error, uuids in errors.items():
        yield CheckResult(
            group=GROUP,
            name="CUDA",
            verdict="no",
            found=f"{named(gpus, uuids)}: {error}",
            remedy=remedies.remedy(error, remedies.TORCH, "nvidia-smi and dmesg should say more"),
            forbids=failing == len(gpus),
        )


def numbering(context: CheckContext) -> Iterable[CheckResult]:
    """Whether torch numbers the GPUs as gpubench does, so that `--gpu-ids` means what it says."""
    told, gpus = context.ask_torch(), context.machine.gpus
    if not gpus or told.numbering is None:
        return
    if any(device.parent for device in context.devices().values()):
        return  # torch knows a slice by another uuid than the driver does
    ours = [gpu.uuid.removeprefix("GPU-") for gpu in gpus]
    if list(told.numbering) == ours:
        yield CheckResult(
            group=GROUP, name="numbering", verdict="ok", found="torch and NVML agree on every GPU's uuid"
        )
        return
    theirs = told.numbering if isinstance(told.numbering, str) else ", ".join(told.numbering) or "no GPU"
    yield CheckResult(
        group=GROUP,
        name="numbering",
        verdict="doubt",
        found=f"torch: {theirs}; NVML: {', '.join(ours)}. A trial goes by uuid, so it is watched where it runs, "
        "but --gpu-ids counts as NVML does",
        remedy="name GPUs by uuid in CUDA_VISIBLE_DEVICES",
    )


def process_memory(context: CheckContext) -> Iterable[CheckResult]:
    """Whether the driver tells the memory of our own process: looked up while the child holds its GPUs."""
    told, gpus = context.ask_torch(), context.tried()
    working = [gpu for gpu in gpus if (answer := told.gpus.get(gpu.uuid)) and not answer["error"]]
    if not told.holding or not working:
        return
    cost = "gpu_mem_mib is the growth of device memory (nvml-device-delta)"
    found: dict[tuple[str, str], list[str]] = {}
    amounts = []
    for gpu in working:
        problem = ("", "")
        try:
            processes = context.nvml.ask(PROCESSES, gpu.uuid)
        except Unmeasured as reason:
            problem = (str(reason), remedies.remedy(str(reason), remedies.NVML, "nvidia-smi should say more"))
        else:
            listed = dict(processes)
            mib = listed.get(told.pid)
            if mib is not None:
                amounts.append(f"{mib:,.0f}")
                continue
            if told.pid in listed:
                problem = (
                    "the driver lists the process, but not its memory",
                    "a whole GPU without MIG, on Linux's own driver: others don't tell it",
                )
            else:
                problem = (
                    f"the driver does not list our process {told.pid} by that number: another pid namespace",
                    "run in the host's pid namespace: docker run --pid=host, in Kubernetes hostPID: true",
                )
        found.setdefault(problem, []).append(gpu.uuid)
    if amounts:
        yield CheckResult(
            group=GROUP,
            name="process memory",
            verdict="ok",
            found=f"the driver tells it: a bare context takes {', '.join(dict.fromkeys(amounts))} MiB",
        )
    for (problem_found, remedy), uuids in found.items():
        yield CheckResult(
            group=GROUP,
            name="process memory",
            verdict="doubt",
            found=f"{named(gpus, uuids)}: {problem_found}: {cost}",
            remedy=remedy,
        )


def ranks(context: CheckContext) -> Iterable[CheckResult]:
    """Whether several processes can train together."""
    told = context.ask_torch()
    if told.imported is None:
        return
    version = told.imported["nccl"]
    expected = {"gloo": 2, "nccl": len(context.tried())}
    for backend, world in expected.items():
        answer = told.ranks.get(backend)
        if world < 2:
            if version and context.machine.gpus:
                yield CheckResult(
                    group=GROUP, name="NCCL", verdict="ok", found=f"{version}, not tried: it takes two GPUs"
                )
            continue
        name, what = ("NCCL", "GPUs") if backend == "nccl" else ("gloo", "CPU ranks")
        error = answer["error"] if answer else told.trouble or "no answer"
        if error:
            yield CheckResult(
                group=GROUP,
                name=name,
                verdict="no",
                found=f"an all-reduce over {world} {what} fails: {error}: ddp on several of them will fail",
                remedy=remedies.remedy(error, remedies.TORCH, "run once with NCCL_DEBUG=INFO")
                if backend == "nccl"
                else "GLOO_SOCKET_IFNAME=lo, and a network device lo that is up (ip link set lo up)",
            )
        elif answer:
            of = f"{version}, " if backend == "nccl" else ""
            yield CheckResult(
                group=GROUP,
                name=name,
                verdict="ok",
                found=f"{of}an all-reduce over {world} {what} in {answer['seconds']:.1f} s",
            )
