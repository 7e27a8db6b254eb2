"""Runs in MLflow: parameters, metrics, series, tags and the log as an artifact."""

from __future__ import annotations

import hashlib
import itertools
import logging
import os
import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit, urlunsplit

from mlflow.entities import Metric, Param, RunTag
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from gpubench.basics.errors import UnusableError
from gpubench.export.runs import TrackedRun
from gpubench.export.trackers import TrackerExport
from gpubench.results.packed import open_stored

T = TypeVar("T")
KEY = "gpubench.attempt"
"""The tag by which a run is found again, so that it is handed over once."""
ENDED = {"ok": "FINISHED", "oom": "FAILED", "failed": "FAILED", "timeout": "KILLED", "interrupted": "KILLED"}
"""How MLflow calls an ending; the tag `gpubench.status` has ours."""
MOST = {"metrics": 1000, "params": 100, "tags": 100}
"""What MLflow takes in one call."""
LONGEST = {"params": 6000, "tags": 5000}
"""Characters of a value."""
LONGEST_NAME = 250
"""Characters of a name."""
FOLDER = "mlflow"
"""Where runs go if neither --out nor MLFLOW_TRACKING_URI says: a database and artifacts in it."""


def export_runs(runs: Iterable[TrackedRun], place: str | None) -> TrackerExport:
    """Hands runs over to a tracking server or database (an address with `://`), or to a folder with a database of its
    own. A run that is there already is left as it is. Raises UnusableError.
    """
    logging.getLogger("mlflow").setLevel(logging.WARNING)  # it tells of each table that it makes
    logging.getLogger("alembic").setLevel(logging.WARNING)
    address = place or os.environ.get("MLFLOW_TRACKING_URI") or FOLDER
    artifacts = None
    try:
        if "://" not in address:
            folder = Path(address).resolve()
            folder.mkdir(parents=True, exist_ok=True)
            address, artifacts = f"sqlite:///{folder}/mlflow.db", (folder / "artifacts").as_uri()
        client = MlflowClient(tracking_uri=address)
        new = known = 0
        for experiment, members in itertools.groupby(runs, key=lambda run: run.experiment):
            number = _find_experiment(client, experiment, artifacts)
            known_keys = _list_known_keys(client, number)
            for run in members:
                if run.key in known_keys:
                    known += 1
                else:
                    _write_run(client, number, run)
                    new += 1
    except (MlflowException, OSError) as error:
        raise UnusableError(f"MLflow at {address}: {error}") from error
    return TrackerExport(where=_describe_address(address), new=new, known=known)


def _describe_address(address: str) -> str:
    """A server is looked at in a browser, without whoever's password; a database by MLflow's own command."""
    parts = urlsplit(address)
    if parts.scheme in ("http", "https"):
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    return f"mlflow ui --backend-store-uri {shlex.quote(address)}"


def _find_experiment(client: MlflowClient, name: str, artifacts: str | None) -> str:
    """The id of MLflow's experiment of this name, which is made where there is none."""
    known = client.get_experiment_by_name(name)
    if known is not None:
        return str(known.experiment_id)
    return str(client.create_experiment(name, artifact_location=artifacts))


def _list_known_keys(client: MlflowClient, experiment: str) -> set[str]:
    """The keys of the runs that were handed over already, whole: one that was broken off has not ended."""
    keys: set[str] = set()
    token = None
    while True:
        page = client.search_runs(
            [experiment], filter_string="attributes.status != 'RUNNING'", max_results=1000, page_token=token
        )
        keys.update(run.data.tags[KEY] for run in page if KEY in run.data.tags)
        token = page.token
        if not token:
            return keys


def _write_run(client: MlflowClient, experiment: str, run: TrackedRun) -> None:
    began, ended = (round(1000 * seconds) for seconds in (run.began, run.ended))
    number = client.create_run(experiment, start_time=began, run_name=run.name).info.run_id
    metrics = itertools.chain(
        (Metric(name, value, ended, 0) for name, value in run.figures.items()),
        (
            Metric(_clean_name(name), point.value, round(1000 * point.at), point.step)
            for name, points in run.series.items()
            for point in points
        ),
    )
    params = (Param(name, str(value)[: LONGEST["params"]]) for name, value in run.parameters.items())
    tags = [
        RunTag(_clean_name(f"gpubench.{name}"), value[: LONGEST["tags"]]) for name, value in run.tags.items()
    ]
    for metric_batch in _split_batches(metrics, MOST["metrics"]):
        client.log_batch(number, metrics=metric_batch)
    for param_batch in _split_batches(params, MOST["params"]):
        client.log_batch(number, params=param_batch)
    for tag_batch in _split_batches([*tags, RunTag(KEY, run.key)], MOST["tags"]):
        client.log_batch(number, tags=tag_batch)
    if run.log is not None:
        with open_stored(run.log) as file:  # of a packed folder it is no file of its own
            client.log_text(number, file.read().decode("utf-8", errors="replace"), run.log.name)
    client.set_terminated(number, ENDED.get(run.status, "FAILED"), ended)


def _clean_name(name: str) -> str:
    """A name with the signs alone that MLflow allows; a longer one ends in a digest of itself, so that no two meet."""
    plain = re.sub(r"[^\w./ -]", "_", name)
    if len(plain) <= LONGEST_NAME:
        return plain
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:8]
    return f"{plain[: LONGEST_NAME - 9]}_{digest}"


def _split_batches(items: Iterable[T], most: int) -> Iterator[list[T]]:
    rest = iter(items)
    while batch := list(itertools.islice(rest, most)):
        yield batch
