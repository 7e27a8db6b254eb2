"""A rehearsal: passes before training begins, in which libraries set themselves up. Training then starts as without it.

A model that keeps a state of its own elsewhere than in parameters and buffers keeps what the rehearsal made of it.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from gpubench.train.device_assignment import DeviceAssignment


def rehearse(trained: nn.Module, assignment: DeviceAssignment, passes: Callable[[], None]) -> None:
    """Calls `passes`, and puts back what they changed: buffers (BatchNorm's statistics), random states, gradients.

    The allocator gives its cache back, and counts its peaks anew. `passes` may change no parameter, and what it makes
    on the device must be gone when it returns.
    """
    buffers = [
        (module, name, buffer, None if buffer is None else buffer.detach().clone())
        for module in trained.modules()
        for name, buffer in module._buffers.items()
    ]
    devices = [device for device in assignment.devices if device.type == "cuda"]
    drawn, drawn_by_numpy = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=devices):
        passes()
    random.setstate(drawn)
    np.random.set_state(drawn_by_numpy)
    with torch.no_grad():
        for module, name, buffer, before in buffers:
            module._buffers[name] = buffer
            if buffer is not None and before is not None:
                buffer.copy_(before)
    del buffers[:]
    trained.zero_grad(set_to_none=True)
    assignment.synchronize()
    if devices:
        torch.cuda.empty_cache()
    for device in devices:
        torch.cuda.reset_peak_memory_stats(device)
        torch.cuda.reset_accumulated_memory_stats(device)
