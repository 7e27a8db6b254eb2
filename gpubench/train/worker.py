"""A rank of a trial: an order in, events out. Runs in a process of its own, forked from the warm server.

What it tells on its own channel, and what it is answered there, stands in `schema/events.py`.
"""

from __future__ import annotations

import contextlib
import functools
import os
import pkgutil
import random
import statistics
import traceback
from collections.abc import Callable
from time import monotonic
from typing import Any

import torch
from torch import nn

from gpubench.basics import stacks
from gpubench.basics.finite import replace_non_finite
from gpubench.basics.quoted import clean_line
from gpubench.schema import catalog
from gpubench.schema.events import (
    AllocatorMemory,
    Answer,
    AskMemory,
    BreakdownTimes,
    DriverMemory,
    Error,
    HeldMemory,
    Hello,
    ParentChannel,
    Result,
    Settle,
)
from gpubench.schema.order import TrialOrder
from gpubench.schema.validation import make_converter
from gpubench.train import loop, models, step
from gpubench.train.breakdown import MarkedStep, StepBreakdown
from gpubench.train.data import Data, LoaderSettings, open_data
from gpubench.train.data.decoders import DECODER
from gpubench.train.device_assignment import DeviceAssignment
from gpubench.train.failure import classify_error
from gpubench.train.memory_cap import MIB, MemoryCap
from gpubench.train.protocols import PeerJobs, Quality, make_protocol
from gpubench.train.strategies.contract import Strategy
from gpubench.train.timing import make_step_clock, measure_fixed_work_ms

_write = os.write
ANSWER_LIMIT_S = 60.0
MEMORY_FORMAT = {"channels_last": torch.channels_last, "contiguous": torch.contiguous_format}
read_answer: Callable[[Any], Answer] = make_converter(Answer)


def main(order: TrialOrder, rank: int, channel: ParentChannel) -> int:
    """Trains as one rank to its end. Returns 0 after a reported result, 1 after a reported error.

    Raises OSError where it can't report any more.
    """
    return run_rank(RankRunner(order, rank, channel))


def run_rank(runner: RankRunner) -> int:
    """Runs one rank to its end, as `main` does."""
    order, rank, channel = runner.order, runner.rank, runner.channel
    try:
        with contextlib.suppress(OSError):  # no room for a file: a hang will lack its place, and nothing else
            stacks.install_stack_handler(order.scratch, f"rank_{rank}")
        runner.run()
    except BaseException as error:  # noqa: BLE001 - every failure of a trial becomes a row with its reason
        at = monotonic()  # before anything else: it tells which rank failed first
        kind, reason = classify_error(error)
        log_traceback(error)
        channel.send(Error(rank=rank, kind=kind, reason=reason, at=at))
        return 1
    return 0


def log_traceback(error: BaseException) -> None:
    """Writes it where this process prints, whatever a model has put in place of sys.stderr."""
    with contextlib.suppress(Exception):  # what it says may fail to be said; the reason has been told
        _write(2, "".join(traceback.format_exception(error)).encode(errors="backslashreplace"))


