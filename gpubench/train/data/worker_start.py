"""What a loader worker does first."""

from __future__ import annotations

import ctypes
import os
import random
import signal
from dataclasses import dataclass

import numpy as np
import torch

_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerStart:
    """`worker_init_fn` of a DataLoader: dies with its rank, one thread, seeds of its own."""

    seed: int
    rank: int
    parent: int
    """Process id of the rank. Workers must be forked from its main thread: the signal follows the thread."""

    def __call__(self, worker: int) -> None:
        die_with(self.parent)
        # The rank hears of Ctrl-C and decides; a worker that it ends must not run the rank's handlers.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        torch.set_num_threads(1)
        state = np.random.SeedSequence((self.seed, self.rank, worker)).generate_state(3)
        random.seed(int(state[0]))
        np.random.seed(int(state[1]))
        torch.default_generator.manual_seed(int(state[2]))


def die_with(parent: int) -> None:
    """The kernel kills this process as soon as `parent` ends, however it ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl(PR_SET_PDEATHSIG): {os.strerror(number)}")
    if os.getppid() != parent:  # it ended before we asked
        os._exit(1)
