"""In place of NVIDIA's library, for real processes that have this folder and `tests` on their PYTHONPATH.

It is the real package, with the calls that reach a driver replaced by those of `file_nvml.py`.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from pathlib import Path

_elsewhere = [path for path in sys.path if Path(path).resolve() != Path(__file__).parent]
_spec = importlib.machinery.PathFinder.find_spec("pynvml", _elsewhere)
assert _spec is not None
assert _spec.loader is not None
_real = importlib.util.module_from_spec(_spec)
sys.modules["pynvml"] = _real
_spec.loader.exec_module(_real)

from file_nvml import replace_library  # noqa: E402 - the library's own constants must be there

replace_library(_real)
