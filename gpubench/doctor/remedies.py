"""What to do about an error of the installation or of a reading, by the words that the driver or torch put it in.

What may befall a trial as well (a lost GPU, one that is held, a fabric manager that does not run) is told of in
`launch/faults.py`, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping

from gpubench.node.launch.faults import explain_fault

NVML: Mapping[str, str] = {
    "Shared Library Not Found": "install the NVIDIA driver; in a container: docker run --gpus all, apptainer --nv",
    "Driver Not Loaded": "load the driver (sudo modprobe nvidia; nvidia-smi shows whether it worked)",
    "Insufficient Permissions": "ask for the right: access to /dev/nvidia*, in a container --cap-add=SYS_ADMIN",
    "blocked the request": "let this process at /dev/nvidia*: the container's or SLURM's device rules keep it out",
    "version mismatch": "the driver was updated while it ran: reboot, or unload and load its kernel modules",
    "Function Not Found": "update the driver: this one does not know the call",
    "Corrupted infoROM": "the board has a fault: nvidia-smi -q tells more",
    "Insufficient External Power": "connect the board's power cables",
    "Not Supported": "nothing on this product, unless a newer driver offers it",
    "Not Found": "see whether nvidia-smi -L still lists the GPU; if so, another driver version may know the call",
}
"""Words of an NVML error -> remedy. Looked through in this order: some hold others."""

TORCH: Mapping[str, str] = {
    "driver version is insufficient": "update the driver, or install the torch that is built for its CUDA version",
    "driver on your system is too old": "update the driver, or install the torch that is built for its CUDA version",
    "no kernel image": "install a torch that is built for this GPU's generation",
    "not compiled with CUDA": "install the torch build for CUDA (pytorch.org, Get Started)",
    "out of memory": "somebody else's process has filled it: see the processes on the GPUs",
    "No space left on device": "give the container more shared memory: docker run --shm-size=8g, or --ipc=host",
    "NCCL": "run once with NCCL_DEBUG=WARN; in a container try --ipc=host; NCCL_P2P_DISABLE=1 tells a faulty link",
    "no answer within": "NCCL_P2P_DISABLE=1 tells a faulty link, CUDA_LAUNCH_BLOCKING=1 a faulty GPU",
    "No module named": "install it beside gpubench: pip install torch torchvision",
    "torchvision::nms": "torch and torchvision do not match: pip install --force-reinstall torch torchvision",
    "undefined symbol": "torch and torchvision do not match: pip install --force-reinstall torch torchvision",
    "cannot open shared object": "a library that torch needs is missing: pip install --force-reinstall torch",
}
"""Words of an error of torch, CUDA or NCCL -> remedy."""


CERTAIN = "No space left on device"
"""NCCL calls this an unhandled system error, too, but these words say more."""


def choose_remedy(error: str, known: Mapping[str, str], otherwise: str) -> str:
    """The first that fits: what is certain, then the faults that trials have, too, then the others known here."""
    matching = {words: do for words, do in known.items() if words.lower() in error.lower()}
    return matching.get(CERTAIN) or explain_fault(error) or next(iter(matching.values()), otherwise)
