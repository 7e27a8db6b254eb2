"""`gpubench plot`, as users run it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from xml.etree import ElementTree

import committed
import pytest
from place import Place

from gpubench.basics.errors import UnusableError
from gpubench.basics.safe_name import make_safe_file_name
from gpubench.commands.plot import plot as plot_folders
from gpubench.render import draw
from gpubench.render.pictures.pictures import KINDS
from gpubench.results.packed import unpack_folder


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A copy of a results folder, without the pictures of its page."""
    made = tmp_path / "h200-pairs-2026"
    shutil.copytree(committed.folder("h200-pairs-2026"), made)
    shutil.rmtree(made / "plots", ignore_errors=True)
    return made


@pytest.mark.slow
def test_all_pictures_lie_in_the_results_folder_and_their_paths_are_printed(
    place: Place, results: Path
) -> None:
    ended = place.run("plot", str(results))
    assert (ended.returncode, ended.stderr) == (0, "")
    names = ["together", "trial-t62ed0fad9045"]
    assert ended.stdout.splitlines() == [str(results / "plots" / f"batch-size-{name}.svg") for name in names]
    for line in ended.stdout.splitlines():
        assert Path(line).read_text("utf-8").startswith("<svg")


def test_a_folder_that_cannot_be_read_is_told_by_the_exit_code(place: Place, results: Path) -> None:
    ended = place.run("plot", str(results), "nothing", "--only", "together")
    assert (ended.returncode, ended.stdout.splitlines()) == (
        4,
        [str(results / "plots/batch-size-together.svg")],
    )
    assert "nothing is not a results" in ended.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_read_only_folder_says_so(place: Place, results: Path) -> None:
    results.chmod(0o555)
    ended = place.run("plot", str(results))
    results.chmod(0o755)
    assert ended.returncode == 4
    assert "--out" in ended.stderr


@pytest.mark.slow
def test_a_trial_by_the_beginning_of_its_id(place: Place, results: Path) -> None:
    unpack_folder(results, print)
    name = next(path.name for path in sorted((results / "samples").glob("*/*.csv"))).rpartition("-")[0]
    ended = place.run("plot", str(results), "--trial", name[:6], "--out", "out")
    assert ended.returncode == 0, ended.stderr
    assert Path(ended.stdout.strip()).name == f"batch-size-trial-{name}.svg"
    several = place.run("plot", str(results), "--trial", "t")
    assert (several.returncode, several.stdout) == (2, "")
    assert "give more of it" in several.stderr
    none = place.run("plot", str(results), "--trial", "zzz")
    assert none.returncode == 2
    assert "begins with 'zzz'" in none.stderr


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--only", "groth"), "unknown picture 'groth': did you mean growth?"),
        (("--only", "pairs"), "No such picture: pairs; write --only together"),
        (("--terminal",), "No such option: --terminal; gpubench plot writes files, and gpubench table"),
        (("--trial", "t1", "--only", "growth"), "--trial draws that trial's samples alone"),
    ],
)
def test_wrong_options_are_told(place: Place, given: tuple[str, ...], said: str) -> None:
    ended = place.run("plot", str(committed.folder("h200-pairs-2026")), *given)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert said in ended.stderr


@pytest.mark.slow
def test_a_sweep_that_is_broken_still_has_its_pictures(place: Place, results: Path) -> None:
    unpack_folder(results, print)
    damaged = min((results / "records").glob("*/*.json"))
    damaged.write_text("{")
    for path in (results / "samples").glob("*/*.csv"):
        path.write_text("t_s,device,metric,value\nx,y\n1,0,gpu_util_pct\n")
    ended = place.run("plot", str(results))
    assert ended.returncode == 0
    assert damaged.name in ended.stderr
    assert "trial" not in ended.stdout
    only = place.run("plot", str(results), "--only", "trial")
    assert (only.returncode, only.stdout) == (4, "")
    assert ".csv is damaged: 2 of" in only.stderr


@pytest.mark.slow
def test_for_a_paper_a_picture_fits_a_column_and_has_no_title(place: Place, results: Path) -> None:
    ended = place.run(
        "plot", str(results), "--only", "together", "--paper", "--out", "out", "--format", "svg,pdf"
    )
    assert ended.returncode == 0
    picture, _ = ended.stdout.splitlines()
    assert {path.suffix for path in (place.home / "out").iterdir()} == {".svg", ".pdf"}
    root = ElementTree.fromstring((place.home / picture).read_bytes())
    assert 2.5 < float(root.attrib["width"]) / 96 < 3.9
    assert "No full overlap" not in "".join(root.itertext())
    assert "0.93 times" in "".join(root.itertext())


def test_where_vl_convert_is_missing_one_line_says_what_brings_it(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draw, "has_vl_convert", lambda: False)
    with pytest.raises(UnusableError, match=r"pip install vl-convert-python"):
        plot_folders([results], out=None, formats=None, only=None, trial_id=None, is_paper=False)


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("../../etc/passwd", "etc_passwd"), ("...", "picture"), ("x" * 500, "x" * 120), ("größe", "größe"),
        ("gro\u0308\u00dfe sweep", "größe_sweep"), ("한국어 हिन्दी", "한국어_हिन्दी"), ("大" * 50, "大" * 40),
        ("lost\udce4nul\0tab\tend\u202e", "lost_nul_tab_end"),
    ],
)  # fmt: skip
def test_names_of_files_are_safe(name: str, safe: str) -> None:
    assert make_safe_file_name(name, "picture") == safe


def test_the_docs_name_every_picture() -> None:
    page = (committed.ROOT / "docs" / "plots.md").read_text("utf-8")
    assert [
        line.split("`")[1] for line in page.splitlines() if line.startswith("| `") and "--only" not in line
    ] == list(KINDS)
