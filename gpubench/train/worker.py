"""A rank of a trial: a resolved trial in, events out. Runs in a process of its own, forked from the warm server.

Events (JSON, on the rank's own channel): `hello`, `begin`, `progress`, `steps`, `end`, `quality`, `ask-memory`,
`settle`, `result`, `error`; in a group `ready` and `filling` besides. The parent answers `ask-memory`, `settle` and
`ready`, and tells rank 0 to `stop` filling.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import math
import os
import random
import statistics
import traceback
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any, Protocol

import torch
from torch import nn

from gpubench.basics import stacks
from gpubench.basics.errors import UsageError
from gpubench.schema import catalog
from gpubench.train import loop, models, step
from gpubench.train.breakdown import Breakdown, BrokenDownStep
from gpubench.train.data import Data, DataSpec, open_data
from gpubench.train.failure import classify
from gpubench.train.memory_cap import MIB, MemoryCap
from gpubench.train.place import Place
from gpubench.train.strategies.contract import Strategy, StrategySettings
from gpubench.train.timing import step_clock

_write = os.write
Quality = tuple[float, float]
"""Top-1 in per cent and cross-entropy, on the validation split."""
ANSWER_LIMIT_S = 60.0
FOR_EVER_S = 30 * 86_400.0
"""For answers that only the parent's own deadline limits."""
FILL_LOOK_S = 0.3
"""How long several ranks train on before they ask whether to stop."""
DRIFT_STEPS = 10
"""Fewer measured steps than these say nothing of a drift."""


class ParentChannel(Protocol):
    """What a rank needs of its channel to the parent."""

    def send(self, message: dict[str, Any]) -> None: ...

    def ask(self, message: dict[str, Any], timeout: float) -> dict[str, Any]: ...

    def receive(self, timeout: float | None = None) -> dict[str, Any] | None: ...


def main(spec: dict[str, Any], rank: int, channel: ParentChannel) -> int:
    """Runs one rank to its end. Returns 0 after a reported result, 1 after a reported error.

    Raises OSError where it can't report any more.
    """
    try:
        with contextlib.suppress(OSError):  # no room for a file: a hang will lack its place, and nothing else
            stacks.listen(Path(spec["scratch"]), f"rank_{rank}")
        Rank(spec, rank, channel).run()
    except BaseException as error:  # noqa: BLE001 - every failure of a trial becomes a row with its reason
        at = monotonic()  # before anything else: it tells which rank failed first
        kind, reason = classify(error)
        log_traceback(error)
        channel.send({"event": "error", "rank": rank, "kind": kind, "reason": reason, "at": at})
        return 1
    return 0


def log_traceback(error: BaseException) -> None:
    """Writes it where this process prints, whatever a model has put in place of sys.stderr."""
    with contextlib.suppress(Exception):  # what it says may fail to be said; the reason has been told
        _write(2, "".join(traceback.format_exception(error)).encode(errors="backslashreplace"))


