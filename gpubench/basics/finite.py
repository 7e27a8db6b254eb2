"""Numbers that JSON can say."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def replace_non_finite(value: Any) -> Any:
    """The value with None for every number that JSON can't say: the loss of a training that diverged, say."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: replace_non_finite(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [replace_non_finite(part) for part in value]
    return value
