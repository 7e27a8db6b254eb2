"""Versions."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable

from gpubench.doctor.context import CheckContext
from gpubench.doctor.finding import CheckResult, ok
from gpubench.node import environment


def versions(context: CheckContext) -> Iterable[CheckResult]:
    """What is installed, by its metadata: whether it works is tried in the last group."""
    facts = environment.environment_facts(context.machine)
    yield ok("gpubench", f"{facts['gpubench'] or 'not installed'}")
    yield ok("Python", f"{facts['python']}, {sys.executable}")
    for package in ("torch", "torchvision"):
        version = facts[package]
        yield CheckResult(
            name=package,
            verdict="ok" if version else "no",
            found=version or f"no metadata of an installed {package}",
            remedy="" if version else f"pip install {package}, beside gpubench",
        )
    yield ok("system", f"{facts['os']}, Linux {platform.release()}")
