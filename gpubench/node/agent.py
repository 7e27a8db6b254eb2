"""The agent of a further node: runs that node's part of trials, as the first node asks it to.

Run as `python -m gpubench.node.agent` by whatever starts processes there (srun, ssh, …). It speaks with the first node
over its standard input and output, which nobody else can write to; what is said stands in `agents/messages.py`. It
holds the `Node` of its machine, and ends with the connection: then nothing of its trials is left.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import time
from collections import deque
from dataclasses import replace

from gpubench import __version__
from gpubench.basics.checked import MismatchError
from gpubench.basics.errors import GpubenchError, UnusableError
from gpubench.node.agents import frames, network
from gpubench.node.agents.messages import (
    Alive,
    AskTime,
    Beat,
    Complete,
    Ended,
    GpuThere,
    Here,
    Open,
    Ready,
    Release,
    Request,
    RunTrial,
    StopTrial,
    Time,
    Told,
    Unable,
    read_request,
)
from gpubench.node.launch import scratch
from gpubench.node.node import Node, this_machine
from gpubench.schema.attempt import Attempt

BEAT_S = 1.0
"""How often each side shows that it is alive while a trial runs."""
LOST_S = 60.0
"""After so long without a word during a trial the other side counts as lost."""


class Agent:
    """One agent, from its first word to its last."""

    def __init__(self, inwards: int, outwards: int) -> None:
        """Descriptors: where the first node's messages come from, and where its own go."""
        self._inwards, self._outwards = inwards, outwards
        self._frames = frames.Frames()
        self._waiting: deque[Request] = deque()
        self._is_over = False
        self._heard = self._told = time.monotonic()
        self._released = self._stopped = self._is_complete = False

    # ---- its life ----

    def run(self) -> None:
        """Answers until the connection ends."""
        first = self._next()
        if not isinstance(first, Open):
            return
        try:
            address = network.resolved(first.first)
            interface = network.interface_towards(address)
            node = this_machine()
        except GpubenchError as error:
            self._tell(Unable(reason=str(error)))
            return
        node.clear()
        node.start()
        try:
            self._tell(
                Here(
                    version=__version__,
                    host=node.machine.host,
                    pid=os.getpid(),
                    gpus=[
                        GpuThere(uuid=gpu.uuid, name=gpu.name, memory_mib=gpu.memory_mib)
                        for gpu in node.machine.gpus
                    ],
                    cpu_name=node.machine.cpu_name,
                    cpu_ids=node.machine.cpu_ids,
                    address=address,
                    interface=interface,
                    loopback=network.loopback(),
                )
            )
            try:
                is_ready = node.wait_ready(self._is_gone)
            except UnusableError as error:
                self._tell(Unable(reason=str(error)))
                return
            if is_ready:
                self._tell(Ready())
                self._serve(node)
        finally:
            node.close()

    def _serve(self, node: Node) -> None:
        while (request := self._next()) is not None:
            match request:
                case AskTime(number=number):
                    self._tell(Time(number=number, at=time.monotonic()))
                case RunTrial():
                    self._run_trial(node, request)
                case _:
                    pass  # of a trial that has ended meanwhile

    def _run_trial(self, node: Node, asked: RunTrial) -> None:
        self._released = self._stopped = self._is_complete = False
        self._heard = time.monotonic()
        if (shared := node.hold(asked.order.gpu_uuids)) and not asked.may_share:
            self._tell_failed(
                f"another gpubench sweep of this node measures on {' and '.join(shared)}; wait for its end, give each "
                "sweep GPUs of its own, or add --allow-busy"
            )
            return
        try:
            with scratch.scratch_folder() as folder:
                log = folder / "log"
                log.touch()
                (done,) = node.run(
                    [replace(asked.order, log=log)],
                    [asked.left_out],
                    timeout_s=asked.timeout_s,
                    should_stop=self._should_stop,
                    look=lambda _: None,
                    may_end=self._may_end,
                )
                self._tell(Ended.of(done, log.read_bytes().decode(errors="replace")))
        except UnusableError as error:  # no folder for temporary files: nothing has run
            self._tell_failed(str(error))

    def _tell_failed(self, why: str) -> None:
        """Of a trial of which nothing has run."""
        now = time.monotonic()
        self._tell(Ended.of(Attempt(forced=("failed", why), launched=now, finished=now), ""))

    # ---- while a trial runs ----

    def _should_stop(self) -> bool:
        """Hears what has come meanwhile; whether the trial is to end now."""
        self._receive(0)
        now = time.monotonic()
        while self._waiting:
            match self._waiting.popleft():
                case Release():
                    self._released = True
                case StopTrial():
                    self._stopped = True
                case Beat():
                    pass
                case AskTime(number=number):
                    self._tell(Time(number=number, at=now))
                case _:
                    self._stopped = True  # it takes the trial for ended
        if now - self._told > BEAT_S:
            self._tell(Alive())
        return self._stopped or self._is_over or now - self._heard > LOST_S

    def _may_end(self) -> bool:
        if not self._is_complete:
            self._is_complete = True
            self._tell(Complete())
        return self._released

    def _is_gone(self) -> bool:
        """Whether the first node has gone while this one was being made ready."""
        self._receive(0)
        return self._is_over

    # ---- the connection ----

    def _next(self) -> Request | None:
        """The next request; None at the end of the connection."""
        while not self._waiting and not self._is_over:
            self._receive(None)
        return self._waiting.popleft() if self._waiting else None

    def _receive(self, timeout: float | None) -> None:
        """Takes what has come, waiting so long for the first of it; None: for ever."""
        while not self._is_over and select.select([self._inwards], [], [], timeout)[0]:
            data = os.read(self._inwards, frames.PIECE)
            if not data:
                self._is_over = True
                return
            self._heard = time.monotonic()
            try:
                self._waiting += [read_request(json.loads(one)) for one in self._frames.feed(data)]
            except (MismatchError, frames.ForeignError, ValueError) as error:
                self._tell(
                    Unable(
                        reason=f"this node's gpubench ({__version__}) does not understand the first node's ({error}); "
                        "are both of one version?"
                    )
                )
                self._is_over = True
                return
            timeout = 0

    def _tell(self, message: Told) -> None:
        self._told = time.monotonic()
        try:
            frames.send(self._outwards, message)
        except OSError:  # nobody listens any more
            self._is_over = True


def main() -> None:
    """Entry of the agent's process."""
    # Whoever ends a job tells all of its processes: the first node hears it, and ends this one in order.
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    outwards = os.dup(1)
    os.dup2(2, 1)  # what anything prints here is no message
    with contextlib.suppress(KeyboardInterrupt):
        Agent(0, outwards).run()


if __name__ == "__main__":
    main()
