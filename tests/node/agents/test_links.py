"""The first node's side of an agent, with stand-ins for the agent's process."""

from __future__ import annotations

import time

import pytest

from gpubench.node.agents import link
from gpubench.node.agents.link import AgentCommand, Link, LostError
from gpubench.node.agents.messages import Open


def test_an_agent_that_takes_nothing_in_does_not_stop_this_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a node that hangs: a list of images that are left out may be larger than a pipe."""
    monkeypatch.setattr(link, "SEND_LIMIT_S", 0.5)
    one = Link(AgentCommand(name="n2", before=("sh", "-c", "exec sleep 600", "sh")))
    began = time.monotonic()
    try:
        with pytest.raises(LostError, match=r"it took nothing in for 0\.5 s"):
            one.send(Open(first="x" * 1_000_000))
    finally:
        monkeypatch.setattr(link, "CLOSE_LIMIT_S", 0.1)
        one.close()
    assert time.monotonic() - began < 20
    assert not one.is_there


def test_what_is_larger_than_a_pipe_arrives_as_it_was_said() -> None:
    one = Link(AgentCommand(name="n2", before=("sh", "-c", "sleep 0.2; wc -c >&2", "sh")))
    one.send(Open(first="x" * 1_000_000))
    one._process.stdin.close()
    with pytest.raises(LostError, match=r"it said: 10000\d\d"):
        one.take(20)
