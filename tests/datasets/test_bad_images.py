"""Images that can't be used: found before anything trains, by what would read them; the others are the data."""

from __future__ import annotations

import errno
import os
import random
import shutil
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from photo_trees import save_photo

from gpubench.basics.errors import UnusableError, UsageError
from gpubench.datasets import bad_images, copies, folder, square
from gpubench.plan.experiment_file import format_experiment, parse_experiment
from gpubench.plan.options import apply_options
from gpubench.plan.sweep_options import ExperimentOptions
from gpubench.train.data import folder_source

SEED = random.Random(7)


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(width: int, height: int, depth: int, colour: int, packed: bytes) -> bytes:
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


def bomb() -> bytes:
    """20,000 × 20,000 black pixels of one bit in 50 kB: 1.2 GB once they are RGB."""
    return png(20_000, 20_000, 1, 0, zlib.compress(bytes(20_000 * (1 + 20_000 // 8)), 9))


def damaged_png() -> bytes:
    """One byte of its pixels is another: torchvision's decoder ends the process for it."""
    rows = b"".join(b"\0" + SEED.randbytes(150) for _ in range(50))
    whole = bytearray(png(50, 50, 8, 2, zlib.compress(rows)))
    whole[len(whole) // 2] ^= 0xFF
    return bytes(whole)


def deep_png() -> bytes:
    rows = b"".join(b"\0" + SEED.randbytes(60) for _ in range(10))
    return png(10, 10, 16, 2, zlib.compress(rows))


@pytest.fixture(scope="module")
def home_of_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUBENCH_DATA", str(home))
        yield home


@pytest.fixture(autouse=True)
def home(home_of_all: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In place of the fixture of this name for the whole folder: what was tried stays tried from test to test."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    monkeypatch.setenv("GPUBENCH_DATA", str(home_of_all))
    return home_of_all


BAD = {
    "train/ant/bomb.png": "exceeds limit of 178956970 pixels",
    "train/ant/cut.jpg": "runcated",
    "train/ant/damaged.png": "broken",
    "train/ant/dead.jpg": "No such file or directory",
    "train/ant/empty.jpg": "not an image",
    "train/ant/pipe.jpg": "not a file",
    "train/ant/text.jpg": "not an image",
    "val/bee/x\udcff\n.jpg": "not an image",
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all kinds of bad images, and with strange ones that are well."""
    root = tmp_path_factory.mktemp("tree")
    for split, count in (("train", 6), ("val", 2)):
        for name in ("ant", "bee"):
            for k in range(count):
                save_photo(root / split / name / f"{k}.jpg", k)
    ant = root / "train" / "ant"
    whole = (ant / "0.jpg").read_bytes()
    (ant / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    (ant / "empty.jpg").touch()
    (ant / "text.jpg").write_text("no image")
    (ant / "dead.jpg").symlink_to("nowhere.jpg")
    os.mkfifo(ant / "pipe.jpg")
    (ant / "bomb.png").write_bytes(bomb())
    (ant / "damaged.png").write_bytes(damaged_png())
    (root / "val" / "bee" / "x\udcff\n.jpg").write_text("no image")
    save_photo(ant / "folder.jpg" / "inside.jpg", 9)
    (ant / "deep.png").write_bytes(deep_png())
    from PIL import Image

    Image.open(ant / "0.jpg").convert("CMYK").save(ant / "cmyk.jpg")
    (ant / "trailing.jpg").write_bytes(whole + b"whatever a camera leaves there")
    return root


@pytest.fixture(scope="module")
def found(tree: Path, home_of_all: Path) -> tuple[bad_images.BadImage, ...]:  # noqa: ARG001 - it keeps the outcome
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "sched_getaffinity", lambda _: {0})  # each process imports torch
        return bad_images.find_bad_images(tree)


@pytest.fixture
def without(found: tuple[bad_images.BadImage, ...]) -> list[str]:
    return [one.path for one in found]


@pytest.mark.slow
def test_all_that_can_not_be_used_is_found_with_its_reason(found: tuple[bad_images.BadImage, ...]) -> None:
    assert [one.path for one in found] == list(BAD)
    for one in found:
        assert BAD[one.path] in one.reason


@pytest.mark.parametrize("what", ["mended", "touched", "added", "decoder"])
def test_what_has_changed_is_tried_again(flat: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    ant = flat / "ant"
    tried: list[str] = []
    monkeypatch.setattr(
        bad_images, "map_on_cpus", lambda _, paths, **__: [tried.append(path) for path in paths]
    )
    assert bad_images.find_bad_images(flat) == ()
    assert len(tried) == 40
    assert bad_images.find_bad_images(flat) == ()
    assert len(tried) == 40, "nothing has changed"
    if what == "mended":  # of the same size
        (ant / "001.jpg").write_bytes((ant / "001.jpg").read_bytes()[::-1])
    elif what == "touched":
        (ant / "001.jpg").touch()
    elif what == "added":
        save_photo(ant / "new.jpg", 99)
    else:
        monkeypatch.setattr(bad_images, "_find_package_version", lambda package: f"{package} 99")
    bad_images.find_bad_images(flat)
    assert len(tried) == 80 + (what == "added")


def test_the_data_are_those_of_a_copy_from_which_the_bad_images_were_deleted(
    tree: Path, without: list[str], tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(tree, copy, symlinks=True, ignore=lambda _, names: [n for n in names if n == "pipe.jpg"])
    for path in without:
        (copy / path).unlink(missing_ok=True)
    clean, skipped = folder.collect_folder_facts(copy), folder.collect_folder_facts(tree, without)
    assert clean.fingerprint == skipped.fingerprint
    assert (clean.skipped_images, skipped.skipped_images) == (0, len(BAD))
    assert (skipped.train_images, skipped.val_images) == (clean.train_images, clean.val_images) == (16, 4)
    for split in ("train", "val"):
        listed = [
            (p.removeprefix(f"{tree}/"), k) for p, k in folder.list_images(tree, split, without=without)
        ]
        assert listed == [(p.removeprefix(f"{copy}/"), k) for p, k in folder.list_images(copy, split)]


def test_a_clean_folder_is_the_same_data_whether_or_not_bad_images_are_left_out(flat: Path) -> None:
    assert folder.collect_folder_facts(flat, []) == folder.collect_folder_facts(flat)
    assert folder.collect_folder_facts(flat).skipped_images == 0


def test_images_are_held_out_as_if_the_bad_ones_were_not_there(flat: Path) -> None:
    (flat / "ant" / "0000.jpg").touch()  # the first by name: all others would move up
    held_out = [Path(path).name for path, _ in folder.list_images(flat, "val", without=["ant/0000.jpg"])]
    assert held_out == ["009.jpg", "019.jpg", "009.jpg"]


def test_a_class_of_which_nothing_is_left_is_one_line(flat: Path) -> None:
    cats = [f"cat/{path.name}" for path in sorted((flat / "cat").iterdir())]
    with pytest.raises(UsageError) as caught:
        folder.collect_folder_facts(flat, cats)
    assert str(caught.value) == (
        f"no image of the class {flat}/cat can be decoded: repair them, or remove it"
    )
    assert folder.collect_folder_facts(flat, cats[1:]).num_classes == 3


@pytest.mark.slow
def test_copies_lack_the_bad_images(tree: Path, without: list[str], tmp_path: Path) -> None:
    small = copies.make_copy("resized", tree, tmp_path / "small", size=8, without=without)
    assert folder.count_images(folder.list_images_by_split(small)) == {"train": 16, "val": 4}
    arrays = copies.make_copy("decoded", tree, tmp_path / "arrays", size=8, without=without)
    assert [len(copies.open_decoded_split(arrays, split)[1]) for split in ("train", "val")] == [16, 4]


def test_a_folder_of_gpubench_s_own_is_tried_too_and_keeps_its_size(flat: Path, tmp_path: Path) -> None:
    small = copies.make_copy("resized", flat, tmp_path / "small", size=8)
    made = folder.collect_folder_facts(small)
    for name, lost in (("00.jpg", 0), ("001.jpg", 1)):
        path = small / "train" / "ant" / name
        path.write_bytes(b"damaged")
        facts = folder.collect_folder_facts(small, [f"train/ant/{name}"])
        assert (facts.size, facts.skipped_images, facts.train_images) == (8, 1, made.train_images - lost)
        # Without a file that was never one of its images they are the same.
        assert (facts.fingerprint == made.fingerprint) is not bool(lost)
        path.unlink()


def test_an_error_of_the_disk_is_no_verdict_on_an_image(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It may pass; the outcome would be kept."""

    def fails(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    (tmp_path / "a.jpg").write_bytes(b"well")
    monkeypatch.setattr(square, "open_square", fails)
    with pytest.raises(UnusableError, match="can't be read: Input/output error; start again once it can"):
        folder_source.find_defect(str(tmp_path / "a.jpg"))


def test_the_outcome_is_written_whole_and_one_that_is_damaged_is_made_again(flat: Path, home: Path) -> None:
    before = set(home.iterdir())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bad_images, "TRY", "posixpath:basename")
        first = bad_images.find_bad_images(flat)
        (kept,) = set(home.iterdir()) - before
        kept.write_text(kept.read_text()[:-20])
        assert bad_images.find_bad_images(flat) == first
        # Nothing else is left there.
        assert set(home.iterdir()) - before == {kept}


# ---- how it is asked for and told ----


def test_the_policy_is_of_the_experiment_and_the_command_line_beats_it() -> None:
    file = parse_experiment('name = "x"\n[run]\nbad_images = "skip"\n', "x.toml")
    assert file.bad_images == "skip"
    assert parse_experiment(format_experiment(file, {}), "again").bad_images == "skip"
    assert apply_options(file, ExperimentOptions()).bad_images == "skip"
    assert apply_options(file, ExperimentOptions(bad_images="fail")).bad_images == "fail"
    plain = parse_experiment('name = "x"\n', "x.toml")
    assert plain.bad_images == "fail"
    # Earlier versions read the plan, too.
    assert "bad_images" not in format_experiment(plain, {})
    assert apply_options(plain, ExperimentOptions(bad_images="skip")).bad_images == "skip"
    for wrong in ('"drop"', "true", '""'):
        with pytest.raises(UsageError, match="bad_images"):
            parse_experiment(f'name = "x"\n[run]\nbad_images = {wrong}\n', "x.toml")


def test_the_first_twenty_are_named_and_a_file_names_all(tmp_path: Path) -> None:
    bad = [bad_images.BadImage(f"a/{k:02}.jpg", "not an image") for k in range(37)]
    told = bad_images.describe_bad_images(bad, 1_281_130, tmp_path, tmp_path / "all.txt")
    assert told[0] == (
        f"37 of 1,281,167 images in {tmp_path} can't be used and are left out (--bad-images skip):"
    )
    assert told[1:-1] == [f"  a/{k:02}.jpg: not an image" for k in range(20)]
    assert told[-1] == f"  and 17 more; {tmp_path / 'all.txt'} names them all"
    assert bad_images.describe_bad_images(bad[:20], 1, tmp_path, None)[-1].startswith("  a/19.jpg")
    assert bad_images.describe_bad_images([], 1, tmp_path, None) == []
    assert bad_images.format_bad_images_file(bad[:2]) == "".join(
        f"{image.path}\t{image.reason}\n" for image in bad[:2]
    )


def test_a_name_of_any_bytes_is_one_line() -> None:
    (line,) = bad_images.format_bad_images_file(
        [bad_images.BadImage("a\udcff\n\t\x1b[2J\u202eü.jpg", "r")]
    ).splitlines()
    assert line == "a\\xff\\n\\t\\x1b[2J\\u202eü.jpg\tr"
