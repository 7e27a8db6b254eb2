"""Versions."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable

from gpubench import environment
from gpubench.runner.doctor.finding import Finding
from gpubench.runner.doctor.scene import Scene

GROUP = "software"


def versions(scene: Scene) -> Iterable[Finding]:
    """What is installed, by its metadata: whether it works is tried in the last group."""
    facts = environment.environment_facts(scene.machine)
    yield Finding(group=GROUP, name="gpubench", verdict="ok", found=f"{facts['gpubench'] or 'not installed'}")
    yield Finding(group=GROUP, name="Python", verdict="ok", found=f"{facts['python']}, {sys.executable}")
    for package in ("torch", "torchvision"):
        found = facts[package]
        yield Finding(
            group=GROUP,
            name=package,
            verdict="ok" if found else "no",
            found=found or f"no metadata of an installed {package}",
            remedy="" if found else f"pip install {package}, beside gpubench",
        )
    yield Finding(
        group=GROUP, name="system", verdict="ok", found=f"{facts['os']}, Linux {platform.release()}"
    )
