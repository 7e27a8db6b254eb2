"""A real SLURM for the tests of this folder; skipped where its programs are missing, unless GPUBENCH_SLURM=required."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import cluster as slurm
import pytest
from cluster import Cluster
from jobs import Workplace


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A cluster of two nodes on this machine, for all tests that this process runs."""
    if lacks := slurm.missing():
        install = "apt-get install --no-install-recommends slurmctld slurmd slurm-client munge"
        what = f"no {', '.join(lacks)} here ({install})"
        if os.environ.get("GPUBENCH_SLURM") == "required":
            pytest.fail(f"{what}, and GPUBENCH_SLURM=required")
        pytest.skip(what)
    running = slurm.start()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the images of all jobs lie."""
    return tmp_path_factory.mktemp("images")


@pytest.fixture
def work(cluster: Cluster, images: Path, tmp_path: Path) -> Iterator[Workplace]:
    yield Workplace(cluster=cluster, home=tmp_path, images=images)
    cluster.clear()  # a test that failed leaves its jobs to no other
