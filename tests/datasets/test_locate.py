from __future__ import annotations

from pathlib import Path

import pytest

from gpubench.basics.errors import UnusableError, UsageError
from gpubench.datasets import copies, folder, locate, make
from gpubench.datasets.marker import make_data_home_path

TINY = "procedural:24x32"


def test_procedural_facts_come_from_the_recipe_and_need_no_disk(home: Path) -> None:
    facts = locate.collect_data_facts("procedural")
    assert (facts.train_images, facts.val_images, facts.num_classes) == (10_240, 1_024, 16)
    assert facts.fingerprint == make.make_procedural_marker().fingerprint
    assert facts.fingerprint == locate.collect_data_facts("procedural:10240").fingerprint
    small = locate.collect_data_facts("procedural:640x96")
    assert (small.train_images, small.val_images) == (640, 64)
    assert small.fingerprint == make.make_procedural_marker(640, 64, size=(96, 72)).fingerprint
    assert not home.exists()


@pytest.mark.parametrize("wrong", ["procedural:", "procedural:x96", "procedural:640x", "procedural:many"])
def test_a_misspelt_form_says_which_there_are(wrong: str) -> None:
    with pytest.raises(UsageError, match="procedural:IMAGESxSIDE"):
        locate.collect_data_facts(wrong)


def test_named_data_come_from_the_catalog() -> None:
    facts = locate.collect_data_facts("cifar10")
    assert (facts.kind, facts.root, facts.train_images, facts.size) == ("named", None, 50_000, 32)
    assert facts.fingerprint != locate.collect_data_facts("mnist").fingerprint
    assert locate.plan_making_steps("cifar10", "full", 32) == []


def test_an_unknown_name_gets_the_nearest_or_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"unknown data 'cifar': did you mean cifar10"):
        locate.collect_data_facts("cifar")
    with pytest.raises(UsageError, match=r"valid: .*cifar10.*or a path with a slash.*procedural"):
        locate.collect_data_facts("zzz")
    with pytest.raises(UsageError, match="does not exist"):
        locate.collect_data_facts("./zzz")


def test_a_folder_is_found_by_its_path(flat: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(flat.parent)
    facts = locate.collect_data_facts("flat")
    assert (facts.name, facts.root, facts.kind) == ("flat", str(flat), "folder")


def test_the_plan_says_in_words_what_ready_then_does() -> None:
    (step,) = locate.plan_making_steps("procedural", "full", 224)
    assert str(step) == "10,240 + 1,024 images to make (about 1.1 GB)"
    assert step.place == Path(str(locate.collect_data_facts("procedural").root))
    steps = locate.plan_making_steps(TINY, "resized", 16)
    assert [step.what.partition(" images to ")[::2] for step in steps] == [
        ("24 + 64", "make"),
        ("24 + 64", "resize to 16×16"),
    ]
    place = locate.ensure_variant_files(TINY, "resized", 16)
    assert locate.plan_making_steps(TINY, "resized", 16) == []
    assert folder.collect_folder_facts(place).size == 16
    (step,) = locate.plan_making_steps(TINY, "decoded", 8)
    assert step.what.endswith("decode to 8×8")
    images, _ = copies.open_decoded_split(locate.ensure_variant_files(TINY, "decoded", 8), "train")
    assert images.shape == (24, 3, 8, 8)
    made = locate.ensure_variant_files(TINY, "full", 999)
    assert folder.collect_folder_facts(made).fingerprint == locate.collect_data_facts(TINY).fingerprint


def test_what_needs_no_images_makes_none(home: Path) -> None:
    locate.ensure_variant_files("procedural", "none", 224)
    assert locate.plan_making_steps("procedural", "none", 224) == []
    assert not home.exists()


def test_a_folder_that_is_resized_already_is_taken_as_it_is(flat: Path, tmp_path: Path) -> None:
    copies.make_copy("resized", flat, tmp_path / "small", size=16)
    small = str(tmp_path / "small")
    assert locate.plan_making_steps(small, "resized", 16) == []
    assert locate.ensure_variant_files(small, "resized", 16) == tmp_path / "small"
    assert locate.plan_making_steps(small, "resized", 12) != []


def test_the_home_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert make_data_home_path() == tmp_path / "home"
    monkeypatch.delenv("GPUBENCH_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert make_data_home_path() == tmp_path / "cache" / "gpubench" / "data"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert make_data_home_path() == tmp_path / ".cache" / "gpubench" / "data"


def test_a_home_that_cannot_be_made_is_an_error_of_one_line(home: Path) -> None:
    home.write_text("a file")
    with pytest.raises(UnusableError, match=r"can't write into .*set GPUBENCH_DATA"):
        locate.ensure_variant_files(TINY, "full", 16)
