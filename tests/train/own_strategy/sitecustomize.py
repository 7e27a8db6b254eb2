"""Registers the strategy in every Python process that starts with this folder on its path: the fork server."""

import sharded
import spectator

from gpubench.schema import catalog

catalog.STRATEGIES[sharded.NAME] = sharded.FACTS
catalog.STRATEGIES[spectator.NAME] = spectator.FACTS
