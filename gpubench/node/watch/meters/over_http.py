"""A meter that answers over HTTP: with a number of watts, or with JSON that has it somewhere."""

from __future__ import annotations

import re
import threading
import time
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Mapping, Sequence
from http.client import HTTPException

import msgspec

from gpubench.basics.errors import UnusableError, UsageError
from gpubench.node.watch.meters.meter import Reading, check_watts, choose_power_name
from gpubench.node.watch.pacing import Clock
from gpubench.schema.missing import Unmeasured

DEADLINE_S = 2.0
"""For one answer."""
_LARGEST = 1 << 16
"""Bytes of an answer."""
_KEPT = 10_000
"""Answers that nobody has fetched yet."""


class HttpMeter:
    """What it answers when asked twice a second, by a thread of its own: whoever fetches the answers waits for none."""

    metric = "meter_w"
    period_s = 0.5
    is_late = True

    def __init__(self, argument: str, clock: Clock = time.monotonic) -> None:
        """`argument`: the URL, and perhaps `#KEY` behind it. It is asked once.

        Raises UnusableError where no answer comes, UsageError where it does not tell which number is the power.
        """
        self._url, _, self._key = argument.partition("#")
        # What stands before @, or behind ?, may be a password.
        self.name = re.sub(r"//[^/]*@", "//", self._url.partition("?")[0])
        self._clock = clock
        # A meter stands in one's own network: no proxy leads there.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        self._news: deque[Reading | Unmeasured] = deque(maxlen=_KEPT)
        self._thread: threading.Thread | None = None
        try:
            self._ask()
        except Unmeasured as reason:
            raise UnusableError(f"--meter {self.name}: {reason}") from None
        except ValueError as error:
            raise UsageError(f"--meter {self.name}: {error}") from None

    def start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._ask_for_ever, name=self.name, daemon=True)
            self._thread.start()
        self._news.clear()

    def read_new(self) -> Sequence[Reading | Unmeasured]:
        return [self._news.popleft() for _ in range(len(self._news))]

    def _ask_for_ever(self) -> None:
        due = self._clock()
        while True:
            time.sleep(max(0.0, due - self._clock()))
            try:
                self._news.append(self._ask())
            except Unmeasured as reason:
                self._news.append(reason)
            except ValueError as error:
                self._news.append(Unmeasured(str(error)))
            due = max(due + self.period_s, self._clock())

    def _ask(self) -> Reading:
        """Raises Unmeasured where there is no answer, ValueError where it does not tell the power."""
        try:
            body, arrived = self._fetch(), self._clock()
        except (OSError, HTTPException) as error:
            why = error.reason if type(error) is urllib.error.URLError else error
            words = str(getattr(why, "strerror", None) or why)
            raise Unmeasured(f"no answer: {' '.join(words.split())}") from None
        return Reading(arrived, parse_power(body, self._key), arrived)

    def _fetch(self) -> bytes:
        """The answer, as far as it comes in time. Raises OSError, HTTPException."""
        deadline, body = self._clock() + DEADLINE_S, b""
        with self._opener.open(self._url, timeout=DEADLINE_S) as answer:
            while len(body) < _LARGEST and (part := answer.read1(_LARGEST)):
                body += part
                if self._clock() > deadline:  # one that comes drop by drop
                    raise TimeoutError(f"it took more than {DEADLINE_S:g} s")
        return body


def parse_power(body: bytes, key: str) -> float:
    """The watts in an answer. `key`: which number of several; empty: none was given.

    Raises Unmeasured for what is no answer of a meter, ValueError where it does not tell which number is the power.
    """
    try:
        numbers = _list_numbers(msgspec.json.decode(body))
    except (msgspec.DecodeError, RecursionError, OverflowError):
        # OverflowError: an integer of more than 308 digits is JSON.
        raise Unmeasured(f"its answer is neither a number nor JSON: {body[:40]!r}") from None
    return check_watts(numbers["" if "" in numbers else choose_power_name([*numbers], key, "its answer")])


def _list_numbers(value: object, path: str = "") -> Mapping[str, float]:
    """All numbers within a decoded JSON value, by their path, as `meters.0.power`; a number alone by an empty one."""
    if isinstance(value, bool):
        return {}
    if isinstance(value, int | float):
        return {path: float(value)}
    parts: Sequence[tuple[object, object]] = ()
    if isinstance(value, dict):
        parts = list(value.items())
    elif isinstance(value, list):
        parts = list(enumerate(value))
    return {
        name: number
        for key, part in parts
        for name, number in _list_numbers(part, f"{path}.{key}" if path else str(key)).items()
    }
