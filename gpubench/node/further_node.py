"""The process that runs one trial's part on a further node.

Run as `python -m gpubench.node.further_node` by whatever starts processes there (srun, ssh, …), once for each attempt.
What it reads and writes stands in `parts/files.py`. It runs its part as the first node runs its own, by
`Node.run_unit`, and ends with it, or as soon as its input is closed: then nothing of the trial is left here.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time

from msgspec import structs

from gpubench import __version__
from gpubench.basics.errors import GpubenchError, UnusableError
from gpubench.basics.linux import read_network_stack_id
from gpubench.basics.stopping import SIGNALS
from gpubench.node.node import Node, make_this_node
from gpubench.node.parts import network
from gpubench.node.parts.files import (
    NodeInfo,
    PartsFolder,
    PreparePart,
    Request,
    RunPart,
    read_request,
    write_answer,
)
from gpubench.schema.attempt import Attempt

SHARED_LIMIT_S = 10.0
"""How long what the first node has written may take to be seen here."""
READ_BYTES = 1 << 20


class RequestReader:
    """The lines that the first node writes, and their end."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._held = bytearray()
        self.has_ended = False

    def is_input_closed(self) -> bool:
        """Whether the first node has closed it. Asked a few times a second."""
        self._receive_bytes(0)
        return self.has_ended

    def take_next_request(self) -> Request | None:
        """The next line; None where it was closed before. Raises UnusableError where it can't be understood."""
        while b"\n" not in self._held and not self.has_ended:
            self._receive_bytes(None)
        line, end, rest = bytes(self._held).partition(b"\n")
        if not end:
            return None
        self._held = bytearray(rest)
        try:
            return read_request(json.loads(line))
        except (ValueError, RecursionError) as error:
            raise UnusableError(
                f"this node's gpubench ({__version__}) does not understand the first node's ({error}); are both of one "
                "version?"
            ) from None

    def _receive_bytes(self, timeout: float | None) -> None:
        """Takes what has come, waiting so long for it; None: for ever."""
        while not self.has_ended and select.select([self._descriptor], [], [], timeout)[0]:
            data = os.read(self._descriptor, READ_BYTES)
            self.has_ended = not data
            self._held += data
            timeout = 0


def run_node_part(lines: RequestReader) -> None:
    """One part, from its first line to its file. Raises GpubenchError, OSError."""
    opened = lines.take_next_request()
    if not isinstance(opened, PreparePart):
        return
    folder = PartsFolder(opened.folder)
    _wait_for_shared_mark(folder, opened.mark, lines)
    address = network.resolve_address(opened.first)
    interface = network.find_interface_towards(address)
    node = make_this_node()
    node.remove_abandoned_folders()
    node.start_fork_server()
    try:
        if not node.wait_ready(lines.is_input_closed):
            return
        info = NodeInfo(
            version=__version__,
            machine=node.machine,
            address=address,
            interface=interface,
            network_stack=read_network_stack_id(),
        )
        write_answer(folder.make_info_path(opened.number), info)
        request = lines.take_next_request()
        if isinstance(request, RunPart):
            log = folder.make_log_path(opened.number)
            log.touch()
            done = _run_trial_part(
                node, structs.replace(request, order=structs.replace(request.order, log=log)), lines
            )
            write_answer(folder.make_attempt_path(opened.number), done)
    finally:
        node.close()


def _wait_for_shared_mark(folder: PartsFolder, mark: str, lines: RequestReader) -> None:
    """Raises UnusableError where this node does not see the folder that the first one sees."""
    deadline = time.monotonic() + SHARED_LIMIT_S
    while folder.read_if_present(folder.mark_path) != mark.encode():
        if time.monotonic() > deadline or lines.is_input_closed():
            raise UnusableError(
                f"{folder.path} is not there as the first node has made it: results of trials over several nodes must "
                "lie on a file system that all of them see, under the same path (--out)"
            )
        time.sleep(0.1)


def _run_trial_part(node: Node, request: RunPart, lines: RequestReader) -> Attempt:
    if (shared := node.lock_gpus(request.order.gpu_uuids)) and not request.may_share:
        now = time.monotonic()
        why = (
            f"another gpubench sweep of this node measures on {' and '.join(shared)}; wait for its end, give each "
            "sweep GPUs of its own, or add --allow-busy"
        )
        return Attempt(forced=("failed", why), launched=now, finished=now)
    (done,) = node.run_unit(
        [request.order],
        [request.left_out],
        timeout_s=request.timeout_s,
        should_stop=lines.is_input_closed,
        look=lambda _: None,
    )
    return done


def main() -> int:
    """Entry of the part's process."""
    # Whoever ends a job tells all of its processes: the first node hears it, and ends this one in order.
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    try:
        run_node_part(RequestReader(0))
    except GpubenchError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"a file of the trial can't be written: {error}", file=sys.stderr)
        return UnusableError.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
