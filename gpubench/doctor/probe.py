"""The parent's side of `gpubench.train.probe`: starts it, listens with a limit, and always ends it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from gpubench.doctor.context import TorchReport
from gpubench.node.launch.fork_server import make_torch_environment
from gpubench.node.launch.probe import describe_last_words

IMPORT_LIMIT_S = 300.0
"""A cold network file system can take minutes to import torch."""
LINE_LIMIT_S = 120.0
"""Between two lines after that: starting CUDA on a large host, and more than any limit of the child's own."""
END_LIMIT_S = 5.0


class TorchProbe:
    """One child. Use it as a context; it is started by the first call of `read_report`."""

    def __init__(
        self,
        uuids: Sequence[str],
        *,
        environ: Mapping[str, str] = os.environ,
        import_limit_s: float = IMPORT_LIMIT_S,
        line_limit_s: float = LINE_LIMIT_S,
    ) -> None:
        self._uuids = uuids
        self._environ = environ
        self._limits = (import_limit_s, line_limit_s)
        self._process: subprocess.Popen[bytes] | None = None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the child
        self._report: TorchReport | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def read_report(self) -> TorchReport:
        """All that the child said; it goes on holding its GPUs until `close`."""
        if self._report is None:
            try:
                self._report = self._receive_report(self._start_child())
            except OSError as error:
                self._report = TorchReport(
                    pid=0, trouble=f"no process can be started: {error.strerror or error}"
                )
        return self._report

    def close(self) -> None:
        """Ends the child, and with it whatever it forked."""
        process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.close()
            if self._report is None or not self._report.holding:
                process.kill()  # it listens to nobody; its children die with it
            try:
                process.wait(END_LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                with contextlib.suppress(
                    subprocess.TimeoutExpired
                ):  # stuck in the driver: nothing can end it
                    process.wait(END_LIMIT_S)
            process.stdout.close()
        self._errors.close()

    def _start_child(self) -> subprocess.Popen[bytes]:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "gpubench.train.probe", str(os.getpid()), ",".join(self._uuids)],
            env=make_torch_environment(self._environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
        )
        return self._process

    def _receive_report(self, process: subprocess.Popen[bytes]) -> TorchReport:
        fields: dict[str, Any] = {"ranks": {}, "gpus": {}}
        trouble = ""
        try:
            for line in self._read_lines(process):
                if "failed" in line:
                    trouble = line["failed"]
                elif "ranks" in line:
                    fields["ranks"][line["ranks"]] = line
                elif "gpu" in line:
                    fields["gpus"][line["gpu"]] = line
                elif "holding" in line:
                    fields["holding"] = True
                    break
                else:
                    fields |= line
            else:
                code = process.wait(END_LIMIT_S)
                trouble = trouble or (f"it died ({describe_last_words(self._errors, code)})" if code else "")
        except (TimeoutError, subprocess.TimeoutExpired) as error:
            trouble = str(error)
        return TorchReport(pid=process.pid, trouble=trouble, **fields)

    def _read_lines(self, process: subprocess.Popen[bytes]) -> Iterator[dict[str, Any]]:
        """The child's lines until it closes its output. Raises TimeoutError where one keeps it waiting."""
        assert process.stdout is not None
        end = process.stdout.fileno()
        text = b""
        limit = self._limits[0]
        deadline = time.monotonic() + limit
        while select.select([end], [], [], max(0.0, deadline - time.monotonic()))[0]:
            part = os.read(end, 1 << 16)
            if not part:
                return
            *lines, text = (text + part).split(b"\n")
            yield from (
                json.loads(line) for line in lines if line.startswith(b"{")
            )  # no site's own greetings
            limit = self._limits[1]
            deadline = time.monotonic() + limit
        raise TimeoutError(f"nothing was heard of it for {limit:g} s")
