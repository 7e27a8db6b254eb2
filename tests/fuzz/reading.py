"""One text read within bounds: whether it was used, refused in one line, or broke the reader."""

from __future__ import annotations

import contextlib
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from targets import RefusedError, Target

LONGEST_S = 20.0
"""The largest plan that is allowed takes some seconds to expand."""
LONGEST_REFUSAL = 3000
"""Characters."""


class BrokenError(Exception):
    """What no text may do. The message says what it did."""


def is_used(target: Target, text: bytes) -> bool:
    """True where the text was used, False where it was refused in one line. Raises BrokenError."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            with _within(LONGEST_S):
                target.read(text, Path(folder))
        except RefusedError as refusal:
            said = str(refusal)
            if not said or "\n" in said or len(said) > LONGEST_REFUSAL:
                raise BrokenError(f"refused with {len(said)} characters: {said[:200]!r}") from None
            return False
        except Exception as error:
            raise BrokenError(f"{type(error).__name__}: {str(error)[:200]}") from error
    return True


@contextlib.contextmanager
def _within(seconds: float) -> Iterator[None]:
    """Raises TimeoutError in the main thread once the time is over."""

    def late(_: int, __: FrameType | None) -> None:
        raise TimeoutError(f"nothing after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
