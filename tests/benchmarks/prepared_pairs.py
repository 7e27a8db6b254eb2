"""What trials that were made ready, and wait, change of one that is measured; and what making them ready saves.

    python tests/benchmarks/prepared_pairs.py [--only waiting|round] [--pairs 4] [--neighbours 5] [--window 2]
        [--settle 0.3] [--beside MODEL:BATCH]

(1) One process trains on and on; beside it, as many others of the same configuration as `--neighbours` are made ready,
wait for `--window` seconds, and are ended again. Its steady step time while they wait is compared with that before and
after, when there are none (geometric mean of both, so that a drift cancels); while they are made ready or ended nothing
counts. Before each window without neighbours as many are made ready, too, and ended at once, so that both kinds of
window follow the same work: CPUs that were busy just now may run faster than such as slept. But a window without them
follows their end, and what that leaves to do (by the driver, say) may slow it down. So `--settle` says how long it
waits before either kind of window counts, and at the end stands, for either, the step time of its windows' first halves
over that of their second: if it is above 1 for windows without neighbours alone, the control begins slow. The process
is the same on both sides, for processes differ by more than waiting could change. Once for a configuration that the
launching thread limits (mobilenet_v2, batch 16, bf16), once for one that the GPU does (resnet50, batch 256, bf16). With
`--beside lenet:16` neighbours are of another configuration that is sooner ready, so that more pairs fit into the same
time: a process that waits does the same whatever it will train.

(2) The wall time of a further round of six batch sizes (mobilenet_v2, bf16, 50 steps each), each run as ever and each
made ready ahead, with the images per second of both.

With --device cpu a tiny network stands in for both, which shows that the benchmark works, and nothing else.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import math
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpubench.analysis.certainty.interval import interval
from gpubench.node.node import Node, this_machine
from gpubench.node.watch.nvml_calls import PROCESSES
from gpubench.plan import resolve as resolving
from gpubench.plan.command_line import make_plan
from gpubench.plan.experiment_file import parse
from gpubench.plan.options import Options, with_options
from gpubench.plan.sources import Disk
from gpubench.schema.attempt import Attempt
from gpubench.schema.events import End, Steps
from gpubench.schema.order import TrialOrder

BASE = 'name = "prepared"\n[fixed]\nvariant = "synthetic"\n'
LONG = 100_000
"""Windows that the measured process would train."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--only", choices=("waiting", "round"))
    parser.add_argument("--pairs", type=int, default=4)
    parser.add_argument("--neighbours", type=int, default=5)
    parser.add_argument("--window", type=float, default=2.0, help="seconds of each side of a pair")
    parser.add_argument(
        "--settle",
        type=float,
        default=0.3,
        help="seconds after neighbours are ready or gone before a window counts",
    )
    parser.add_argument("--models", default="", help="as mobilenet_v2:16,resnet50:256")
    parser.add_argument("--beside", help="what the neighbours would train, as lenet:16 (default: the same)")
    parser.add_argument("--batch-sizes", default="", help="of the round")
    parser.add_argument("--steps", type=int, default=50, help="of each trial of the round")
    parser.add_argument("--hold", help=argparse.SUPPRESS)
    options = parser.parse_args()
    cuda = options.device == "cuda"
    options.models = options.models or ("mobilenet_v2:16,resnet50:256" if cuda else "lenet:16")
    options.batch_sizes = options.batch_sizes or ("16,32,64,128,256,512" if cuda else "8,16,32")
    with tempfile.TemporaryDirectory() as folder, started() as node:
        if options.hold:
            hold(node, orders(options, node, [options.hold] * options.neighbours, Path(folder)))
            return
        here = node.machine
        print(f"{here.gpus[0].name if cuda else here.cpu_name}, {here.cpu_count} CPUs", flush=True)
        if options.only != "round":
            for model in options.models.split(","):
                waiting(options, node, model, Path(folder))
        if options.only != "waiting":
            model = options.models.split(",")[0].partition(":")[0]
            a_round(options, node, [f"{model}:{size}" for size in options.batch_sizes.split(",")], folder)


@contextlib.contextmanager
def started() -> Iterator[Node]:
    """This machine, ready for trials."""
    node = this_machine()
    node.start()
    node.wait_ready(lambda: False)
    try:
        yield node
    finally:
        node.close()


numbers = itertools.count()


