"""What the fork server imports before its first fork. CUDA stays untouched and no thread is started."""

from __future__ import annotations

import importlib

from gpubench.schema import catalog
from gpubench.schema.workload import WORKLOADS

# torch loads some of itself only when first used. Each name here was seen in `sys.modules` after a trial and
# not before it; a test looks for new ones.
LAZY = (
    "torch._dynamo",
    "torch.distributed",
    "torch.distributed.algorithms.join",
    "torch.nn.parallel",
    "torch.optim",
    "torch.utils.data",
    "torch.utils.data.distributed",
    "torch.utils.flop_counter",
    "torch.cuda.graphs",
    "torchvision.io",
    "torchvision.models",
    "torchvision.transforms.v2",
    "PIL.JpegImagePlugin",
)


def import_training_code() -> None:
    """Imports torch, torchvision and gpubench's own training code."""
    strategies = (strategy.target.partition(":")[0] for strategy in catalog.STRATEGIES.values())
    for name in ("torch", "torchvision", *LAZY, *(kind.worker for kind in WORKLOADS.values()), *strategies):
        importlib.import_module(name)
