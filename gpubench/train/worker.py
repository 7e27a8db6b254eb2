"""A rank of a trial: an order in, events out. Runs in a process of its own, forked from the warm server.

What it tells on its own channel, and what it is answered there, stands in `schema/events.py`.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import random
import statistics
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any, Protocol

import torch
from torch import nn

from gpubench.basics import stacks
from gpubench.basics.finite import finite
from gpubench.schema import catalog
from gpubench.schema.events import (
    AllocatorMemory,
    Answer,
    AskMemory,
    BreakdownTimes,
    DriverMemory,
    Error,
    Filling,
    Held,
    Hello,
    Result,
    Settle,
    Told,
    Warm,
)
from gpubench.schema.order import TrialOrder
from gpubench.schema.validation import reader
from gpubench.train import loop, models, step
from gpubench.train.breakdown import Breakdown, MarkedStep
from gpubench.train.cpu_probe import measure_cpu_ms
from gpubench.train.data import Data, open_data
from gpubench.train.data.decoders import DECODER
from gpubench.train.device_assignment import DeviceAssignment
from gpubench.train.failure import classify
from gpubench.train.memory_cap import MIB, MemoryCap
from gpubench.train.protocols import Quality, TrainingSetup, choose_protocol, largest
from gpubench.train.strategies.contract import Strategy, StrategySettings
from gpubench.train.timing import step_clock

_write = os.write
ANSWER_LIMIT_S = 60.0
FOR_EVER_S = 30 * 86_400.0
"""For answers that only the parent's own deadline limits."""


class ParentChannel(Protocol):
    """What a rank needs of its channel to the parent."""

    def send(self, message: Told) -> None: ...

    def ask(self, message: Told, timeout: float) -> Any: ...

    def receive(self, timeout: float | None = None) -> Any: ...


read_answer: Callable[[Any], Answer] = reader(Answer)


def main(order: TrialOrder, rank: int, channel: ParentChannel) -> int:
    """Runs one rank to its end. Returns 0 after a reported result, 1 after a reported error.

    Raises OSError where it can't report any more.
    """
    try:
        with contextlib.suppress(OSError):  # no room for a file: a hang will lack its place, and nothing else
            stacks.listen(order.scratch, f"rank_{rank}")
        Rank(order, rank, channel).run()
    except BaseException as error:  # noqa: BLE001 - every failure of a trial becomes a row with its reason
        at = monotonic()  # before anything else: it tells which rank failed first
        kind, reason = classify(error)
        log_traceback(error)
        channel.send(Error(rank=rank, kind=kind, reason=reason, at=at))
        return 1
    return 0


def log_traceback(error: BaseException) -> None:
    """Writes it where this process prints, whatever a model has put in place of sys.stderr."""
    with contextlib.suppress(Exception):  # what it says may fail to be said; the reason has been told
        _write(2, "".join(traceback.format_exception(error)).encode(errors="backslashreplace"))


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelFacts:
    """What is counted of a model, or why its multiply-adds are not."""

    params_m: float | None = None
    gmacs_per_image: float | None = None
    gmacs_missing: str | None = None