def orders(
    options: argparse.Namespace, node: Node, wanted: Sequence[str], folder: Path, **fields: Any
) -> list[TrialOrder]:
    """An order for each `model:batch`."""
    made = []
    for one in wanted:
        model, _, batch = one.partition(":")
        cpu = options.device == "cpu"
        asked = {"model": model, "batch_size": batch, "device": options.device}
        asked |= {"input_size": "28", "cpus": "1"} if cpu else {"precision": "bf16", "gpus": "1"}
        asked["steps"] = str(options.steps)
        plan = make_plan(
            with_options(parse(BASE, "prepared"), Options(fields=asked)), node.machine, Disk(), "given"
        )
        (unit,), sources = plan.units, Disk()
        (job,), facts = unit.jobs, sources.data(unit.jobs[0].trial.data)
        (resolved,) = resolving.resolve_unit(unit, node.machine, lambda _, facts=facts: facts, options.device)
        log = folder / f"{next(numbers)}.log"
        log.touch()
        order = resolving.order(
            job,
            resolved,
            data=resolving.data_spec(job, resolved, facts, None),
            log=log,
            known_gmacs=0.0,
            steps=options.steps,
        )
        made.append(replace(order, **fields))
    return made


# ---------------------------------------------------------------- what waiting neighbours change


def hold(node: Node, wanted: Sequence[TrialOrder]) -> None:
    """In a process of its own: makes neighbours ready and ends them, as it is told."""
    held: list[int] = []
    for line in sys.stdin:
        node.discard(held)
        tickets = node.prepare(wanted, [()] * len(wanted), should_stop=lambda: False, look=lambda _: None)
        held = [ticket for ticket in tickets if ticket is not None]
        if line.strip() == "drop":
            node.discard(held)
            held = []
            print(f"gone {time.monotonic()} 0 0", flush=True)
            continue
        ready_at, mib = time.monotonic(), 0.0
        for uuid in {uuid for order in wanted for uuid in order.gpu_uuids}:
            own = node._waiting_pids()
            mib += sum(amount or 0.0 for pid, amount in node.nvml.ask(PROCESSES, uuid) if pid in own)
        print(f"ready {ready_at} {len(held)} {mib / max(1, len(held)):.0f}", flush=True)


