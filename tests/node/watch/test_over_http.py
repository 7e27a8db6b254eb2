"""Meters over HTTP, by a real server on loopback that is slow, fails, or answers nonsense."""

from __future__ import annotations

import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from gpubench.basics.errors import UnusableError, UsageError
from gpubench.node.watch.meters.meter import Reading
from gpubench.node.watch.meters.over_http import HttpMeter
from gpubench.schema.missing import Unmeasured

Answer = Callable[[http.server.BaseHTTPRequestHandler], None]


@contextmanager
def server(answer: Answer) -> Iterator[str]:
    """Its address, `http://127.0.0.1:PORT`. `answer` writes all of each answer."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        def log_message(self, *_: object) -> None:
            pass

    running = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running.daemon_threads = True
    threading.Thread(target=running.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{running.server_port}"
    finally:
        running.shutdown()
        running.server_close()


def says(body: str | bytes, status: int = 200) -> Answer:
    def answer(request: http.server.BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        request.end_headers()
        request.wfile.write(body if isinstance(body, bytes) else body.encode())

    return answer


SHELLY_2 = {
    "id": 0, "source": "init", "output": True, "apower": 87.3, "voltage": 229.8, "freq": 50.0, "current": 0.4,
    "aenergy": {"total": 11.7, "by_minute": [1.0, 2.0, 3.0], "minute_ts": 1772368200},
    "temperature": {"tC": 53.3, "tF": 127.9},
}  # fmt: skip
SHELLY_1 = {
    "power": 87.3,
    "overpower": 0.0,
    "is_valid": True,
    "timestamp": 1772368200,
    "counters": [1.0],
    "total": 3,
}
TASMOTA = {
    "StatusSNS": {
        "Time": "2026-03-01T12:30:00",
        "ENERGY": {
            "TotalStartTime": "2025-10-21T22:15:00", "Total": 3.7, "Today": 0.026, "Power": 87.3, "ApparentPower": 99,
            "ReactivePower": 12, "Factor": 0.9, "Voltage": 233, "Current": 0.021,
        },
    }
}  # fmt: skip
HOMEWIZARD = {
    "wifi_strength": 70,
    "total_power_import_kwh": 30.5,
    "active_power_w": 87.3,
    "active_power_l1_w": 87.3,
}
THREE_PHASES = {"em1:0": {"act_power": 10.0}, "em1:1": {"act_power": 87.3}, "em1:2": {"act_power": 30.0}}


@pytest.mark.parametrize(
    ("body", "key"),
    [
        ("87.3\n", ""),
        (SHELLY_2, ""),
        (SHELLY_1, ""),
        (TASMOTA, ""),
        (TASMOTA, "StatusSNS.ENERGY.Power"),
        (TASMOTA, "power"),
        (HOMEWIZARD, ""),
        (THREE_PHASES, "em1:1.act_power"),
        ({"meters": [{"power": 1}, {"power": 87.3}]}, "meters.1.power"),
        ({"value": 87.3, "state": "87.3 W"}, "value"),
    ],
)
def test_the_power_is_found_in_what_meters_answer(body: object, key: str) -> None:
    with server(says(body if isinstance(body, str) else json.dumps(body))) as url:
        meter = HttpMeter(f"{url}/status?id=0{'#' if key else ''}{key}")
        meter.start()
        reading = wait_for(meter, Reading)
    assert isinstance(reading, Reading)
    assert reading.watts == 87.3
    assert reading.at == reading.arrived <= time.monotonic()


@pytest.mark.parametrize(
    ("body", "key", "words"),
    [
        (THREE_PHASES, "", "several powers"),
        ({"voltage": 230, "on": True}, "", "no power that is known .it has voltage."),
        (SHELLY_2, "watts", "no watts"),
        ([], "", "it has nothing"),
    ],
)
def test_an_answer_that_does_not_tell_the_power_is_refused_with_what_it_has(
    body: object, key: str, words: str
) -> None:
    with server(says(json.dumps(body))) as url, pytest.raises(UsageError, match=words):
        HttpMeter(f"{url}#{key}")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (says("<html>who are you?</html>"), "neither a number nor JSON"),
        (says(b"\xff\xfe"), "neither a number nor JSON"),
        (says("[" * 60_000), "neither a number nor JSON"),
        (says("", 200), "neither a number nor JSON"),
        (says("9" * 400), "neither a number nor JSON"),
        (says("secret", 401), "HTTP Error 401"),
        (says("1e30"), "told 1e.30 W"),
        (lambda _: None, "no answer"),
        (lambda request: request.wfile.write(b"SSH-2.0-OpenSSH\r\n"), "no answer"),
    ],
)
def test_nonsense_is_told_in_one_line_before_anything_runs(answer: Answer, words: str) -> None:
    with server(answer) as url, pytest.raises(UnusableError, match=words) as error:
        HttpMeter(f"{url}/power")
    assert "\n" not in str(error.value)
    assert str(error.value).startswith(f"--meter {url}/power: ")


def test_nobody_there(unused_port: int) -> None:
    with pytest.raises(UnusableError, match="no answer: Connection refused"):
        HttpMeter(f"http://127.0.0.1:{unused_port}/")


@pytest.fixture
def unused_port() -> int:
    with server(says("1")) as url:
        return int(url.rpartition(":")[2])


@pytest.mark.parametrize("url", ["http://", "http://[", "http://127.0.0.1:many/", "http://a b/"])
def test_what_is_no_address(url: str) -> None:
    with pytest.raises((UnusableError, UsageError), match=r"^--meter http"):
        HttpMeter(url)


def test_what_may_be_a_password_is_in_no_name() -> None:
    with server(says("1")) as url:
        meter = HttpMeter(f"{url}/cm?user=me&password=secret&cmnd=Status%208#Power")
    assert meter.name == f"{url}/cm"
    with pytest.raises((UnusableError, UsageError)) as error:
        HttpMeter("http://me:secret@127.0.0.1:1/x")
    assert str(error.value).startswith("--meter http://127.0.0.1:1/x: ")


def wait_for(meter: HttpMeter, kind: type) -> object:
    """The first thing of this kind that it tells."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for item in meter.read_new():
            if isinstance(item, kind):
                return item
        time.sleep(0.01)
    raise AssertionError("waited too long")


