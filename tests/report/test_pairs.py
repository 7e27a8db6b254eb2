"""Half a matrix of every job beside every other."""

import io
import itertools

import pytest
from gpubench.analysis.slowdown import group_verdict
from gpubench.report import markdown, spreadsheet, terminal
from rich.console import Console
from test_tables import row, shown
from whole_rows import changed

from gpubench.basics.words import UNKNOWN

JOBS = (
    {"model": "resnet34", "batch_size": 16},
    {"model": "resnet34", "batch_size": 64},
    {"model": "mobilenet_v2", "batch_size": 64, "optimizer": "adam"},
)
LABELS = ["resnet34 16 optimizer=sgd", "resnet34 64 optimizer=sgd", "mobilenet_v2 64 optimizer=adam"]


def _told(job):
    """What stands in its row; `name` only tells it apart here."""
    return {name: value for name, value in job.items() if name != "name"}


def pair(jobs, slowdowns, status="ok", **values):
    """Two rows; `slowdowns` None: it did not end ok."""
    name = " & ".join(f"{j['model']} {j['batch_size']} {j.get('name', '')}" for j in jobs)
    name += f"{values.get('variant', '')}{values.get('gpu_ids') or [j.get('gpu_ids') for j in jobs]}"
    gain = None if slowdowns is None else sum(1 / s for s in slowdowns) - 1
    times = slowdowns or (None, None)
    return [
        row(0, status if n == 2 or status == "missing" else "ok" if slowdowns else "skipped",
            **{"optimizer": "sgd"} | _told(job) | {"group": name, "job": f"{n} of 2", "group_id": f"g{name}",
               "config_id": f"{name}{n}", "slowdown": time, "overlap_gain": gain,
               "sharing": group_verdict(gain, (), ()).cell} | values)
        for n, (job, time) in enumerate(zip(jobs, times, strict=True), 1)
    ]  # fmt: skip


def all_pairs(jobs=JOBS, **values):
    made = itertools.combinations(range(len(jobs)), 2)
    return [
        one for a, b in made for one in pair((jobs[a], jobs[b]), (1.5 + a, 1.25 + b), **values)
    ]  # slowdowns of their own, so that none can stand in another's cell


def alone(jobs=JOBS):
    return [row(0, **{"optimizer": "sgd"} | _told(job), config_id=f"alone{n}") for n, job in enumerate(jobs)]


def test_every_pair_has_its_cell_with_the_row_s_job_first():
    slowdowns, gains = shown([*alone(), *all_pairs()]).matrices
    assert slowdowns.headings == ("job", *LABELS[:2])
    assert slowdowns.cells == ((LABELS[1], "2.25 / 1.50", ""), (LABELS[2], "3.25 / 1.50", "3.25 / 2.50"))
    assert gains.cells == ((LABELS[1], "0.11", ""), (LABELS[2], "−0.03", "−0.29"))


def test_a_gain_that_allows_no_verdict_says_so():
    _, gains = shown([*alone(), *all_pairs(sharing=None)]).matrices
    assert gains.cells[0] == (LABELS[1], "0.11 (no verdict)", "")


def test_the_order_of_the_jobs_in_a_pair_plays_no_part():
    turned = [*pair((JOBS[1], JOBS[0]), (2.25, 1.5)), *all_pairs()[2:]]
    found = {cell for line in shown(turned).matrices[0].cells for cell in line[1:]} - {""}
    assert found == {"1.50 / 2.25", "3.25 / 1.50", "3.25 / 2.50"}


@pytest.mark.parametrize(
    ("status", "shows"), [("oom", "out of memory"), ("failed", "failed"), ("missing", UNKNOWN)]
)
def test_a_pair_that_did_not_end_ok_shows_how(status, shows):
    rows = [*all_pairs()[:4], *pair(JOBS[1:], None, status)]
    assert [m.cells[1][2] for m in shown(rows).matrices] == [shows, shows]