class RankRunner:
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
        assignment = self.set_up_process()
        self.cap = MemoryCap(order.trial.gpu_mem_cap_mib, assignment, order.gpu_uuids, self.ask_driver_mib)
        self.book_phase("start")
        self.create_cuda_context(assignment)
        self.book_phase("context")

        strategy: Strategy = pkgutil.resolve_name(catalog.STRATEGIES[order.trial.strategy].target)(
            assignment, accumulate=order.trial.accumulate, sync_every=order.trial.sync_every or 1
        )
        strategy.connect_ranks()
        self.book_phase("rendezvous")
        breakdown = StepBreakdown(assignment) if order.trial.breakdown else None
        training_step = self.build_step(strategy, breakdown)
        self.book_phase("build")
        probes_ms = [self.probe_cpu(strategy)]
        data = self.open_data(assignment)
        self.book_phase("data")

        training = loop.TrainingLoop(
            data,
            training_step,
            strategy,
            make_step_clock(assignment),
            self.channel.send,
            lambda: self.time_first_step(assignment),
            breakdown,
        )
        evaluate = functools.partial(self.evaluate, data, strategy)
        peers = PeerJobs(self.channel, strategy, self.phases)
        protocol = make_protocol(order, training, evaluate, peers)
        self._training_began = monotonic()
        protocol.train()
        memory = self.read_settled_memory(strategy)
        protocol.close()
        self.book_phase("close")
        probes_ms.append(self.probe_cpu(strategy))
        quality = protocol.evaluate_quality()
        self.channel.send(self.make_result(training, breakdown, memory, quality, statistics.fmean(probes_ms)))

    def make_result(
        self,
        training: loop.TrainingLoop,
        breakdown: StepBreakdown | None,
        memory: AllocatorMemory | None,
        quality: Quality | None,
        cpu_probe_ms: float,
    ) -> Result:
        """The last word of a rank that has trained to its end."""
        strategy, phases = training.strategy, training.phases
        self._mark = monotonic()
        counted = self.count_parameters_and_macs(strategy) if strategy.assignment.rank == 0 else {}
        self.book_phase("count")
        self.phases.update(phases)
        self.phases["warm_up"] = max(0.0, phases["warm_up"] - self.phases["first_step"])
        exchange = catalog.STRATEGIES[self.order.trial.strategy].exchange
        exchanged_bytes = pkgutil.resolve_name(exchange)(strategy) if exchange else None
        strategy.wait_before_exit()
        return Result(
            rank=self.rank,
            steps_per_epoch=training.data.steps_per_epoch,
            breakdown=BreakdownTimes(**breakdown.summarize_parts()) if breakdown else None,
            no_exchange=strategy.explain_no_exchange(),
            exchange_mib=exchanged_bytes / MIB if exchanged_bytes else None,
            quality=None if quality is None else (quality[0], replace_non_finite(quality[1])),
            memory=memory,
            cpu_probe_ms=cpu_probe_ms,
            phases=self.phases,
            at=monotonic(),
            **counted,
        )

    # ---- what a rank does, step by step ----

    def set_up_process(self) -> DeviceAssignment:
        """Threads, visible devices, seeds: before CUDA starts."""
        order = self.order
        # Before torch and CUDA start threads, which stay where this one is.
        if order.trial.launch_cpu == "one":
            os.sched_setaffinity(0, choose_launch_cpus(order)[self.rank : self.rank + 1])
        torch.set_num_threads(order.threads_per_rank)
        os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(order.gpu_uuids)
        random.seed(order.seed)
        torch.manual_seed(order.seed)
        step.set_tf32_mode(order.trial.precision)
        torch.backends.cudnn.benchmark = order.trial.cudnn_benchmark
        count = len(order.gpu_uuids)
        if order.device == "cpu":
            devices: tuple[torch.device, ...] = (torch.device("cpu"),)
        elif order.ranks > 1:
            devices = (torch.device("cuda", self.rank),)
        else:
            devices = tuple(torch.device("cuda", i) for i in range(count))
        met = order.rendezvous
        return DeviceAssignment(
            rank=self.rank + (met.first_rank if met else 0),
            world=met.world if met else order.ranks,
            first=met.first_rank if met else 0,
            devices=devices,
            rendezvous=met or order.scratch / "rendezvous",
        )

    def create_cuda_context(self, assignment: DeviceAssignment) -> None:
        """Starts CUDA on each of the rank's devices, under the memory cap where one is set."""
        if not assignment.is_cuda:
            return
        torch.cuda.set_device(assignment.device)
        self.cap.set_first_limit()
        for device in assignment.devices:
            torch.zeros(1, device=device)
        assignment.synchronize()

    def build_model_for_training(self, strategy: Strategy, breakdown: StepBreakdown | None) -> nn.Module:
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

        trained = strategy.prepare_model(model, MEMORY_FORMAT[order.trial.memory_format], compiled)
        if breakdown is not None:
            strategy.register_bucket_callback(breakdown.mark_bucket_ready)
        # From here on each rank draws for itself: dropout must differ between ranks.
        torch.manual_seed(order.seed * 1000 + strategy.assignment.rank)
        return trained

    def build_step(self, strategy: Strategy, breakdown: StepBreakdown | None) -> step.Step:
        """The optimizer step of this trial, on a model that is ready to be trained."""
        order = self.order
        trained = self.build_model_for_training(strategy, breakdown)
        dtype = step.AUTOCAST.get(order.trial.precision)
        self.cap.warm_up_and_fit_limit(trained, order.data.input_size, order.data.channels, dtype)
        trained.train()
        graph = order.trial.execution == "graph"
        make = functools.partial(step.make_optimizer, order.trial.optimizer, order.trial.lr, graph=graph)
        optimizer = strategy.make_rank_optimizer(make)
        precision = order.trial.precision
        if breakdown is not None:
            return MarkedStep(trained, optimizer, strategy, breakdown=breakdown, precision=precision)
        return (step.GraphStep if graph else step.TrainStep)(
            trained, optimizer, strategy, precision=precision
        )

    def open_data(self, assignment: DeviceAssignment) -> Data:
        """This rank's share of the images."""
        order, trial = self.order, self.order.trial
        share = trial.batch_size // assignment.world
        loader_cpus = {*order.cpu_ids} - {*choose_launch_cpus(order)} if trial.launch_cpu == "one" else ()
        settings = LoaderSettings(
            batch_size=share,
            val_batch_size=max(1, share // len(assignment.devices)),
            rank=assignment.rank,
            world=assignment.world,
            workers=order.workers // order.ranks,
            prefetch=trial.prefetch,
            seed=order.seed,
            cpus=tuple(sorted(loader_cpus)),
        )
        memory_format = MEMORY_FORMAT[trial.memory_format]
        return open_data(order.data, settings, device=assignment.device, memory_format=memory_format)

    def probe_cpu(self, strategy: Strategy) -> float:
        """CPU milliseconds of fixed work on the first rank, while the others wait; 0 on these."""
        strategy.barrier()
        spent_ms = measure_fixed_work_ms() if strategy.assignment.rank == 0 else 0.0
        strategy.barrier()
        return spent_ms

    def read_settled_memory(self, strategy: Strategy) -> AllocatorMemory | None:
        """All ranks hold still while the parent reads their memory. Returns the allocator's figures of that moment."""
        self._mark = monotonic()
        strategy.barrier()
        memory = self.read_allocator_memory(strategy.assignment)
        if self.rank == 0:
            self.channel.ask(Settle(rank=0), ANSWER_LIMIT_S)
        strategy.barrier()
        self.book_phase("settle")
        return memory

    def evaluate(self, data: Data, strategy: Strategy) -> Quality | None:
        began = monotonic()
        quality = loop.evaluate(data, strategy, step.AUTOCAST.get(self.order.trial.precision))
        strategy.assignment.synchronize()
        self.phases["evaluation"] = self.phases.get("evaluation", 0.0) + monotonic() - began
        return quality

    def time_first_step(self, assignment: DeviceAssignment) -> None:
        """Times the first step, and looks at the memory cap once more."""
        assignment.synchronize()
        # Without a warm-up it comes after the wait for the other jobs of a group.
        self.phases["first_step"] = monotonic() - self._training_began - self.phases.get("wait_for_jobs", 0.0)
        self.cap.fit_allocator_limit()

    def ask_driver_mib(self) -> dict[str, float] | None:
        """The driver's figure for the trial's processes on each GPU, as the parent reads it."""
        answer = read_answer(self.channel.ask(AskMemory(rank=self.rank), ANSWER_LIMIT_S))
        return answer.driver_mib if isinstance(answer, DriverMemory) else None

    def read_allocator_memory(self, assignment: DeviceAssignment) -> AllocatorMemory | None:
        """The allocator's account of this moment; None on a CPU."""
        if not assignment.is_cuda:
            return None
        stats = {device.index or 0: torch.cuda.memory_stats(device) for device in assignment.devices}
        devices = {
            str(position): HeldMemory(
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

    def count_parameters_and_macs(self, strategy: Strategy) -> dict[str, Any]:
        """Parameters and multiply-adds; the latter once a sweep, because counting takes a forward pass."""
        model = strategy.model
        counted: dict[str, Any] = {"params_m": models.count_parameters_m(model)}
        known, data = self.order.gmacs_per_image, self.order.data
        if known is not None:
            return counted | {"gmacs_per_image": known}
        try:
            gmacs = models.count_gmacs_per_image(model, input_size=data.input_size, channels=data.channels)
        except Exception as error:  # noqa: BLE001 - a user's model may not run on the meta device; the reason is kept
            why = f"the model can't be counted without data: {type(error).__name__}: {error}"[:300]
            return counted | {"gmacs_missing": clean_line(why)}
        return counted | {"gmacs_per_image": gmacs}

    def book_phase(self, name: str) -> None:
        """Books the wall time since the last mark under `name`."""
        now = monotonic()
        self.phases[name] = now - self._mark
        self._mark = now


def choose_launch_cpus(order: TrialOrder) -> tuple[int, ...]:
    """The CPU of each rank's own threads, by rank, where these stay on one: spread over those of the trial."""
    return tuple(order.cpu_ids[len(order.cpu_ids) * rank // order.ranks] for rank in range(order.ranks))
