"""One node with two GPUs against two "nodes" with one GPU each: what is the same, and what the network costs.

    python tests/benchmarks/two_nodes.py [--model resnet50] [--batch-size 128] [--strategy ddp] [--out FOLDER]
    python tests/benchmarks/two_nodes.py --device cpu --model lenet       # the same with processes, anywhere

On a machine with two GPUs. Three rows of one trial (2 GPUs in all, DDP, `--breakdown`), each a sweep of its own:

- `one node`: both GPUs, NCCL as it chooses;
- `one node, sockets`: both GPUs, NCCL's socket transport alone: the network without a second node;
- `two nodes`: two that see one GPU and half of the CPUs each, NCCL's socket transport between them.

Printed: the rows' figures side by side, and each against the first row. Between the last two all should agree; between
the first and the last all but the step's time and what follows from it (waiting for the exchange, power, use of the
GPUs), and the host's memory, for each node has a fork server and a leader of its own. It ends in 1 where the volume of
the exchange or the allocator's memory differ by more than `--margin`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gpubench

SOCKETS = {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_IB_DISABLE": "1", "NCCL_NVLS_ENABLE": "0"}
"""Leaves NCCL its sockets."""
FIGURES = (
    "epoch_time_s", "images_per_s", "step_time_ms_p50", "data_wait_pct",
    "copy_ms", "forward_ms", "backward_ms", "optimizer_ms", "comm_ms", "comm_hidden_ms", "comm_mib_per_step",
    "gpu_mem_mib", "gpu_mem_reserved_mib", "gpu_util_pct", "sm_clock_mhz", "energy_j", "power_w",
    "cpu_s_per_epoch", "host_mem_mib", "top1_pct",
)  # fmt: skip
ALIKE = ("comm_mib_per_step", "gpu_mem_reserved_mib")
"""What the way over the network changes nothing of."""


def main() -> int:
    asked = _asked()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(asked.out or folder)
        rows = {name: _row(name, asked, out) for name in ("one node", "one node, sockets", "two nodes")}
    print(_beside(rows))
    wrong = _unlike(rows, asked.margin)
    for line in wrong:
        print(line)
    return 1 if wrong else 0


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--batch-size", default="128")
    parser.add_argument("--strategy", default="ddp")
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--train-images", default="10240")
    parser.add_argument("--epochs", default="4")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument(
        "--margin", type=float, default=0.02, help="largest share by which equal figures may differ"
    )
    parser.add_argument("--out", help="keep the results folders here")
    return parser.parse_args()


def _row(name: str, asked: argparse.Namespace, out: Path) -> dict[str, Any]:
    """One trial's row, as `--json` tells it."""
    two, on_gpus = name == "two nodes", asked.device == "cuda"
    cpus = [str(cpu) for cpu in sorted(os.sched_getaffinity(0))]
    halves = [",".join(cpus[: len(cpus) // 2]), ",".join(cpus[len(cpus) // 2 :])]
    bound = ["taskset", "-c", halves[0]] if two and all(halves) else []
    command = [
        *bound,
        sys.executable, "-m", "gpubench", "sweep", "--model", asked.model, "--batch-size", asked.batch_size,
        "--strategy", asked.strategy, "--variant", "synthetic", "--epochs", asked.epochs, "--rounds", "1",
        "--set", f"train_images={asked.train_images}", "--set", "num_classes=100", "--breakdown", "--yes", "--json",
        "--set", f"input_size={224 if on_gpus else 28}", "--order", "given",
        "--gpus" if on_gpus else "--ranks", "2", "--device", asked.device,
        "--precision", asked.precision if on_gpus else "fp32", "--nodes", "2" if two else "1",
        "--out", str(out / name.replace(", ", "-").replace(" ", "-")),
    ]  # fmt: skip
    if two:
        bound = ["taskset", "-c", halves[1]] if all(halves) else []
        agent = [*bound, "env", "NCCL_HOSTID=second", *(["CUDA_VISIBLE_DEVICES=1"] if on_gpus else [])]
        command += ["--agent", " ".join(agent), "--network", "127.0.0.1"]
    told = subprocess.run(
        command, env=_environment(name, on_gpus=on_gpus), stdout=subprocess.PIPE, text=True, check=False
    )
    if told.returncode:
        sys.exit(f"{name}: gpubench ended with exit code {told.returncode}")
    row: dict[str, Any] = json.loads(told.stdout.splitlines()[-1])
    return row


def _environment(name: str, *, on_gpus: bool) -> dict[str, str]:
    made = dict(os.environ)
    home = str(Path(gpubench.__file__).parents[1])
    made["PYTHONPATH"] = os.pathsep.join([home, *filter(None, [made.get("PYTHONPATH")])])
    if name != "one node":
        made |= SOCKETS
    if name == "two nodes":
        made["NCCL_HOSTID"] = "first"  # else NCCL sees that both are one host
        if on_gpus:
            made["CUDA_VISIBLE_DEVICES"] = "0"
    return made


def _beside(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """Figures of all rows, and by how much each differs from the first's."""
    others = list(rows)[1:]
    lines = [
        f"{'':24}"
        + "".join(f"{name:>20}" for name in rows)
        + "".join(f"{f'Δ {name}':>22}" for name in others)
    ]
    for figure in FIGURES:
        values = [rows[name].get(figure) for name in rows]
        cells = "".join(f"{'' if value is None else f'{value:,.4g}':>20}" for value in values)
        lines.append(
            f"{figure:24}{cells}" + "".join(f"{_change(values[0], value):>22}" for value in values[1:])
        )
    return "\n".join(lines)


def _change(first: float | None, other: float | None) -> str:
    return f"{100 * (other / first - 1):+.1f} %" if first and other is not None else ""


def _unlike(rows: Mapping[str, Mapping[str, Any]], margin: float) -> list[str]:
    """What should be equal and is not, a line each."""
    first = rows["one node"]
    found: list[str] = []
    for figure in ALIKE:
        for name, row in rows.items():
            one, other = first.get(figure), row.get(figure)
            if (one is None) != (other is None) or (one and other and abs(other / one - 1) > margin):
                found.append(f"{figure} of {name} is {other}, of one node {one}: they should be equal")
    return found


if __name__ == "__main__":
    sys.exit(main())
