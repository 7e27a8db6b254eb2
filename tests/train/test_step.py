"""One optimizer step: eager, accumulated, scaled, and as a CUDA graph."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from gpubench.train import step
from gpubench.train.device_assignment import DeviceAssignment
from gpubench.train.strategies.contract import Strategy

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _one_thread():
    """Threads of a small network wait for each other longer than they work."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def single(device, accumulate=1):
    assignment = DeviceAssignment(rank=0, world=1, devices=(device,), rendezvous=Path("none"))
    return Strategy(assignment, accumulate=accumulate)


def network(device, seed=0):
    torch.manual_seed(seed)
    # No bias before a normalisation: its gradient is rounding noise, which Adam and RMSprop blow up to whole steps.
    layers = (
        nn.Conv2d(3, 8, 3, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
    )
    return nn.Sequential(*layers, nn.Linear(128, 10)).to(device)


def batches(device, count=10):
    draw = torch.Generator().manual_seed(1)
    for _ in range(count):
        images = torch.randn(16, 3, 16, 16, generator=draw)
        yield images.to(device), torch.randint(10, (16,), generator=draw).to(device)


def trained(device, kind=step.TrainStep, *, name="sgd", precision="fp32", accumulate=1, lr=0.02):
    """Losses of ten steps and the model afterwards."""
    model = network(device)
    optimizer = step.make_optimizer(name, lr, model, graph=kind is step.GraphStep)
    one = kind(model, optimizer, single(device, accumulate), precision=precision)
    losses = []
    for images, labels in batches(device):
        one.loss_sum.zero_()
        one(images, labels)
        losses.append(one.loss_sum.item())
    return losses, model


# ---------------------------------------------------------------- on any machine


@pytest.mark.parametrize("name", ["sgd", "momentum", "nesterov", "adagrad", "rmsprop", "adam", "adamw"])
def test_a_step_is_what_one_would_write_by_hand(name):
    losses, model = trained(CPU, name=name)
    by_hand = network(CPU)
    optimizer = {
        "sgd": lambda p: torch.optim.SGD(p, lr=0.02),
        "momentum": lambda p: torch.optim.SGD(p, lr=0.02, momentum=0.9),
        "nesterov": lambda p: torch.optim.SGD(p, lr=0.02, momentum=0.9, nesterov=True),
        "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.02),
        "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.02),
        "adam": lambda p: torch.optim.Adam(p, lr=0.02),
        "adamw": lambda p: torch.optim.AdamW(p, lr=0.02),
    }[name](by_hand.parameters())
    expected = []
    for images, labels in batches(CPU):
        optimizer.zero_grad()
        loss = F.cross_entropy(by_hand(images), labels)
        loss.backward()
        optimizer.step()
        expected.append(loss.item())
    assert losses == pytest.approx(expected, rel=1e-6)
    for ours, theirs in zip(model.parameters(), by_hand.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_micro_batches_add_up_to_the_batch():
    frozen = network(CPU).eval()  # BatchNorm's statistics would differ between a batch and its micro-batches
    images, labels = next(batches(CPU))
    found = []
    for count in (1, 4):
        model = copy.deepcopy(frozen)
        strategy = single(CPU, count)
        one = step.TrainStep(model, torch.optim.SGD(model.parameters()), strategy, precision="fp32")
        strategy.compute_gradients(one.forward, one.backward, images, labels)
        found.append((one.loss_sum, [p.grad for p in model.parameters()]))
    torch.testing.assert_close(*found)


def test_frozen_parameters_are_not_the_optimizers():
    model = network(CPU)
    model[0].requires_grad_(False)
    optimizer = step.make_optimizer("adam", 0.1, model, graph=False)
    assert len(optimizer.param_groups[0]["params"]) == 4


# ---------------------------------------------------------------- on a GPU


@pytest.fixture
def gpu():
    yield torch.device("cuda", 0)
    step.set_tf32_mode("fp32")


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize(
    ("name", "accumulate"),
    [("sgd", 1), ("sgd", 4), ("momentum", 1), ("nesterov", 1), ("rmsprop", 1), ("adam", 1), ("adamw", 1)],
)
def test_a_graph_trains_like_eager_steps(gpu, name, accumulate, precision):
    step.set_tf32_mode(precision)
    how = {"name": name, "precision": precision, "accumulate": accumulate, "lr": 0.002}
    eager, expected = trained(gpu, **how)
    graph, model = trained(gpu, step.GraphStep, **how)
    tolerance = 1e-4 if precision == "fp32" else 3e-2
    assert graph == pytest.approx(eager, rel=tolerance)
    # A graph that is replayed on old images repeats its loss.
    assert len(set(graph)) == len(graph)
    if precision == "fp32":  # the others' rounding adds up in the parameters
        for ours, theirs in zip(model.parameters(), expected.parameters(), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.gpu
def test_a_scaler_outside_the_graph_skips_a_step_that_overflows(gpu):
    model = network(gpu)
    optimizer = step.make_optimizer("sgd", 0.01, model, graph=True)
    one = step.GraphStep(model, optimizer, single(gpu), precision="fp16")
    for images, labels in batches(gpu):
        one(images, labels)
    scale = one._scaler.get_scale()
    before = [p.clone() for p in model.parameters()]
    images, labels = next(batches(gpu))
    one(images * float("inf"), labels)
    assert all(torch.equal(p, old) for p, old in zip(model.parameters(), before, strict=True))
    assert one._scaler.get_scale() < scale


def relative_error(found, exact):
    return ((found.double() - exact).norm() / exact.norm()).item()


@pytest.mark.gpu
@pytest.mark.parametrize(("precision", "low", "high"), [("fp32", 0, 1e-5), ("tf32", 1e-5, 1e-2)])
def test_fp32_is_strict_and_tf32_is_not(gpu, precision, low, high):
    if torch.cuda.get_device_capability(gpu) < (8, 0):
        pytest.skip("no TF32 before Ampere")
    step.set_tf32_mode(precision)
    draw = torch.Generator(gpu).manual_seed(0)
    a, b = torch.randn(2, 1024, 1024, device=gpu, generator=draw)
    assert low <= relative_error(a @ b, a.double() @ b.double()) < high
    images = torch.randn(8, 64, 32, 32, device=gpu, generator=draw)
    weights = torch.randn(64, 64, 3, 3, device=gpu, generator=draw)
    exact = F.conv2d(images.double(), weights.double(), padding=1)
    assert low <= relative_error(F.conv2d(images, weights, padding=1), exact) < high
