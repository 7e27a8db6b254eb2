"""`gpubench plot`, as users run it."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import committed
import pytest
from warm_command import WarmCommand

from gpubench.basics.errors import UnusableError
from gpubench.basics.safe_name import safe_name
from gpubench.commands.plot import plot as plot_folders
from gpubench.render import draw
from gpubench.render.pictures.pictures import KINDS
from gpubench.results.packed import unpack

Plot = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def plot(warm_command: WarmCommand, tmp_path: Path) -> Plot:
    """Runs `gpubench plot` with these arguments."""

    def run(*arguments: object, **env: str) -> subprocess.CompletedProcess[str]:
        told = {"PATH": "/usr/bin:/bin", "HOME": os.environ.get("HOME", "/"), **env}
        return warm_command.run(("plot", *map(str, arguments)), cwd=tmp_path, env=told, timeout=120)

    return run


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A copy of a results folder, without the pictures of its page."""
    made = tmp_path / "h200-pairs-2026"
    shutil.copytree(committed.folder("h200-pairs-2026"), made)
    shutil.rmtree(made / "plots", ignore_errors=True)
    return made


@pytest.mark.slow
def test_all_pictures_lie_in_the_results_folder_and_their_paths_are_printed(
    plot: Plot, results: Path
) -> None:
    ended = plot(results)
    assert (ended.returncode, ended.stderr) == (0, "")
    names = ["together", "trial-t62ed0fad9045"]
    assert ended.stdout.splitlines() == [str(results / "plots" / f"batch-size-{name}.svg") for name in names]
    for line in ended.stdout.splitlines():
        assert Path(line).read_text("utf-8").startswith("<svg")


def test_formats_and_pictures_that_were_asked_for(plot: Plot, results: Path, tmp_path: Path) -> None:
    ended = plot(results, "--out", tmp_path / "out", "--format", "png,pdf", "--only", "together")
    assert ended.returncode == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "batch-size-together.png",
        "batch-size-together.pdf",
    }


def test_a_folder_that_cannot_be_read_is_told_by_the_exit_code(plot: Plot, results: Path) -> None:
    ended = plot(results, "nothing", "--only", "together")
    assert (ended.returncode, ended.stdout.splitlines()) == (
        4,
        [str(results / "plots/batch-size-together.svg")],
    )
    assert "nothing is not a results" in ended.stderr


@pytest.mark.slow
def test_of_several_folders_nothing_overwrites_anything(plot: Plot, results: Path, tmp_path: Path) -> None:
    twin = tmp_path / "deep" / results.name
    shutil.copytree(results, twin)
    ended = plot(results, twin, "--out", tmp_path / "out", "--only", "together")
    assert ended.returncode == 0
    written = [Path(line).name for line in ended.stdout.splitlines()]
    assert written == ["h200-pairs-2026-batch-size-together.svg", "h200-pairs-2026-batch-size-together-2.svg"]


@pytest.mark.slow
def test_a_picture_of_ours_is_written_over(plot: Plot, results: Path) -> None:
    asked = (results, "--only", "together", "--format", "svg,png,pdf")
    assert plot(*asked).returncode == plot(*asked).returncode == 0


@pytest.mark.slow
def test_a_folder_that_can_t_be_written_says_so(plot: Plot, results: Path) -> None:
    (results / "plots").write_text("a file")
    ended = plot(results)
    assert ended.returncode == 4
    assert "can't be written" in ended.stderr
    assert "--out" in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_read_only_folder_says_so(plot: Plot, results: Path) -> None:
    results.chmod(0o555)
    ended = plot(results)
    results.chmod(0o755)
    assert ended.returncode == 4
    assert "--out" in ended.stderr


