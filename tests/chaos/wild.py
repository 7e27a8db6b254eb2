"""A command with bad manners, to be attacked: `python wild.py PART [quiet|loud|marks]`.

It does not end for SIGTERM, works in a child, leaves a further child and a daemon in a session of its own behind,
which hold its output open and print on, and prints more than a terminal holds.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import AbstractContextManager, nullcontext

EPOCHS = 4
EPOCH_S = 0.25
NOISE = b"what nobody looks for\n" * 5000


def main() -> int:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    manner = sys.argv[2]
    fork_printer(own_session=True)
    fork_printer(own_session=False)
    worker = os.fork()
    if worker == 0:
        work(manner)
        os._exit(0)
    _, status = os.waitpid(worker, 0)
    return 1 if status else 0


def fork_printer(*, own_session: bool) -> None:
    """Leaves a process that prints for ever, now and then."""
    if os.fork():
        return
    if own_session:
        os.setsid()
        if os.fork():
            os._exit(0)
    while True:
        os.write(1, NOISE[:2200])
        time.sleep(0.01)


def work(manner: str) -> None:
    for epoch in range(EPOCHS):
        with mark_epoch(manner):
            os.write(1, b"Epoch %d\n" % epoch)
            for _ in range(5 if manner == "loud" else 1):
                write_whole(NOISE)
            time.sleep(EPOCH_S)
            os.write(1, b"acc=%d\n" % (10 * epoch))


def write_whole(text: bytes) -> None:
    while text:
        text = text[os.write(1, text) :]


def mark_epoch(manner: str) -> AbstractContextManager[None]:
    if manner != "marks":
        return nullcontext()
    import gpubench

    return gpubench.epoch()


if __name__ == "__main__":
    sys.exit(main())