class Rank:
    """One rank of one trial. `rank` is its number on its node, by which it is known to the parent there."""

    def __init__(self, order: TrialOrder, rank: int, channel: ParentChannel) -> None:
        self.order = order
        self.rank = rank
        self.channel = channel
        self.phases: dict[str, float] = {}
        self._mark = monotonic()

    # ---- its life, from top to bottom ----

    def run(self) -> None:
        """Sets up, trains, evaluates, reports."""
        order = self.order
        self.channel.send(
            Hello(
                rank=self.rank,
                pid=os.getpid(),
                cuda=torch.version.cuda,
                torch=str(torch.__version__),
                decoder=DECODER.name,
            )
        )
        assignment = self.settle_in()
        self.cap = MemoryCap(order.trial.gpu_mem_cap_mib, assignment, order.gpu_uuids, self.driver_mib)
        self.phase("start")
        self.create_context(assignment)
        self.phase("context")

        facts = catalog.STRATEGIES[order.trial.strategy]
        settings = StrategySettings(accumulate=order.trial.accumulate, sync_every=order.trial.sync_every or 1)
        strategy: Strategy = import_target(facts.target)(assignment, settings)
        strategy.open()
        self.phase("rendezvous")
        breakdown = Breakdown(assignment) if order.trial.breakdown else None
        trained = self.build(strategy, breakdown)
        dtype = step.AUTOCAST.get(order.trial.precision)
        self.cap.run_warm_batch(trained, order.data.input_size, order.data.channels, dtype)
        training_step = self.build_step(trained, strategy, breakdown)
        self.phase("build")
        probes_ms = [self.probe_cpu(strategy)]
        data = self.open_data(strategy)
        self.phase("data")

        training = TrainingSetup(
            loop=loop.Loop(
                data,
                training_step,
                strategy,
                step_clock(assignment),
                self.channel.send,
                lambda: self.after_first_step(assignment),
                breakdown,
            ),
            data=data,
            strategy=strategy,
            report=self.channel.send,
            evaluate=functools.partial(self.evaluate, data, strategy, dtype),
        )
        protocol = choose_protocol(order, training, PeersByParent(self, strategy))
        self._training_began = monotonic()
        trained.train()
        protocol.train()
        memory = self.settle(strategy)
        protocol.close()
        self.phase("close")
        probes_ms.append(self.probe_cpu(strategy))
        quality = protocol.quality()
        self.channel.send(self.result(training, breakdown, memory, quality, statistics.fmean(probes_ms)))

    def result(
        self,
        training: TrainingSetup,
        breakdown: Breakdown | None,
        memory: AllocatorMemory | None,
        quality: Quality | None,
        cpu_probe_ms: float,
    ) -> Result:
        """The last word of a rank that has trained to its end."""
        strategy, phases = training.strategy, training.loop.phases
        self._mark = monotonic()
        counted = self.model_facts(strategy.model) if strategy.assignment.rank == 0 else ModelFacts()
        self.phase("count")
        self.phases.update(phases)
        self.phases["warm_up"] = max(0.0, phases["warm_up"] - self.phases["first_step"])
        exchange = catalog.STRATEGIES[self.order.trial.strategy].exchange
        exchanged_bytes = import_target(exchange)(strategy) if exchange else None
        strategy.wait_for_others()
        return Result(
            rank=self.rank,
            steps_per_epoch=training.data.steps_per_epoch,
            breakdown=BreakdownTimes(**breakdown.figures()) if breakdown else None,
            no_exchange=strategy.why_no_exchange(),
            exchange_mib=exchanged_bytes / MIB if exchanged_bytes else None,
            quality=None if quality is None else (quality[0], finite(quality[1])),
            memory=memory,
            cpu_probe_ms=cpu_probe_ms,
            phases=self.phases,
            at=monotonic(),
            params_m=counted.params_m,
            gmacs_per_image=counted.gmacs_per_image,
            gmacs_missing=counted.gmacs_missing,
        )

    # ---- what a rank does, step by step ----

    def settle_in(self) -> DeviceAssignment:
        """Threads, visible devices, seeds: before CUDA starts."""
        order = self.order
        if (
            order.trial.launch_cpu == "one"
        ):  # before torch and CUDA start threads, which stay where this one is
            os.sched_setaffinity(0, launch_cpus(order)[self.rank : self.rank + 1])
        torch.set_num_threads(order.threads_per_rank)
        os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(order.gpu_uuids)
        random.seed(order.seed)
        torch.manual_seed(order.seed)
        step.set_precision(order.trial.precision)
        torch.backends.cudnn.benchmark = order.trial.cudnn_benchmark
        count = len(order.gpu_uuids)
        if order.device == "cpu":
            devices: tuple[torch.device, ...] = (torch.device("cpu"),)
        elif order.ranks > 1:
            devices = (torch.device("cuda", self.rank),)
        else:
            devices = tuple(torch.device("cuda", i) for i in range(count))
        met = order.rendezvous
        if met is None:
            return DeviceAssignment(
                rank=self.rank, world=order.ranks, devices=devices, rendezvous=order.scratch / "rendezvous"
            )
        return DeviceAssignment(
            rank=met.first_rank + self.rank,
            world=met.world,
            first=met.first_rank,
            devices=devices,
            rendezvous=met,
        )

    def create_context(self, assignment: DeviceAssignment) -> None:
        """Starts CUDA on each of the rank's devices, under the memory cap where one is set."""
        if not assignment.is_cuda:
            return
        torch.cuda.set_device(assignment.device)
        self.cap.begin()
        for device in assignment.devices:
            torch.zeros(1, device=device)
        assignment.synchronize()

    def build(self, strategy: Strategy, breakdown: Breakdown | None) -> nn.Module:
        """The model as it is trained."""
        order = self.order
        model = models.build_model(
            order.trial.model,
            num_classes=order.data.num_classes,
            input_size=order.data.input_size,
            channels=order.data.channels,
            width=order.trial.width,
        )

        def compiled(module: nn.Module) -> nn.Module:
            return torch.compile(module, dynamic=False) if order.trial.execution == "compile" else module  # type: ignore[return-value]

        trained = strategy.prepare(model, MEMORY_FORMAT[order.trial.memory_format], compiled)
        if breakdown is not None:
            strategy.watch_exchange(breakdown.bucket)
        # From here on each rank draws for itself: dropout must differ between ranks.
        torch.manual_seed(order.seed * 1000 + strategy.assignment.rank)
        return trained

    def build_step(self, trained: nn.Module, strategy: Strategy, breakdown: Breakdown | None) -> step.Step:
        """The optimizer step of this trial."""
        order = self.order
        graph = order.trial.execution == "graph"
        make = functools.partial(step.make_optimizer, order.trial.optimizer, order.trial.lr, graph=graph)
        optimizer = strategy.optimizer(make)
        arguments: dict[str, Any] = {"precision": order.trial.precision, "accumulate": order.trial.accumulate}
        if breakdown is not None:
            return MarkedStep(trained, optimizer, strategy, breakdown=breakdown, **arguments)
        return (step.GraphStep if graph else step.Step)(trained, optimizer, strategy, **arguments)

    def open_data(self, strategy: Strategy) -> Data:
        """This rank's share of the images."""
        order, assignment, share = self.order, strategy.assignment, strategy.share
        return open_data(
            order.data,
            device=assignment.device,
            rank=share.index,
            world=share.degree,
            reads=share.reads,
            batch_size=order.trial.batch_size // share.degree,
            val_batch_size=max(1, order.trial.batch_size // (share.degree * len(assignment.devices))),
            workers=order.workers // order.ranks,
            prefetch=order.trial.prefetch,
            dtype=torch.float32,
            memory_format=MEMORY_FORMAT[order.trial.memory_format],
            seed=order.seed,
            loader_cpus=sorted({*order.cpu_ids} - {*launch_cpus(order)})
            if order.trial.launch_cpu == "one"
            else (),
        )

    def probe_cpu(self, strategy: Strategy) -> float:
        """CPU milliseconds of fixed work on the first rank, while the others wait; 0 on these."""
        strategy.barrier()
        spent_ms = measure_cpu_ms() if strategy.assignment.rank == 0 else 0.0
        strategy.barrier()
        return spent_ms

    def settle(self, strategy: Strategy) -> AllocatorMemory | None:
        """All ranks hold still while the parent reads their memory. Returns the allocator's figures of that moment."""
        self._mark = monotonic()
        strategy.barrier()
        memory = self.allocator(strategy.assignment)
        if self.rank == 0:
            self.channel.ask(Settle(rank=0), ANSWER_LIMIT_S)
        strategy.barrier()
        self.phase("settle")
        return memory

    def evaluate(self, data: Data, strategy: Strategy, dtype: torch.dtype | None) -> Quality | None:
        began = monotonic()
        quality = loop.evaluate(data, strategy, dtype)
        strategy.assignment.synchronize()
        self.phases["evaluation"] = self.phases.get("evaluation", 0.0) + monotonic() - began
        return quality

    def after_first_step(self, assignment: DeviceAssignment) -> None:
        """Times the first step, and looks at the memory cap once more."""
        assignment.synchronize()
        self.phases["first_step"] = monotonic() - self._training_began
        self.cap.fit()

    def driver_mib(self) -> dict[str, float] | None:
        """The driver's figure for the trial's processes on each GPU, as the parent reads it."""
        answer = read_answer(self.channel.ask(AskMemory(rank=self.rank), ANSWER_LIMIT_S))
        return answer.driver_mib if isinstance(answer, DriverMemory) else None

    def allocator(self, assignment: DeviceAssignment) -> AllocatorMemory | None:
        """The allocator's account of this moment; None on a CPU."""
        if not assignment.is_cuda:
            return None
        stats = {device.index or 0: torch.cuda.memory_stats(device) for device in assignment.devices}
        devices = {
            str(position): Held(
                peak=s.get("reserved_bytes.all.peak", 0) / MIB,
                at_settle=s.get("reserved_bytes.all.current", 0) / MIB,
                allocated_peak=s.get("allocated_bytes.all.peak", 0) / MIB,
            )
            for position, s in stats.items()
        }
        return AllocatorMemory(
            allocated_mib=max(held.allocated_peak for held in devices.values()),
            reserved_mib=max(held.peak for held in devices.values()),
            retries=sum(s.get("num_alloc_retries", 0) for s in stats.values()),
            devices=devices,
        )

    def model_facts(self, model: nn.Module) -> ModelFacts:
        """Parameters and multiply-adds; the latter once a sweep, because counting takes a forward pass."""
        params_m = models.parameters_m(model)
        known = self.order.gmacs_per_image
        if known is not None:
            return ModelFacts(params_m=params_m, gmacs_per_image=known)
        try:
            counted = models.gmacs_per_image(
                model, input_size=self.order.data.input_size, channels=self.order.data.channels
            )
        except Exception as error:  # noqa: BLE001 - a user's model may not run on the meta device; the reason is kept
            why = f"the model can't be counted without data: {type(error).__name__}: {error}"[:300]
            return ModelFacts(params_m=params_m, gmacs_missing=why)
        return ModelFacts(params_m=params_m, gmacs_per_image=counted)

    # ---- small helpers ----

    def phase(self, name: str) -> None:
        """Books the wall time since the last mark under `name`."""
        now = monotonic()
        self.phases[name] = now - self._mark
        self._mark = now


class PeersByParent:
    """The other jobs of a rank's group, of which the parent knows."""

    def __init__(self, rank: Rank, strategy: Strategy) -> None:
        self._rank = rank
        self._strategy = strategy
        self._began = 0.0

    def wait_until_warm(self) -> None:
        """Returns when every job of the group is warm. Each rank asks: a collective would keep its GPU busy."""
        began = monotonic()
        self._rank.channel.ask(Warm(rank=self._rank.rank), FOR_EVER_S)
        waited = monotonic() - began
        self._rank.phases["wait_for_jobs"] = waited
        self._rank._training_began += waited  # without a warm-up the first step is still to come

    def tell_measured(self) -> None:
        """This job has its window, or its epochs."""
        self._began = monotonic()
        if self._rank.rank == 0:
            self._rank.channel.send(Filling(rank=0, at=self._began))

    def have_measured(self) -> bool:
        """Whether all jobs have theirs. All ranks of this one ask together, and hear the same."""
        is_told = self._rank.rank == 0 and self._rank.channel.receive(0) is not None
        (is_over,) = largest(self._strategy, [float(is_told)])
        self._rank.phases["fill"] = monotonic() - self._began
        return bool(is_over)


def import_target(target: str) -> Any:
    """What `module:name` in the catalogue names."""
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)


def launch_cpus(order: TrialOrder) -> tuple[int, ...]:
    """The CPU of each rank's own threads, by rank, where these stay on one: spread over those of the trial."""
    return tuple(order.cpu_ids[len(order.cpu_ids) * rank // order.ranks] for rank in range(order.ranks))


MEMORY_FORMAT = {"channels_last": torch.channels_last, "contiguous": torch.contiguous_format}