@pytest.mark.slow
def test_a_path_that_the_terminal_can_not_say_ends_no_command(results: Path) -> None:
    folder = results.rename(results.with_name("größe"))
    ended = subprocess.run(
        [sys.executable, "-m", "gpubench", "plot", str(folder), "--only", "together"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.endswith("gr\\xf6\\xdfe/plots/batch-size-together.svg\n")


@pytest.mark.slow
def test_a_trial_by_the_beginning_of_its_id(plot: Plot, results: Path, tmp_path: Path) -> None:
    unpack(results, print)
    name = next(path.name for path in sorted((results / "samples").glob("*/*.csv"))).rpartition("-")[0]
    ended = plot(results, "--trial", name[:6], "--out", tmp_path / "out")
    assert ended.returncode == 0, ended.stderr
    assert Path(ended.stdout.strip()).name == f"batch-size-trial-{name}.svg"
    several = plot(results, "--trial", "t")
    assert (several.returncode, several.stdout) == (2, "")
    assert "give more of it" in several.stderr
    none = plot(results, "--trial", "zzz")
    assert none.returncode == 2
    assert "begins with 'zzz'" in none.stderr


@pytest.mark.slow
def test_what_can_t_be_drawn_is_named_with_what_it_needs(plot: Plot, results: Path) -> None:
    ended = plot(results, "--only", "breakdown")
    assert (ended.returncode, ended.stdout) == (4, "")
    assert "--breakdown" in ended.stderr
    assert ended.stderr.count("\n") == 1
    also = plot(results, "--only", "breakdown,together")
    assert also.returncode == 0
    assert also.stderr.startswith("gpubench: no picture breakdown: ")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--only", "groth"), "unknown picture 'groth': did you mean growth?"),
        (("--format", "gif"), "unknown format 'gif'"),
        (("--only", "pairs"), "No such picture: pairs; write --only together"),
        (("--terminal",), "No such option: --terminal; gpubench plot writes files, and gpubench table"),
        (("--trial", "t1", "--only", "growth"), "--trial draws that trial's samples alone"),
    ],
)
def test_wrong_options_are_told(plot: Plot, results: Path, given: tuple[str, ...], said: str) -> None:
    ended = plot(results, *given)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert said in ended.stderr


@pytest.mark.slow
def test_a_sweep_that_is_broken_still_has_its_pictures(plot: Plot, results: Path) -> None:
    unpack(results, print)
    damaged = min((results / "records").glob("*/*.json"))
    damaged.write_text("{")
    for path in (results / "samples").glob("*/*.csv"):
        path.write_text("t_s,device,metric,value\nx,y\n1,0,gpu_util_pct\n")
    ended = plot(results)
    assert ended.returncode == 0
    assert damaged.name in ended.stderr
    assert "trial" not in ended.stdout
    only = plot(results, "--only", "trial")
    assert (only.returncode, only.stdout) == (4, "")
    assert ".csv is damaged: 2 of" in only.stderr


@pytest.mark.slow
def test_files_are_of_the_same_bytes_and_of_inches(plot: Plot, results: Path, tmp_path: Path) -> None:
    """96 pixels of an SVG are an inch, 72 points of a PDF. A PDF's parts stand in another order each time."""
    made: list[dict[str, bytes]] = []
    for name in ("a", "b"):
        assert (
            plot(
                results, "--only", "together", "--format", "svg,png,pdf", "--out", tmp_path / name
            ).returncode
            == 0
        )
        made.append({path.suffix: path.read_bytes() for path in (tmp_path / name).iterdir()})
    assert made[0][".svg"] == made[1][".svg"]
    assert made[0][".png"] == made[1][".png"]
    root = ElementTree.fromstring(made[0][".svg"])
    inches = float(root.attrib["width"]) / 96
    assert 5.5 < inches < 7.5
    assert struct.unpack(">I", made[0][".png"][16:20])[0] == pytest.approx(192 * inches, abs=2)
    _, _, box = made[0][".pdf"].partition(b"/MediaBox [0 0 ")
    assert float(box.split()[0]) == pytest.approx(72 * inches, abs=1)


