"""gpubench: trains real networks over a grid of configurations and leaves a table that can be trusted."""

__version__ = "0.1.0"
