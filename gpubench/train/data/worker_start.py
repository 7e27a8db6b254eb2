"""What a loader worker does first."""

from __future__ import annotations

import contextlib
import os
import random
import signal
from dataclasses import dataclass

import numpy as np
import torch

from gpubench.basics import linux, stacks


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerStart:
    """`worker_init_fn` of a DataLoader: dies with its rank, one thread, seeds of its own."""

    seed: int
    rank: int
    parent: int
    """Process id of the rank. Workers must be forked from its main thread: the signal follows the thread."""
    cpus: tuple[int, ...] = ()
    """On which it stays; none: on those of the rank."""

    def __call__(self, worker: int) -> None:
        linux.die_with_parent(self.parent)
        if self.cpus:
            os.sched_setaffinity(0, self.cpus)
        # The rank hears of Ctrl-C and decides; a worker that it ends must not run the rank's handlers.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with contextlib.suppress(OSError):  # no room for a file: a hang will lack this worker's place
            stacks.listen_in_fork(f"loader_worker_{worker}_of_rank_{self.rank}")
        torch.set_num_threads(1)
        state = np.random.SeedSequence((self.seed, self.rank, worker)).generate_state(3)
        random.seed(int(state[0]))
        np.random.seed(int(state[1]))
        torch.default_generator.manual_seed(int(state[2]))
