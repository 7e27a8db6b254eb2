"""Trials at the same time on one host, from servers that know nothing of each other."""

from __future__ import annotations

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

MODELS = "tests/train/user_models.py:"


@pytest.mark.slow
def test_two_ddp_trials_at_once_do_not_meet(train, server, own_server):
    """Each rank finds its own peers: the losses are those of the same trials one after the other."""
    ddp = {"ranks": 2, "cpus": 2, "workers": 2, "epochs": 3, "model": MODELS + "tiny"}
    # By the same servers, which have imported all then: so both can start at one moment.
    alone = [train(**ddp, seed=seed, launcher=one) for seed, one in ((1, server), (2, own_server))]
    both_start = threading.Barrier(2)

    def run(launcher, seed):
        both_start.wait()
        return train(**ddp, seed=seed, launcher=launcher)

    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(run, (server, own_server), (1, 2)))
    assert [ran.status for ran in together] == ["ok", "ok"]
    spans = [(ran.done.started, ran.done.finished) for ran in together]
    assert max(begin for begin, _ in spans) < min(end for _, end in spans)
    for ran, same in zip(together, alone, strict=True):
        assert [e.train_loss for e in ran.outcome.epochs] == [e.train_loss for e in same.outcome.epochs]


def test_a_trial_has_a_session_its_cpus_and_its_threads(train):
    cpu = max(os.sched_getaffinity(0))
    ran = train(model=MODELS + "tells_threads", cpus=1)
    facts = next(json.loads(line) for line in ran.log.splitlines() if line.startswith("{"))
    assert facts["threads"] == 1
    assert facts["cpus"] == list(ran.order.cpu_ids)
    assert len(facts["cpus"]) == 1 <= cpu + 1
    assert facts["session"] == facts["group"] != os.getsid(0)
