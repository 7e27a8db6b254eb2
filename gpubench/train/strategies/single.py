"""`single`: one process, one device."""

from __future__ import annotations

from gpubench.train.strategies.contract import Strategy


class Single(Strategy):
    """The contract as it stands."""
