"""Runs in TensorBoard: hyperparameters, scalars over time, and words, in one folder a run."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2
from tensorboard.plugins.hparams import summary_v2 as hparams
from tensorboard.plugins.text.summary_v2 import text_pb
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from gpubench.basics.errors import UnusableError
from gpubench.export.runs import TrackedRun
from gpubench.export.trackers import HandedOver
from gpubench.report.markdown import grid

FOLDER = "tensorboard"
"""Where runs go if --out does not say."""
SUFFIX = ".gpubench"
"""How our event files end."""
LAST = 20_000
"""Characters of a log that are told: the last ones, where the error stands."""


def take(runs: Iterable[TrackedRun], place: str | None) -> HandedOver:
    """Writes each run into a folder EXPERIMENT/RUN of its own; one that is there already is left as it is.

    Raises UnusableError where that can't be done.
    """
    top = Path(place or FOLDER)
    new = known = 0
    try:
        for run in runs:
            folder = top / _safe(run.experiment) / f"{_safe(run.name)} {run.key}"
            if folder.exists():
                known += 1
                continue
            half = folder.with_name(f".{folder.name}.half")
            shutil.rmtree(half, ignore_errors=True)
            _write(half, run)
            half.rename(folder)
            new += 1
    except OSError as error:
        raise UnusableError(f"can't write {top}: {error.strerror or error}") from error
    return HandedOver(where=f"tensorboard --logdir {shlex.quote(str(top))}", new=new, known=known)


def _write(folder: Path, run: TrackedRun) -> None:
    writer = EventFileWriter(str(folder), filename_suffix=SUFFIX)
    values: Mapping[str, str | int | float | bool] = {**run.parameters}
    said = [(run.began, 0, one) for one in (hparams.hparams_pb(dict(values), run.key, run.began),)]
    said += [(run.ended, 0, _scalar(f"figures/{name}", value)) for name, value in run.figures.items()]
    said += [
        (point.at, point.step, _scalar(name, point.value))
        for name, points in run.series.items()
        for point in points
    ]
    facts = grid([["", ""], [":---", ":---"], *run.tags.items()])
    said.append((run.ended, 0, text_pb("gpubench/facts", facts)))
    if run.log is not None:
        said.append((run.ended, 0, text_pb("gpubench/log", _as_it_is(_last(run.log)))))
    said.append((run.ended, 0, _ended(run)))
    for at, step, summary in said:
        writer.add_event(Event(wall_time=at, step=step, summary=summary))
    writer.close()


def _scalar(tag: str, value: float) -> Summary:
    return Summary(value=[Summary.Value(tag=tag, simple_value=value)])


def _ended(run: TrackedRun) -> Summary:
    """When and how it ended, for the table of hyperparameters. The library's own function wants TensorFlow."""
    status = api_pb2.STATUS_SUCCESS if run.status == "ok" else api_pb2.STATUS_FAILURE
    end = plugin_data_pb2.SessionEndInfo(status=status, end_time_secs=run.ended)
    told = metadata.create_summary_metadata(plugin_data_pb2.HParamsPluginData(session_end_info=end))
    return Summary(
        value=[Summary.Value(tag=metadata.SESSION_END_INFO_TAG, metadata=told, tensor=metadata.NULL_TENSOR)]
    )


def _last(log: Path) -> str:
    try:
        return log.read_text(encoding="utf-8", errors="replace")[-LAST:]
    except OSError as error:
        return f"it can't be read: {error.strerror}"


def _as_it_is(words: str) -> str:
    """As Markdown shows words of which nothing is mark-up."""
    return "\n".join(f"    {line}" for line in words.splitlines())


def _safe(name: str) -> str:
    """A name that is a folder's, and no path."""
    return re.sub(r"[^\w=.,+&() -]", "_", name).strip(". ")[:120] or "_"
