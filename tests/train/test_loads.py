"""Known loads: what a step computes, and on a GPU how near it comes to the same operation by itself."""

from __future__ import annotations

import pkgutil
import time
from typing import Any

import pandas as pd
import pytest
import torch
from place import Place
from torch.utils.flop_counter import FlopCounterMode
from warm_command import WarmCommand

from gpubench.schema.catalog import LOADS

CPU = torch.device("cpu")


def make(name: str, size: int, dtype: torch.dtype = torch.float32) -> tuple[Any, Any]:
    return pkgutil.resolve_name(LOADS[name].target)(size, dtype, CPU)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_matrix_product_is_one_of_so_many_operations(dtype: torch.dtype) -> None:
    multiply, (left, right) = make("matmul", 24, dtype)
    with FlopCounterMode(display=False) as counter:
        product = multiply(left, right)
    assert counter.get_total_flops() == LOADS["matmul"].count(24)
    assert product.dtype == dtype
    tolerance = 1e-4 if dtype == torch.float32 else 0.1
    torch.testing.assert_close(
        product.double(), left.double() @ right.double(), rtol=tolerance, atol=tolerance
    )
    assert not torch.equal(left, right)


def test_a_copy_reads_and_writes_so_many_bytes() -> None:
    copy, (source, target) = make("copy", 3)
    assert copy(source, target) is target
    assert torch.equal(source, target)
    assert source.data_ptr() != target.data_ptr()
    assert source.nbytes + target.nbytes == LOADS["copy"].count(3)
    assert len(source.unique()) == 256, "bytes that no memory could pack"


def test_bodies_attract_each_other_as_newton_has_it() -> None:
    torch.manual_seed(0)
    size = 40
    advance, (places, speeds) = make("nbody", size)
    assert not speeds.any()
    places[1] = places[0] + 1e-3  # nearer than bodies may be
    speeds += torch.randn(size, 3)
    expected, begun, velocities = places.double(), speeds.double(), speeds.double()
    for _ in range(3):
        apart = expected[None] - expected[:, None]
        distance = apart.norm(dim=2, keepdim=True).clamp(min=0.1)
        velocities = velocities + 1e-3 * (apart / distance**3).mean(1)
        expected = expected + 1e-3 * velocities
        advance(places, speeds)
    torch.testing.assert_close(places.double(), expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(speeds.double() - begun, velocities - begun, rtol=1e-2, atol=1e-5)
    assert (velocities - begun).abs().max() > 1e-4, "they attract each other"
    assert LOADS["nbody"].count(size) == 20 * 40 * 40


STEPS = 1000
"""On an H200 about 1.5 s of either."""


def measure_rate_beside(name: str, size: int, dtype: torch.dtype) -> float:
    """Work a second of the same operation in a plain loop, without gpubench."""
    device = torch.device("cuda")
    if name == "matmul":
        left, right = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
        work = lambda: left @ right  # noqa: E731
    else:
        source = torch.empty(size << 20, dtype=torch.uint8, device=device)
        target = torch.empty_like(source)
        work = lambda: target.copy_(source)  # noqa: E731
    for _ in range(STEPS):  # clocks settle, as in a warm-up
        work()
    torch.cuda.synchronize()
    began = time.monotonic()
    for _ in range(STEPS):
        work()
    torch.cuda.synchronize()
    return STEPS * LOADS[name].count(size) / (time.monotonic() - began)


@pytest.mark.gpu
@pytest.mark.alone
@pytest.mark.parametrize(
    ("name", "size", "column", "unit"), [("matmul", 8192, "tflops", 1e12), ("copy", 4096, "gb_per_s", 1e9)]
)
def test_a_load_is_as_fast_as_the_same_operation_by_itself(
    name: str, size: int, column: str, unit: float, tmp_path: Any, warm_command: WarmCommand
) -> None:
    place = Place(tmp_path, warm_command)
    del place.environment["CUDA_VISIBLE_DEVICES"]
    precision = ("--precision", "bf16") if name == "matmul" else ()
    beside = measure_rate_beside(name, size, torch.bfloat16)
    torch.cuda.empty_cache()
    done = place.run_cold(
        "sweep", "--device", "cuda", "--model", name, "--batch-size", str(size), *precision, "--rounds", "1",
        "--allow-busy",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (rate,) = pd.read_csv(place.home / "results" / "loads" / "trials.csv")[column]
    assert rate * unit == pytest.approx(beside, rel=0.1)
