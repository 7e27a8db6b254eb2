"""When a GPU counts as lost: by the driver's own word, not by one call that fails."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from fake_nvml import FakeNvml, gpu, refused

from gpubench.node.watch.nvml import why_lost

UUID = gpu(0).uuid


@dataclass
class Answering(FakeNvml):
    """Says of some calls why they fail."""

    said: dict[str, str] = field(default_factory=dict)

    def fail(self, call: str, uuid: str) -> None:  # noqa: ARG002
        if call in self.said:
            raise refused(call, self.said[call])


ASKED = ("memory", "utilisation", "temperature_c")


@pytest.mark.parametrize("call", ASKED)
@pytest.mark.parametrize("said", ["GPU is lost", "GPU requires restart"])
def test_one_word_of_the_driver_is_enough(call: str, said: str) -> None:
    assert why_lost(Answering(said={call: said}), UUID) == said


@pytest.mark.parametrize("well", ASKED)
def test_a_gpu_that_answers_something_is_not_lost(well: str) -> None:
    said = dict.fromkeys(set(ASKED) - {well}, "Unknown Error")
    assert why_lost(Answering(said=said), UUID) is None
    # A slice of a GPU has no temperature: that alone makes no loss of the others' trouble.
    assert why_lost(Answering(said=said | {well: "Not Supported"}), UUID) is None


def test_a_gpu_of_which_nothing_at_all_is_known_is_lost() -> None:
    assert why_lost(Answering(said=dict.fromkeys(ASKED, "Unknown Error")), UUID) == "Unknown Error"
    assert why_lost(Answering(said=dict.fromkeys(ASKED, "Insufficient Permissions")), UUID) is None


def test_a_healthy_gpu_is_not_lost() -> None:
    assert why_lost(FakeNvml(), UUID) is None