class Neighbours:
    """Drives them while the measured process trains: none, N waiting, none, N waiting, … none."""

    def __init__(self, options: argparse.Namespace, model: str) -> None:
        own = [sys.executable, __file__, "--hold", model, "--device", options.device]
        self._child = subprocess.Popen(
            [*own, "--neighbours", str(options.neighbours)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._window_s, self._settle_s, self._pairs = options.window, options.settle, options.pairs
        self._phase_ends = 0.0
        self.phases: list[tuple[bool, float, float]] = []
        """Whether neighbours waited, and from when to when."""
        self._has_begun = self._wait_for_word = self._are_there = False

    @property
    def is_over(self) -> bool:
        return len(self.phases) > 2 * self._pairs

    def look(self, *_: object) -> None:
        """Called a few times a second, from the first measured window on."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        now = time.monotonic()
        if self._wait_for_word:
            if not select.select([self._child.stdout], [], [], 0)[0]:
                return
            word, at, count, mib = self._child.stdout.readline().split()
            if word == "ready":
                print(f"  {count} made ready in {float(at) - self._asked:.1f} s, {mib} MiB each", flush=True)
            self._wait_for_word, self._began = False, max(now, float(at) + self._settle_s)
            self._phase_ends = self._began + self._window_s
        if self._has_begun and now < self._phase_ends:
            return
        if self._has_begun:
            self.phases.append((self._are_there, self._began, now))
            self._are_there = not self._are_there
        self._has_begun = True
        if not self.is_over:
            self._child.stdin.write("make\n" if self._are_there else "drop\n")
            self._child.stdin.flush()
            self._wait_for_word, self._asked = True, now

    def close(self) -> None:
        assert self._child.stdin is not None
        self._child.stdin.close()
        self._child.wait()


def waiting(options: argparse.Namespace, node: Node, model: str, folder: Path) -> None:
    """Pairs of one configuration."""
    print(
        f"{model}: {options.neighbours} neighbours, {options.pairs} pairs of {options.window:g} s", flush=True
    )
    batch = int(model.partition(":")[2])
    steps = 4 if options.device == "cpu" else 40 if batch < 100 else 10  # some tenths of a second
    (order,) = orders(options, node, [model], folder, steps=None, epochs=LONG, warmup_epochs=1)
    order = replace(order, data=replace(order.data, train_images=steps * batch))
    neighbours = Neighbours(options, options.beside or model)
    try:

        def look(progress: Sequence[Any]) -> None:
            if progress[0].measured and progress[0].before >= 3 * steps:
                neighbours.look()

        (done,) = node.run([order], [()], timeout_s=3600, should_stop=lambda: neighbours.is_over, look=look)
    finally:
        neighbours.close()
    found = step_times(done)
    each = [(there, within(found, begun, end)) for there, begun, end in neighbours.phases]
    if not each or any(not steps for _, steps in each):
        sys.exit(f"not enough windows ({done.forced}, {done.last_words}): give a longer --window")
    middle = [(there, sum(steps) / len(steps)) for there, steps in each]
    ratios = [
        middle[k][1] / math.sqrt(middle[k - 1][1] * middle[k + 1][1]) for k in range(1, len(middle) - 1, 2)
    ]
    for ratio, (_, alone), (_, beside) in zip(ratios, middle[::2], middle[1::2], strict=False):
        print(f"  steps of {1e3 * alone:.3f} ms alone, {1e3 * beside:.3f} ms beside: ratio {ratio:.4f}")
    print(f"  step time beside waiting neighbours over alone: {told(ratios)}", flush=True)
    for there, name in ((False, "alone"), (True, "beside waiting neighbours")):
        print(
            f"  first half of a window over its second, {name}: {of_halves(found, neighbours.phases, there)}"
        )


def within(found: Sequence[tuple[float, float, float]], begun: float, end: float) -> list[float]:
    """Mean step of each window of the trial that lies in this span."""
    return [step for t0, t1, step in found if begun <= t0 and t1 <= end]


def of_halves(
    found: Sequence[tuple[float, float, float]], phases: Sequence[tuple[bool, float, float]], there: bool
) -> str:
    """Step time of the first half over that of the second, of the phases with neighbours or of those without."""
    ratios = []
    for _, begun, end in (phase for phase in phases if phase[0] == there):
        middle = (begun + end) / 2
        first, second = within(found, begun, middle), within(found, middle, end)
        if first and second:
            ratios.append(sum(first) / len(first) / (sum(second) / len(second)))
    if not ratios:
        return "no window of the trial lies in a half: give a longer --window"
    return told(ratios, "windows")


def step_times(done: Attempt) -> list[tuple[float, float, float]]:
    """Begin, end and mean step of each window, without its first step."""
    ends: dict[int, list[int]] = {}
    found = []
    for event in done.events:
        if isinstance(event, Steps):
            ends.setdefault(event.epoch, []).extend(event.end_us)
        elif isinstance(event, End) and event.measured:
            us = ends[event.epoch]
            found.append((event.t0, event.t1, 1e-6 * (us[-1] - us[0]) / (len(us) - 1)))
    return found


def told(ratios: Sequence[float], what: str = "pairs") -> str:
    """The geometric mean with its 95 % interval. `what`: of which these are ratios."""
    known = interval(list(ratios))
    if known is None:
        return f"{ratios[0]:.4f} (one alone: no interval)"
    return f"{known.value:.4f}, 95 % interval {known.low:.4f} to {known.high:.4f} ({len(ratios)} {what})"


# ---------------------------------------------------------------- what a round takes


def a_round(options: argparse.Namespace, node: Node, wanted: Sequence[str], folder: str) -> None:
    """Each as ever, then each made ready ahead."""
    print(f"a round of {', '.join(wanted)}, {options.steps} steps each", flush=True)
    plain_s, plain = ran(node, orders(options, node, wanted, Path(folder)), [None] * len(wanted))
    print(f"  as ever: {plain_s:.1f} s", flush=True)
    asked = orders(options, node, wanted, Path(folder))
    began = time.monotonic()
    tickets = node.prepare(asked, [()] * len(asked), should_stop=lambda: False, look=lambda _: None)
    made_s = time.monotonic() - began
    turns_s, ahead = ran(node, asked, tickets)
    all_s = made_s + turns_s
    print(
        f"  made ready ahead: {all_s:.1f} s, of which making {made_s:.1f} s ({plain_s / all_s:.2f} times as fast)",
        flush=True,
    )
    refused = [one for one, ticket in zip(wanted, tickets, strict=True) if ticket is None]
    if refused:
        print(f"  could not be made ready: {', '.join(refused)}")
    for one, before, after in zip(wanted, plain, ahead, strict=True):
        print(
            f"  {one}: {before:.1f} images/s as ever, {after:.1f} made ready ahead, ratio {after / before:.3f}"
        )
    print(
        f"  images/s made ready ahead over as ever: {told([b / a for a, b in zip(plain, ahead, strict=True)])}",
        flush=True,
    )


def ran(node: Node, asked: Sequence[TrialOrder], tickets: Sequence[int | None]) -> tuple[float, list[float]]:
    """Seconds of all turns, and images per second of each, over its steady steps."""
    began = time.monotonic()
    rates = []
    for order, ticket in zip(asked, tickets, strict=True):
        (done,) = node.run(
            [order], [()], timeout_s=600, should_stop=lambda: False, look=lambda _: None, ticket=ticket
        )
        found = step_times(done)
        if not found:
            sys.exit(
                f"{order.model} at {order.batch_size}: {done.forced}, {done.last_words}, {done.events[-2:]}"
            )
        steps = [step for *_, step in found]
        rates.append(order.batch_size * len(steps) / sum(steps))
        print(
            f"    batch {order.batch_size}: {done.finished - done.launched:.1f} s, {rates[-1]:.1f} images/s",
            flush=True,
        )
    return time.monotonic() - began, rates


if __name__ == "__main__":
    main()