class Rank:
    """One rank of one trial."""

    def __init__(self, spec: dict[str, Any], rank: int, channel: ParentChannel) -> None:
        self.spec = spec
        self.rank = rank
        self.channel = channel
        self.phases: dict[str, float] = {}
        self._mark = monotonic()

    # ---- its life, from top to bottom ----

    def run(self) -> None:
        """Sets up, trains, evaluates, reports."""
        spec = self.spec
        self.report(
            {"event": "hello", "pid": os.getpid(), "cuda": torch.version.cuda, "torch": torch.__version__}
        )
        place = self.settle_in()
        self.cap = MemoryCap(spec["gpu_mem_cap_mib"], place, spec["gpu_uuids"], self.driver_mib)
        self.phase("start")
        self.create_context(place)
        self.phase("context")

        module, _, cls = catalog.STRATEGIES[spec["strategy"]].target.partition(":")
        settings = StrategySettings(accumulate=spec["accumulate"], sync_every=spec["sync_every"] or 1)
        strategy: Strategy = getattr(importlib.import_module(module), cls)(place, settings)
        strategy.open()
        self.phase("rendezvous")
        breakdown = Breakdown(place) if spec["breakdown"] else None
        trained = self.build(strategy, breakdown)
        dtype = step.AUTOCAST.get(spec["precision"])
        self.cap.rehearse(trained, spec["input_size"], spec["channels"], dtype)
        training_step = self.build_step(trained, strategy, breakdown)
        self.phase("build")
        data = self.open_data(strategy)
        self.phase("data")

        training = loop.Loop(
            data,
            training_step,
            strategy,
            step_clock(place),
            self.report,
            lambda: self.after_first_step(place),
            breakdown,
        )
        per_epoch = data.steps_per_epoch
        warmups, measured = (
            loop.pieces(spec["steps"], spec["warmup_steps"], per_epoch)
            if spec["steps"]
            else loop.epochs(spec["epochs"], spec["warmup_epochs"], per_epoch)
        )
        evaluate = functools.partial(self.evaluate, data, strategy, dtype)
        target: float | None = spec["until_top1"]
        quality: Quality | None = None
        self._training_began = monotonic()
        trained.train()
        if target is not None:
            quality = self.train_until(target, [*warmups, *measured], training, evaluate)
        else:
            for segment in warmups:
                training.run(segment)
            if spec["jobs"] > 1:
                self.wait_for_the_others()
            for segment in measured:
                training.run(segment)
            if spec["jobs"] > 1:
                self.fill(strategy, training, measured[-1].number + 1, per_epoch)
        memory = self.settle(strategy)
        if target is None and spec["jobs"] == 1:
            quality = evaluate()
        self._mark = monotonic()
        facts = self.model_facts(strategy.model) if self.rank == 0 else {}
        self.phase("count")
        self.phases.update(training.phases)
        self.phases["warm_up"] = max(0.0, training.phases["warm_up"] - self.phases["first_step"])
        told = strategy.figures()
        self.report(
            {
                "event": "result",
                "steps_per_epoch": per_epoch,
                "step_ms": percentiles(training.measured_step_s),
                "step_drift_pct": drift_pct(training.later_step_s),
                "parts": breakdown and breakdown.figures(),
                "no_exchange": told.no_exchange,
                "exchange_mib": told.exchanged_bytes / MIB if told.exchanged_bytes else None,
                "until_top1": target,
                "quality": None if quality is None else [finite(value) for value in quality],
                "memory": memory or None,
                "phases": self.phases,
                "at": monotonic(),
                **facts,
            }
        )

    # ---- the parts ----

    def settle_in(self) -> Place:
        """Threads, visible devices, seeds: before CUDA starts."""
        spec = self.spec
        torch.set_num_threads(spec["threads_per_rank"])
        os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(spec["gpu_uuids"])
        random.seed(spec["seed"])
        torch.manual_seed(spec["seed"])
        step.set_precision(spec["precision"])
        torch.backends.cudnn.benchmark = spec["cudnn_benchmark"]
        scratch = Path(spec["scratch"])
        count = len(spec["gpu_uuids"])
        if spec["device"] == "cpu":
            devices: tuple[torch.device, ...] = (torch.device("cpu"),)
        elif spec["ranks"] > 1:
            devices = (torch.device("cuda", self.rank),)
        else:
            devices = tuple(torch.device("cuda", i) for i in range(count))
        return Place(rank=self.rank, world=spec["ranks"], devices=devices, rendezvous=scratch / "rendezvous")

    def create_context(self, place: Place) -> None:
        """Starts CUDA on each of the rank's devices, under the memory cap where one is set."""
        if not place.is_cuda:
            return
        torch.cuda.set_device(place.device)
        self.cap.begin()
        for device in place.devices:
            torch.zeros(1, device=device)
        place.synchronize()

    def build(self, strategy: Strategy, breakdown: Breakdown | None) -> nn.Module:
        """The model as it is trained."""
        spec = self.spec
        model = models.build(
            spec["model"],
            num_classes=spec["num_classes"],
            input_size=spec["input_size"],
            channels=spec["channels"],
            width=spec["width"],
        )

        def compiled(module: nn.Module) -> nn.Module:
            return torch.compile(module, dynamic=False) if spec["execution"] == "compile" else module  # type: ignore[return-value]

        trained = strategy.prepare(model, MEMORY_FORMAT[spec["memory_format"]], compiled)
        if breakdown is not None:
            strategy.watch_exchange(breakdown.bucket)
        # From here on each rank draws for itself: dropout must differ between ranks.
        torch.manual_seed(spec["seed"] * 1000 + self.rank)
        return trained

    def build_step(self, trained: nn.Module, strategy: Strategy, breakdown: Breakdown | None) -> step.Step:
        """The optimizer step of this trial."""
        spec = self.spec
        graph = spec["execution"] == "graph"
        make = functools.partial(step.make_optimizer, spec["optimizer"], spec["lr"], graph=graph)
        optimizer = strategy.optimizer(make)
        how: dict[str, Any] = {"precision": spec["precision"], "accumulate": spec["accumulate"]}
        if breakdown is not None:
            return BrokenDownStep(trained, optimizer, strategy, breakdown=breakdown, **how)
        return (step.GraphStep if graph else step.Step)(trained, optimizer, strategy, **how)

    def open_data(self, strategy: Strategy) -> Data:
        """This rank's share of the images."""
        spec, place, share = self.spec, strategy.place, strategy.share
        return open_data(
            DataSpec.from_dict(spec["data_spec"]),
            device=place.device,
            rank=share.index,
            world=share.degree,
            reads=share.reads,
            batch_size=spec["batch_size"] // share.degree,
            val_batch_size=max(1, spec["batch_size"] // (share.degree * len(place.devices))),
            workers=spec["workers"] // place.world,
            prefetch=spec["prefetch"],
            dtype=torch.float32,
            memory_format=MEMORY_FORMAT[spec["memory_format"]],
            seed=spec["seed"],
        )

    def train_until(
        self,
        target: float,
        segments: list[loop.Segment],
        training: loop.Loop,
        evaluate: Callable[[], Quality | None],
    ) -> Quality | None:
        """Epochs, each judged after its window, until top-1 is `target` per cent and one epoch was measured.

        Training that has diverged ends likewise.
        The ranks' hits are summed before they are judged, so all ranks stop after the same epoch.
        Returns the last epoch's quality.
        """
        reached = False
        for segment in segments:
            training.run(segment)
            quality = evaluate()
            if quality is None:
                raise UsageError("until_top1 needs a validation split, and the images have none")
            if self.rank == 0:
                self.report({"event": "quality", "epoch": segment.number, "top1_pct": quality[0]})
            lost = finite(quality[1]) is None  # a network of no numbers learns nothing more
            reached = reached or (quality[0] >= target and not lost)
            if (reached or lost) and segment.measured:
                break
        return quality

    def wait_for_the_others(self) -> None:
        """Returns when every job of the group is warm. Each rank asks: a collective would keep its GPU busy."""
        began = monotonic()
        self.channel.ask({"event": "ready", "rank": self.rank}, FOR_EVER_S)
        waited = monotonic() - began
        self.phases["wait_for_jobs"] = waited
        self._training_began += waited  # without a warm-up the first step is still to come

    def fill(self, strategy: Strategy, training: loop.Loop, number: int, per_epoch: int) -> None:
        """Trains on, uncounted, while other jobs of the group still measure; its ranks end after the same step."""
        began = monotonic()
        if self.rank == 0:
            self.report({"event": "filling", "at": began})
        place = strategy.place
        every = 1
        if place.world > 1:
            # The ranks agree on it only now and then: agreeing waits for the device.
            mean_s = torch.tensor(statistics.fmean(training.measured_step_s), device=place.device)
            every = max(1, round(FILL_LOOK_S * place.world / strategy.sum(mean_s).item()))

        def over(step: int) -> bool:
            if step % every:
                return False
            told = self.rank == 0 and self.channel.receive(0) is not None
            if place.world == 1:
                return told
            return strategy.sum(torch.tensor(float(told), device=place.device)).item() > 0

        training.fill(number, per_epoch, over=over)
        self.phases["fill"] = monotonic() - began

    def settle(self, strategy: Strategy) -> dict[str, Any]:
        """All ranks hold still while the parent reads their memory. Returns the allocator's figures of that moment."""
        self._mark = monotonic()
        strategy.barrier()
        memory = self.allocator(strategy.place)
        if self.rank == 0:
            self.channel.ask({"event": "settle", "rank": 0}, ANSWER_LIMIT_S)
        strategy.barrier()
        self.phase("settle")
        return memory

    def evaluate(self, data: Data, strategy: Strategy, dtype: torch.dtype | None) -> Quality | None:
        began = monotonic()
        quality = loop.evaluate(data, strategy, dtype)
        strategy.place.synchronize()
        self.phases["evaluation"] = self.phases.get("evaluation", 0.0) + monotonic() - began
        return quality

    def after_first_step(self, place: Place) -> None:
        """Times the first step, and looks at the memory cap once more."""
        place.synchronize()
        self.phases["first_step"] = monotonic() - self._training_began
        self.cap.fit()

    def driver_mib(self) -> dict[str, float] | None:
        """The driver's figure for the trial's processes on each GPU, as the parent reads it."""
        answer = self.channel.ask({"event": "ask-memory", "rank": self.rank}, ANSWER_LIMIT_S)
        told: dict[str, float] | None = answer.get("driver_mib")
        return told

    def allocator(self, place: Place) -> dict[str, Any]:
        """The allocator's peaks in MiB on the fullest device, its retries over all of them, and each one's account.

        `devices`: position in the trial's `gpu_uuids` -> MiB reserved at the peak and now, and allocated at the peak.
        """
        if not place.is_cuda:
            return {}
        stats = {device.index or 0: torch.cuda.memory_stats(device) for device in place.devices}
        devices = {
            str(position): {
                "peak": s.get("reserved_bytes.all.peak", 0) / MIB,
                "at_settle": s.get("reserved_bytes.all.current", 0) / MIB,
                "allocated_peak": s.get("allocated_bytes.all.peak", 0) / MIB,
            }
            for position, s in stats.items()
        }
        return {
            "allocated_mib": max(d["allocated_peak"] for d in devices.values()),
            "reserved_mib": max(d["peak"] for d in devices.values()),
            "retries": sum(s.get("num_alloc_retries", 0) for s in stats.values()),
            "devices": devices,
        }

    def model_facts(self, model: nn.Module) -> dict[str, Any]:
        """Parameters and multiply-adds; the latter once a sweep, because counting takes a forward pass."""
        spec = self.spec
        facts: dict[str, Any] = {"params_m": models.parameters_m(model)}
        known = spec.get("gmacs_per_image")
        if known is not None:
            return {**facts, "gmacs_per_image": known}
        try:
            facts["gmacs_per_image"] = models.gmacs_per_image(
                model, input_size=spec["input_size"], channels=spec["channels"]
            )
        except Exception as error:  # noqa: BLE001 - a user's model may not run on the meta device; the reason is kept
            facts["gmacs_missing"] = (
                f"the model can't be counted without data: {type(error).__name__}: {error}"[:300]
            )
        return facts

    # ---- small helpers ----

    def report(self, message: dict[str, Any]) -> None:
        self.channel.send({"rank": self.rank, **message})

    def phase(self, name: str) -> None:
        """Books the wall time since the last mark under `name`."""
        now = monotonic()
        self.phases[name] = now - self._mark
        self._mark = now


MEMORY_FORMAT = {"channels_last": torch.channels_last, "contiguous": torch.contiguous_format}


def percentiles(seconds: list[float]) -> dict[str, float] | None:
    """Median and 95th percentile in milliseconds; None for no steps."""
    if not seconds:
        return None
    ordered = sorted(seconds)
    p95 = ordered[math.ceil(0.95 * len(ordered)) - 1]
    return {"p50": 1e3 * statistics.median(ordered), "p95": 1e3 * p95}


def drift_pct(seconds: list[float]) -> float | None:
    """How much slower (in per cent) the first fifth of the steps was than the last half; None for too few steps."""
    if len(seconds) < DRIFT_STEPS:
        return None
    first, last = seconds[: len(seconds) // 5], seconds[-(len(seconds) // 2) :]
    return 100 * (statistics.median(first) / statistics.median(last) - 1)


def finite(value: float) -> float | None:
    """None for a figure that is no number."""
    return value if math.isfinite(value) else None
