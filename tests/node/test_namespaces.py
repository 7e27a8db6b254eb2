"""Two nodes as two network namespaces: ranks reach each other over one pair of interfaces, and by nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from place import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.geteuid() != 0 or shutil.which("ip") is None,
        reason="network namespaces want root and ip (iproute2)",
    ),
]
FIRST, SECOND = "10.99.7.1", "10.99.7.2"
ASKED = (
    "--model", "lenet", "--variant", "synthetic", "--device", "cpu", "--ranks", "2", "--nodes", "2",
    "--set", "input_size=28", "--set", "num_classes=4", "--batch-size", "64", "--rounds", "1", "--out", "out",
)  # fmt: skip


def ip(*arguments: str) -> str:
    return subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def nodes() -> Iterator[tuple[str, str]]:
    """The names of two namespaces with an interface each, which are the ends of one wire."""
    names = tuple(f"gpubench-{os.getpid()}-{side}" for side in "ab")
    made: list[str] = []
    try:
        for name in names:
            ip("netns", "add", name)
            made.append(name)
        ip(*f"link add wire netns {names[0]} type veth peer name wire netns {names[1]}".split())
        for name, address in zip(names, (FIRST, SECOND), strict=True):
            ip("-n", name, "addr", "add", f"{address}/24", "dev", "wire")
            for device in ("lo", "wire"):
                ip("-n", name, "link", "set", device, "up")
        yield names[0], names[1]
    finally:
        for name in made:
            ip("netns", "del", name)


def records(folder: Path) -> list[dict[str, Any]]:
    """In the order of their numbers of images."""
    told = [json.loads(path.read_text()) for path in (folder / "out").rglob("records/*/*.json")]
    return sorted(told, key=lambda record: record["trial"]["train_images"])


def sent_mib(name: str) -> float:
    """What has left a namespace by its wire."""
    (link,) = json.loads(ip("-n", name, "-json", "-statistics", "link", "show", "wire"))
    return link["stats64"]["tx"]["bytes"] / 2**20


def test_ranks_talk_over_the_wire_and_one_that_is_cut_ends_the_trial_at_its_deadline(
    tmp_path: Path, nodes: tuple[str, str]
) -> None:
    """Of two trials of one sweep the second would go on for days."""
    short, long = 2048, 64 * 10**7
    with subprocess.Popen(
        [
            *("ip", "netns", "exec", nodes[0], sys.executable, "-m", "gpubench", "sweep", *ASKED),
            *("--agent", f"ip netns exec {nodes[1]}", "--network", FIRST, "--breakdown", "--order", "given"),
            *("--epochs", "3", "--set", f"train_images={short},{long}", "--timeout", "20s"),
        ],
        cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as ran:  # fmt: skip
        until(lambda: bool(records(tmp_path)), "the first trial's record")
        sent = [sent_mib(name) for name in nodes]
        until(lambda: sent_mib(nodes[1]) > sent[1] + 1, "training over the wire")
        family = [psutil.Process(ran.pid), *psutil.Process(ran.pid).children(recursive=True)]
        ip("-n", nodes[1], "link", "set", "wire", "down")
        assert ran.wait(200) == 1, ran.stdout and ran.stdout.read()
    whole, cut = records(tmp_path)
    assert whole["status"] == "ok"
    told = whole["result"]["comm_mib_per_step"] * 3 * short // 64
    # With two ranks each sends as much as a gradient has; headers and barriers come on top.
    assert all(told < mib < 1.25 * told for mib in sent)
    assert whole["result"]["comm_ms"] > 0
    assert all(abs(node["clock_drift_s"]) < 0.05 for node in whole["nodes"])
    assert cut["status"] == "timeout"
    assert all(node["node"] in cut["reason"] for node in cut["nodes"])
    until(lambda: not any(one.is_running() for one in family), "the end of all")
