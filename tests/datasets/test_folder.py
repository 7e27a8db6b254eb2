from __future__ import annotations

import os
import re
import shutil
import socket
from collections import Counter
from pathlib import Path

import pytest
from as_user import as_user

from gpubench.basics.errors import UsageError
from gpubench.datasets import folder


def touch(root: Path, *paths: str) -> Path:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(path.encode())
    return root


def names(root: Path, split: str, limit: int | None = None) -> list[tuple[str, int]]:
    return [
        (str(Path(path).relative_to(root)), label) for path, label in folder.list_images(root, split, limit)
    ]


@pytest.mark.parametrize("partner", folder.VALIDATION)
def test_a_folder_with_a_split_keeps_it(tmp_path: Path, partner: str) -> None:
    root = touch(tmp_path, "train/b/1.JPG", "train/a/2.png", "train/a/x/1.webp", f"{partner}/b/9.jpg")
    assert names(root, "train") == [("train/a/2.png", 0), ("train/a/x/1.webp", 0), ("train/b/1.JPG", 1)]
    assert names(root, "val") == [(f"{partner}/b/9.jpg", 1)]


def test_without_a_split_every_tenth_image_of_a_class_is_held_out(flat: Path) -> None:
    assert names(flat, "val") == [("ant/009.jpg", 0), ("ant/019.jpg", 0), ("bee/009.jpg", 1)]
    train = names(flat, "train")
    assert Counter(label for _, label in train) == {0: 23, 1: 11, 2: 3}
    assert not {path for path, _ in train} & {path for path, _ in names(flat, "val")}


def test_a_train_folder_without_a_partner_is_split_too(tmp_path: Path) -> None:
    root = touch(tmp_path, *(f"train/a/{k}.jpg" for k in range(10)), "test/1.jpg")
    assert names(root, "val") == [("train/a/9.jpg", 0)]
    assert len(names(root, "train")) == 9


def test_a_class_that_only_validation_has_gets_an_index_of_its_own(tmp_path: Path) -> None:
    root = touch(tmp_path, "train/a/1.jpg", "train/c/1.jpg", "val/b/1.jpg", "val/c/1.jpg")
    assert names(root, "train") == [("train/a/1.jpg", 0), ("train/c/1.jpg", 2)]
    assert names(root, "val") == [("val/b/1.jpg", 1), ("val/c/1.jpg", 2)]


def test_other_files_hidden_files_and_empty_folders_are_no_images(tmp_path: Path) -> None:
    root = touch(
        tmp_path, "a/1.jpg", "a/._1.jpg", "a/2.jpg/3.png", "a/notes.txt", ".cache/2.jpg", "cover.jpg"
    )
    (root / "b").mkdir()
    assert names(root, "train") == [("a/1.jpg", 0), ("a/2.jpg/3.png", 0)]
    assert folder.collect_folder_facts(root).num_classes == 1


@pytest.mark.parametrize("limit", [1, 3, 7, 12, 40])
def test_a_limit_is_spread_evenly_and_a_larger_one_contains_it(flat: Path, limit: int) -> None:
    every = folder.list_images(flat, "train")
    some = folder.list_images(flat, "train", limit)
    assert len(some) == min(limit, len(every))
    assert some == [image for image in every if image in some]  # the order of the full list
    assert set(some) <= set(folder.list_images(flat, "train", limit + 1))
    available = Counter(label for _, label in every)
    taken = Counter(label for _, label in some)
    most = max(taken.values())
    assert all(taken[label] >= min(most - 1, available[label]) for label in available)


def test_the_fingerprint_is_of_the_content_not_of_the_place_or_the_time(flat: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "deep" / "copy"
    shutil.copytree(flat, elsewhere, copy_function=shutil.copyfile)
    before = folder.collect_folder_facts(flat)
    after = folder.collect_folder_facts(elsewhere)
    assert after.fingerprint == before.fingerprint
    assert (before.root, after.root) == (str(flat), str(elsewhere))
    assert (before.train_images, before.val_images, before.num_classes) == (37, 3, 3)

    (elsewhere / "ant" / "001.jpg").rename(elsewhere / "ant" / "0010.jpg")
    renamed = folder.collect_folder_facts(elsewhere).fingerprint
    with (flat / "ant" / "001.jpg").open("ab") as file:
        file.write(b"\0")
    assert len({before.fingerprint, renamed, folder.collect_folder_facts(flat).fingerprint}) == 3


def test_an_empty_folder_says_which_layout_is_expected(tmp_path: Path) -> None:
    touch(tmp_path, "loose.jpg", "train/notes.txt")
    with pytest.raises(UsageError, match=r"no images in .*train/CLASS/\*\.jpg.*or CLASS/\*\.jpg"):
        folder.list_images(tmp_path, "train")


@pytest.mark.parametrize("kind", ["dead link", "fifo", "socket"])
def test_an_image_that_is_no_file_is_named(flat: Path, kind: str) -> None:
    bad = flat / "ant" / "x.jpg"
    if kind == "dead link":
        bad.symlink_to("gone.jpg")
    elif kind == "fifo":
        os.mkfifo(bad)  # opening it would wait for ever
    else:
        with socket.socket(socket.AF_UNIX) as end:
            end.bind(str(bad))
    with pytest.raises(UsageError, match=rf"^the image {bad} is no file") as caught:
        folder.collect_folder_facts(flat)
    assert "\n" not in str(caught.value)


def test_a_link_in_circles_is_named(flat: Path) -> None:
    (flat / "ant" / "more").symlink_to(flat / "bee")
    # A link to another folder is as good as that folder.
    assert folder.collect_folder_facts(flat).train_images == 48
    (flat / "bee" / "back").symlink_to(flat / "ant")
    with pytest.raises(UsageError, match=r"^the link .*(more|back) leads back to a folder that it lies in"):
        folder.collect_folder_facts(flat)


@pytest.mark.parametrize("what", ["ant", "ant/001.jpg"])
def test_what_must_not_be_read_is_named(room: Path, flat: Path, what: str) -> None:
    """Root may read everything, so somebody else looks."""
    tree = shutil.copytree(flat, room / "flat")
    (tree / what).chmod(0)
    reply = as_user(65534, lambda: folder.collect_folder_facts(tree))
    (tree / what).chmod(0o755)
    assert re.fullmatch(rf"UnusableError: can't read the image.*{what}.*", reply)
    assert "ermission" in reply


def test_a_link_to_itself_is_an_image_that_can_be_left_out(flat: Path) -> None:
    before = folder.collect_folder_facts(flat).train_images
    (flat / "ant" / "loop.jpg").symlink_to("loop.jpg")
    with pytest.raises(UsageError, match=r"loop\.jpg (is a link|is no file).*--bad-images skip"):
        folder.collect_folder_facts(flat)
    assert folder.collect_folder_facts(flat, {"ant/loop.jpg"}).train_images == before
