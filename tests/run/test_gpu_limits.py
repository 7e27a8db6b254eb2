"""Whether the limits that trials want may be set, and the lines that say so."""

from __future__ import annotations

import pytest

from gpubench.basics.errors import UnusableError
from gpubench.run.gpu_limits import (
    check_not_in_use,
    check_within_range,
    collect_wanted_limits,
    describe_guarded_limits,
    describe_left_limits,
    needs_setting,
)
from gpubench.schema.gpu_look import AllowedLimits, GpuLook, LeftLimits, WantedLimits
from gpubench.schema.trial import make_trial

H200 = AllowedLimits(power_w=650.0, power_range_w=(200.0, 700.0), clock_range_mhz=(345, 1980))
MUTE = AllowedLimits(
    power_w=None, power_range_w=None, clock_range_mhz=None,
    missing={"power_range_w": "power range: Not Supported", "clock_range_mhz": "clock range: Not Found"},
)  # fmt: skip


def wants(*power_w: int, mhz: tuple[int, ...] = ()) -> WantedLimits:
    return WantedLimits(power_w=frozenset(power_w), clock_mhz=frozenset(mhz))


def test_each_gpu_has_what_the_trials_on_it_want() -> None:
    trials = [
        (make_trial({"power_limit_w": 200}), ("a", "b")),
        (make_trial({"power_limit_w": 300, "sm_clock_limit_mhz": 900}), ("b",)),
        (make_trial({}), ("a", "c")),
    ]
    assert collect_wanted_limits(trials) == {"a": wants(200), "b": wants(200, 300, mhz=(900,))}


@pytest.mark.parametrize(
    ("wanted", "needed"),
    [(wants(650), False), (wants(650, 649), True), (wants(mhz=(1980,)), True), (wants(), False)],
)
def test_what_is_set_so_needs_no_setting(wanted: WantedLimits, needed: bool) -> None:
    assert needs_setting(wanted, H200) == needed


@pytest.mark.parametrize(
    ("uuid", "wanted", "allowed", "words"),
    [
        (
            "GPU-0",
            wants(199, 200, 700, 701),
            H200,
            "GPU 3 takes a power_limit_w of 200 to 700 W, not 199 and 701",
        ),
        ("GPU-0", wants(mhz=(344, 345, 1980)), H200, "a sm_clock_limit_mhz of 345 to 1980 MHz, not 344"),
        (
            "GPU-0",
            wants(200),
            MUTE,
            r"GPU 3 has no power_limit_w to set \(power range: Not Supported\): leave it out",
        ),
        ("GPU-0", wants(mhz=(900,)), MUTE, r"no sm_clock_limit_mhz to set \(clock range: Not Found\)"),
        (
            "MIG-0",
            wants(200),
            H200,
            "GPU 3 is a MIG slice, which has no limits of its own: leave power_limit_w out",
        ),
    ],
)
def test_a_limit_that_a_gpu_does_not_take_is_refused(
    uuid: str, wanted: WantedLimits, allowed: AllowedLimits, words: str
) -> None:
    with pytest.raises(UnusableError, match=words):
        check_within_range({uuid: wanted}, {uuid: allowed}, {uuid: 3})


def test_limits_at_the_ends_of_the_range_are_taken() -> None:
    check_within_range({"GPU-0": wants(200, 700, mhz=(345, 1980))}, {"GPU-0": H200}, {"GPU-0": 0})


def test_a_busy_gpu_is_not_changed_whatever_is_allowed() -> None:
    def look(util_pct: float | None) -> GpuLook:
        return GpuLook(power_w=75.0, util_pct=util_pct, compute=(), desktop=())

    looks = {"a": look(9.9), "b": look(None), "c": look(10.0)}
    check_not_in_use(["a", "b"], looks, {"a": 0, "b": 1, "c": 2})
    with pytest.raises(UnusableError, match="somebody else works on GPU 2, so its limits are not changed"):
        check_not_in_use(["a", "c"], looks, {"a": 0, "b": 1, "c": 2})


def test_what_will_be_set_and_what_was_left_is_told() -> None:
    wanted = {"b": wants(300, 200), "a": wants(mhz=(900,))}
    assert describe_guarded_limits(wanted, {"a": MUTE, "b": H200}, {"a": 0, "b": 1}) == [
        "GPU 0 is limited for its trials (clock 900 MHz); afterwards no clock limit, for no driver tells whether there "
        "was one",
        "GPU 1 is limited for its trials (power 200 W and 300 W); afterwards 650 W",
    ]
    assert describe_left_limits(LeftLimits(uuid="GPU-0", power_limit_w=650.5)).endswith(
        "as before again: 650.5 W"
    )
    trouble = LeftLimits(uuid="GPU-0", is_clock_limited=True, trouble="clock limit: Unknown Error")
    assert describe_left_limits(trouble).endswith("is not as before: clock limit: Unknown Error")
    assert trouble.remedy == "sudo nvidia-smi -i GPU-0 -rgc"
    assert "then remove that file" in LeftLimits(uuid="GPU-0", trouble="/x can't be read").remedy
