"""Another user, for tests that root runs."""

from __future__ import annotations

import os
from collections.abc import Callable


def as_user(uid: int, function: Callable[[], object]) -> str:
    """What a function returns, or raises, in a process of this user; of the same user where not root runs the tests.

    The process is a fork: a new interpreter could not import what lies where only root may go, as a Python in root's
    home does. What the function needs from there must be loaded before, too.
    """
    inwards, outwards = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            if os.getuid() == 0:
                os.setgroups([])
                os.setgid(uid)
                os.setuid(uid)
            os.umask(0o077)
            reply = repr(function())
        except BaseException as error:  # noqa: BLE001 - it is the reply
            reply = f"{type(error).__name__}: {error}"
        os.write(outwards, reply.encode())
        os._exit(0)
    os.close(outwards)
    reply = os.read(inwards, 10_000).decode()
    os.close(inwards)
    os.waitpid(process, 0)
    return reply
