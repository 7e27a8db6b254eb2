"""A sample of small changes to the modules that compose, and whether the tests nearest to each notice them.

`python tests/mutation/run.py [PATTERNS]`: by hand, one test run at a time. The tree is copied and the copy is changed,
so that every process which a test starts imports the changed module, too. The libraries are imported once: each run
is forked.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import fnmatch
import importlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Literal

from modules import TESTS
from mutators import mutate

ROOT = Path(__file__).parents[2]
LIBRARIES = (
    "hypothesis", "msgspec", "numpy", "pandas", "PIL.Image", "pytest", "rich.console", "scipy.stats",
    "torch", "torchvision.models", "torchvision.transforms.v2", "typer", "xdist",
)  # fmt: skip
Ending = Literal["killed", "timed out", "lived"]


def copy_tree(target: Path) -> None:
    """What tests read, the large folders as links."""
    ignored = shutil.ignore_patterns("__pycache__")
    for path in ROOT.iterdir():
        if path.name in ("gpubench", "tests"):
            shutil.copytree(path, target / path.name, ignore=ignored)
        elif not path.name.startswith("."):
            (target / path.name).symlink_to(path)


def run_tests(
    tree: Path, tests: tuple[str, ...], timeout_s: float, *, keeps_bytecode: bool = False
) -> int | None:
    """Pytest's exit code; None where it took too long. What it printed is in the tree's `log`.

    `keeps_bytecode`: of the tree as it is. That of a changed module, of the same second and length, might pass for
    another one's.
    """
    if (pid := os.fork()) == 0:
        os.setsid()
        os.chdir(tree)
        log = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.environ |= {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "" if keeps_bytecode else "1"}
        sys.dont_write_bytecode = not keeps_bytecode
        sys.path[:] = [
            str(tree),
            *(path for path in sys.path if path not in (str(ROOT), str(Path(__file__).parent))),
        ]
        code = 3
        try:
            code = importlib.import_module("pytest").main(
                ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "-m", "not gpu and not multigpu", *tests]
            )
        finally:
            sys.stdout.flush()
            os._exit(code)
    deadline = time.monotonic() + timeout_s
    try:
        while (ended := os.waitpid(pid, os.WNOHANG))[0] == 0 and time.monotonic() < deadline:
            time.sleep(0.05)
        return os.waitstatus_to_exitcode(ended[1]) if ended[0] else None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)  # and what its tests have left
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)


def judge_module(tree: Path, module: str, seed: int, count: int, only: set[str]) -> Counter[Ending]:
    """Tries some of the changes to a module, or those named, and prints what came of each."""
    path, tests = tree / module, tuple(f"tests/{name}" for name in TESTS[module])
    began = time.monotonic()
    if (code := run_tests(tree, tests, 1800, keeps_bytecode=True)) != 0:
        log = (tree / "log").read_text("utf-8")
        raise SystemExit(f"{module}: its tests fail without any change (exit code {code}):\n{log}")
    timeout_s = 30 + 4 * (time.monotonic() - began)
    source, times = path.read_text("utf-8"), path.stat()
    changes = [text for text in mutate(ast.parse(source)) if not only or f"{module}:{text}" in only]
    count = len(changes) if only else min(count, len(changes))
    chosen = set(random.Random(f"{seed} {module}").sample(range(len(changes)), count))
    endings: Counter[Ending] = Counter()
    tree_of_module = ast.parse(source)
    changed = (text for text in mutate(tree_of_module) if not only or f"{module}:{text}" in only)
    for number, text in enumerate(changed):
        if number in chosen:
            path.write_text(ast.unparse(tree_of_module), "utf-8")
            code = run_tests(tree, tests, timeout_s)
            ending: Ending = "lived" if code == 0 else "timed out" if code is None else "killed"
            endings[ending] += 1
            print(f"{ending:9} {module}:{text}", flush=True)
    path.write_text(source, "utf-8")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # its bytecode is valid again
    print(f"== {module}: {dict(endings)} of {len(changes)} changes", flush=True)
    return endings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("patterns", nargs="*", default=["*"], help="of modules: 'gpubench/stats/*'")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=15, help="changes a module")
    parser.add_argument(
        "--again", type=Path, help="what an earlier run printed: the changes that lived, and no other"
    )
    options = parser.parse_args()
    lines = options.again.read_text("utf-8").splitlines() if options.again else ()
    only = {line.removeprefix("lived").strip() for line in lines if line.startswith("lived")}
    matches = (fnmatch.filter(TESTS, pattern) for pattern in options.patterns)
    modules = list(dict.fromkeys(module for matched in matches for module in matched))
    if only:
        modules = [module for module in modules if any(text.startswith(f"{module}:") for text in only)]
    for name in LIBRARIES:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        copy_tree(tree)
        endings = {
            module: judge_module(tree, module, options.seed, options.count, only) for module in modules
        }
    print("| module | changes | killed | timed out | lived |\n|---|---:|---:|---:|---:|")
    for module, counts in (*endings.items(), ("in all", sum(endings.values(), Counter[Ending]()))):
        cells = counts.total(), counts["killed"], counts["timed out"], counts["lived"]
        print(f"| {module} | {' | '.join(map(str, cells))} |")


if __name__ == "__main__":
    main()