def test_a_pair_that_nobody_measured_is_unknown():
    four = [*JOBS, {"model": "lenet", "batch_size": 8}]
    rows = [one for n, one in enumerate(all_pairs(four)) if n // 2 != 2]
    assert shown(rows).matrices[0].cells[2][1] == UNKNOWN


def test_one_matrix_for_each_value_of_the_other_axes():
    rows = [*all_pairs(variant="cached"), *all_pairs(variant="synthetic")]
    titles = [matrix.title for matrix in shown(rows, axes=[["variant"]]).matrices]
    assert [title.partition("(")[2] for title in titles] == ["variant=cached)"] * 2 + [
        "variant=synthetic)"
    ] * 2


def test_too_few_pairs_and_copies_and_larger_groups_make_no_matrix():
    assert not shown(all_pairs()[:4]).matrices, "two pairs"
    assert not shown(alone()).matrices
    sizes = [{"model": "resnet34", "batch_size": b} for b in (16, 32, 64)]
    copies = [one for job in sizes for one in pair((job, job), (1.9, 1.9))]
    assert not shown(copies).matrices, "each beside itself"
    three = [changed(one, group="three", group_id="g3", job=f"{n} of 6") for n, one in enumerate(all_pairs())]
    assert not shown(three).matrices, "six jobs at once"


def test_a_job_beside_itself_stands_on_the_diagonal():
    rows = [*all_pairs(), *pair((JOBS[0], JOBS[0]), (1.9, 1.8))]
    slowdowns, _ = shown(rows).matrices
    assert slowdowns.headings == ("job", *LABELS)
    assert slowdowns.cells[0] == (LABELS[0], "1.90 / 1.80", "", "")
    assert slowdowns.cells[1] == (LABELS[1], "2.25 / 1.50", UNKNOWN, "")


def test_matrices_are_printed_between_rows_and_notes_and_stand_in_no_csv():
    table = shown([*alone(), *all_pairs()])
    text = terminal.text(table)
    title = table.matrices[0].title
    assert text.index("mobilenet_v2 ") < text.index(title) < text.index("overlap gain 0.11")
    (last,) = (line.split() for line in text.splitlines() if line.endswith("3.25 / 2.50"))
    assert last[-6:] == ["3.25", "/", "1.50", "3.25", "/", "2.50"]
    assert f"{title}:\n\n| job | {LABELS[0]} | {LABELS[1]} |\n| :--- | ---: | ---: |" in markdown.text(
        [table]
    )
    assert title not in spreadsheet.text([table])


def test_on_a_narrow_terminal_a_matrix_comes_in_blocks():
    out = io.StringIO()
    table = shown([*alone(), *all_pairs()])
    terminal.show([table], Console(file=out, force_terminal=True, color_system=None, width=46))
    lines = out.getvalue().splitlines()
    assert sum(line.startswith(LABELS[2]) for line in lines) >= 4, "in each block of both"
    assert max(len(line) for line in lines if "/ 1.50" in line) <= 46


SAME = {"model": "resnet34", "batch_size": 16}


@pytest.mark.parametrize("field", ["workers", "cpus"])
def test_jobs_may_differ_in_their_workers_or_cpus_alone(field):
    rows = all_pairs([SAME | {field: n, "name": n} for n in (1, 2, 3)])
    slowdowns, _ = shown(rows).matrices
    assert slowdowns.headings == ("job", f"{field}=1", f"{field}=2")
    assert slowdowns.cells[1] == (f"{field}=3", "3.25 / 1.50", "3.25 / 2.50")


def test_what_a_job_gets_because_of_its_neighbour_makes_it_no_other_job():
    """Pinned, on 16 CPUs: a job that asks for none has 14 beside one that asks for 2, and 12 beside one with 4."""
    asked = [{"batch_size": 16, "cpus": 2}, {"batch_size": 16, "cpus": 4}, {"batch_size": 16, "cpus": None}]
    rows = []
    for a, b in itertools.combinations(asked, 2):
        got = [one["cpus"] or 16 - (other["cpus"] or 0) for one, other in ((a, b), (b, a))]
        jobs = [
            SAME | {"cpus": n, "workers": n, "asked": one | {"workers": None}, "name": one["cpus"]}
            for one, n in zip((a, b), got, strict=True)
        ]
        rows += pair(jobs, (1.5, 1.25))
    slowdowns, _ = shown(rows).matrices
    assert slowdowns.headings == ("job", "cpus=2", "cpus=4")
    assert [line[0] for line in slowdowns.cells] == ["cpus=4", "cpus=auto"]
    assert slowdowns.cells[1][1:] == ("1.25 / 1.50",) * 2


def test_two_jobs_on_gpus_of_their_own_stand_in_no_matrix_of_one_gpu():
    on_one = all_pairs(gpu_ids=[0], gpus=1)
    own = pair([job | {"gpu_ids": [n + 1]} for n, job in enumerate(JOBS[:2])], (1.01, 1.02), gpus=1)
    apart = pair([{"model": "lenet", "batch_size": b, "gpu_ids": [b]} for b in (2, 3)], (1.0, 1.0), gpus=1)
    assert shown([*on_one, *own, *apart]).matrices == shown(on_one).matrices


def test_pairs_on_another_gpu_have_matrices_of_their_own():
    rows = [*all_pairs(gpu_ids=[0], variant="cached"), *all_pairs(gpu_ids=[1], variant="synthetic")]
    titles = [matrix.title.partition(" (")[2] for matrix in shown(rows).matrices]
    assert titles == ["gpu_ids=0)"] * 2 + ["gpu_ids=1)"] * 2