def test_for_a_paper_a_picture_fits_a_column_and_has_no_title(
    plot: Plot, results: Path, tmp_path: Path
) -> None:
    ended = plot(results, "--only", "together", "--paper", "--out", tmp_path / "out")
    assert ended.returncode == 0
    root = ElementTree.fromstring(Path(ended.stdout.strip()).read_bytes())
    assert 2.5 < float(root.attrib["width"]) / 96 < 3.9
    assert "No full overlap" not in "".join(root.itertext())
    assert "0.93 times" in "".join(root.itertext())


@pytest.mark.slow
def test_fonts_come_with_the_package(results: Path, tmp_path: Path) -> None:
    """Widths of letters are not those of the machine, so that texts stand where they do elsewhere."""
    script = (
        "import sys; from pathlib import Path; from gpubench.commands.plot import plot;"
        f"plot([Path({str(results)!r})], out=Path(sys.argv[1]), formats='png', only='together', trial_id=None,"
        " is_paper=False)"
    )
    fonts = tmp_path / "fonts.conf"
    fonts.write_text("<fontconfig></fontconfig>")
    for name, env in (("a", {}), ("b", {"FONTCONFIG_FILE": str(fonts), "HOME": str(tmp_path)})):
        subprocess.run(
            [sys.executable, "-c", script, str(tmp_path / name)],
            env={**os.environ, **env},
            check=True,
            timeout=120,
        )
    one, other = (next((tmp_path / name).iterdir()).read_bytes() for name in ("a", "b"))
    assert one == other


def test_where_vl_convert_is_missing_one_line_says_what_brings_it(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draw, "has_converter", lambda: False)
    with pytest.raises(UnusableError, match=r"pip install vl-convert-python"):
        plot_folders([results], out=None, formats=None, only=None, trial_id=None, is_paper=False)


def test_descriptions_need_no_converter() -> None:
    script = "import sys, gpubench.commands.plot, gpubench.render.html; print('vl_convert' in sys.modules)"
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout == "False\n"


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("../../etc/passwd", "etc_passwd"), ("a b/c", "a_b_c"), ("...", "picture"), ("x" * 500, "x" * 120),
        ("mobilenet_v2-4gpu", "mobilenet_v2-4gpu"), ("größe", "größe"), ("", "picture"),
        ("gro\u0308\u00dfe sweep", "größe_sweep"), ("한국어 हिन्दी", "한국어_हिन्दी"), ("大" * 50, "大" * 40),
        ("lost\udce4nul\0tab\tend\u202e", "lost_nul_tab_end"),
    ],
)  # fmt: skip
def test_names_of_files_are_safe(name: str, safe: str) -> None:
    assert safe_name(name, "picture") == safe


@pytest.mark.slow
def test_a_picture_and_a_page_of_a_folder_are_called_alike(
    plot: Plot, results: Path, warm_command: WarmCommand, tmp_path: Path
) -> None:
    """Letters of any language stay; the picture's name lost them, and the page's kept the space, too."""
    folder = results.rename(tmp_path / "größe sweep")
    other = tmp_path / "other"
    shutil.copytree(folder, other)
    ended = plot(folder, other, "--out", tmp_path / "out", "--only", "together")
    assert ended.returncode == 0, ended.stderr
    written = [Path(line).stem for line in ended.stdout.splitlines()]
    assert written == ["größe_sweep-batch-size-together", "other-batch-size-together"]
    env = {"PATH": "/usr/bin:/bin"}
    page = warm_command.run(("export", str(folder), "--format", "html"), cwd=tmp_path, env=env, timeout=60)
    assert (page.stdout, (tmp_path / "größe_sweep.html").is_file()) == ("größe_sweep.html\n", True)


def test_the_docs_name_every_picture() -> None:
    page = (committed.ROOT / "docs" / "plots.md").read_text("utf-8")
    assert [
        line.split("`")[1] for line in page.splitlines() if line.startswith("| `") and "--only" not in line
    ] == list(KINDS)
