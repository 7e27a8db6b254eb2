"""A sweep's side of its guardian: starts it, has it set limits, and puts back itself what a killed one has left."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence

from gpubench.basics.errors import UnusableError
from gpubench.basics.stopping import SIGNALS, block_signals
from gpubench.node.launch.channel import Channel, make_socket_pair
from gpubench.node.launch.fork_server import make_gpubench_environment
from gpubench.node.limits.guardian import (
    Done,
    GpuLimit,
    GuardedGpu,
    GuardGpus,
    LimitAnswer,
    LimitRequest,
    Refused,
    SetLimits,
    read_answer,
)
from gpubench.node.limits.kept import put_back_left_settings
from gpubench.schema.gpu_look import NoRightToSetError, WantedLimits
from gpubench.schema.missing import Unmeasured

ANSWER_S = 120.0
"""How long the guardian may take: it waits for processes to leave a GPU, and drivers wait for what is slow."""
END_S = 10.0
"""How long it may take to end once it has said its last, or has said nothing for so long."""


class LimitGuard:
    """The limits of one sweep."""

    def __init__(self, wanted: Mapping[str, WantedLimits]) -> None:
        """`wanted`: of each GPU, by UUID, what will be set. Nothing is changed yet.

        Raises NoRightToSetError, Unmeasured where a GPU can't be changed, UnusableError.
        """
        self._uuids = frozenset(wanted)
        end, guardian_end = make_socket_pair()
        # Those that stop a sweep never reach it: it ends when this end of the channel is closed.
        with guardian_end, block_signals(SIGNALS):
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "gpubench.node.limits.guardian", str(guardian_end.fileno())],
                pass_fds=[guardian_end.fileno()],
                env=make_gpubench_environment(os.environ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._control = Channel(end)
        gpus = [
            GuardedGpu(
                uuid=uuid, power_limits_w=tuple(sorted(gpu.power_w)), has_clock_limits=bool(gpu.clock_mhz)
            )
            for uuid, gpu in wanted.items()
        ]
        try:
            self._ask(GuardGpus(gpus=tuple(gpus)))
        except BaseException:
            self.close()
            raise

    def set_limits(self, limits: Sequence[GpuLimit]) -> None:
        """Raises Unmeasured where one can't be set, UnusableError where the guardian is gone: all is put back then."""
        self._ask(SetLimits(limits=tuple(limit for limit in limits if limit.uuid in self._uuids)))

    def close(self) -> None:
        """Has everything put back. Safe to call twice. Raises UnusableError where something is not as before."""
        if self._process.returncode is not None:
            return
        with contextlib.suppress(OSError):
            self._control.sock.shutdown(socket.SHUT_WR)
        if not isinstance(self._receive(), Done) and (trouble := self._put_back()):
            raise UnusableError(trouble)
        self._end()

    def _ask(self, request: LimitRequest) -> None:
        with contextlib.suppress(OSError):  # that it is gone is seen by its answer
            self._control.send(request)
        match self._receive():
            case Refused(reason=reason, needs_right=True):
                raise NoRightToSetError(reason)
            case Refused(reason=reason):
                raise Unmeasured(reason)
            case None:
                trouble = self._put_back() or "all GPUs are as before"
                raise UnusableError(f"the process that sets limits on GPUs was killed: {trouble}")

    def _receive(self) -> LimitAnswer | None:
        """None: the guardian is gone, or hangs."""
        with contextlib.suppress(OSError):
            received = self._control.receive(ANSWER_S)
            return None if received is None else read_answer(received)
        return None

    def _put_back(self) -> str:
        """What the guardian could not, or can no longer: what this can't either, in words; empty where all is done."""
        self._end()
        troubled = [gpu for gpu in put_back_left_settings() if gpu.uuid in self._uuids and gpu.trouble]
        return "; ".join(f"{gpu.uuid} is not as before ({gpu.trouble}): {gpu.remedy}" for gpu in troubled)

    def _end(self) -> None:
        """Lets go of the guardian. One that hangs is killed."""
        self._control.close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
