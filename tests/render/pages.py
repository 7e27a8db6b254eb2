"""Pages to test, and what their parts are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import html5lib
from made_up_folders import folder_of
from whole_rows import row_with

from gpubench.analyze.folder import Folder, read_folders
from gpubench.render.page import page
from gpubench.schema.row import Row

FIXED = {
    "model": "mobilenet_v2", "params_m": 3.5, "input_size": 224, "variant": "synthetic", "gpus": 1, "device": "cuda",
    "strategy": "single", "precision": "bf16", "gpu_name": "NVIDIA H200", "gpu_count": 4, "experiment": "sizes",
    "images_per_epoch": 10_240, "train_images": 10_240,
}  # fmt: skip
IN_ROUNDS = {16: (4.0, 4.4, 4.2), 32: (2.0, 2.1, 2.2), 64: (1.5, 1.52, 1.51)}
"""Batch size -> epoch times of its processes."""


def row(batch: int, status: str = "ok", **values: Any) -> Row:
    """One trial of a sweep over batch sizes."""
    return row_with(
        **FIXED
        | {"trial_id": f"t{batch}", "config_id": f"c{batch}", "batch_size": batch, "status": status}
        | values
    )


def in_rounds() -> list[Row]:
    """A sweep in three rounds: then one size ran out of memory, one was skipped, and one has no record yet."""
    measured = [
        row(batch, round=number, trial_id=f"t{batch}", epoch_time_s=time, images_per_s=10_240 / time,
            gpu_mem_mib=500.0 + 20 * batch, energy_j=1000.0 + 10 * batch, epochs_measured=3)
        for batch, times in IN_ROUNDS.items()
        for number, time in enumerate(times, 1)
    ]  # fmt: skip
    return [*measured, row(128, "oom", reason="CUDA out of memory"), row(256, "skipped", reason="128 was oom"),
            row(512, "missing")]  # fmt: skip


def read(
    rows: Sequence[Row], name: str = "sizes", question: str = "Which size?", folder: str = "a folder"
) -> Folder:
    """A folder with a table of them."""
    return folder_of(rows, folder=folder, name=name, axes=[["batch_size"]], question=question)


def html(*folders: Folder) -> str:
    """Their page."""
    return page.make_page(folders).decode()


def of_folders(*paths: Path) -> str:
    """The page of stored folders."""
    return html(*read_folders(paths, lambda _: None))


def parsed(text: str) -> Any:
    """The page as a tree. Fails where it is no valid HTML."""
    return html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(text)


def said(element: Any) -> str:
    """All text in an element."""
    return "".join(element.itertext())


def find(tree: Any, tag: str, kind: str) -> list[Any]:
    """All elements of a class."""
    return [element for element in tree.iter(tag) if kind in str(element.get("class", "")).split()]


def cells(table: Any) -> list[list[str]]:
    """What stands in the lines of a table, heads of groups among them: without what is for screen readers alone."""
    return [[cell.text or "" for cell in line] for line in table.findall("tbody/tr")]


def descriptions(tree: Any) -> list[dict[str, Any]]:
    """What the page's script is given to draw."""
    return [json.loads(figure.find("script").text) for figure in tree.iter("figure")]
