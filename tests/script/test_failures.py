"""Why a command failed, by how it ended and what it printed last."""

from __future__ import annotations

import pytest

from gpubench.script.worker import classify_command_failure, describe_exit_code, find_telling_line

TORCH = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of"
)
JAX = "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 9 bytes."
PROGRAM = "nbody.cu:42: out of memory"
PINNED = "RuntimeError: CUDA error: out of memory (pinned memory of the host)"


@pytest.mark.parametrize("line", [TORCH, JAX, PROGRAM, "CUDA_ERROR_OUT_OF_MEMORY"])
def test_the_words_of_a_full_gpu_are_known(line: str) -> None:
    kind, words = classify_command_failure(["begin", line, "E torchrun: rank 0 failed"], uses_gpu=True)
    assert kind == "oom"
    assert line in words


@pytest.mark.parametrize(
    ("lines", "uses_gpu"), [([PINNED], True), ([PROGRAM], False), (["Killed"], True), ([], True)]
)
def test_other_memory_is_none_of_the_gpus(lines: list[str], uses_gpu: bool) -> None:
    kind, words = classify_command_failure(lines, uses_gpu=uses_gpu)
    assert kind == "failed"
    assert words == (f"; last line of its output: {lines[-1]}" if lines else "")


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        (["[rank1]: ValueError: no workers", "torch.x.ChildFailedError: ", "====", "a : b", "===="], 0),
        (["Traceback", "KeyError: 'x'", "cleaning up"], 1),
        (["nothing", "wrong here", "----"], 1),
        (["ErrorCount 7", "12"], 1),
        (["====", "----"], 1),
    ],
)
def test_the_line_that_tells_most_is_quoted(lines: list[str], line: int) -> None:
    assert find_telling_line(lines) == lines[line]


def test_ends_in_words() -> None:
    assert describe_exit_code(3) == "ended with exit code 3"
    assert describe_exit_code(-9) == "was ended by SIGKILL"
    assert describe_exit_code(137) == "ended with exit code 137 (a process of it was ended by SIGKILL)"
    assert describe_exit_code(255) == "ended with exit code 255"