def test_whoever_fetches_its_answers_never_waits_for_a_slow_one() -> None:
    """Drop by drop, so that no single wait is long."""
    hangs, drops = threading.Event(), threading.Event()

    def answer(request: http.server.BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()
        if not hangs.is_set():
            request.wfile.write(b"50")
            return
        drops.set()
        while hangs.is_set():
            request.wfile.write(b" ")
            time.sleep(0.05)

    with server(answer) as url:
        meter = HttpMeter(f"{url}/")
        meter.start()
        reading = wait_for(meter, Reading)
        assert isinstance(reading, Reading)
        assert reading.watts == 50
        hangs.set()
        assert drops.wait(60)
        meter.read_new()
        assert [meter.read_new() for _ in range(1000)] == [[]] * 1000, "a thousand times, while it waits"
        gap = wait_for(meter, Unmeasured)
        assert "took more than 2 s" in str(gap)
        hangs.clear()
        assert isinstance(wait_for(meter, Reading), Reading)


def test_faults_between_answers_are_told_and_it_goes_on() -> None:
    state = {"body": "50", "status": 200}

    def answer(request: http.server.BaseHTTPRequestHandler) -> None:
        says(str(state["body"]), int(state["status"]))(request)

    with server(answer) as url:
        meter = HttpMeter(f"{url}/")
        meter.start()
        wait_for(meter, Reading)
        state["status"] = 503
        assert "503" in str(wait_for(meter, Unmeasured))
        state.update(status=200, body="{}")
        while "no power" not in (why := str(wait_for(meter, Unmeasured))):
            assert "503" in why
        state["body"] = "75"
        reading = wait_for(meter, Reading)
        assert isinstance(reading, Reading)
        assert reading.watts == 75
