"""`gpubench sweep --nodes`: one trial over two nodes, both of which are this machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psutil
import pytest
from place import Place, until

ASKED = (
    "--model", "lenet", "--variant", "synthetic", "--device", "cpu", "--ranks", "2",
    "--set", "input_size=28", "--set", "num_classes=4", "--set", "train_images=2048", "--epochs", "2",
    "--batch-size", "32", "--rounds", "1", "--out", "out",
)  # fmt: skip
AGENT = ("--agent", "env", "--network", "127.0.0.1")


def records(place: Place) -> dict[int, dict[str, Any]]:
    """By the number of nodes."""
    found = [json.loads(path.read_text()) for path in Path(place.home / "out").rglob("records/*/*.json")]
    return {record["trial"]["nodes"]: record for record in found}


@pytest.mark.slow
def test_a_record_of_two_nodes_tells_of_both_and_of_each(place: Place) -> None:
    ran = place.run("sweep", *ASKED, "--nodes", "1,2", *AGENT, "--json")
    assert ran.returncode == 0, ran.stderr
    rows = {line["nodes"]: line for line in map(json.loads, ran.stdout.splitlines())}
    assert [rows[n]["status"] for n in (1, 2)] == ["ok", "ok"]
    assert rows[2]["cpus"] == 2 * rows[1]["cpus"]
    assert rows[2]["ranks"] == rows[1]["ranks"] == 2
    one, two = records(place)[1], records(place)[2]
    assert one["nodes"] == []
    assert two["environment"]["host"] == " + ".join(node["node"] for node in two["nodes"])
    for column in ("cpu_s_per_epoch", "host_mem_mib"):
        assert two["result"][column] == pytest.approx(sum(node[column] for node in two["nodes"]))
    assert all(abs(node["clock_offset_s"]) < 0.05 for node in two["nodes"]), "both read one clock here"

    # Read back, it is the same trial: nothing is measured again, though the further node is not there.
    again = place.run("sweep", *ASKED, "--nodes", "1,2")
    assert again.returncode == 0, again.stderr
    assert "started" not in again.stderr
    assert "nodes" in again.stdout
    assert records(place)[2]["attempt"] == 1


@pytest.mark.slow
def test_a_first_node_that_is_killed_leaves_nothing_on_the_other(place: Place) -> None:
    """Whose part hears it by the end of its input."""
    long = [*ASKED, "--nodes", "2", *AGENT]
    long[long.index("--epochs") + 1] = "100000"
    first = place.start("sweep", *long)
    command = psutil.Process(first.pid)
    seven = "fork server, leader and rank of each node, and the part of the second one"
    until(lambda: len(command.children(recursive=True)) == 7, seven)
    family = command.children(recursive=True)
    first.kill()
    first.wait()
    until(lambda: not any(map(is_alive, family)), "the end of all")


def is_alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
