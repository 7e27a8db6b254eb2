"""The one way in which a measurement fails: with a reason, never with a zero."""

from __future__ import annotations


class Unmeasured(Exception):  # noqa: N818 - not a fault of the program: a figure that this machine can't give
    """A figure that could not be measured; its text is the reason that stands beside the empty cell."""
