"""What an epoch time is: images over the steady rate, or the median of measured epochs; older ones are extrapolated."""

from __future__ import annotations

from typing import Literal

from gpubench.schema.codes import REASONS, format_reason

FEWEST_TIMES = 3
"""Epoch times (of epochs, or of repeats) from which their spread says anything: two have none to speak of."""
STEADY = "steady"
MEASURED = "measured"
EXTRAPOLATED = "extrapolated"
WHOLE_RUN = "run"
NO_SPREAD = format_reason("few-epochs", FEWEST_TIMES)
"""Why there is no `epoch_time_iqr_s`."""
FEWEST_FOR_P95 = 20
"""Steady steps below which the slowest one alone would be the 95th percentile."""
NO_P95 = format_reason("few-steps", FEWEST_FOR_P95)
"""Why there is no `step_time_ms_p95`."""
NO_EPOCHS = REASONS["no-epochs"]
"""Why there is neither that nor `epochs_measured`."""


Kind = Literal["steady rate", "whole epochs", "whole run", "published log"]
"""What an epoch time is of. Unlike kinds are never compared."""
