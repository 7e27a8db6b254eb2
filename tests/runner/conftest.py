"""Tests of the runner use the NVML stand-in of tests/monitor, also where they are run alone."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "monitor"))
